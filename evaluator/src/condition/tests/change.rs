//! `change`.

use serde_json::{Value, json};

use super::{decided_at, found, numbers, second};
use crate::condition::Outcome;
use Outcome::{Inconclusive, Met, NotMet};

#[track_caller]
fn outcome(parameters: Value, values: &[f64]) -> Outcome {
    found("change", parameters, &numbers(values)).outcome
}

#[test]
fn the_last_number_is_at_least_by_away_from_the_first() {
    for (values, increase, decrease, any) in [
        ([10.0, 15.0], Met, NotMet, Met),
        ([10.0, 14.9], NotMet, NotMet, NotMet),
        ([10.0, 10.0], NotMet, NotMet, NotMet),
        ([10.0, 5.1], NotMet, NotMet, NotMet),
        ([10.0, 5.0], NotMet, Met, Met),
        ([-2.0, 3.0], Met, NotMet, Met),
        ([3.0, -2.0], NotMet, Met, Met),
    ] {
        for (direction, expected) in [("increase", increase), ("decrease", decrease), ("any", any)] {
            let parameters = json!({"direction": direction, "by": 5});
            assert_eq!(outcome(parameters, &values), expected, "{values:?} {direction}");
        }
    }
}

#[test]
fn only_the_first_and_last_numbers_count() {
    let parameters = json!({"direction": "any", "by": 5});
    assert_eq!(outcome(parameters.clone(), &[10.0, 99.0, -99.0, 12.0]), NotMet);
    assert_eq!(outcome(parameters, &[10.0, 10.0, 10.0, 15.0]), Met);
}

#[test]
fn from_selects_the_reference_of_the_comparison() {
    let values = [10.0, 4.0, 20.0, 12.0];
    for (from, direction, by, expected) in [
        ("first", "increase", 2.0, Met),
        ("first", "increase", 2.1, NotMet),
        ("min", "increase", 8.0, Met),
        ("min", "increase", 8.1, NotMet),
        ("max", "decrease", 8.0, Met),
        ("max", "decrease", 8.1, NotMet),
        ("min", "any", 8.0, Met),
        ("max", "any", 8.0, Met),
        ("max", "any", 8.1, NotMet),
    ] {
        let parameters = json!({"from": from, "direction": direction, "by": by});
        assert_eq!(outcome(parameters.clone(), &values), expected, "{parameters}");
    }
    // The last number may itself be the least or the greatest.
    let from_max = json!({"from": "max", "direction": "decrease", "by": 1});
    assert_eq!(outcome(from_max, &[1.0, 2.0, 3.0]), NotMet);
    let from_min = json!({"from": "min", "direction": "increase", "by": 1});
    assert_eq!(outcome(from_min, &[3.0, 2.0, 1.0]), NotMet);
}

#[test]
fn percent_is_relative_to_the_magnitude_of_the_reference() {
    let percent = |direction: &str, by: f64| json!({"direction": direction, "by": by, "percent": true});
    assert_eq!(outcome(percent("increase", 50.0), &[200.0, 300.0]), Met);
    assert_eq!(outcome(percent("increase", 50.1), &[200.0, 300.0]), NotMet);
    assert_eq!(outcome(percent("decrease", 25.0), &[200.0, 150.0]), Met);
    // From -200 up to -100 is an increase by half of 200.
    assert_eq!(outcome(percent("increase", 50.0), &[-200.0, -100.0]), Met);
    assert_eq!(outcome(percent("decrease", 50.0), &[-200.0, -100.0]), NotMet);
    assert_eq!(outcome(percent("any", 1.0), &[0.0, 1.0]), Inconclusive);
    assert_eq!(outcome(percent("any", 1.0), &[0.0, 0.0]), NotMet);
}

#[test]
fn one_number_is_inconclusive() {
    let parameters = json!({"direction": "any", "by": 1});
    assert_eq!(outcome(parameters.clone(), &[]), Inconclusive);
    assert_eq!(outcome(parameters.clone(), &[5.0]), Inconclusive);
    let one_of_two = found("change", parameters.clone(), &[json!("high"), json!(5)]);
    assert_eq!(one_of_two.outcome, Inconclusive);
    let none = found("change", parameters, &[json!("high"), json!("low")]);
    assert_eq!(
        none.reason.as_deref(),
        Some("none of the 2 rows has a number in the field")
    );
}

#[test]
fn the_alert_names_the_direction_of_the_change() {
    for (direction, values, operator) in [
        ("increase", [1.0, 9.0], "increases_by"),
        ("decrease", [9.0, 1.0], "decreases_by"),
        ("any", [1.0, 9.0], "increases_by"),
        ("any", [9.0, 1.0], "decreases_by"),
    ] {
        let finding = found(
            "change",
            json!({"direction": direction, "by": 8}),
            &numbers(&values),
        );
        assert_eq!(decided_at(&finding), second(1));
        assert_eq!(
            finding.figures["from"],
            json!({"timestamp": second(0), "value": values[0] as i64})
        );
        assert_eq!(finding.figures["change"], json!((values[1] - values[0]) as i64));
        let alert = finding.alert.unwrap();
        assert_eq!(
            (alert.current_value, alert.threshold, alert.operator),
            (json!(values[1] as i64), json!(8), operator)
        );
    }
}
