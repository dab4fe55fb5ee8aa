//! `absence`.

use serde_json::{Value, json};

use super::{WINDOW_SECONDS, decided_at, found_in, row, second, window};
use crate::condition::{Finding, Outcome, Row, Window};
use Outcome::{Inconclusive, Met, NotMet};

fn at(seconds: &[i64]) -> Vec<Row> {
    seconds.iter().map(|second| row(*second, json!(1))).collect()
}

#[track_caller]
fn absence(row_seconds: i64, parameters: Value, seconds: &[i64]) -> Finding {
    found_in(&window(row_seconds), "absence", parameters, at(seconds))
}

#[test]
fn an_empty_window_meets_absence() {
    let finding = absence(0, json!({}), &[]);
    assert_eq!((finding.outcome, finding.row.is_none()), (Met, true));
    let alert = finding.alert.unwrap();
    assert_eq!(
        (alert.current_value, alert.threshold, alert.operator),
        (json!(WINDOW_SECONDS), json!(WINDOW_SECONDS), "absent_for")
    );
    let one = absence(0, json!({}), &[0]);
    assert_eq!((one.outcome, decided_at(&one)), (NotMet, second(0)));
}

#[test]
fn rows_without_a_measurement_do_not_count() {
    let rows = [row(1, Value::Null), row(2, json!([]))];
    assert_eq!(found_in(&window(0), "absence", json!({}), rows).outcome, Met);
    // Of any type.
    let rows = [row(1, json!("open"))];
    assert_eq!(found_in(&window(0), "absence", json!({}), rows).outcome, NotMet);
}

#[test]
fn the_gap_runs_from_the_newest_row_to_the_end_of_the_window() {
    let gap = json!({"maxGapSeconds": 60});
    for (seconds, outcome) in [
        (&[0, 10, 539][..], Met),
        (&[0, 10, 540], NotMet),
        (&[600], NotMet),
        // A clock ahead of the service's.
        (&[700], NotMet),
    ] {
        let finding = absence(0, gap.clone(), seconds);
        assert_eq!(finding.outcome, outcome, "{seconds:?}");
        assert_eq!(decided_at(&finding), second(seconds[seconds.len() - 1]));
    }
    let alert = absence(0, gap, &[500]).alert.unwrap();
    assert_eq!((alert.current_value, alert.threshold), (json!(100), json!(60)));
}

#[test]
fn an_empty_window_shorter_than_the_gap_is_inconclusive() {
    for (gap, outcome) in [
        (WINDOW_SECONDS - 1, Met),
        (WINDOW_SECONDS, Met),
        (WINDOW_SECONDS + 1, Inconclusive),
    ] {
        let finding = absence(0, json!({"maxGapSeconds": gap}), &[]);
        assert_eq!(finding.outcome, outcome, "{gap}");
    }
}

/// A group that starts at 500 and lasts a minute: its last point is between 500 and 560, 100 to 40 seconds before
/// the end.
#[test]
fn a_group_decides_only_if_every_place_of_its_last_point_agrees() {
    for (gap, outcome) in [
        (39, Met),
        (40, Inconclusive),
        (60, Inconclusive),
        (99, Inconclusive),
        (100, NotMet),
    ] {
        let finding = absence(60, json!({"maxGapSeconds": gap}), &[440, 500]);
        assert_eq!(finding.outcome, outcome, "{gap}");
    }
    // The group in which the window ends.
    assert_eq!(absence(60, json!({"maxGapSeconds": 60}), &[590]).outcome, NotMet);
    assert_eq!(absence(60, json!({}), &[0]).outcome, NotMet);
}

#[test]
fn without_a_time_range_a_gap_is_inconclusive() {
    let gap = json!({"maxGapSeconds": 60});
    for (parameters, rows, outcome) in [
        (json!({}), at(&[]), Met),
        (json!({}), at(&[1]), NotMet),
        (gap.clone(), at(&[]), Inconclusive),
        (gap, at(&[1]), Inconclusive),
    ] {
        let finding = found_in(&Window::default(), "absence", parameters, rows);
        assert_eq!((finding.outcome, finding.alert), (outcome, None));
    }
}

#[test]
fn the_window_is_read_from_the_query() {
    let query = |members: Value| Window::of_query(members.as_object().unwrap());
    let range = json!({"startTime": "1970-01-01T00:00:00Z", "endTime": "1970-01-01T00:10:00.000Z"});
    assert_eq!(query(json!({"filters": range})), window(0));
    for (unit, seconds) in [
        ("minute", 60),
        ("hour", 3_600),
        ("day", 86_400),
        ("week", 604_800),
        ("month", 31 * 86_400),
    ] {
        assert_eq!(
            query(json!({"filters": range, "aggregation": "avg", "groupBy": unit})),
            window(seconds)
        );
    }
    for other in [
        json!({}),
        json!({"filters": null}),
        json!({"filters": {"startTime": 5, "endTime": "now"}}),
    ] {
        assert_eq!(query(other), Window::default());
    }
}
