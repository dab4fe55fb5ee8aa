//! Annotations (contract 14, "Notes").

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_faults, assert_timestamp, call, with_members};
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, text};
use crate::support::process::{Server, Setup};

const AT: &str = "2026-03-01T12:00:00Z";

fn body_in(bucket: &Bucket, more: &Value) -> Value {
    with_members(json!({"bucketId": bucket.id, "at": AT, "text": "note"}), more)
}

fn post(bucket: &Bucket, key: &str, more: &Value) -> Answer {
    let body = body_in(bucket, more);
    call(&bucket.client, key, "POST", "/api/annotations", &body)
}

/// Creates an annotation; returns its id.
#[track_caller]
fn create(bucket: &Bucket, more: &Value) -> String {
    let created = post(bucket, &bucket.admin, more).expect(201, "contract 14: POST /api/annotations");
    text(&created, "/annotation/_id")
}

fn one(bucket: &Bucket, key: &str, method: &str, id: &str, body: &Value) -> Answer {
    let path = format!("/api/annotations/{id}");
    call(&bucket.client, key, method, &path, body)
}

fn list(bucket: &Bucket, key: &str, query: &str) -> Answer {
    let path = format!("/api/annotations?{query}");
    call(&bucket.client, key, "GET", &path, &Value::Null)
}

/// The ids that a list has.
#[track_caller]
fn listed(bucket: &Bucket, key: &str, query: &str) -> Vec<String> {
    let answer = list(bucket, key, query).expect(200, "contract 14: GET /api/annotations");
    let annotations = array(&answer, "/annotations");
    annotations.iter().map(|it| text(it, "/_id")).collect()
}

#[test]
fn an_annotation_shows_its_members_and_a_change_keeps_what_it_does_not_name() {
    let (mut server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let (write, read) = (bucket.key("write"), bucket.key("read"));
    let spaced = " Filter cleaned.\n";
    let created = post(&bucket, &write, &json!({"text": spaced, "until": null}));
    let created = created.expect(201, "small print 29: write");
    let mut expected = created["annotation"].clone();
    let id = text(&expected, "/_id");
    assert!(created["message"].is_string());
    assert_timestamp(&expected["createdAt"], "createdAt");
    assert_eq!(
        expected,
        json!({
            "_id": id, "bucketId": bucket.id, "dataSourceId": null, "at": AT, "until": null, "text": spaced,
            "createdAt": expected["createdAt"], "createdBy": expected["createdBy"],
            "updatedAt": expected["createdAt"],
        }),
        "small print 31: absent ones are null"
    );
    let keys = bucket.call("GET", "/keys", &Value::Null).json();
    let key = array(&keys, "/apiKeys")
        .into_iter()
        .find(|key| key["name"] == "write");
    assert_eq!(
        expected["createdBy"],
        key.unwrap()["_id"],
        "small print 1: its id"
    );
    for (change, shown) in [
        (json!({"dataSourceId": source}), json!({"dataSourceId": source})),
        (
            json!({"until": "2026-03-01T14:00:00.5+01:00"}),
            json!({"until": "2026-03-01T13:00:00.500Z"}),
        ),
        (json!({"text": "x"}), json!({"text": "x"})),
        (json!({"at": "2026-03-01"}), json!({"at": "2026-03-01T00:00:00Z"})),
        (
            json!({"until": null, "dataSourceId": null}),
            json!({"until": null, "dataSourceId": null}),
        ),
        (json!({"bucketId": UNKNOWN_ID}), json!({})),
    ] {
        let answer = one(&bucket, &write, "PATCH", &id, &change).expect(200, "small print 29: write");
        for (name, value) in shown.as_object().unwrap() {
            expected[name] = value.clone();
        }
        expected["updatedAt"] = answer["annotation"]["updatedAt"].clone();
        assert_eq!(answer["annotation"], expected, "{change}");
    }
    server.kill();
    server.launch();
    let shown = one(&bucket, &read, "GET", &id, &Value::Null).expect(200, "small print 29: read");
    assert_eq!(shown, json!({"annotation": expected}), "small print 1");
    one(&bucket, &read, "DELETE", &id, &Value::Null).refused(403, "small print 29");
    one(&bucket, &read, "PATCH", &id, &json!({"text": "y"})).refused(403, "small print 29");
    post(&bucket, &read, &json!({})).refused(403, "small print 29");
    list(&bucket, &account.evaluator().key, "").refused(403, "small print 29: admin, write, read");
    let deleted = one(&bucket, &write, "DELETE", &id, &Value::Null).expect(200, "small print 29: write");
    assert_eq!(deleted["deletedAnnotation"], json!({"_id": id}), "small print 1");
    one(&bucket, &write, "GET", &id, &Value::Null).expect(404, "it is gone");
    assert_eq!(listed(&bucket, &read, ""), [""; 0]);
}

#[test]
fn a_list_is_filtered_by_bucket_source_and_range() {
    let (server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let (gauge, pump) = (
        bucket.source("gauge", &["level"]),
        bucket.source("pump", &["level"]),
    );
    let at = |minute: u32| format!("2026-03-01T12:{minute:02}:00Z");
    // In an order of creation that is neither that of their times nor that of their buckets.
    let late = create(&bucket, &json!({"at": at(50), "dataSourceId": gauge}));
    let elsewhere = create(&other, &json!({"at": at(5)}));
    let long = create(
        &bucket,
        &json!({"at": at(10), "until": at(20), "dataSourceId": pump}),
    );
    let moment = create(&bucket, &json!({"at": at(15), "until": at(15)}));
    let all = [&late, &elsewhere, &long, &moment];
    let key = bucket.key("read");
    let own = format!("bucketId={}", bucket.id);
    let range = |from: u32, to: u32| format!("startTime={}&endTime={}", at(from), at(to));
    for (query, expected) in [
        (String::new(), all.to_vec()),
        (own.clone(), vec![&late, &long, &moment]),
        (format!("bucketId={}", other.id), vec![&elsewhere]),
        (format!("dataSourceId={pump}"), vec![&long]),
        (format!("{own}&dataSourceId={gauge}"), vec![&late]),
        (range(0, 9), vec![&elsewhere]),
        (range(0, 10), vec![&elsewhere, &long]),
        (range(12, 13), vec![&long]),
        (range(15, 15), vec![&long, &moment]),
        (range(20, 30), vec![&long]),
        (format!("{own}&{}", range(21, 49)), vec![]),
        (format!("startTime={}", at(50)), vec![&late]),
        (format!("endTime={}", at(5)), vec![&elsewhere]),
        ("limit=2&offset=1".to_owned(), vec![&elsewhere, &long]),
    ] {
        assert_eq!(
            listed(&bucket, &account.admin, &query).iter().collect::<Vec<_>>(),
            expected,
            "small print 30: {query}"
        );
    }
    let page = list(&bucket, &account.admin, "limit=2&offset=1").json();
    assert_eq!(
        page["pagination"],
        json!({"limit": 2, "offset": 1, "total": 4, "hasMore": true})
    );
    assert_eq!(
        listed(&bucket, &key, ""),
        [late, long, moment],
        "small print 30: with a bucket key that bucket"
    );
    list(&bucket, &key, &format!("bucketId={}", other.id)).refused(403, "another bucket");
    for query in [
        format!("bucketId={UNKNOWN_ID}"),
        format!("dataSourceId={UNKNOWN_ID}"),
        format!("bucketId={}&dataSourceId={gauge}", other.id),
    ] {
        list(&bucket, &account.admin, &query)
            .refused(404, "contract 1: names nothing that the caller may see");
    }
    let foreigner = Account::sign_up(&server.client).bucket("tides");
    assert_eq!(listed(&foreigner, &foreigner.admin, ""), [""; 0]);
    for query in [own, format!("dataSourceId={gauge}")] {
        let refused = list(&foreigner, &foreigner.admin, &query).refused(404, "contract 1: always 404");
        let unknown = query.split('=').next().unwrap();
        let unknown = list(&foreigner, &foreigner.admin, &format!("{unknown}={UNKNOWN_ID}"));
        assert_eq!(
            refused["message"],
            unknown.json()["message"],
            "whether it exists is not told"
        );
    }
    for (query, fault) in [
        ("bucketId=x", "bucketId"),
        ("dataSourceId=x", "dataSourceId"),
        ("startTime=yesterday", "startTime"),
        ("endTime=5", "endTime"),
        ("startTime=2026-01-02&endTime=2026-01-01", "startTime"),
    ] {
        assert_faults(&list(&bucket, &account.admin, query), &[fault], query);
    }
}

#[test]
fn members_have_their_bounds() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let (source, foreign) = (
        bucket.source("gauge", &["level"]),
        other.source("gauge", &["level"]),
    );
    let fault = |more: &Value, path: &str| {
        assert_faults(&post(&bucket, &account.admin, more), &[path], "small print 31");
    };
    let longest = "ä".repeat(2_000);
    let id = create(
        &bucket,
        &json!({"text": longest, "until": AT, "dataSourceId": source}),
    );
    for text in [json!(format!("{longest}.")), json!(""), json!(5), Value::Null] {
        fault(&json!({"text": text}), "text");
    }
    fault(&json!({"at": "soon"}), "at");
    fault(&json!({"until": "2026-03-01T11:59:59.999999999Z"}), "until");
    fault(&json!({"dataSourceId": "x"}), "dataSourceId");
    let empty = call(
        &bucket.client,
        &account.admin,
        "POST",
        "/api/annotations",
        &json!({}),
    );
    assert_faults(&empty, &["bucketId", "at", "text"], "small print 1: required");
    post(&bucket, &account.admin, &json!({"dataSourceId": foreign}))
        .expect(404, "a source of another bucket");
    let patch = |body: &Value| one(&bucket, &account.admin, "PATCH", &id, body);
    let after = json!({"at": "2026-03-01T12:00:01Z"});
    assert_faults(
        &patch(&after),
        &["until"],
        "small print 31: `until` not before `at`",
    );
    assert_faults(&patch(&json!({"text": ""})), &["text"], "small print 31");
    patch(&json!({"dataSourceId": foreign})).expect(404, "a source of another bucket");
    patch(&json!({"text": null, "at": null})).expect(200, "null is as if absent");
    let shown = one(&bucket, &account.admin, "GET", &id, &Value::Null).json();
    assert_eq!(shown["annotation"]["text"], longest);
}

#[test]
fn annotations_are_bounded_and_go_with_their_source_or_bucket() {
    let server = Server::start_with(Setup::unlimited().set("limits.annotations_max", "3"));
    let (_server, account, bucket) = scene::bucket_on(server);
    let other = account.bucket("other");
    let source = bucket.source("gauge", &["level"]);
    let of_source = create(&bucket, &json!({"dataSourceId": source}));
    let of_bucket = create(&bucket, &json!({}));
    let elsewhere = create(&other, &json!({}));
    let refused = post(&other, &account.admin, &json!({})).refused(403, "one too many");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("limits.annotations_max"), "{message}");
    let path = format!("/sources/{source}");
    bucket.call("DELETE", &path, &Value::Null).expect(200, "deleted");
    one(&bucket, &account.admin, "GET", &of_source, &Value::Null)
        .expect(404, "small print 31: with their source");
    let again = create(&bucket, &json!({}));
    post(&other, &account.admin, &json!({})).refused(403, "one too many");
    assert_eq!(
        listed(&bucket, &account.admin, ""),
        [of_bucket, elsewhere.clone(), again]
    );
    bucket.call("DELETE", "", &Value::Null).expect(200, "deleted");
    assert_eq!(
        listed(&other, &account.admin, ""),
        [elsewhere],
        "small print 31: or bucket"
    );
    create(&other, &json!({}));
    create(&other, &json!({}));
}
