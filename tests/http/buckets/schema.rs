//! Schemas: limits, and extension by PATCH and by ingestion.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, column};
use crate::support::client::Answer;
use crate::support::given::Bucket;

fn numbers(fields: impl IntoIterator<Item = String>) -> Value {
    let fields: BTreeMap<String, Value> = fields
        .into_iter()
        .map(|name| (name, json!({"type": "number"})))
        .collect();
    json!(fields)
}

fn create(bucket: &Bucket, name: &str, schema: &Value) -> Answer {
    bucket.call("POST", "/sources", &json!({"name": name, "schema": schema}))
}

fn schema_of(bucket: &Bucket, source: &str) -> Value {
    bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json()["dataSource"]["schema"]
        .clone()
}

fn extendable(bucket: &Bucket, schema: &Value) -> String {
    bucket.source_with(&json!({"name": "extendable", "schema": schema, "schemaMode": "extend"}))
}

#[test]
fn a_schema_has_1_to_256_fields() {
    let (_server, _, bucket) = scene::bucket();
    let of = |count: usize| numbers((0..count).map(|nth| format!("f{nth}")));
    create(&bucket, "one", &of(1)).expect(201, "contract 3: 1 to 256 fields");
    create(&bucket, "most", &of(256)).expect(201, "contract 3: 1 to 256 fields");
    create(&bucket, "none", &of(0)).refused(400, "contract 3: 1 to 256 fields");
    create(&bucket, "many", &of(257)).refused(400, "contract 3: 1 to 256 fields");
}

#[test]
fn field_names_are_1_to_128_characters_without_control_characters() {
    let (_server, _, bucket) = scene::bucket();
    let odd = [
        "a",
        "é",
        "日本",
        "😀",
        "a b",
        "a.b",
        "a/b",
        "a\"b",
        "a\\b",
        "$a",
        "__proto__",
        "constructor",
        "0",
        "-",
        "true",
        "_id",
        "name",
        "level\u{301}",
    ];
    let wide = ["x".repeat(128), "é".repeat(128)];
    for (nth, name) in odd.iter().map(|name| (*name).to_owned()).chain(wide).enumerate() {
        let created = create(&bucket, &format!("source {nth}"), &numbers([name.clone()]));
        let created = created.expect(201, &format!("contract 3: `{name}` is a field name"));
        let id = created["dataSource"]["_id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let values = json!({name.as_str(): 1.5});
        bucket
            .single(&json!({"dataSourceId": id, "values": values}))
            .expect(201, &format!("a point of `{name}`"));
        let rows = bucket.rows(&json!({"dataSourceIds": [id], "fields": [name]}));
        assert_eq!(
            column(&rows, "/values"),
            [values],
            "a field `{name}` is stored and selected by its name"
        );
    }
    for name in [
        "",
        "a\u{0}",
        "\n",
        "a\tb",
        "\u{1b}",
        "\u{7f}",
        "\u{85}",
        &"x".repeat(129),
        &"é".repeat(129),
    ] {
        let answer = create(&bucket, "refused", &numbers([name.to_owned()]));
        assert_faults(&answer, &[&format!("schema/{name}")], "contract 3: field names");
    }
}

#[test]
fn a_patched_schema_may_add_and_describe_but_not_remove_or_retype() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source_with(&json!({
        "name": "gauge", "schema": {"level": {"type": "number", "unit": "m"}, "state": {"type": "string"}},
    }));
    bucket
        .single(&json!({"dataSourceId": source, "values": {"level": 1, "state": "ebb"}}))
        .expect(201, "a point");
    let path = format!("/sources/{source}");
    let patch = |schema: Value| bucket.call("PATCH", &path, &json!({"schema": schema}));
    let removed = "contract 3: removing a field gives 409";
    patch(json!({"level": {"type": "number"}})).refused(409, removed);
    patch(json!({"level": {"type": "number"}, "State": {"type": "string"}})).refused(409, removed);
    let retyped = "contract 3: changing a type gives 409";
    patch(json!({"level": {"type": "string"}, "state": {"type": "string"}})).refused(409, retyped);
    let both = json!({"level": {"type": "number"}, "state": {"type": "boolean"}, "new": {"type": "number"}});
    patch(both).refused(409, retyped);
    let unchanged = schema_of(&bucket, &source);
    assert_eq!(
        scene::members(&unchanged),
        ["level", "state"],
        "a refused PATCH changes nothing"
    );
    assert_eq!(unchanged["level"]["unit"], "m", "a refused PATCH changes nothing");

    let grown = json!({
        "level": {"type": "number", "unit": "cm", "description": "of water"}, "state": {"type": "string"},
        "valid": {"type": "boolean"},
    });
    patch(grown).expect(
        200,
        "contract 3: a PATCHed schema may add fields and change unit and description",
    );
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let schema = schema_of(&bucket, &source);
        assert_eq!(schema["level"]["unit"], "cm", "contract 3: PATCH changes unit");
        assert_eq!(
            schema["level"]["description"], "of water",
            "contract 3: PATCH changes description"
        );
        assert_eq!(
            schema["valid"]["type"], "boolean",
            "contract 3: PATCH adds fields"
        );
    }
    let values = json!({"level": 2, "state": "flow", "valid": true});
    bucket
        .single(&json!({"dataSourceId": source, "values": values}))
        .expect(201, "an added field takes values");
    let rows = bucket.rows(&json!({}));
    assert_eq!(
        column(&rows, "/values"),
        [json!({"level": 1, "state": "ebb"}), values],
        "older points lack the new field"
    );
    let of_257 = numbers((0..257).map(|nth| format!("f{nth}")));
    patch(of_257).refused(400, "contract 3: 1 to 256 fields");
}

#[test]
fn extend_adds_new_fields_with_the_type_of_their_first_value() {
    let (mut server, _, bucket) = scene::bucket();
    let source = extendable(&bucket, &json!({"level": {"type": "number"}}));
    let single = |values: Value| bucket.single(&json!({"dataSourceId": source, "values": values}));
    let sentence = "contract 3: in extend, an undeclared field is added with the type of its first value";
    single(json!({"level": 1, "depth": 2.5, "state": "ebb", "valid": false})).expect(201, sentence);
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let schema = schema_of(&bucket, &source);
        for (field, kind) in [
            ("level", "number"),
            ("depth", "number"),
            ("state", "string"),
            ("valid", "boolean"),
        ] {
            assert_eq!(schema[field]["type"], kind, "{sentence} (`{field}`)");
        }
        assert_faults(&single(json!({"depth": "deep"})), &["values/depth"], sentence);
        assert_faults(&single(json!({"state": 1})), &["values/state"], sentence);
        assert_faults(&single(json!({"valid": "yes"})), &["values/valid"], sentence);
    }
    assert_faults(
        &single(json!({"nested": {"a": 1}})),
        &["values/nested"],
        "spec: number, string or boolean",
    );
    assert_faults(
        &single(json!({"list": [1]})),
        &["values/list"],
        "spec: number, string or boolean",
    );
    assert_faults(
        &single(json!({"control\u{1}": 1})),
        &["values/control\u{1}"],
        "contract 3: field names",
    );
    let long = "x".repeat(129);
    assert_faults(
        &single(json!({long.as_str(): 1})),
        &[&format!("values/{long}")],
        "contract 3: field names",
    );
    for name in [" fresh", "fresh ", " ", "", "level "] {
        let answer = single(json!({name: 1}));
        assert_faults(
            &answer,
            &[&format!("values/{name}")],
            "contract 10: names are stored trimmed, blank is 400",
        );
    }
    let batch = bucket.batch(&[
        json!({"dataSourceId": source, "values": {"fresh": 1}}),
        json!({"dataSourceId": source, "values": {"fresh": "text"}}),
        json!({"dataSourceId": source, "values": {"fresh": 2}}),
    ]);
    let batch = batch.expect(
        207,
        "contract 3: the first value of a batch decides for the rest of it",
    );
    assert_eq!(
        batch["errors"][0]["index"], 1,
        "contract 3: the first value decides"
    );
    let schema = schema_of(&bucket, &source);
    assert_eq!(
        schema["fresh"]["type"], "number",
        "contract 3: the first value decides"
    );
    assert!(
        schema.get("nested").is_none() && schema.get("list").is_none(),
        "a refused field is not added: {schema}"
    );
    let query = json!({"filters": {"fields": ["fresh"]}, "aggregation": "sum", "groupBy": "month"});
    let sum: f64 = scene::array(&bucket.query(&query), "/data")
        .iter()
        .filter_map(|row| row["values"]["fresh"].as_f64())
        .sum();
    assert_eq!(sum, 3.0, "an added field is queried like any other");
}

#[test]
fn extend_stops_at_256_fields() {
    let (_server, _, bucket) = scene::bucket();
    let source = extendable(&bucket, &numbers((0..254).map(|nth| format!("f{nth}"))));
    let single = |values: Value| bucket.single(&json!({"dataSourceId": source, "values": values}));
    single(json!({"f254": 1, "f255": 1})).expect(201, "contract 10: 256 fields fit");
    let sentence = "contract 10: a 257th field in extend is refused like an undeclared one";
    assert_faults(&single(json!({"f0": 1, "f256": 1})), &["values/f256"], sentence);
    let batch = bucket.batch(&[
        json!({"dataSourceId": source, "values": {"f256": 1}}),
        json!({"dataSourceId": source, "values": {"f255": 1}}),
    ]);
    assert_eq!(batch.expect(207, sentence)["errors"][0]["index"], 0, "{sentence}");
    assert_eq!(
        scene::members(&schema_of(&bucket, &source)).len(),
        256,
        "{sentence}"
    );
}

/// Two concurrent requests have the same new field with different types.
#[test]
fn concurrent_extensions_agree_on_one_type() {
    let (_server, _, bucket) = scene::bucket();
    let source = extendable(&bucket, &json!({"level": {"type": "number"}}));
    for round in 0..10 {
        let field = format!("field {round}");
        let values = [json!({field.as_str(): 1}), json!({field.as_str(): "one"})];
        let statuses: Vec<(usize, u16)> = std::thread::scope(|scope| {
            let send = |kind: usize| {
                (
                    kind,
                    bucket
                        .single(&json!({"dataSourceId": source, "values": values[kind]}))
                        .status,
                )
            };
            let threads: Vec<_> = (0..6).map(|nth| scope.spawn(move || send(nth % 2))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let number = schema_of(&bucket, &source)[&field]["type"] == "number";
        for (kind, status) in &statuses {
            let expected = if (*kind == 0) == number { 201 } else { 400 };
            assert_eq!(
                *status, expected,
                "contract 3: the type of the first value holds for all: {statuses:?}"
            );
        }
    }
}
