//! `zscore`.

use serde_json::{Value, json};

use super::{decided_at, found, numbers, second};
use crate::condition::Outcome;
use Outcome::{Inconclusive, Met, NotMet};

/// Mean 10 and sample standard deviation 1, thirty-three times over, then the newest.
fn steady_then(newest: f64) -> Vec<Value> {
    let mut values = [9.0, 10.0, 11.0].repeat(11);
    // 22 squared deviations of 1 over 32 degrees of freedom.
    let deviation = (22.0_f64 / 32.0).sqrt();
    values
        .iter_mut()
        .for_each(|value| *value = 10.0 + (*value - 10.0) / deviation);
    values.push(newest);
    numbers(&values)
}

#[test]
fn the_newest_is_compared_with_mean_and_deviation_of_the_others() {
    for (newest, parameters, outcome) in [
        (13.1, json!({}), Met),
        (12.9, json!({}), NotMet),
        (10.0, json!({}), NotMet),
        (7.1, json!({}), NotMet),
        (6.9, json!({}), Met),
        (12.1, json!({"limit": 2}), Met),
        (11.9, json!({"limit": 2}), NotMet),
        (10.6, json!({"limit": 0.5}), Met),
    ] {
        let finding = found("zscore", parameters.clone(), &steady_then(newest));
        assert_eq!(finding.outcome, outcome, "{newest} {parameters}");
        let zscore = finding.figures["zscore"].as_f64().unwrap();
        assert!((zscore - (newest - 10.0)).abs() < 1e-9, "{zscore}");
        assert_eq!(finding.figures["points"], json!(33));
        assert_eq!(decided_at(&finding), second(33));
    }
    let alert = found("zscore", json!({}), &steady_then(20.0)).alert.unwrap();
    assert_eq!((alert.current_value, alert.operator), (json!(20), "outside"));
    for (bound, expected) in [(0, 7.0), (1, 13.0)] {
        let bound = alert.threshold[bound].as_f64().unwrap();
        assert!((bound - expected).abs() < 1e-9, "{bound}");
    }
}

#[test]
fn too_few_numbers_are_inconclusive() {
    let values = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|place| json!(place % 3))
            .chain([json!(99)])
            .collect()
    };
    assert_eq!(found("zscore", json!({}), &values(29)).outcome, Inconclusive);
    assert_eq!(found("zscore", json!({}), &values(30)).outcome, Met);
    let few = json!({"minPoints": 2});
    assert_eq!(found("zscore", few.clone(), &values(1)).outcome, Inconclusive);
    assert_eq!(found("zscore", few.clone(), &values(2)).outcome, Met);
    assert_eq!(found("zscore", few.clone(), &[]).outcome, Inconclusive);
    // Rows without a number do not count.
    let rows = [json!(1), Value::Null, json!("2"), json!(9)];
    assert_eq!(found("zscore", few, &rows).outcome, Inconclusive);
}

#[test]
fn with_zero_deviation_any_other_number_exceeds_the_limit() {
    // 0.1 has no exact double: a mean that drifts from it would differ from the value itself.
    let flat = |newest: f64| numbers(&[vec![0.1; 40], vec![newest]].concat());
    let jump = found("zscore", json!({}), &flat(0.2));
    assert_eq!((jump.outcome, &jump.figures["zscore"]), (Met, &Value::Null));
    assert_eq!(jump.alert.unwrap().threshold, json!([0.1, 0.1]));
    let same = found("zscore", json!({}), &flat(0.1));
    assert_eq!((same.outcome, &same.figures["zscore"]), (NotMet, &json!(0)));
}

#[test]
fn the_deviation_keeps_its_precision_far_from_zero() {
    let values: Vec<f64> = (0..100)
        .map(|place| 1e9 + f64::from(place % 2))
        .chain([1e9 + 4.0])
        .collect();
    let finding = found("zscore", json!({}), &numbers(&values));
    // Half a unit each side, over 99 degrees of freedom.
    let deviation = (100.0_f64 * 0.25 / 99.0).sqrt();
    assert!((finding.figures["zscore"].as_f64().unwrap() - 3.5 / deviation).abs() < 1e-6);
}

#[test]
fn numbers_too_large_for_a_deviation_are_inconclusive() {
    let values: Vec<f64> = (0..40)
        .map(|place| if place % 2 == 0 { 1e308 } else { -1e308 })
        .collect();
    assert_eq!(
        found("zscore", json!({}), &numbers(&values)).outcome,
        Inconclusive
    );
}
