//! What the panels of a shared board show (small print N.9, N.10).

use serde_json::{Value, json};

use super::shares::share;
use super::{body_with, create, panel, send};
use crate::access::quota;
use crate::scene::{self, UNKNOWN_ID, array, assert_faults, call, in_days, members};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, point, text};
use crate::support::time::{HOUR, MINUTE, now_ns};

fn ask(client: &Client, token: &str, index: &str, body: &Value) -> Answer {
    let request = client.post(&format!("/api/shared/{token}/panels/{index}"));
    if body.is_null() {
        request.send()
    } else {
        request.json(body).send()
    }
}

/// A link to a new board.
#[track_caller]
fn link_to(account: &Account, body: &Value) -> String {
    let id = text(&create(account, body), "/_id");
    text(&share(account, &id, &in_days(1)), "/token")
}

fn levels(answer: &Value) -> Vec<Value> {
    let rows = array(answer, "/data");
    rows.iter().map(|row| row["values"]["level"].clone()).collect()
}

#[test]
fn a_panel_shows_what_its_query_answers_in_the_range_of_the_board() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let other = bucket.source("other", &["level"]);
    let now = now_ns() / MINUTE * MINUTE;
    let at = |hours: i64| now - hours * HOUR;
    let points = [
        point(&source, at(30), &json!({"level": 30})),
        point(&source, at(3), &json!({"level": 3})),
        point(&source, at(2), &json!({"level": 2})),
        point(&other, at(1), &json!({"level": 1})),
    ];
    bucket.send(&points);
    let time = crate::support::time::timestamp;
    let mut of_source = panel("$bucket");
    of_source["query"]["filters"] = json!({"dataSourceIds": ["$pump"]});
    let mut bounded = panel(&bucket.id);
    bounded["query"]["filters"] = json!({"startTime": time(at(31)), "endTime": time(at(29))});
    let mut local = panel(&bucket.id);
    local["query"] = json!({"bucketId": bucket.id, "aggregation": "count", "groupBy": "day", "fill": 0, "layout": "columns"});
    let mut body = body_with(&json!([panel(&bucket.id), of_source, bounded, local]));
    body["timezone"] = json!("Asia/Kathmandu");
    body["variables"] =
        json!([{"name": "pump", "default": source}, {"name": "bucket", "default": bucket.id}]);
    let token = link_to(&account, &body);
    let shown = |index: &str, body: &Value| {
        ask(&server.client, &token, index, body).expect(200, "small print N.9: POST …/panels/:index")
    };
    let none = Value::Null;
    assert_eq!(
        levels(&shown("0", &none)),
        [3, 2, 1],
        "small print N.6: the board's range"
    );
    assert_eq!(
        levels(&shown("0", &json!({"startTime": time(at(40))}))),
        [30, 3, 2, 1],
        "small print N.9"
    );
    assert_eq!(
        levels(&shown("0", &json!({"endTime": time(at(2))}))),
        [3, 2],
        "small print N.9"
    );
    assert_eq!(
        levels(&shown(
            "0",
            &json!({"limit": 1, "bucketId": UNKNOWN_ID, "filters": {"dataSourceIds": [other]}})
        )),
        [3, 2, 1],
        "small print N.9: no other body member has effect"
    );
    assert_eq!(
        levels(&shown("1", &none)),
        [3, 2],
        "small print N.4: the variables' defaults"
    );
    assert_eq!(
        levels(&shown("2", &json!({"startTime": time(at(50))}))),
        [30],
        "small print N.6: its own bounds"
    );
    let days = shown("3", &none);
    for day in array(&days, "/columns/timestamp") {
        assert!(
            day.as_str().unwrap().contains("T18:15:00"),
            "days of the board's time zone: {day}"
        );
    }
    let direct = bucket.post_query(&json!({"bucketId": bucket.id, "downsampling": false,
        "filters": {"startTime": time(at(24))}}));
    assert_eq!(
        shown("0", &none)["data"],
        direct.json()["data"],
        "small print N.9: what the query answers"
    );
    for (index, status) in [
        ("4", 404),
        ("99999999999999999999", 400),
        ("x", 400),
        ("-1", 400),
        ("+1", 400),
    ] {
        ask(&server.client, &token, index, &none).refused(status, "a panel that is not there");
    }
    for (body, fault) in [
        (json!({"startTime": "soon"}), "startTime"),
        (
            json!({"startTime": time(at(2)), "endTime": time(at(3))}),
            "startTime",
        ),
        (json!({"startTime": time(at(-5))}), "startTime"),
        (json!({"endTime": time(at(50))}), "endTime"),
    ] {
        assert_faults(
            &ask(&server.client, &token, "0", &body),
            &[fault],
            "small print N.9",
        );
    }
}

#[test]
fn a_panel_of_rules_shows_where_they_stand_and_no_secret() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let rule = bucket.evaluated_rule("judged", &source);
    let body = json!({
        "dataSourceId": source, "name": "plain", "condition": "level > 5", "webhookUrl": "https://hooks.invalid/secret",
    });
    bucket.rule(&body);
    let mut rules = panel(&bucket.id);
    rules["kind"] = json!("rules");
    let token = link_to(&account, &body_with(&json!([rules])));
    let answer = ask(&server.client, &token, "0", &json!({})).expect(200, "small print N.9: or rules");
    let shown = array(&answer, "/alertRules");
    assert_eq!(shown.len(), 2);
    assert_eq!(
        (&shown[0]["_id"], &shown[0]["state"]),
        (&json!(rule), &json!("armed"))
    );
    assert_eq!(
        (&shown[1]["name"], &shown[1]["state"]),
        (&json!("plain"), &json!("unevaluated"))
    );
    assert!(!answer.to_string().contains("hooks.invalid"), "{answer}");
    assert!(!members(&shown[0]).contains(&"evaluation"));
    assert_eq!(answer["pagination"]["total"], 2);
}

#[test]
fn a_panel_reaches_nothing_outside_of_the_organization() {
    let (server, account, bucket) = scene::bucket();
    let foreigner = Account::sign_up(&server.client);
    let foreign = foreigner.bucket("tides");
    let gone = account.bucket("gone");
    let mut rules = panel(&foreign.id);
    rules["kind"] = json!("rules");
    let mut open_ended = panel("$b");
    open_ended["query"]["filters"] = json!({"fields": ["$c"]});
    let mut body = body_with(&json!([
        panel(&foreign.id),
        rules,
        panel(&gone.id),
        panel(UNKNOWN_ID),
        open_ended
    ]));
    body["variables"] = json!([{"name": "b", "default": bucket.id}, {"name": "c"}]);
    let token = link_to(&account, &body);
    gone.call("DELETE", "", &Value::Null).expect(200, "deleted");
    for index in ["0", "1", "2", "3"] {
        ask(&server.client, &token, index, &Value::Null).refused(404, "small print N.10");
    }
    let refused = ask(&server.client, &token, "4", &Value::Null).refused(400, "a variable without a default");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("\"c\""), "{message}");
    let query = json!({"bucketId": foreign.id});
    let for_its_owner = call(&server.client, &account.admin, "POST", "/api/data/query", &query);
    for_its_owner.expect(404, "small print N.10: for its owner, too");
}

#[test]
fn what_a_link_shows_counts_against_no_quota() {
    quota::within_a_month();
    let server = scene::server_with("accounts.default_plan", "Free");
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let token = link_to(&account, &body_with(&json!([panel(&bucket.id)])));
    let left = || {
        let answer = send(&account, "GET", "", &Value::Null);
        answer
            .header("x-ratelimit-remaining")
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = left();
    for _ in 0..5 {
        ask(&server.client, &token, "0", &Value::Null).expect(200, "small print N.9");
    }
    assert_eq!(
        left(),
        before - 1,
        "small print N.9: such calls count against no quota"
    );
}
