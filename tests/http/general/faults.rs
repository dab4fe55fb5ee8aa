//! All faults of a body are reported together, each at the path of its member.

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, call};

const SENTENCE: &str = "contract 1: all faults of one body are reported together";

#[test]
fn sign_up_and_login() {
    let server = scene::server();
    let client = &server.client;
    let post = |path: &str, body: Value| client.post(path).json(&body).send();
    assert_faults(
        &post("/api/auth/signup", json!({})),
        &["email", "password", "name"],
        SENTENCE,
    );
    let wrong = json!({"email": 1, "password": "short", "name": " ", "organizationName": 5});
    assert_faults(
        &post("/api/auth/signup", wrong),
        &["email", "password", "name", "organizationName"],
        SENTENCE,
    );
    let wrong = json!({"email": "a@example.com", "password": true, "name": null});
    assert_faults(&post("/api/auth/signup", wrong), &["password", "name"], SENTENCE);
    assert_faults(
        &post("/api/auth/login", json!({})),
        &["email", "password"],
        SENTENCE,
    );
    assert_faults(
        &post("/api/auth/login", json!({"email": [], "password": 7})),
        &["email", "password"],
        SENTENCE,
    );
}

#[test]
fn password_and_organization() {
    let (_server, account, _) = scene::bucket();
    let post = |body: Value| {
        account
            .client
            .post("/api/auth/password")
            .bearer(&account.token)
            .json(&body)
            .send()
    };
    assert_faults(&post(json!({})), &["currentPassword", "newPassword"], SENTENCE);
    assert_faults(
        &post(json!({"currentPassword": 1, "newPassword": "short"})),
        &["currentPassword", "newPassword"],
        SENTENCE,
    );
    let patch = |body: Value| {
        call(
            &account.client,
            &account.admin,
            "PATCH",
            "/api/organization",
            &body,
        )
    };
    assert_faults(&patch(json!({"name": ""})), &["name"], SENTENCE);
    assert_faults(&patch(json!({"name": "  "})), &["name"], SENTENCE);
    assert_faults(&patch(json!({"name": 5})), &["name"], SENTENCE);
}

#[test]
fn keys() {
    let (_server, account, bucket) = scene::bucket();
    let organization = |body: Value| {
        account
            .client
            .post("/api/organization/keys")
            .bearer(&account.token)
            .json(&body)
            .send()
    };
    let of_bucket = |body: Value| bucket.call("POST", "/keys", &body);
    for post in [&organization as &dyn Fn(Value) -> _, &of_bucket] {
        let answer = post(json!({}));
        answer.refused(400, SENTENCE);
        // The fault may be reported under either name of the missing member.
        let faults = answer.faults();
        assert!(
            faults == ["name", "type"] || faults == ["label", "type"],
            "{SENTENCE}: missing name and type: {answer}"
        );
        assert_faults(
            &post(json!({"name": "", "type": "owner"})),
            &["name", "type"],
            SENTENCE,
        );
        assert_faults(
            &post(json!({"label": "  ", "type": 5})),
            &["label", "type"],
            SENTENCE,
        );
        assert_faults(
            &post(json!({"name": "n".repeat(101), "type": null})),
            &["name", "type"],
            SENTENCE,
        );
    }
    assert_faults(
        &of_bucket(json!({"name": "a", "type": "admin"})),
        &["type"],
        "spec: type is `write` or `read`",
    );
    assert_faults(
        &of_bucket(json!({"name": "a", "type": "integration"})),
        &["type"],
        "spec: type is `write` or `read`",
    );
    assert_faults(
        &organization(json!({"name": "a", "type": "write"})),
        &["type"],
        "contract 2: admin or integration",
    );
}

#[test]
fn buckets() {
    let (_server, account, bucket) = scene::bucket();
    let post = |body: Value| call(&account.client, &account.admin, "POST", "/api/buckets", &body);
    assert_faults(&post(json!({})), &["name"], SENTENCE);
    let wrong = json!({"name": "", "description": 5, "retentionDays": 0});
    assert_faults(
        &post(wrong.clone()),
        &["name", "description", "retentionDays"],
        SENTENCE,
    );
    assert_faults(
        &bucket.call("PATCH", "", &wrong),
        &["name", "description", "retentionDays"],
        SENTENCE,
    );
    for retention in [json!(0), json!(-1), json!(1.5), json!("7"), json!(true)] {
        let body = json!({"name": "n".repeat(101), "retentionDays": retention});
        assert_faults(&post(body.clone()), &["name", "retentionDays"], SENTENCE);
        assert_faults(
            &bucket.call("PATCH", "", &body),
            &["name", "retentionDays"],
            SENTENCE,
        );
    }
}

#[test]
fn sources() {
    let (_server, _, bucket) = scene::bucket();
    let existing = bucket.source("existing", &["level"]);
    let post = |body: Value| bucket.call("POST", "/sources", &body);
    assert_faults(&post(json!({})), &["name", "schema"], SENTENCE);
    let wrong = json!({
        "name": " ", "type": 5, "description": [], "downsampling": "yes", "schemaMode": "loose",
        "schema": {
            "ok": {"type": "number"},
            "typeless": {},
            "odd": {"type": "float"},
            "unit": {"type": "string", "unit": 5, "description": 6},
            "flat": "number",
        },
    });
    let faults = [
        "name",
        "type",
        "description",
        "downsampling",
        "schemaMode",
        "schema/typeless/type",
        "schema/odd/type",
        "schema/unit/unit",
        "schema/unit/description",
        "schema/flat",
    ];
    assert_faults(&post(wrong.clone()), &faults, SENTENCE);
    let path = format!("/sources/{existing}");
    assert_faults(&bucket.call("PATCH", &path, &wrong), &faults, SENTENCE);
    assert_faults(
        &bucket.call("PATCH", &path, &json!({"status": "asleep"})),
        &["status"],
        SENTENCE,
    );
    for schema in [json!([]), json!("number"), json!({}), json!(null), json!(5)] {
        assert_faults(
            &post(json!({"name": "a", "schema": schema})),
            &["schema"],
            "contract 3: 1 to 256 fields",
        );
    }
    let control = "a\u{7}b";
    let long = "x".repeat(129);
    let schema =
        json!({"": {"type": "number"}, control: {"type": "number"}, long.as_str(): {"type": "number"}});
    let faults = [
        "schema/".to_owned(),
        format!("schema/{control}"),
        format!("schema/{long}"),
    ];
    let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
    assert_faults(
        &post(json!({"name": "a", "schema": schema})),
        &faults,
        "contract 3: field names",
    );
}

#[test]
fn a_single_point() {
    let (_server, account, bucket) = scene::bucket();
    let post = |body: Value| call(&account.client, &account.admin, "POST", "/api/data", &body);
    assert_faults(
        &post(json!({})),
        &["bucketId", "dataSourceId", "values"],
        SENTENCE,
    );
    let wrong = json!({"bucketId": 5, "dataSourceId": "X", "timestamp": "yesterday", "values": [], "metadata": "text"});
    assert_faults(
        &post(wrong),
        &["bucketId", "dataSourceId", "timestamp", "values", "metadata"],
        SENTENCE,
    );
    let source = bucket.source("gauge", &["level", "depth"]);
    let wrong = json!({"dataSourceId": source, "timestamp": 5, "values": {"level": 1}, "metadata": []});
    assert_faults(&bucket.single(&wrong), &["timestamp", "metadata"], SENTENCE);
    let wrong = json!({"dataSourceId": source, "values": {"level": [1], "depth": {"a": 1}}});
    assert_faults(
        &bucket.single(&wrong),
        &["values/level", "values/depth"],
        SENTENCE,
    );
    let wrong = json!({"dataSourceId": source, "values": {"level": "high", "depth": true, "width": 4, "height": null}});
    let faults = ["values/level", "values/depth", "values/width", "values/height"];
    assert_faults(
        &bucket.single(&wrong),
        &faults,
        "contract 10: what only the resource can tell, all of it together",
    );
}

#[test]
fn a_batch() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let post = |body: Value| call(&account.client, &account.admin, "POST", "/api/data/batch", &body);
    assert_faults(&post(json!({})), &["bucketId", "dataPoints"], SENTENCE);
    assert_faults(
        &post(json!({"bucketId": "x", "dataPoints": []})),
        &["bucketId", "dataPoints"],
        SENTENCE,
    );
    let entry = json!({"dataSourceId": source, "values": {"level": 1}});
    let entries = vec![entry.clone(); 1001];
    assert_faults(
        &post(json!({"bucketId": 1, "dataPoints": entries})),
        &["bucketId", "dataPoints"],
        SENTENCE,
    );
    for points in [json!({}), json!("x"), json!(null), json!({"0": entry})] {
        assert_faults(
            &post(json!({"bucketId": bucket.id, "dataPoints": points})),
            &["dataPoints"],
            SENTENCE,
        );
    }
}

#[test]
fn a_query() {
    let (_server, account, bucket) = scene::bucket();
    let post = |body: Value| call(&account.client, &account.admin, "POST", "/api/data/query", &body);
    assert_faults(&post(json!({})), &["bucketId"], SENTENCE);
    let wrong = json!({
        "bucketId": "x",
        "filters": {
            "dataSourceIds": ["y", 5], "startTime": 5, "endTime": "soon", "metadata": [], "fields": ["a", 7],
        },
        "aggregation": "mode", "groupBy": "fortnight", "limit": 0, "offset": -1, "sort": "up",
        "mergeSources": "yes", "downsampling": 1,
    });
    let faults = [
        "bucketId",
        "filters/dataSourceIds/0",
        "filters/dataSourceIds/1",
        "filters/startTime",
        "filters/endTime",
        "filters/metadata",
        "filters/fields/1",
        "aggregation",
        "groupBy",
        "limit",
        "offset",
        "sort",
        "mergeSources",
        "downsampling",
    ];
    assert_faults(&post(wrong), &faults, SENTENCE);
    let wrong = json!({"filters": {"dataSourceIds": "x", "fields": "level"}, "limit": "5", "offset": 1.5, "cursor": 5});
    assert_faults(
        &bucket.post_query(&wrong),
        &[
            "filters/dataSourceIds",
            "filters/fields",
            "limit",
            "offset",
            "cursor",
        ],
        SENTENCE,
    );
    assert_faults(
        &bucket.post_query(&json!({"filters": []})),
        &["filters"],
        SENTENCE,
    );
    for limit in [
        json!(0),
        json!(-1),
        json!(10_001),
        json!(1.5),
        json!("10"),
        json!(true),
    ] {
        assert_faults(
            &bucket.post_query(&json!({"limit": limit})),
            &["limit"],
            "contract 5: limit 1..10000",
        );
    }
    for offset in [json!(-1), json!(0.5), json!("0"), json!([])] {
        assert_faults(
            &bucket.post_query(&json!({"offset": offset})),
            &["offset"],
            "contract 1: offset ≥ 0",
        );
    }
}

#[test]
fn unknown_members_are_ignored() {
    let (_server, account, bucket) = scene::bucket();
    let unknown = json!({"a": [1, {"b": null}], "c": "d"});
    let source = bucket.source_with(&json!({
        "name": "gauge", "schema": {"level": {"type": "number", "colour": unknown}}, "extra": unknown, "_id": unknown,
    }));
    let sentence = "contract 1: body fields that are not named are ignored";
    let single = json!({"dataSourceId": source, "values": {"level": 1}, "extra": unknown, "_id": 5, "createdAt": false});
    bucket.single(&single).expect(201, sentence);
    bucket.batch(&[single]).expect(201, sentence);
    bucket
        .post_query(&json!({"filters": {"extra": unknown}, "extra": unknown}))
        .expect(200, sentence);
    let patch = bucket.call(
        "PATCH",
        "",
        &json!({"description": "d", "_id": "x", "organizationId": "y", "status": "z"}),
    );
    let patched = patch.expect(200, sentence);
    assert_eq!(
        patched["bucket"]["_id"], bucket.id,
        "{sentence}: they change nothing"
    );
    assert_eq!(
        patched["bucket"]["organizationId"], account.organization_id,
        "{sentence}: they change nothing"
    );
    assert_eq!(
        patched["bucket"]["status"], "active",
        "{sentence}: they change nothing"
    );
    let body = json!({"name": "Tide Lab", "plan": {"name": "Free"}, "_id": "x"});
    let organization = call(
        &account.client,
        &account.admin,
        "PATCH",
        "/api/organization",
        &body,
    )
    .expect(200, sentence);
    assert_eq!(
        organization["organization"]["plan"]["name"], "Enterprise",
        "{sentence}: a plan is not for the taking"
    );
}
