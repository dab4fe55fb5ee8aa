//! A window is evaluated completely or not at all.

use serde_json::{Value, json};

use super::fake::{Endpoint, Fake, Script, World};
use super::{evaluate_well, id, query, rule};

/// 25 rows of `late`, of which only the last is above 80.
fn late() -> World {
    let mut values = vec![json!(10); 24];
    values.push(json!(99));
    World::default().with_rows("late", values).with_pages_of(10)
}

fn bodies(fake: &Fake) -> Vec<Value> {
    fake.read(|world| {
        let body = |seen: &super::fake::Seen| serde_json::from_str(&seen.body).unwrap();
        world.of(Endpoint::Query).map(body).collect()
    })
}

#[test]
fn raw_rows_continue_at_the_cursor() {
    let fake = evaluate_well(late().with_due([rule(1, "late")]));
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!(
        (outcome.as_str(), &evidence["inputs"][0]["rows"]),
        ("met", &json!(25))
    );
    let mut expected = query("late");
    let mut seen = bodies(&fake).into_iter();
    assert_eq!(seen.next(), Some(expected.clone()));
    for cursor in ["10", "20"] {
        expected["cursor"] = json!(cursor);
        assert_eq!(seen.next(), Some(expected.clone()));
    }
    assert_eq!(seen.next(), None);
}

#[test]
fn groups_continue_at_the_offset() {
    let mut grouped = rule(1, "late");
    let query = &mut grouped["inputs"][0]["query"];
    query["aggregation"] = json!("max");
    query["groupBy"] = json!("minute");
    let mut expected = query.clone();
    let fake = evaluate_well(late().with_due([grouped]));
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!((outcome.as_str(), &evidence["currentValue"]), ("met", &json!(99)));
    assert_eq!(evidence["dataPoint"].get("metadata"), None);
    let mut seen = bodies(&fake).into_iter();
    assert_eq!(seen.next(), Some(expected.clone()));
    for offset in [10, 20] {
        expected["offset"] = json!(offset);
        assert_eq!(seen.next(), Some(expected.clone()));
    }
    assert_eq!(seen.next(), None);
}

#[test]
fn a_window_of_too_many_pages_is_inconclusive() {
    let world = World::default()
        .with_rows("late", vec![json!(99); 150])
        .with_pages_of(1);
    let fake = evaluate_well(world.with_due([rule(1, "late")]));
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!(outcome, "inconclusive");
    let reason = evidence["inputs"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("more than 100 pages"), "{reason}");
    assert_eq!(fake.read(|world| world.count(Endpoint::Query)), 100);
}

#[test]
fn a_failed_page_makes_the_window_inconclusive() {
    let first = r#"{"data":[{"timestamp":"2026-01-01T00:00:00Z","values":{"late":99}}],
                    "metadata":{"hasMore":true,"nextCursor":"1"}}"#;
    let endless = r#"{"data":[],"metadata":{"hasMore":true,"nextCursor":"1"}}"#;
    for second in [
        Script::Status(400),
        Script::Says(endless.into()),
        Script::Says("{}".into()),
    ] {
        let script = [Script::Says(first.into()), second];
        let fake = evaluate_well(
            late()
                .with_due([rule(1, "late")])
                .with_script(Endpoint::Query, script),
        );
        let (outcome, evidence) = fake.verdict(&id(1));
        assert_eq!(outcome, "inconclusive", "the first page alone would be met");
        let reason = evidence["inputs"][0]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("the window could not be read whole: "),
            "{reason}"
        );
    }
}

/// Metadata is passed on as text; a number outside the range of a double does not affect the verdict.
#[test]
fn unusual_metadata_does_not_fail_the_page() {
    let page = r#"{"data":[{"_id":"x","timestamp":"2026-01-01T00:00:00Z","values":{"late":99},
                            "metadata":{"n":1e999}}],"metadata":{"count":1,"hasMore":false}}"#;
    let script = [Script::Says(page.into())];
    let fake = evaluate_well(
        late()
            .with_due([rule(1, "late")])
            .with_script(Endpoint::Query, script),
    );
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!((outcome.as_str(), &evidence["currentValue"]), ("met", &json!(99)));
    assert_eq!(evidence["dataPoint"].get("metadata"), None);
}
