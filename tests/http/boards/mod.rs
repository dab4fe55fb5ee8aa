//! Boards (contract 15).

mod bounds;
mod shared;
mod shares;

pub use shares::share;

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_timestamp, call};
use crate::support::client::Answer;
use crate::support::given::{Account, text};

/// A panel that shows the points of a bucket.
pub fn panel(bucket_id: &str) -> Value {
    json!({
        "title": "level", "kind": "lines", "query": {"bucketId": bucket_id, "downsampling": false},
        "x": 0, "y": 0, "w": 6, "h": 4,
    })
}

pub fn body_with(panels: &Value) -> Value {
    json!({"name": "Plant", "range": "24h", "panels": panels})
}

fn send(account: &Account, method: &str, path: &str, body: &Value) -> Answer {
    call(
        &account.client,
        &account.admin,
        method,
        &format!("/api/boards{path}"),
        body,
    )
}

fn post(account: &Account, body: &Value) -> Answer {
    send(account, "POST", "", body)
}

/// Creates a board; returns it.
#[track_caller]
pub fn create(account: &Account, body: &Value) -> Value {
    let created = post(account, body).expect(201, "small print N.1: POST /api/boards");
    created["board"].clone()
}

/// Sends a change or a deletion with `If-Match`.
fn send_if(account: &Account, method: &str, id: &str, tag: &str, body: &Value) -> Answer {
    let request = account.client.request(method, &format!("/api/boards/{id}"));
    request
        .key(&account.admin)
        .header("If-Match", tag)
        .json(body)
        .send()
}

#[test]
fn a_board_is_shown_as_sent_and_absent_members_as_null() {
    let (mut server, account, bucket) = scene::bucket();
    let mut whole = json!({
        "name": "  Plant ", "range": {"startTime": "2026-03-01", "endTime": "2026-03-02T01:00:00.5+01:00"},
        "timezone": "Europe/Stockholm", "refreshSeconds": 5,
        "variables": [{"name": "pump", "default": "", "values": ["", "north"]}, {"name": "b", "default": null}],
        "panels": [
            {"title": "", "kind": "stat", "query": {"bucketId": "$b", "filters": {"fields": ["level"]}, "odd": 1.0},
             "unit": "m", "decimals": 0, "thresholds": [{"value": -1.5, "level": "warning"}, {"value": 2, "level": "good"}],
             "x": 11, "y": 1000, "w": 1, "h": 100},
            {"title": "rules", "kind": "rules", "query": {"bucketId": bucket.id}, "x": 0, "y": 0, "w": 12, "h": 1},
        ],
        "_id": UNKNOWN_ID, "version": 9, "odd": true,
    });
    let created = post(&account, &whole);
    assert_eq!(created.header("etag"), Some("\"1\""), "small print N.7");
    let board = created.expect(201, "small print N.1")["board"].clone();
    let id = text(&board, "/_id");
    assert_ne!(id, UNKNOWN_ID, "small print N.8: ids are never taken over");
    assert_timestamp(&board["createdAt"], "createdAt");
    for (name, value) in [
        ("_id", json!(id)),
        ("name", json!("Plant")),
        ("version", json!(1)),
        ("createdAt", board["createdAt"].clone()),
        ("updatedAt", board["createdAt"].clone()),
        (
            "range",
            json!({"startTime": "2026-03-01T00:00:00Z", "endTime": "2026-03-02T00:00:00.500Z"}),
        ),
    ] {
        whole[name] = value;
    }
    whole.as_object_mut().unwrap().remove("odd");
    whole["variables"][1]["values"] = Value::Null;
    for name in ["unit", "decimals", "thresholds"] {
        whole["panels"][1][name] = Value::Null;
    }
    assert_eq!(board, whole, "small print N.2");
    let bare = create(&account, &json!({"name": "Plant", "range": "52w", "panels": []}));
    assert_eq!(
        (&bare["timezone"], &bare["refreshSeconds"], &bare["variables"]),
        (&Value::Null, &Value::Null, &json!([])),
        "small print N.2: names need not be unique, absent ones show as null, variables as []"
    );
    server.kill();
    server.launch();
    let shown = send(&account, "GET", &format!("/{id}"), &Value::Null);
    assert_eq!(shown.header("etag"), Some("\"1\""), "small print N.7");
    assert_eq!(shown.json(), json!({"board": board}));
    let list = send(&account, "GET", "?limit=1", &Value::Null).expect(200, "small print N.1");
    assert_eq!(list["boards"], json!([board]), "contract 1: oldest first");
    assert_eq!(
        list["pagination"],
        json!({"limit": 1, "offset": 0, "total": 2, "hasMore": true})
    );
}

#[test]
fn a_change_replaces_members_whole_and_makes_a_version_if_it_changes_something() {
    let (_server, account, bucket) = scene::bucket();
    let mut expected = create(
        &account,
        &json!({
            "name": "Plant", "range": "24h", "timezone": "UTC", "refreshSeconds": 60,
            "variables": [{"name": "pump"}], "panels": [panel(&bucket.id)],
        }),
    );
    let id = text(&expected, "/_id");
    let mut version = 1;
    for (change, shown) in [
        (json!({}), None),
        (json!({"name": " Plant "}), None),
        (
            json!({"name": "Hall", "odd": 1, "version": 70}),
            Some(json!({"name": "Hall"})),
        ),
        (json!({"range": "1d"}), Some(json!({"range": "1d"}))),
        (
            json!({"refreshSeconds": null, "timezone": null}),
            Some(json!({"refreshSeconds": null, "timezone": null})),
        ),
        (json!({"name": null, "panels": null, "range": null}), None),
        (json!({"panels": []}), Some(json!({"panels": []}))),
        (json!({"variables": null}), Some(json!({"variables": []}))),
    ] {
        let answer = send(&account, "PATCH", &format!("/{id}"), &change);
        let board = answer.expect(200, "small print N.1")["board"].clone();
        for (name, value) in shown.iter().flat_map(|it| it.as_object().unwrap()) {
            expected[name] = value.clone();
        }
        if shown.is_some() {
            version += 1;
            expected["version"] = json!(version);
            expected["updatedAt"] = board["updatedAt"].clone();
        }
        assert_eq!(board, expected, "small print N.2, N.7: {change}");
        assert_eq!(
            answer.header("etag"),
            Some(&*format!("\"{version}\"")),
            "small print N.7"
        );
    }
}

#[test]
fn a_change_of_another_version_is_refused() {
    let (_server, account, _bucket) = scene::bucket();
    let id = text(&create(&account, &body_with(&json!([]))), "/_id");
    let rename = |tag: &str, name: &str| send_if(&account, "PATCH", &id, tag, &json!({"name": name}));
    rename("\"1\"", "a").expect(200, "small print N.7: the current ETag");
    for tag in ["\"1\"", "\"3\"", "2", "W/\"2\"", "\"02\"", "x", ""] {
        let refused = rename(tag, "b").refused(412, "small print N.7: any other value");
        assert_eq!(refused["error"], "Precondition Failed", "small print N.7: {tag}");
        send_if(&account, "DELETE", &id, tag, &json!({})).refused(412, "small print N.7");
    }
    rename("\"7\", \"2\"", "c").expect(200, "RFC 9110, 13.1.1: one of them");
    rename("*", "d").expect(200, "small print N.7: * matches");
    let shown = send(&account, "GET", &format!("/{id}"), &Value::Null).json();
    assert_eq!(
        (&shown["board"]["name"], &shown["board"]["version"]),
        (&json!("d"), &json!(4))
    );
    let deleted = send_if(&account, "DELETE", &id, "\"4\"", &json!({}));
    let deleted = deleted.expect(200, "small print N.1");
    assert_eq!(
        deleted["deletedBoard"],
        json!({"_id": id, "name": "d"}),
        "small print N.1"
    );
    rename("\"4\"", "e").expect(404, "it is gone");
}

#[test]
fn a_board_is_copied_exported_and_imported() {
    let (server, account, bucket) = scene::bucket();
    let name = "ä".repeat(100);
    let board = create(
        &account,
        &json!({"name": name, "range": "24h", "panels": [panel(&bucket.id)]}),
    );
    let id = text(&board, "/_id");
    let copied = send(&account, "POST", &format!("/{id}/copy"), &Value::Null);
    assert_eq!(copied.header("etag"), Some("\"1\""));
    let copy = copied.expect(201, "small print N.1: the body may be absent")["board"].clone();
    assert_eq!(copy["name"], json!(name), "small print N.1: cut to 100");
    assert_ne!(copy["_id"], board["_id"]);
    assert_eq!(copy["panels"], board["panels"]);
    let copied = send(&account, "POST", &format!("/{id}/copy"), &json!({"name": "Hall"})).json();
    let hall = text(&copied, "/board/_id");
    assert_eq!(copied["board"]["name"], "Hall");
    let again = send(&account, "POST", &format!("/{hall}/copy"), &json!({})).json();
    assert_eq!(again["board"]["name"], "Hall (copy)", "small print N.1");
    let exported = send(&account, "GET", &format!("/{hall}/export"), &Value::Null);
    assert_eq!(
        exported.header("content-disposition"),
        Some("attachment; filename=\"Hall.json\"")
    );
    let exported = exported.expect(200, "small print N.8");
    let mut members = scene::members(&exported);
    members.sort_unstable();
    let six = [
        "name",
        "panels",
        "range",
        "refreshSeconds",
        "timezone",
        "variables",
    ];
    assert_eq!(members, six, "small print N.8: the six members of it");
    let elsewhere = Account::sign_up(&server.client);
    for path in ["/import", ""] {
        let imported = send(&elsewhere, "POST", path, &exported).expect(201, "small print N.8: both take it");
        for name in six {
            assert_eq!(imported["board"][name], exported[name], "small print N.8");
        }
    }
    for (method, path) in [
        ("GET", ""),
        ("GET", "/export"),
        ("POST", "/copy"),
        ("PATCH", ""),
        ("DELETE", ""),
    ] {
        let path = format!("/{hall}{path}");
        send(&elsewhere, method, &path, &json!({})).expect(404, "contract 1: always 404");
    }
    let list = send(&elsewhere, "GET", "", &Value::Null).json();
    assert_eq!(array(&list, "/boards").len(), 2);
}
