//! Kinds and parameters as rules state them.

use serde_json::{Value, json};

use super::object;
use crate::condition::{Condition, Inputs};

#[track_caller]
fn refusal(kind: Option<&str>, parameters: Value) -> String {
    match Condition::parse(kind, &object(parameters.clone())) {
        Ok(_) => panic!("{kind:?} with {parameters} should be refused"),
        Err(reason) => reason,
    }
}

#[test]
fn an_absent_or_unknown_kind_is_not_evaluated() {
    assert_eq!(refusal(None, json!({})), "the rule has no kind");
    for kind in ["forecast", "", "Threshold", "threshold "] {
        let reason = refusal(Some(kind), json!({"operator": "gt", "value": 1}));
        assert_eq!(reason, format!("the kind `{kind}` is not known here"));
    }
}

#[test]
fn missing_and_wrong_parameters_are_named() {
    for (kind, parameters, reason) in [
        (
            "threshold",
            json!({"value": 1}),
            "parameter `operator` is missing",
        ),
        (
            "threshold",
            json!({"operator": "gt"}),
            "parameter `value` is missing",
        ),
        (
            "threshold",
            json!({"operator": ">", "value": 1}),
            "parameter `operator` must be one of gt, gte, lt, lte, eq, neq",
        ),
        (
            "threshold",
            json!({"operator": 1, "value": 1}),
            "parameter `operator` must be one of gt, gte, lt, lte, eq, neq",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": "high"}),
            "a string is compared by eq or neq, only numbers have an order",
        ),
        (
            "threshold",
            json!({"operator": "lte", "value": true}),
            "a boolean is compared by eq or neq, only numbers have an order",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "match": "most"}),
            "parameter `match` must be one of any, all, last, count",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "match": "count"}),
            "parameter `minCount` is missing",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "match": "count", "minCount": 0}),
            "parameter `minCount` must be an integer of at least 1",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "match": "count", "minCount": 1.5}),
            "parameter `minCount` must be an integer of at least 1",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "minCount": 2}),
            "parameter `minCount` goes with `match` = `count`",
        ),
        (
            "threshold",
            json!({"operator": "gt", "value": 1, "matsh": "all"}),
            "parameter `matsh` is not one of inputs, operator, value, match, minCount",
        ),
        ("range", json!({"low": 1}), "parameter `high` is missing"),
        (
            "range",
            json!({"low": "1", "high": 2}),
            "parameter `low` must be a number",
        ),
        (
            "range",
            json!({"low": 2, "high": 1}),
            "parameter `low` must not be above `high`",
        ),
        (
            "range",
            json!({"low": 1, "high": 2, "inside": "yes"}),
            "parameter `inside` must be true or false",
        ),
        ("change", json!({"by": 1}), "parameter `direction` is missing"),
        (
            "change",
            json!({"direction": "up", "by": 1}),
            "parameter `direction` must be one of increase, decrease, any",
        ),
        ("change", json!({"direction": "any"}), "parameter `by` is missing"),
        (
            "change",
            json!({"direction": "any", "by": 0}),
            "parameter `by` must be greater than 0",
        ),
        (
            "change",
            json!({"direction": "any", "by": 1, "percent": 1}),
            "parameter `percent` must be true or false",
        ),
        (
            "change",
            json!({"direction": "any", "by": 1, "from": "last"}),
            "parameter `from` must be one of first, min, max",
        ),
        (
            "absence",
            json!({"maxGapSeconds": -1}),
            "parameter `maxGapSeconds` must be greater than 0",
        ),
        (
            "zscore",
            json!({"limit": 0}),
            "parameter `limit` must be greater than 0",
        ),
        (
            "zscore",
            json!({"minPoints": 1}),
            "parameter `minPoints` must be an integer of at least 2",
        ),
        (
            "zscore",
            json!({"inputs": "some"}),
            "parameter `inputs` must be one of any, all",
        ),
    ] {
        assert_eq!(
            refusal(Some(kind), parameters.clone()),
            reason,
            "{kind} {parameters}"
        );
    }
    for (direction, from) in [("increase", "max"), ("decrease", "min")] {
        let parameters = json!({"direction": direction, "by": 1, "from": from});
        assert!(refusal(Some("change"), parameters).contains("contradicts"));
    }
}

/// No parameter of any shape may be more than a reason.
#[test]
fn parameters_of_every_shape_are_read_or_refused() {
    let shapes = [
        json!(0),
        json!(-1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("any"),
        json!(true),
        json!(null),
        json!([]),
        json!({}),
    ];
    let names = [
        "inputs",
        "operator",
        "value",
        "match",
        "minCount",
        "low",
        "high",
        "inside",
        "direction",
        "by",
        "percent",
        "from",
        "maxGapSeconds",
        "limit",
        "minPoints",
        "é\u{0}",
    ];
    let (mut read, mut refused) = (0, 0);
    for kind in ["threshold", "range", "change", "absence", "zscore"] {
        for name in names {
            for shape in &shapes {
                let mut parameters = match kind {
                    "threshold" => json!({"operator": "eq", "value": 1}),
                    "range" => json!({"low": 1, "high": 2}),
                    "change" => json!({"direction": "any", "by": 1}),
                    _ => json!({}),
                };
                parameters[name] = shape.clone();
                match Condition::parse(Some(kind), &object(parameters)) {
                    Ok(_) => read += 1,
                    Err(reason) => {
                        assert!(!reason.is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(read > 20 && refused > 500, "{read} read, {refused} refused");
}

#[test]
fn inputs_combine_by_any_by_default() {
    let inputs = |parameters| {
        Condition::parse(Some("absence"), &object(parameters))
            .unwrap()
            .inputs
    };
    assert_eq!(inputs(json!({})), Inputs::Any);
    assert_eq!(inputs(json!({"inputs": "any"})), Inputs::Any);
    assert_eq!(inputs(json!({"inputs": "all"})), Inputs::All);
}
