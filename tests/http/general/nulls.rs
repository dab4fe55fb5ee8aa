//! Null in an optional member equals its absence, except where it has a meaning.

use serde_json::{Value, json};

use crate::scene::{self, call};

#[test]
fn null_equals_absent_for_every_optional_member() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let created = |method: &str, path: &str, body: Value| {
        let answer = call(&account.client, &account.admin, method, path, &body);
        assert!(answer.status < 300, "{method} {path} {body}: {answer}");
        answer.json()
    };
    let (of_bucket, of_source) = (
        format!("/api/buckets/{}", bucket.id),
        format!("/api/buckets/{}/sources/{source}", bucket.id),
    );

    let new = created(
        "POST",
        "/api/buckets",
        json!({"name": "nulls", "description": null, "retentionDays": null}),
    );
    assert!(new["bucket"].get("description").is_none(), "{new}");
    let new = created(
        "POST",
        &format!("{of_bucket}/sources"),
        json!({
            "name": "nulls", "type": null, "description": null, "schemaMode": null, "downsampling": null, "status": null,
            "schema": {"level": {"type": "number", "unit": null, "description": null}},
        }),
    );
    assert_eq!(new["dataSource"]["type"], "sensor", "the default: {new}");
    assert_eq!(new["dataSource"]["schemaMode"], "strict", "the default: {new}");
    created(
        "POST",
        &format!("{of_bucket}/keys"),
        json!({"name": null, "label": "labelled", "type": "read"}),
    );
    created(
        "POST",
        "/api/organization/keys",
        json!({"name": "named", "label": null, "type": "integration"}),
    );
    let webhook = created(
        "POST",
        "/api/webhooks",
        json!({
            "url": "https://example.com/hook", "events": ["alert.triggered"], "bucketId": null, "secret": null,
            "retryConfig": {"maxRetries": null, "backoffMultiplier": null}, "status": null,
        }),
    );
    let webhook = webhook["webhook"]["_id"].as_str().unwrap();
    let evaluation = json!({
        "mode": null, "kind": null, "intervalSeconds": 60, "windowSeconds": 300, "dwellSeconds": null, "parameters": {},
        "inputs": [{"key": "x", "field": "level", "dataSourceId": null, "aggregation": null, "groupBy": null,
            "windowSeconds": null}],
    });
    let rule = created(
        "POST",
        "/api/alerts",
        json!({
            "bucketId": bucket.id, "dataSourceId": source, "name": "nulls", "condition": null,
            "naturalLanguageQuery": "level exceeds 3", "webhookUrl": null, "cooldownMinutes": null, "status": null,
            "evaluation": evaluation,
        }),
    );
    assert_eq!(
        rule["alertRule"]["evaluation"]["dwellSeconds"], 300,
        "the window's: {rule}"
    );
    let rule = rule["alertRule"]["_id"].as_str().unwrap();

    for (path, names) in [
        ("/api/organization".to_owned(), &["name"][..]),
        (of_bucket, &["name", "retentionDays"]),
        (
            of_source,
            &["name", "type", "schema", "schemaMode", "downsampling", "status"],
        ),
        (
            format!("/api/alerts/{rule}"),
            &["name", "condition", "cooldownMinutes", "status"],
        ),
        (
            format!("/api/webhooks/{webhook}"),
            &["url", "events", "secret", "retryConfig", "status"],
        ),
    ] {
        let nulls = names.iter().map(|name| ((*name).to_owned(), Value::Null));
        let before = without_times(created("GET", &path, Value::Null));
        created("PATCH", &path, Value::Object(nulls.collect()));
        let after = without_times(created("GET", &path, Value::Null));
        assert_eq!(after, before, "nothing of {path} was given");
    }
}

/// A point's `timestamp` and `metadata`: the same in both bodies.
#[test]
fn a_point_with_null_time_and_metadata_gets_the_defaults() {
    let (_server, _account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point = json!({"dataSourceId": source, "timestamp": null, "metadata": null, "values": {"level": 1}});
    bucket.single(&point).expect(201, "a single point");
    bucket.batch(&[point]).expect(201, "an entry of a batch");
    let rows = bucket.rows(&json!({}));
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(
            row["timestamp"].is_string() && row.get("metadata").is_none(),
            "{row}"
        );
    }
}

/// Removes change times and counters.
fn without_times(mut answer: Value) -> Value {
    let things = answer
        .as_object_mut()
        .into_iter()
        .flat_map(|answer| answer.values_mut());
    for thing in things.filter_map(Value::as_object_mut) {
        thing.remove("updatedAt");
    }
    answer
}
