//! `threshold` and `range`.

use serde_json::{Value, json};

use super::{decided_at, found, numbers, second};
use crate::condition::{Alert, Outcome};
use Outcome::{Inconclusive, Met, NotMet};

#[test]
fn every_operator_compares_as_named() {
    for (operator, below, equal, above) in [
        ("gt", NotMet, NotMet, Met),
        ("gte", NotMet, Met, Met),
        ("lt", Met, NotMet, NotMet),
        ("lte", Met, Met, NotMet),
        ("eq", NotMet, Met, NotMet),
        ("neq", Met, NotMet, Met),
    ] {
        for (value, outcome) in [(79.9, below), (80.0, equal), (80.1, above)] {
            let finding = found(
                "threshold",
                json!({"operator": operator, "value": 80}),
                &[json!(value)],
            );
            assert_eq!(finding.outcome, outcome, "{value} {operator} 80");
            let alert = Alert {
                current_value: if value == 80.0 { json!(80) } else { json!(value) },
                threshold: json!(80),
                operator,
            };
            assert_eq!(finding.alert, (outcome == Met).then_some(alert));
        }
    }
}

#[test]
fn strings_and_booleans_are_equal_or_not() {
    for (limit, same, other, foreign) in [
        (json!("open"), json!("open"), json!("Open"), json!(true)),
        (json!(true), json!(true), json!(false), json!("true")),
        (json!(false), json!(false), json!(true), json!(0)),
        (json!(1), json!(1.0), json!(2), json!("1")),
    ] {
        for (operator, when_same, when_other) in [("eq", Met, NotMet), ("neq", NotMet, Met)] {
            let parameters = json!({"operator": operator, "value": limit});
            let outcome =
                |value: &Value| found("threshold", parameters.clone(), std::slice::from_ref(value)).outcome;
            assert_eq!(outcome(&same), when_same, "{same} {operator} {limit}");
            assert_eq!(outcome(&other), when_other, "{other} {operator} {limit}");
            assert_eq!(outcome(&foreign), Inconclusive, "{foreign} {operator} {limit}");
            assert_eq!(outcome(&Value::Null), Inconclusive, "null {operator} {limit}");
        }
    }
}

#[test]
fn the_bounds_belong_to_the_range() {
    for (value, outside) in [
        (9.9, Met),
        (10.0, NotMet),
        (15.0, NotMet),
        (20.0, NotMet),
        (20.1, Met),
    ] {
        let inside = if outside == Met { NotMet } else { Met };
        for (parameters, outcome, operator) in [
            (json!({"low": 10, "high": 20}), outside, "outside"),
            (
                json!({"low": 10, "high": 20, "inside": false}),
                outside,
                "outside",
            ),
            (json!({"low": 10, "high": 20, "inside": true}), inside, "between"),
        ] {
            let finding = found("range", parameters, &[json!(value)]);
            assert_eq!(finding.outcome, outcome, "{value} {operator}");
            if let Some(alert) = finding.alert {
                assert_eq!((alert.threshold, alert.operator), (json!([10, 20]), operator));
            }
        }
    }
    let point = json!({"low": 5, "high": 5});
    assert_eq!(found("range", point.clone(), &numbers(&[5.0])).outcome, NotMet);
    assert_eq!(found("range", point, &numbers(&[5.5])).outcome, Met);
    for foreign in [json!("15"), json!(true), Value::Null] {
        assert_eq!(
            found("range", json!({"low": 1, "high": 2}), &[foreign]).outcome,
            Inconclusive
        );
    }
}

/// Every sequence of up to five rows that pass, fail, or have no number, against the definition of `match`.
#[test]
fn match_sets_how_many_rows_must_pass() {
    let kinds = [
        ("threshold", json!({"operator": "gt", "value": 80})),
        ("range", json!({"low": 0, "high": 80})),
    ];
    for length in 0..=5u32 {
        for code in 0..3usize.pow(length) {
            let rows: Vec<Value> = (0..length)
                .map(|place| [json!(100), json!(50), json!("none")][code / 3usize.pow(place) % 3].clone())
                .collect();
            let tested: Vec<(i64, bool)> = (0..)
                .zip(&rows)
                .filter_map(|(second, value)| Some((second, value.as_f64()? > 80.0)))
                .collect();
            let passed = tested.iter().filter(|(_, passes)| *passes).count();
            for (rule, count) in [
                (None, None),
                (Some("any"), None),
                (Some("all"), None),
                (Some("last"), None),
                (Some("count"), Some(1)),
                (Some("count"), Some(2)),
                (Some("count"), Some(5)),
            ] {
                let met = match rule {
                    None | Some("any") => passed > 0,
                    Some("all") => passed == tested.len(),
                    Some("last") => tested.last().is_some_and(|(_, passes)| *passes),
                    _ => passed >= count.unwrap_or(0),
                };
                let expected = match (tested.is_empty(), met) {
                    (true, _) => Inconclusive,
                    (false, true) => Met,
                    (false, false) => NotMet,
                };
                // The newest row that agrees with the outcome, else the newest.
                let newest = tested.last().map(|(second, _)| *second);
                let decisive = tested.iter().rfind(|(_, passes)| *passes == met);
                let decisive = decisive.map_or(newest, |(second, _)| Some(*second));
                for (kind, parameters) in &kinds {
                    let mut parameters = parameters.clone();
                    if let Some(rule) = rule {
                        parameters["match"] = json!(rule);
                    }
                    if let Some(count) = count {
                        parameters["minCount"] = json!(count);
                    }
                    let finding = found(kind, parameters.clone(), &rows);
                    assert_eq!(finding.outcome, expected, "{kind} {parameters} of {rows:?}");
                    assert_eq!(
                        decided_at(&finding),
                        decisive.and_then(second),
                        "{kind} {parameters} of {rows:?}"
                    );
                    assert_eq!(finding.alert.is_some(), expected == Met);
                    if expected != Inconclusive {
                        assert_eq!(finding.figures["matched"], json!(passed));
                    }
                }
            }
        }
    }
}

#[test]
fn an_inconclusive_window_gives_its_reason() {
    let reason = |values: &[Value]| {
        let finding = found("threshold", json!({"operator": "lt", "value": 1}), values);
        assert_eq!((finding.outcome, finding.row.is_none()), (Inconclusive, true));
        finding.reason.unwrap()
    };
    assert_eq!(reason(&[]), "no rows in the window");
    assert_eq!(
        reason(&[json!("a"), Value::Null]),
        "none of the 2 rows has a number in the field"
    );
}
