//! Buckets: create, show, list, change.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, assert_timestamp, call, column};
use crate::support::client::Answer;
use crate::support::given::{Account, point};
use crate::support::time::{DAY, now_ns};

fn create(account: &Account, body: &Value) -> Answer {
    call(&account.client, &account.admin, "POST", "/api/buckets", body)
}

#[test]
fn a_bucket_is_created_shown_and_listed() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let body = json!({"name": "  Tides  ", "description": "of the north", "retentionDays": 7});
    let created = create(&account, &body).expect(201, "spec: POST /api/buckets");
    assert!(created["message"].is_string(), "spec: {{message, bucket}}");
    let bucket = &created["bucket"];
    let expected = json!({
        "_id": bucket["_id"], "name": "Tides", "description": "of the north",
        "organizationId": account.organization_id, "retentionDays": 7, "status": "active",
        "createdAt": bucket["createdAt"], "updatedAt": bucket["updatedAt"],
    });
    assert_eq!(
        *bucket, expected,
        "spec: the fields of a bucket, its name trimmed, without stats"
    );
    assert_timestamp(&bucket["createdAt"], "bucket.createdAt");
    assert_timestamp(&bucket["updatedAt"], "bucket.updatedAt");

    let listed = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/buckets",
        &Value::Null,
    );
    let listed = listed.expect(200, "spec: GET /api/buckets");
    assert_eq!(
        listed["buckets"],
        json!([bucket]),
        "spec: the list shows buckets, stats only on get-one"
    );
    let path = format!("/api/buckets/{}", bucket["_id"].as_str().unwrap_or_default());
    let shown =
        call(&account.client, &account.admin, "GET", &path, &Value::Null).expect(200, "spec: GET one bucket");
    let mut expected = bucket.clone();
    expected["stats"] = json!({"dataSourceCount": 0, "dataPointCount": 0, "apiKeyCount": 0});
    assert_eq!(shown["bucket"], expected, "spec: get-one includes stats");
}

#[test]
fn names_have_1_to_100_characters_and_are_unique_after_trimming() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let named = |name: &str| create(&account, &json!({"name": name}));
    named("a").expect(201, "spec: name 1-100 characters");
    named(&"é".repeat(100)).expect(201, "spec: name 1-100 characters, not bytes");
    assert_faults(
        &named(&"é".repeat(101)),
        &["name"],
        "spec: bucket name over 100 chars",
    );
    for blank in ["", " ", "\t\n"] {
        assert_faults(&named(blank), &["name"], "contract 10: blank is 400");
    }
    for same in ["a", " a", "a  "] {
        named(same).refused(409, "contract 3: names are compared exactly after trimming");
    }
    for different in ["A", "á", "a a", "aa"] {
        named(different).expect(201, "contract 3: names are compared exactly");
    }
    let other = Account::sign_up(&server.client);
    create(&other, &json!({"name": "a"})).expect(201, "contract 3: unique within an organization");
}

#[test]
fn one_of_concurrent_creations_with_one_name_wins() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| create(&account, &json!({"name": "same"})).status))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let created = statuses.iter().filter(|status| **status == 201).count();
    let refused = statuses.iter().filter(|status| **status == 409).count();
    assert_eq!(
        (created, refused),
        (1, 7),
        "spec: duplicate bucket name is 409: {statuses:?}"
    );
}

#[test]
fn patch_changes_only_the_members_it_names() {
    let (mut server, account, bucket) = scene::bucket();
    account.bucket("taken");
    let before = bucket.call("GET", "", &Value::Null).json()["bucket"].clone();
    let patch = |body: Value| bucket.call("PATCH", "", &body);
    let mut expected = before.clone();
    expected.as_object_mut().unwrap().remove("stats");
    let steps = [
        (json!({"name": " ebb "}), "name", json!("ebb")),
        (
            json!({"description": "and flow"}),
            "description",
            json!("and flow"),
        ),
        (json!({"retentionDays": 12}), "retentionDays", json!(12)),
        (json!({"name": "ebb"}), "name", json!("ebb")),
        (json!({}), "name", json!("ebb")),
    ];
    for (body, member, value) in steps {
        let answer = patch(body.clone()).expect(200, &format!("contract 3: PATCH {body}"));
        assert!(answer["message"].is_string(), "contract 3: {{message, bucket}}");
        expected[member] = value;
        let mut shown = answer["bucket"].clone();
        assert_timestamp(&shown["updatedAt"], "bucket.updatedAt");
        let (was, is) = (
            before["updatedAt"].as_str().unwrap_or_default(),
            shown["updatedAt"].as_str().unwrap_or_default(),
        );
        assert!(was <= is, "updatedAt does not go back: {was} → {is}");
        shown["updatedAt"] = expected["updatedAt"].clone();
        shown.as_object_mut().unwrap().remove("stats");
        assert_eq!(
            shown, expected,
            "contract 3: PATCH {body} changes what it names and nothing else"
        );
    }
    patch(json!({"name": " taken "})).refused(409, "contract 3: names are unique within an organization");
    server.kill();
    server.launch();
    let after = bucket.call("GET", "", &Value::Null).json()["bucket"].clone();
    for member in ["name", "description", "retentionDays"] {
        assert_eq!(
            after[member], expected[member],
            "a PATCH that was answered survives a kill"
        );
    }
}

#[test]
fn shrinking_retention_hides_older_points_at_once() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let now = now_ns();
    for days in [20, 10, 3, 1] {
        let point = point(&source, now - days * DAY, &json!({"level": days}));
        bucket.single(&point).expect(201, "a point within retention");
    }
    bucket
        .call("PATCH", "", &json!({"retentionDays": 5}))
        .expect(200, "contract 3: PATCH retentionDays");
    let gone = "contract 10: a point older than retentionDays is gone from queries and stats at that moment";
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        assert_eq!(
            column(&bucket.rows(&json!({})), "/values/level"),
            [3, 1],
            "{gone} (raw)"
        );
        let grouped =
            bucket.query(&json!({"aggregation": "count", "groupBy": "month", "mergeSources": true}));
        let counted: i64 = array(&grouped, "/data")
            .iter()
            .filter_map(|row| row["values"]["level"].as_i64())
            .sum();
        assert_eq!(counted, 2, "{gone} (grouped)");
        let stats = bucket.call("GET", "", &Value::Null).json()["bucket"]["stats"].clone();
        assert_eq!(stats["dataPointCount"], 2, "{gone} (bucket stats)");
        let of_source = bucket
            .call("GET", &format!("/sources/{source}"), &Value::Null)
            .json();
        let stats = &of_source["dataSource"]["stats"];
        assert_eq!(stats["totalDataPoints"], 2, "{gone} (source stats)");
        let first = crate::support::time::timestamp(now - 3 * DAY);
        assert_eq!(stats["firstDataPoint"], first, "{gone} (firstDataPoint)");
    }
}

#[test]
fn stats_count_sources_points_and_keys() {
    let (mut server, _, bucket) = scene::bucket();
    let first = bucket.source("first", &["level"]);
    let second = bucket.source("second", &["level"]);
    bucket.key("read");
    bucket.key("write");
    bucket.key("write");
    let now = now_ns();
    let points: Vec<Value> = (0..30)
        .map(|nth| {
            point(
                if nth < 20 { &first } else { &second },
                now + nth,
                &json!({"level": nth}),
            )
        })
        .collect();
    bucket.send(&points);
    let expected = json!({"dataSourceCount": 2, "dataPointCount": 30, "apiKeyCount": 3});
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let shown = bucket
            .call("GET", "", &Value::Null)
            .expect(200, "spec: GET one bucket");
        assert_eq!(
            shown["bucket"]["stats"], expected,
            "spec: stats of a bucket (after a kill: {restarted})"
        );
    }
}
