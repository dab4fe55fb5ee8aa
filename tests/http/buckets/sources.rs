//! Data sources: create, show, list, change, switch off.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, assert_timestamp, call};
use crate::support::client::Answer;
use crate::support::given::Bucket;

fn create(bucket: &Bucket, body: &Value) -> Answer {
    bucket.call("POST", "/sources", body)
}

fn named(bucket: &Bucket, name: &str) -> Answer {
    create(
        bucket,
        &json!({"name": name, "schema": {"level": {"type": "number"}}}),
    )
}

#[test]
fn a_source_is_created_shown_and_listed() {
    let (_server, _, bucket) = scene::bucket();
    let listed = bucket
        .call("GET", "/sources", &Value::Null)
        .expect(200, "spec: GET sources");
    assert_eq!(listed["dataSources"], json!([]), "spec: an empty list when none");
    let schema = json!({
        "level": {"type": "number", "unit": "m", "description": "above zero"},
        "state": {"type": "string"},
        "valid": {"type": "boolean", "unit": ""},
    });
    let body = json!({
        "name": " Gauge ", "type": "application", "description": "north pier", "schema": schema, "downsampling": false,
        "schemaMode": "extend",
    });
    let created = create(&bucket, &body).expect(201, "spec: POST /api/buckets/:bucketId/sources");
    assert!(created["message"].is_string(), "spec: {{message, dataSource}}");
    let source = &created["dataSource"];
    let given = [
        ("bucketId", json!(bucket.id)),
        ("name", json!("Gauge")),
        ("type", json!("application")),
        ("description", json!("north pier")),
        ("downsampling", json!(false)),
        ("schemaMode", json!("extend")),
        ("status", json!("active")),
    ];
    for (member, value) in given {
        assert_eq!(
            source[member], value,
            "spec, contract 3: `{member}` of a created source"
        );
    }
    for (field, definition) in schema.as_object().unwrap() {
        for (member, value) in definition.as_object().unwrap() {
            assert_eq!(
                source["schema"][field][member], *value,
                "spec: schema.{field}.{member} as given"
            );
        }
    }
    let empty = json!({
        "totalDataPoints": 0, "firstDataPoint": null, "lastDataPoint": null, "averageIntervalSeconds": null,
        "seriesCount": null,
    });
    assert_eq!(
        source["stats"], empty,
        "contract 3: stats of a source without points"
    );
    assert_timestamp(&source["createdAt"], "dataSource.createdAt");
    assert_timestamp(&source["updatedAt"], "dataSource.updatedAt");

    let listed = bucket.call("GET", "/sources", &Value::Null).json();
    assert_eq!(
        listed["dataSources"],
        json!([source]),
        "spec: the list shows the source"
    );
    let path = format!("/sources/{}", source["_id"].as_str().unwrap_or_default());
    let shown = bucket
        .call("GET", &path, &Value::Null)
        .expect(200, "contract 3: GET one source");
    assert_eq!(shown["dataSource"], *source, "contract 3: GET one source");
}

#[test]
fn defaults_are_sensor_strict_and_downsampling() {
    let (_server, _, bucket) = scene::bucket();
    let created = named(&bucket, "gauge").expect(201, "a source");
    for (member, value) in [
        ("type", json!("sensor")),
        ("downsampling", json!(true)),
        ("schemaMode", json!("strict")),
    ] {
        assert_eq!(
            created["dataSource"][member], value,
            "spec, contract 3: default `{member}`"
        );
    }
    for kind in ["service", "Sensor", "weather station"] {
        let body = json!({"name": kind, "type": kind, "schema": {"level": {"type": "number"}}});
        let created = create(&bucket, &body).expect(201, "spec: type is an open set");
        assert_eq!(created["dataSource"]["type"], kind, "spec: type is an open set");
    }
}

#[test]
fn names_are_trimmed_and_unique_within_the_bucket() {
    let (_server, account, bucket) = scene::bucket();
    let other = account.bucket("other");
    named(&bucket, "gauge").expect(201, "a source");
    for same in ["gauge", "  gauge", "gauge\t"] {
        named(&bucket, same).refused(409, "spec: duplicate data source name in a bucket");
    }
    for different in ["Gauge", "gauge 2", &"é".repeat(100)] {
        named(&bucket, different).expect(201, "spec: a different name");
    }
    for blank in ["", "   "] {
        assert_faults(&named(&bucket, blank), &["name"], "contract 10: blank is 400");
    }
    named(&other, "gauge").expect(201, "spec: unique within the bucket");
}

#[test]
fn patch_changes_only_the_members_it_names() {
    let (mut server, account, bucket) = scene::bucket();
    named(&bucket, "taken").expect(201, "a source");
    let id = bucket.source("gauge", &["level"]);
    let path = format!("/sources/{id}");
    let write = bucket.key("write");
    let patch = |body: Value| bucket.call("PATCH", &path, &body);
    let mut expected = bucket.call("GET", &path, &Value::Null).json()["dataSource"].clone();
    let steps = [
        (json!({"name": " ebb "}), "name", json!("ebb")),
        (json!({"description": "d"}), "description", json!("d")),
        (json!({"type": "service"}), "type", json!("service")),
        (json!({"schemaMode": "extend"}), "schemaMode", json!("extend")),
        (json!({"downsampling": false}), "downsampling", json!(false)),
        (json!({"status": "inactive"}), "status", json!("inactive")),
        (json!({"status": "active"}), "status", json!("active")),
        (json!({}), "status", json!("active")),
    ];
    for (body, member, value) in steps {
        let answer = patch(body.clone()).expect(200, &format!("contract 3: PATCH {body} of a source"));
        expected[member] = value;
        let shown = bucket.call("GET", &path, &Value::Null).json()["dataSource"].clone();
        assert_eq!(
            answer["dataSource"], shown,
            "contract 3: PATCH answers the source as it now is"
        );
        assert_timestamp(&shown["updatedAt"], "dataSource.updatedAt");
        expected["updatedAt"] = shown["updatedAt"].clone();
        assert_eq!(
            shown, expected,
            "contract 3: PATCH {body} changes what it names and nothing else"
        );
    }
    patch(json!({"name": "taken "})).refused(409, "spec: duplicate data source name in a bucket");
    patch(json!({"name": "ebb"})).expect(200, "a source keeps its own name");
    let by_write = call(
        &account.client,
        &write,
        "PATCH",
        &format!("/api/buckets/{}{path}", bucket.id),
        &json!({"type": "x"}),
    );
    by_write.expect(200, "contract 3: PATCH by admin or write");
    server.kill();
    server.launch();
    let after = bucket.call("GET", &path, &Value::Null).json()["dataSource"].clone();
    for member in [
        "name",
        "description",
        "schemaMode",
        "downsampling",
        "status",
        "schema",
    ] {
        assert_eq!(
            after[member], expected[member],
            "a PATCH that was answered survives a kill (`{member}`)"
        );
    }
    assert_eq!(
        after["type"], "x",
        "a PATCH that was answered survives a kill (`type`)"
    );
}

#[test]
fn an_inactive_source_refuses_data_and_can_still_be_read() {
    let (_server, _, bucket) = scene::bucket();
    let (source, active) = (
        bucket.source("gauge", &["level"]),
        bucket.source("active", &["level"]),
    );
    let of = |source: &str| json!({"dataSourceId": source, "values": {"level": 1}});
    bucket
        .single(&of(&source))
        .expect(201, "an active source takes data");
    let path = format!("/sources/{source}");
    bucket
        .call("PATCH", &path, &json!({"status": "inactive"}))
        .expect(200, "contract 3: PATCH status");
    let sentence = "contract 3: a source with status inactive takes no data: 409, in a batch an entry error";
    bucket.single(&of(&source)).refused(409, sentence);
    let batch = bucket
        .batch(&[of(&active), of(&source), of(&active)])
        .expect(207, sentence);
    assert_eq!(
        (&batch["insertedCount"], &batch["failedCount"]),
        (&json!(2), &json!(1)),
        "{sentence}"
    );
    assert_eq!(batch["errors"][0]["index"], 1, "{sentence}");
    let filters = json!({"dataSourceIds": [source]});
    assert_eq!(
        bucket.rows(&filters).len(),
        1,
        "an inactive source can still be read"
    );
    bucket
        .call("PATCH", &path, &json!({"status": "active"}))
        .expect(200, "contract 3: PATCH status");
    bucket
        .single(&of(&source))
        .expect(201, "an active source takes data again");
    assert_eq!(
        array(
            &bucket.call("GET", "/sources", &Value::Null).json(),
            "/dataSources"
        )
        .len(),
        2,
        "both are listed"
    );
}
