//! Conditions in words: the spec's sample phrasings and what they are parsed to; what cannot be parsed.

use serde_json::{Value, json};

use crate::scene::{self, call};
use crate::support::client::Answer;
use crate::support::given::Bucket;

fn gauge(bucket: &Bucket) -> String {
    bucket.source_with(&json!({
        "name": "gauge",
        "schema": {
            "level": {"type": "number"}, "water_temperature": {"type": "number"}, "Flow Rate": {"type": "number"},
            "state": {"type": "string"}, "valid": {"type": "boolean"},
        },
    }))
}

#[track_caller]
fn create(bucket: &Bucket, source: &str, condition: &str) -> Answer {
    let body = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": condition, "naturalLanguageQuery": condition,
    });
    call(&bucket.client, &bucket.admin, "POST", "/api/alerts", &body)
}

#[test]
fn sample_phrasings_are_parsed() {
    let (_server, _, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let parsed = |field: &str, operator: &str, value: Value| json!({"field": field, "operator": operator, "value": value});
    let percent = |operator: &str, value: Value| json!({"field": "level", "operator": operator, "value": value, "percent": true});
    let table = [
        ("level greater than 5", parsed("level", "gt", json!(5))),
        ("level is greater than 5", parsed("level", "gt", json!(5))),
        ("when level exceeds 5.5", parsed("level", "gt", json!(5.5))),
        ("level rises above -3", parsed("level", "gt", json!(-3))),
        ("level less than 5", parsed("level", "lt", json!(5))),
        ("level drops below 1e3", parsed("level", "lt", json!(1000))),
        ("level equal to 5", parsed("level", "eq", json!(5))),
        ("level not equal to 5", parsed("level", "neq", json!(5))),
        ("level >= 5", parsed("level", "gte", json!(5))),
        ("level <= 5", parsed("level", "lte", json!(5))),
        ("level between 1 and 5", parsed("level", "between", json!([1, 5]))),
        ("level outside 1 to 5", parsed("level", "outside", json!([1, 5]))),
        (
            "level decreases by more than 5",
            parsed("level", "decreases_by", json!(5)),
        ),
        (
            "level increases by more than 5",
            parsed("level", "increases_by", json!(5)),
        ),
        (
            "level decreases by more than 20%",
            percent("decreases_by", json!(20)),
        ),
        (
            "level increases by more than 20 percent",
            percent("increases_by", json!(20)),
        ),
        ("LEVEL greater than 5", parsed("level", "gt", json!(5))),
        (
            "water temperature exceeds 30",
            parsed("water_temperature", "gt", json!(30)),
        ),
        (
            "Water_Temperature exceeds 30",
            parsed("water_temperature", "gt", json!(30)),
        ),
        ("flow_rate less than 2", parsed("Flow Rate", "lt", json!(2))),
        ("state equals open", parsed("state", "eq", json!("open"))),
        ("valid equals true", parsed("valid", "eq", json!(true))),
        ("valid is false", parsed("valid", "eq", json!(false))),
    ];
    for (condition, expected) in table {
        let answer = create(&bucket, &source, condition);
        let answer = answer.expect(
            201,
            &format!("spec: a sample phrasing is understood: {condition:?}"),
        );
        let found = &answer["alertRule"]["parsedCondition"];
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(
                found.get(name),
                Some(value),
                "contract 6: `parsedCondition.{name}` of {condition:?}: {found}"
            );
        }
        assert_eq!(
            found.get("percent") == Some(&json!(true)),
            expected.get("percent").is_some(),
            "contract 6: `percent: true` for percentages only, {condition:?}: {found}"
        );
    }
}

#[test]
fn an_unparsable_condition_is_400_naming_the_fields() {
    let (_server, _, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let unparsable = [
        "what is this",
        "level",
        "greater than 5",
        "level greater than",
        "level greater than five apples and",
        "depth greater than 5",
        "levels greater than 5",
        "level between 5",
        "state greater than 5",
        "valid greater than true",
        "level equals open",
        "5",
        ">",
        "level greater than NaN",
        "level greater than 1e999",
        "'; DROP TABLE rules",
    ];
    for condition in unparsable {
        let answer = create(&bucket, &source, condition);
        let sentence = format!("contract 6: unparsable, or no such field: 400 ({condition:?})");
        scene::assert_faults(&answer, &["naturalLanguageQuery"], &sentence);
        let message = answer.text();
        for field in ["level", "water_temperature", "Flow Rate", "state", "valid"] {
            assert!(
                message.contains(field),
                "contract 6: 400 naming the fields available, `{field}` among them: {answer}"
            );
        }
    }
    let body = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "a", "condition": "what is this",
        "webhookUrl": "https://hooks.invalid/",
    });
    scene::assert_faults(
        &call(&bucket.client, &bucket.admin, "POST", "/api/alerts", &body),
        &["condition"],
        "contract 1: `details[].path` is the path of the offending member",
    );
    let listed = bucket.call("GET", "/alerts", &Value::Null).json();
    assert_eq!(listed["pagination"]["total"], 0, "what was refused was not made");
}
