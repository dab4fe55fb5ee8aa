//! Retention of history (90 days) and deliveries (7 days); lists in pages, newest first, with restarts.

use serde_json::{Value, json};

use crate::client::Client;
use crate::time::{DAY, SECOND, timestamp};
use crate::waiting::until;
use crate::world::{START, Scene, receiver, scene};

const DAY_SECONDS: i64 = DAY / SECOND;

/// Entries of a list, and its total.
#[track_caller]
fn page(scene: &Scene, path: &str, member: &str) -> (Vec<Value>, Value) {
    let client: &Client = &scene.world.client;
    let answer = client.get(path).key(&scene.account.admin).send();
    let answer = answer.expect(200, "contract 1: lists of this page paginate");
    let entries = answer[member].as_array().cloned().unwrap_or_default();
    (entries, answer["pagination"]["total"].clone())
}

#[test]
fn history_is_kept_for_ninety_days_newest_first() {
    let mut scene = scene();
    let rule = scene.rule("judged", 60, 0);
    let mut expected = Vec::new();
    // A verdict every ten days, every second one a trigger, with restarts.
    for nth in 0..12 {
        let outcome = ["met", "not_met"][nth % 2];
        scene.evaluator.evaluate(&rule, outcome);
        let at = timestamp(*START + i64::try_from(nth).unwrap() * 10 * DAY_SECONDS * SECOND);
        expected.insert(0, json!([at, "verdict", outcome]));
        if outcome == "met" {
            expected.insert(0, json!([at, "trigger", outcome]));
        }
        scene.world.advance(10 * DAY_SECONDS);
        if nth % 5 == 4 {
            scene.world.restart(0);
        }
    }
    // Day 120: entries younger than 90 days are listed.
    let cutoff = timestamp(*START + 30 * DAY);
    expected.retain(|entry| entry[0].as_str() > Some(&cutoff));
    let summary = |entry: &Value| json!([entry["at"], entry["kind"], entry["outcome"]]);
    let path = format!("/api/alerts/{rule}/history");
    let sentence = "contract 6: verdicts and triggers, newest first, kept 90 days";
    let (all, total) = page(&scene, &path, "history");
    let younger = all
        .iter()
        .map(summary)
        .filter(|entry| entry[0].as_str() > Some(&cutoff));
    assert_eq!(younger.collect::<Vec<_>>(), expected, "{sentence}");
    assert!(
        all.len() <= expected.len() + 2,
        "{sentence}, not longer than that (the one of day 30 is at the edge): {all:?}"
    );
    assert_eq!(total, all.len(), "contract 1: `total`");
    let mut paged = Vec::new();
    for offset in (0..all.len()).step_by(4) {
        let (part, _) = page(&scene, &format!("{path}?limit=4&offset={offset}"), "history");
        paged.extend(part);
    }
    assert_eq!(paged, all, "contract 1: pages put together are the whole list");
    scene.world.advance(91 * DAY_SECONDS);
    let (left, total) = page(&scene, &path, "history");
    assert!(left.is_empty() && total == 0, "{sentence}, not longer: {left:?}");
    assert_eq!(
        scene.bucket.show(&rule)["lastOutcome"],
        "not_met",
        "where the rule stands does not age"
    );
}

#[test]
fn an_idempotency_key_is_kept_a_day() {
    let mut scene = scene();
    let body = json!({"bucketId": scene.bucket.id, "dataSourceId": scene.source, "values": {"level": 1}});
    let send = |scene: &Scene| {
        let request = scene.world.client.post("/api/data").key(&scene.account.admin);
        let answer = request.header("Idempotency-Key", "once").json(&body).send();
        answer.expect(201, "contract 4: Idempotency-Key");
        answer.header("idempotent-replayed").map(str::to_owned)
    };
    let sentence = "contract 4: within 24 hours the same key gives the first answer again";
    assert_eq!(send(&scene), None, "the first of its key");
    scene.world.advance(DAY_SECONDS - 1);
    assert_eq!(send(&scene).as_deref(), Some("true"), "{sentence}");
    scene.world.restart(0);
    assert_eq!(send(&scene).as_deref(), Some("true"), "{sentence}, over restarts");
    scene.world.advance(2);
    assert_eq!(send(&scene), None, "{sentence}, and no longer");
}

#[test]
fn a_token_is_valid_for_twelve_hours() {
    let mut scene = scene();
    let me = |scene: &Scene| {
        scene
            .world
            .client
            .get("/api/auth/me")
            .bearer(&scene.account.token)
            .send()
    };
    scene.world.advance(12 * 3600 - 1);
    scene.world.restart(0);
    let evaluation = me(&scene).expect(200, "contract 2: the bearer token is good for 12 h");
    assert_eq!(
        evaluation["user"]["email"], scene.account.email,
        "contract 2: GET /api/auth/me"
    );
    assert_eq!(
        evaluation["organization"]["_id"], scene.account.organization_id,
        "contract 2: GET /api/auth/me"
    );
    scene.world.advance(1);
    me(&scene).expect(401, "contract 2: and no longer");
}

#[test]
fn deliveries_are_kept_seven_days() {
    let mut scene = scene();
    let receiver = receiver();
    let hook = json!({"url": receiver.url("/hook"), "events": ["alert.triggered"]});
    let hook = scene.account.webhook(&hook)["_id"].as_str().unwrap().to_owned();
    let rule = scene.bucket.rule(&json!({
        "dataSourceId": scene.source, "name": "judged", "condition": "level > 5", "webhookUrl": receiver.url("/rule"),
        "evaluation": {"intervalSeconds": 60, "windowSeconds": 60, "dwellSeconds": 0, "parameters": {},
            "inputs": [{"key": "x", "field": "level"}]},
    }));
    let lists = [
        format!("/api/webhooks/{hook}/deliveries"),
        format!("/api/alerts/{rule}/deliveries"),
    ];
    for day in 1..=9 {
        let evaluation = scene.evaluator.evaluate(&rule, "met");
        assert_eq!(
            evaluation["triggered"], true,
            "with a dwell of 0 each excursion fires"
        );
        receiver.wait("/hook", day);
        receiver.wait("/rule", day);
        for path in &lists {
            until("the newest delivery has ended", || {
                let (listed, _) = page(&scene, path, "deliveries");
                listed
                    .iter()
                    .all(|delivery| delivery["status"] == "delivered")
                    .then_some(())
            });
        }
        scene.world.advance(60);
        scene.evaluator.evaluate(&rule, "not_met");
        scene.world.advance(DAY_SECONDS - 60);
        if day == 4 {
            scene.world.restart(0);
        }
    }
    // Nine days have passed with deliveries on each: those of days 0 and 1 are too old, that of day 2 is at the limit.
    for path in &lists {
        let (listed, total) = page(&scene, path, "deliveries");
        let sentence = "contract 7: newest first, kept 7 days";
        assert!(
            (6..=7).contains(&listed.len()),
            "{sentence}: {} of {path}",
            listed.len()
        );
        assert_eq!(total, listed.len(), "contract 1: `total`");
        let began: Vec<&str> = listed
            .iter()
            .map(|delivery| delivery["attempts"][0]["at"].as_str().unwrap())
            .collect();
        let expected: Vec<String> = (0..listed.len())
            .map(|back| timestamp(*START + (8 - i64::try_from(back).unwrap()) * DAY))
            .collect();
        assert_eq!(began, expected, "{sentence} ({path})");
    }
    let mut ids: Vec<String> = receiver
        .received("/hook")
        .iter()
        .map(|request| request.json()["webhookId"].to_string())
        .chain(
            receiver
                .received("/rule")
                .iter()
                .map(|r| r.header("x-webhook-id").unwrap_or("?").to_owned()),
        )
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(
        ids.len(),
        18,
        "contract 7: `webhookId` is different for every event and webhook"
    );
    let shown = scene
        .call("GET", &format!("/api/webhooks/{hook}"), &Value::Null)
        .json();
    assert_eq!(
        shown["webhook"]["totalDeliveries"], 9,
        "spec: totalDeliveries counts all time"
    );
}
