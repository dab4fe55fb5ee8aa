//! Deletion of buckets and sources: immediate, counted and permanent.

use serde_json::{Value, json};

use crate::scene::{self, array, call};
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

fn fill(bucket: &Bucket, source: &str, points: i64) {
    let now = now_ns();
    let points: Vec<Value> = (0..points)
        .map(|nth| point(source, now + nth * SECOND, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
}

#[test]
fn deleting_a_bucket_reports_what_was_removed_and_is_immediate() {
    let (mut server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    let kept = other.source("gauge", &["level"]);
    fill(&other, &kept, 10);
    let (first, second) = (
        bucket.source("first", &["level"]),
        bucket.source("second", &["level"]),
    );
    fill(&bucket, &first, 1500);
    fill(&bucket, &second, 7);
    let (write, read) = (bucket.key("write"), bucket.key("read"));

    let deleted = bucket
        .call("DELETE", "", &Value::Null)
        .expect(200, "spec: DELETE /api/buckets/:id");
    assert!(
        deleted["message"].is_string(),
        "spec: {{message, deletedBucket, deletedResources}}"
    );
    assert_eq!(
        deleted["deletedBucket"],
        json!({"_id": bucket.id, "name": "tides"}),
        "spec: deletedBucket {{_id, name}}"
    );
    let resources = json!({"dataSources": 2, "dataPoints": 1507, "apiKeys": 2, "alertRules": 0});
    assert_eq!(
        deleted["deletedResources"], resources,
        "spec: deletedResources of a bucket"
    );

    let gone = "contract 3: DELETE removes at once: the id is 404 from the next request on";
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        for (method, below) in [
            ("GET", String::new()),
            ("PATCH", String::new()),
            ("DELETE", String::new()),
            ("GET", "/keys".into()),
            ("GET", "/sources".into()),
            ("GET", format!("/sources/{first}")),
        ] {
            let body = if method == "PATCH" {
                json!({"description": "d"})
            } else {
                Value::Null
            };
            bucket.call(method, &below, &body).refused(404, gone);
        }
        bucket
            .single(&json!({"dataSourceId": first, "values": {"level": 1}}))
            .refused(404, gone);
        bucket.post_query(&json!({})).refused(404, gone);
        for key in [&write, &read] {
            let query = call(
                &account.client,
                key,
                "POST",
                "/api/data/query",
                &json!({"bucketId": bucket.id}),
            );
            query.refused(
                401,
                "spec: DELETE removes the bucket's API keys, and a deleted key is 401",
            );
        }
        let listed = call(
            &account.client,
            &account.admin,
            "GET",
            "/api/buckets",
            &Value::Null,
        )
        .json();
        assert_eq!(listed["pagination"]["total"], 1, "a deleted bucket is not listed");
        assert_eq!(
            other.rows(&json!({})).len(),
            10,
            "another bucket keeps what it has"
        );
    }
    let again = account.bucket("tides");
    assert_ne!(
        again.id, bucket.id,
        "the name of a deleted bucket is free, its id is not used again"
    );
    assert!(
        again.rows(&json!({})).is_empty(),
        "a new bucket of that name is empty"
    );
}

#[test]
fn deleting_a_source_reports_what_was_removed_and_is_immediate() {
    let (mut server, _, bucket) = scene::bucket();
    let kept = bucket.source("kept", &["level"]);
    let source = bucket.source("gauge", &["level"]);
    fill(&bucket, &kept, 5);
    fill(&bucket, &source, 1200);
    let path = format!("/sources/{source}");
    let deleted = bucket.call("DELETE", &path, &Value::Null);
    let deleted = deleted.expect(200, "contract 3: DELETE /api/buckets/:bucketId/sources/:sourceId");
    assert!(
        deleted["message"].is_string(),
        "contract 3: {{message, deletedDataSource, deletedResources}}"
    );
    assert_eq!(
        deleted["deletedDataSource"],
        json!({"_id": source, "name": "gauge"}),
        "contract 3: deletedDataSource"
    );
    let resources = json!({"dataPoints": 1200, "alertRules": 0});
    assert_eq!(
        deleted["deletedResources"], resources,
        "contract 3: deletedResources {{dataPoints, alertRules}}"
    );

    let gone = "contract 3: a deleted source is gone from the next request on";
    let mut again = None;
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        bucket.call("GET", &path, &Value::Null).refused(404, gone);
        bucket
            .call("PATCH", &path, &json!({"name": "x"}))
            .refused(404, gone);
        bucket.call("DELETE", &path, &Value::Null).refused(404, gone);
        bucket
            .single(&json!({"dataSourceId": source, "values": {"level": 1}}))
            .refused(404, gone);
        bucket
            .batch(&[json!({"dataSourceId": source, "values": {"level": 1}})])
            .refused(400, gone);
        bucket
            .post_query(&json!({"filters": {"dataSourceIds": [source]}}))
            .refused(404, gone);
        assert_eq!(bucket.rows(&json!({})).len(), 5, "{gone}, its points too");
        let grouped = bucket.query(&json!({"aggregation": "count", "groupBy": "month"}));
        for row in array(&grouped, "/data") {
            assert_eq!(row["dataSourceId"], kept, "{gone}, its groups too");
        }
        let stats = bucket.call("GET", "", &Value::Null).json()["bucket"]["stats"].clone();
        assert_eq!(stats["dataPointCount"], 5, "{gone}, from the bucket's stats too");
        let again = again.get_or_insert_with(|| bucket.source("gauge", &["level"]));
        assert_ne!(
            *again, source,
            "the name of a deleted source is free, its id is not used again"
        );
        let filters = json!({"dataSourceIds": [again]});
        assert!(
            bucket.rows(&filters).is_empty(),
            "a new source of that name has none of the old points"
        );
    }
}

/// An ingest concurrent with a deletion is acknowledged or answered 404, never 500.
#[test]
fn ingests_during_a_deletion_end_with_201_or_404() {
    let (_server, _, bucket) = scene::bucket();
    for round in 0..5 {
        let source = bucket.source(&format!("gauge {round}"), &["level"]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..30 {
                        let answer = bucket.single(&json!({"dataSourceId": source, "values": {"level": 1}}));
                        assert!(
                            matches!(answer.status, 201 | 404),
                            "an ingest beside a deletion: {answer}"
                        );
                    }
                });
            }
            scope.spawn(|| {
                bucket
                    .call("DELETE", &format!("/sources/{source}"), &Value::Null)
                    .expect(200, "a deletion")
            });
        });
        assert!(
            bucket.rows(&json!({})).is_empty(),
            "nothing of a deleted source remains"
        );
        let stats = bucket.call("GET", "", &Value::Null).json()["bucket"]["stats"].clone();
        assert_eq!(
            stats["dataPointCount"], 0,
            "nothing of a deleted source is counted"
        );
    }
}
