//! Amounts of data read for first and last values.

use super::tests::{BLOCK, SECOND, store};
use crate::calendar::Unit;
use crate::query::{
    Budget, Completion, GroupQuery, Grouping, NeededField, Needs, Statistics, Touched, Value, Wanted,
};
use crate::snapshot::SeriesSnapshot;

/// First and last values of the field of [`store`], with what was read for them.
fn first_and_last(
    snapshot: &SeriesSnapshot,
    (unit, range_ns): (Unit, (i64, i64)),
    newest: bool,
    wanted: Wanted,
) -> (Vec<Statistics>, Touched) {
    let needs = Needs {
        ends: true,
        newest,
        ..Needs::default()
    };
    let fields = [NeededField {
        field: 0,
        number: 0,
        needs,
    }];
    let completion = Completion {
        quantiles: &[],
        is_merged: false,
        holds_until_ns: i64::MAX,
    };
    let query = GroupQuery {
        range_ns,
        step: unit.into(),
        fields: &[0],
        metadata: None,
        stop: &|| false,
        values: &[],
    };
    let budget = Budget::unlimited();
    let mut grouping: Grouping<'_, Statistics> = Grouping::new(wanted, &budget);
    grouping
        .add_rows(0, snapshot, &query, &fields, &completion)
        .unwrap();
    let found = grouping.finish().unwrap();
    let values = found.cells.into_iter().flat_map(|cell| cell.into_values());
    (values.map(|(_, statistics)| statistics).collect(), found.touched)
}

#[test]
fn first_and_last_values_are_read_from_no_rows_of_blocks_within_a_cell() {
    let points = 200_000;
    let snapshot = store(points).view().series(1).unwrap();
    for (range_ns, rows_max) in [
        // Rows that are not sealed yet.
        ((i64::MIN, i64::MAX), BLOCK + 1_024),
        ((12_345 * SECOND, 150_001 * SECOND), 2 * BLOCK),
    ] {
        let (first, last) = (range_ns.0.max(0), range_ns.1.min((points - 1) * SECOND));
        let value = |at_ns: i64| Value::Number((at_ns / SECOND % 100) as f64);
        let asked = (Unit::Month, range_ns);
        let (found, touched) = first_and_last(&snapshot, asked, false, Wanted::ALL);
        let ends = found[0].ends().unwrap();
        assert_eq!((ends.first.0.0, ends.last.0.0), (first, last));
        assert_eq!((&ends.first.1, &ends.last.1), (&value(first), &value(last)));
        assert_eq!(found[0].aggregate.count, ((last - first) / SECOND + 1) as u64);
        assert!(touched.rows <= rows_max, "{touched:?}");
        let (found, touched) = first_and_last(&snapshot, asked, true, Wanted::ALL);
        let ends = found[0].ends().unwrap();
        assert_eq!(ends.last, ((last, (last / SECOND) as u64 + 1), value(last)));
        assert!(
            touched.rows <= rows_max && touched.cells <= 2,
            "older blocks: {touched:?}"
        );
    }
}

/// Regression: blocks were read from the newest on, although only the oldest steps were wanted.
#[test]
fn last_values_of_the_oldest_steps_read_no_newer_rows() {
    let snapshot = store(200_000).view().series(1).unwrap();
    let wanted = Wanted {
        rows_max: 10,
        ..Wanted::ALL
    };
    let all_ns = (i64::MIN, i64::MAX);
    let (found, touched) = first_and_last(&snapshot, (Unit::Minute, all_ns), true, wanted);
    let last: Vec<i64> = found
        .iter()
        .map(|of| of.ends().unwrap().last.0.0 / SECOND)
        .collect();
    assert_eq!(last, (1..=10).map(|minute| minute * 60 - 1).collect::<Vec<_>>());
    assert!(touched.rows <= 2 * BLOCK, "{touched:?}");
}

/// Regression: statistics of no field read the first and last values of every block.
#[test]
fn statistics_of_no_field_read_nothing() {
    let snapshot = store(20_000).view().series(1).unwrap();
    let query = GroupQuery {
        range_ns: (i64::MIN, i64::MAX),
        step: Unit::Month.into(),
        fields: &[],
        metadata: None,
        stop: &|| panic!("a block"),
        values: &[],
    };
    let completion = Completion {
        quantiles: &[],
        is_merged: false,
        holds_until_ns: i64::MAX,
    };
    let budget = Budget::unlimited();
    let mut grouping: Grouping<'_, Statistics> = Grouping::new(Wanted::ALL, &budget);
    grouping.add_rows(0, &snapshot, &query, &[], &completion).unwrap();
    let found = grouping.finish().unwrap();
    assert_eq!((found.cells.len(), found.touched), (0, Touched::default()));
}
