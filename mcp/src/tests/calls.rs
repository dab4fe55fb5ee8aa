//! From arguments to requests.

use serde_json::{Value, json};

use crate::call::{Arguments, Call, Verb, call};
use crate::tools::ToolName;

const ID: &str = "6740a1f2c3d4e5f607182920";

fn arguments(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

#[track_caller]
fn assert_get(tool: ToolName, given: Value, path: &str) {
    let expected = Call {
        path: path.to_owned(),
        verb: Verb::Get,
    };
    assert_eq!(call(tool, arguments(given)), Ok(expected));
}

#[test]
fn lists_have_a_default_limit() {
    assert_get(ToolName::ListBuckets, json!({}), "/api/buckets?limit=50");
    assert_get(
        ToolName::ListBuckets,
        json!({"limit": 5, "offset": 10}),
        "/api/buckets?limit=5&offset=10",
    );
    let sources = format!("/api/buckets/{ID}/sources?limit=50");
    assert_get(
        ToolName::ListSources,
        json!({"bucketId": ID, "limit": null}),
        &sources,
    );
    let rules = format!("/api/buckets/{ID}/alerts?limit=50&offset=0");
    assert_get(ToolName::ListRules, json!({"bucketId": ID, "offset": 0}), &rules);
}

#[test]
fn due_claims_only_if_asked_to() {
    assert_get(ToolName::Due, json!({}), "/api/evaluations/due?limit=10");
    assert_get(
        ToolName::Due,
        json!({"limit": 1, "claimSeconds": 60}),
        "/api/evaluations/due?limit=1&claim=60",
    );
}

#[test]
fn a_query_is_sent_as_it_is_but_for_a_limit_that_it_lacks() {
    let sent = |given: Value| match call(ToolName::Query, arguments(given)) {
        Ok(Call {
            path,
            verb: Verb::Post(body),
        }) if path == "/api/data/query" => body,
        other => panic!("{other:?}"),
    };
    let due = json!({"bucketId": ID, "filters": {"fields": ["t"]}, "limit": 10_000, "sort": "asc"});
    assert_eq!(sent(due.clone()), due);
    assert_eq!(
        sent(json!({"bucketId": ID})),
        json!({"bucketId": ID, "limit": 200})
    );
    assert_eq!(sent(json!({"limit": null})), json!({"limit": 200}));
}

#[test]
fn a_verdict_names_its_rule_in_the_path() {
    let given = json!({"ruleId": ID, "outcome": "met", "evidence": {"currentValue": 7}});
    let expected = Call {
        path: format!("/api/evaluations/{ID}/verdict"),
        verb: Verb::Post(json!({"outcome": "met", "evidence": {"currentValue": 7}})),
    };
    assert_eq!(call(ToolName::Verdict, arguments(given)), Ok(expected));
    let given = json!({"ruleId": ID, "outcome": "not_met", "evidence": null});
    let expected = Call {
        path: format!("/api/evaluations/{ID}/verdict"),
        verb: Verb::Post(json!({"outcome": "not_met"})),
    };
    assert_eq!(call(ToolName::Verdict, arguments(given)), Ok(expected));
}

#[test]
fn nothing_but_ids_and_integers_reaches_a_path() {
    for id in [
        json!(null),
        json!(7),
        json!("6740a1f2c3d4e5f60718292"),
        json!("6740A1F2C3D4E5F607182920"),
        json!("../../organization/keys?"),
    ] {
        for (tool, name) in [
            (ToolName::ListSources, "bucketId"),
            (ToolName::ListRules, "bucketId"),
            (ToolName::Verdict, "ruleId"),
        ] {
            let fault = call(tool, arguments(json!({name: id, "outcome": "met"}))).unwrap_err();
            assert!(fault.contains(name), "{fault}");
        }
    }
    for number in [json!("1&claim=9"), json!(-1), json!(1.5), json!([])] {
        let fault = call(ToolName::ListBuckets, arguments(json!({"limit": number}))).unwrap_err();
        assert!(fault.contains("limit"), "{fault}");
        let fault = call(ToolName::Due, arguments(json!({"claimSeconds": number}))).unwrap_err();
        assert!(fault.contains("claimSeconds"), "{fault}");
    }
}
