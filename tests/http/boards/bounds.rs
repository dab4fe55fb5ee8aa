//! Bounds of a board's members (small print N.2 to N.6, N.11).

use serde_json::{Value, json};

use super::{body_with, create, panel, post, send};
use crate::scene::{self, UNKNOWN_ID, assert_faults};
use crate::support::given::{Account, text};

/// Posts a board that has these members instead.
#[track_caller]
fn fault(account: &Account, members: &Value, path: &str) {
    let mut body = body_with(&json!([]));
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    assert_faults(&post(account, &body), &[path], "small print N");
}

#[test]
fn members_of_a_board_have_their_bounds() {
    let (_server, account, _bucket) = scene::bucket();
    for (members, path) in [
        (json!({"name": "x".repeat(101)}), "name"),
        (json!({"name": " "}), "name"),
        (json!({"range": "0h"}), "range"),
        (json!({"range": "hour"}), "range"),
        (json!({"range": "53w"}), "range"),
        (json!({"range": 24}), "range"),
        (json!({"range": {"startTime": "2026-01-01"}}), "range/endTime"),
        (
            json!({"range": {"startTime": "2026-01-01", "endTime": "2026-01-01"}}),
            "range/startTime",
        ),
        (json!({"timezone": "+02:00"}), "timezone"),
        (json!({"refreshSeconds": 4}), "refreshSeconds"),
        (json!({"refreshSeconds": 86_401}), "refreshSeconds"),
        (json!({"variables": vec![json!({}); 21]}), "variables"),
        (
            json!({"variables": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}),
            "variables/2/name",
        ),
        (json!({"variables": [{"name": "1a"}]}), "variables/0/name"),
        (
            json!({"variables": [{"name": "a", "default": 5}]}),
            "variables/0/default",
        ),
        (
            json!({"variables": [{"name": "a", "values": vec![""; 1_001]}]}),
            "variables/0/values",
        ),
        (json!({"panels": vec![panel(UNKNOWN_ID); 101]}), "panels"),
        (json!({"panels": null}), "panels"),
    ] {
        fault(&account, &members, path);
    }
    assert_faults(
        &post(&account, &json!({})),
        &["name", "range", "panels"],
        "contract 15: required",
    );
    let variables: Vec<_> = (0..20).map(|n| json!({"name": format!("v{n}")})).collect();
    let most = json!({"name": "x".repeat(100), "range": "52w", "variables": variables, "panels": vec![panel(UNKNOWN_ID); 100]});
    create(&account, &most);
}

#[test]
fn members_of_a_panel_have_their_bounds() {
    let (_server, account, _bucket) = scene::bucket();
    let ids = json!(vec![json!({"value": 1, "level": "good"}); 11]);
    for (members, member) in [
        (json!({"title": "x".repeat(101)}), "title"),
        (json!({"title": null}), "title"),
        (json!({"kind": "pie"}), "kind"),
        (json!({"kind": null}), "kind"),
        (json!({"unit": "x".repeat(33)}), "unit"),
        (json!({"decimals": 11}), "decimals"),
        (json!({"decimals": -1}), "decimals"),
        (json!({"thresholds": ids}), "thresholds"),
        (
            json!({"thresholds": [{"value": "5", "level": "good"}]}),
            "thresholds/0/value",
        ),
        (
            json!({"thresholds": [{"value": 5, "level": "bad"}]}),
            "thresholds/0/level",
        ),
        (json!({"x": 12, "w": 1}), "x"),
        (json!({"w": 0}), "w"),
        (json!({"w": 13}), "w"),
        (json!({"x": 7}), "w"),
        (json!({"x": 11, "w": 2}), "w"),
        (json!({"y": 1_001}), "y"),
        (json!({"h": 0}), "h"),
        (json!({"h": 101}), "h"),
        (json!({"x": 0.5}), "x"),
        (json!({"query": null}), "query"),
        (json!({"query": "SELECT"}), "query"),
        (json!({"query": {}}), "query/bucketId"),
        (json!({"query": {"bucketId": "x"}}), "query/bucketId"),
        (json!({"query": {"bucketId": "$pump"}}), "query/bucketId"),
        (
            json!({"query": {"bucketId": UNKNOWN_ID, "filters": {"startTime": "x"}}}),
            "query/filters/startTime",
        ),
        (
            json!({"query": {"bucketId": UNKNOWN_ID, "groupBy": "hour"}}),
            "query/aggregation",
        ),
        (
            json!({"query": {"bucketId": UNKNOWN_ID, "aggregation": ["avg", "avg"], "groupBy": "1h"}}),
            "query/aggregation/1",
        ),
        (
            json!({"kind": "rules", "query": {"bucketId": 5}}),
            "query/bucketId",
        ),
    ] {
        let mut panel = panel(UNKNOWN_ID);
        for (name, value) in members.as_object().unwrap() {
            panel[name] = value.clone();
        }
        fault(
            &account,
            &json!({"panels": [super::panel(UNKNOWN_ID), panel]}),
            &format!("panels/1/{member}"),
        );
    }
}

#[test]
fn all_faults_of_a_board_are_reported_together() {
    let (_server, account, _bucket) = scene::bucket();
    let mut wrong = panel("x");
    wrong["x"] = json!(12);
    let body = json!({"name": "", "range": "1x", "refreshSeconds": 1, "panels": [wrong]});
    assert_faults(
        &post(&account, &body),
        &[
            "panels/0/query/bucketId",
            "name",
            "range",
            "refreshSeconds",
            "panels/0/x",
        ],
        "contract 1: all faults of one body together",
    );
}

#[test]
fn variables_stand_for_strings_in_queries_of_their_board() {
    let (_server, account, _bucket) = scene::bucket();
    let query = json!({
        "bucketId": "$b", "filters": {"dataSourceIds": ["$s", UNKNOWN_ID], "fields": ["$s"]}, "aggregation": "max",
        "groupBy": "$s", "fill": 0,
    });
    let mut asking = panel(UNKNOWN_ID);
    asking["query"] = query.clone();
    let body = json!({
        "name": "Plant", "range": "24h", "variables": [{"name": "b"}, {"name": "s"}], "panels": [asking],
    });
    let board = create(&account, &body);
    assert_eq!(board["panels"][0]["query"], query, "small print N.6: as sent");
    let path = format!("/{}", text(&board, "/_id"));
    let patch = |body: &Value| send(&account, "PATCH", &path, body);
    patch(&json!({"panels": [asking, asking]})).expect(200, "the board has the variables");
    for (change, faults) in [
        (
            json!({"variables": [{"name": "s"}]}),
            ["panels/0/query/bucketId", "panels/1/query/bucketId"].as_slice(),
        ),
        (
            json!({"variables": [{"name": "s"}], "panels": [asking]}),
            &["panels/0/query/bucketId"],
        ),
        (
            json!({"panels": [{"title": "", "kind": "rules", "query": {"bucketId": "$c"}, "x": 0, "y": 0, "w": 1, "h": 1}]}),
            &["panels/0/query/bucketId"],
        ),
    ] {
        assert_faults(
            &patch(&change),
            faults,
            "small print N.4: of a variable of the board",
        );
    }
    let unknown = send(
        &account,
        "PATCH",
        &format!("/{UNKNOWN_ID}"),
        &json!({"panels": [asking]}),
    );
    unknown.expect(404, "contract 10: after the 404 of the named resource");
}

#[test]
fn boards_are_bounded_in_number_and_bytes() {
    let (_server, account, _bucket) = scene::bucket();
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    for _ in 1..1_000 {
        send(&account, "POST", &format!("/{id}/copy"), &Value::Null).expect(201, "small print N.11");
    }
    for path in ["".to_owned(), "/import".to_owned(), format!("/{id}/copy")] {
        let refused = send(&account, "POST", &path, &body_with(&json!([])));
        refused.refused(409, "small print N.11: 1,000 an organization");
    }
    let mut large = panel(UNKNOWN_ID);
    large["query"]["metadata"] = json!({"note": "x".repeat(300_000)});
    let one = json!({"panels": [large]});
    let path = format!("/{id}");
    send(&account, "PATCH", &path, &one).expect(200, "less than 524,288 bytes");
    let two = json!({"panels": [large, large]});
    assert_faults(
        &send(&account, "PATCH", &path, &two),
        &["panels"],
        "what is exported can be imported",
    );
}

#[test]
fn boards_count_as_texts_of_the_organization() {
    let server = scene::server_with("limits.catalog_bytes_max", "2000");
    let (_server, account, _bucket) = scene::bucket_on(server);
    let large = json!(vec![panel(UNKNOWN_ID); 50]);
    let refused = post(&account, &body_with(&large)).refused(403, "a limit of the organization");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("limits.catalog_bytes_max"), "{message}");
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    send(&account, "PATCH", &format!("/{id}"), &json!({"panels": large}))
        .refused(403, "a limit of the organization");
}
