//! Small print J: InfluxDB line protocol.

use serde_json::{Value, json};

use super::{bucket, post, rows_of, source};
use crate::scene::{self, column};
use crate::support::given::Bucket;

#[track_caller]
fn stored(bucket: &Bucket, lines: &str) {
    let answer = post(bucket, "/write", &[], lines.as_bytes());
    assert_eq!(answer.status, 204, "contract 13: 204: {answer}");
    assert!(answer.body.is_empty());
}

#[test]
fn a_missing_source_is_created_and_an_existing_one_is_used_as_it_is() {
    let (_server, _, bucket) = bucket();
    bucket.source_with(&json!({"name": "known", "schema": {"v": {"type": "number"}}, "type": "sensor"}));
    stored(
        &bucket,
        "cpu,host=a,core=0 usage=1.5,on=t,state=\"idle\",n=3i 1700000000000000000\nknown,host=a v=1 1700000000000000000\n",
    );
    let created = source(&bucket, "cpu").unwrap();
    for (member, expected) in [
        ("dimensions", json!("all")),
        ("schemaMode", json!("extend")),
        ("duplicates", json!("skip")),
        ("type", json!("metric")),
    ] {
        assert_eq!(
            created[member], expected,
            "contract 13: a source that does not exist is created: {member}"
        );
    }
    let kinds = ["usage", "on", "state", "n"].map(|field| created["schema"][field]["type"].clone());
    assert_eq!(
        kinds,
        [
            json!("number"),
            json!("boolean"),
            json!("string"),
            json!("number")
        ]
    );
    let values = json!({"usage": 1.5, "on": true, "state": "idle", "n": 3});
    assert_eq!(
        rows_of(&bucket, "cpu"),
        [(values, json!({"host": "a", "core": "0"}))],
        "tags → dimensions, fields → fields"
    );
    let known = source(&bucket, "known").unwrap();
    assert_eq!(
        (&known["type"], &known["dimensions"]),
        (&json!("sensor"), &Value::Null),
        "one that exists is used as it is"
    );
    stored(&bucket, "cpu,host=a,core=0 idle=7 1700000001000000000");
    assert!(
        source(&bucket, "cpu").unwrap()["schema"].get("idle").is_some(),
        "schemaMode extend"
    );
    let grouped = bucket.query(&json!({"aggregation": "sum", "groupBy": "all", "groupByDimensions": ["host"], "filters": {"fields": ["usage"]}}));
    assert_eq!(grouped["data"][0]["dimensions"], json!({"host": "a"}));
}

#[test]
fn bad_lines_are_named_and_the_others_are_stored() {
    let (_server, _, bucket) = bucket();
    bucket.source_with(&json!({"name": "typed", "schema": {"v": {"type": "number"}}}));
    let lines = "\n# a comment\ngood v=1 1700000000000000000\nbad\ngood v=\"text\" 1700000001000000000\ntyped v=t\ntyped other=1\nlate v=nan\ngood v=2 1700000002000000000";
    let answer = post(&bucket, "/write", &[], lines.as_bytes());
    let body = answer.expect(400, "contract 13: partial: 400");
    assert_eq!(body["code"], "invalid", "small print J1");
    assert!(
        body["error"].is_string(),
        "small print J1: beside the house's error"
    );
    let message = body["message"].as_str().unwrap();
    let numbers: Vec<&str> = message
        .match_indices("line ")
        .map(|(at, _)| message[at + 5..].split(':').next().unwrap())
        .collect();
    assert_eq!(
        numbers,
        ["4", "5", "6", "7", "8"],
        "small print J2: physical lines, blank and comments included: {message}"
    );
    let values: Vec<Value> = rows_of(&bucket, "good")
        .into_iter()
        .map(|(values, _)| values)
        .collect();
    assert_eq!(
        values,
        [json!({"v": 1}), json!({"v": 2})],
        "small print I5: good entries are durable"
    );
    assert!(
        source(&bucket, "late").is_none(),
        "small print I5: all refused: the source is not created"
    );
}

#[test]
fn nothing_is_stored_twice_and_fields_of_one_instant_join() {
    let (mut server, _, bucket) = bucket();
    let lines = "m,a=1 x=1 1700000000000000000\nm,a=1 y=2 1700000000000000000\nm,a=1 x=9 1700000000000000000\nm,a=2 x=5 1700000000000000000";
    stored(&bucket, lines);
    stored(&bucket, lines);
    server.kill();
    server.launch();
    stored(&bucket, lines);
    let mut rows = rows_of(&bucket, "m");
    rows.sort_by_key(|row| row.0.to_string());
    let expected = [
        (json!({"x": 1}), json!({"a": "1"})),
        (json!({"x": 5}), json!({"a": "2"})),
        (json!({"y": 2}), json!({"a": "1"})),
    ];
    assert_eq!(
        rows, expected,
        "small print J5, F1: with the same field the first stays"
    );
}

#[test]
fn precisions_and_times() {
    let (_server, _, bucket) = bucket();
    for (path, stamp) in [
        ("/write", "1700000000000000000"),
        ("/write?precision=ns", "1700000001000000000"),
        ("/write?precision=n", "1700000002000000000"),
        ("/write?precision=u", "1700000003000000"),
        ("/write?precision=ms", "1700000004000"),
        ("/write?precision=s", "1700000005"),
        ("/write?precision=m", "28333340"),
        ("/write?precision=h", "472223"),
        ("/api/v2/write?precision=us", "1700000006000000"),
        ("/api/v2/write?precision=", "1700000007000000000"),
    ] {
        let answer = post(&bucket, path, &[], format!("m v=1 {stamp}").as_bytes());
        assert_eq!(answer.status, 204, "small print J4: {path}: {answer}");
    }
    let id = source(&bucket, "m").unwrap()["_id"].clone();
    let times = column(&bucket.rows(&json!({"dataSourceIds": [id]})), "/timestamp");
    let expected = [
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:21Z",
        "2023-11-14T22:13:22Z",
        "2023-11-14T22:13:23Z",
        "2023-11-14T22:13:24Z",
        "2023-11-14T22:13:25Z",
        "2023-11-14T22:13:26Z",
        "2023-11-14T22:13:27Z",
        "2023-11-14T22:20:00Z",
        "2023-11-14T23:00:00Z",
    ];
    assert_eq!(times, expected, "small print J4");
    for path in [
        "/write?precision=x",
        "/api/v2/write?precision=h",
        "/api/v2/write?precision=n",
    ] {
        let answer = post(&bucket, path, &[], b"other v=1 1");
        answer.expect(400, "small print J4: anything else 400 for the whole body");
    }
    assert!(source(&bucket, "other").is_none());
    let now = post(&bucket, "/write", &[], b"now v=1\nnow,a=1 v=2");
    assert_eq!(now.status, 204);
    let id = source(&bucket, "now").unwrap()["_id"].clone();
    let times = column(&bucket.rows(&json!({"dataSourceIds": [id]})), "/timestamp");
    assert_eq!(times[0], times[1], "small print J4: one now per request");
}

#[test]
fn empty_bodies_codings_and_types() {
    let (_server, _, bucket) = bucket();
    for body in ["", "\n\n", "# only\n#comments", "\r\n"] {
        stored(&bucket, body);
    }
    let typed = post(
        &bucket,
        "/write",
        &[("Content-Type", "image/png")],
        b"m v=1\r\nm v=2 5\r\n",
    );
    assert_eq!(
        typed.status, 204,
        "small print J6: the Content-Type is not looked at; CRLF is fine: {typed}"
    );
    let bytes = post(&bucket, "/write", &[], b"m v=1 6\n\xff\xfe v=1\nm v=1 7");
    bytes.expect(400, "small print J6: a line that is not UTF-8 spoils only itself");
    assert_eq!(rows_of(&bucket, "m").len(), 4);
    let snappy = post(&bucket, "/write", &[("Content-Encoding", "snappy")], b"m v=1");
    snappy.expect(415, "small print I3: gzip and zstd");
}

#[test]
fn names_that_the_api_does_not_take_and_inactive_sources_are_refused_by_entry() {
    let (_server, _, bucket) = bucket();
    let off = bucket
        .source_with(&json!({"name": "off", "schema": {"v": {"type": "number"}}, "status": "inactive"}));
    let long = "n".repeat(201);
    let lines = format!("{long} v=1\n\\  v=1\noff v=1\nfine v=1");
    let answer = post(&bucket, "/write", &[], lines.as_bytes());
    let message = answer.expect(400, "small print I4, I7")["message"].to_string();
    for line in ["line 1:", "line 2:", "line 3:"] {
        assert!(
            message.contains(line),
            "small print I4, I7: refused and named: {message}"
        );
    }
    assert_eq!(
        rows_of(&bucket, "fine").len(),
        1,
        "small print I7: the others go on"
    );
    assert!(bucket.rows(&json!({"dataSourceIds": [off]})).is_empty());
}

#[test]
fn clients_ping_and_create_their_database() {
    let (_server, _, bucket) = bucket();
    for method in ["GET", "HEAD"] {
        let ping = bucket.client.request(method, "/ping").send();
        assert_eq!(ping.status, 204, "small print J7: no key");
        assert!(ping.header("X-Influxdb-Version").is_some(), "small print J7");
    }
    let query = |path: &str, body: &str| bucket.client.post(path).key(&bucket.admin).body(body).send();
    for (path, body) in [
        ("/query?q=CREATE%20DATABASE%20x", ""),
        ("/query", "q=create+database+%22x%22"),
        ("/query?q=Create+Database+x+WITH+DURATION+1d", ""),
    ] {
        let answer = query(path, body).expect(200, "small print J7");
        assert_eq!(
            answer,
            json!({"results": [{"statement_id": 0}]}),
            "small print J7"
        );
    }
    let other = query("/query?q=SELECT%201", "").expect(400, "small print J7: else 400");
    assert!(other["error"].is_string());
    let keyless = bucket
        .client
        .post("/query?q=CREATE%20DATABASE%20x")
        .body("")
        .send();
    assert_eq!(keyless.status, 401, "small print J7: POST /query needs a key");
    let _ = scene::UNKNOWN_ID;
}

#[test]
fn names_that_differ_by_white_space_are_one_source() {
    let (_server, _account, bucket) = bucket();
    stored(
        &bucket,
        "\\ dup v=1 1700000000000000000\ndup v=2 1700000001000000000",
    );
    let listed = bucket.call("GET", "/sources", &Value::Null).json();
    assert_eq!(
        listed["dataSources"].as_array().map(Vec::len),
        Some(1),
        "contract 3: names are unique: {listed}"
    );
    assert_eq!(rows_of(&bucket, "dup").len(), 2);
}
