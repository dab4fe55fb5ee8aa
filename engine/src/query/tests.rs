//! Amounts of data read by queries, which the model test does not check: the cost of a grouped query grows with its
//! answer.

use std::cell::Cell;

use crate::aggregate::Aggregate;
use crate::calendar::Unit;
use crate::query::{
    Budget, GroupQuery, Grouping, Groups, HourCounts, ScanQuery, Selection, ValueFilter, Wanted, group, scan,
    scan_some,
};
use crate::rows::{RowsWriter, Scalar};
use crate::step::Step;
use crate::store::Store;

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const BLOCK: u64 = crate::BLOCK_ROWS_MAX as u64;

/// One source with one point a second.
pub(super) fn store(points: i64) -> Store {
    store_of(points, |second| (second % 100) as f64)
}

fn store_of(points: i64, value: impl Fn(i64) -> f64) -> Store {
    let mut store = Store::new();
    let mut writer = RowsWriter::new();
    let mut bytes = Vec::new();
    for start in (0..points).step_by(1_000) {
        writer.clear();
        bytes.clear();
        for second in start..points.min(start + 1_000) {
            writer.begin(1);
            writer.number(0, value(second), 0);
            writer.commit(second * SECOND);
        }
        writer.encode(&mut bytes);
        store.apply(&bytes, start as u64 + 1, &[]).unwrap();
        store
            .take_seals()
            .into_iter()
            .for_each(|seal| store.finish_seal(seal.run()));
    }
    store
}

#[test]
fn a_grouped_query_touches_at_most_sixty_rows_a_cell_and_two_blocks() {
    let store = store(200_000);
    let snapshot = [store.view().series(1).unwrap()];
    for (unit, range_ns) in [
        (Unit::Minute, (i64::MIN, i64::MAX)),
        (Unit::Hour, (i64::MIN, i64::MAX)),
        (Unit::Day, (i64::MIN, i64::MAX)),
        (Unit::Hour, (12_345 * SECOND, 150_001 * SECOND)),
        (Unit::Day, (12_345 * SECOND + 5, 199_000 * SECOND)),
        (Unit::Month, (1, 100_000 * SECOND)),
        // Minutes of both edge blocks are computed from all of their rows, some of which are edges as well.
        (Unit::Day, (90_247 * SECOND, 171_857 * SECOND)),
    ] {
        let query = GroupQuery {
            range_ns,
            step: unit.into(),
            fields: &[0],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let groups = group(&snapshot[0], &query).unwrap();
        let (cells, touched) = (groups.starts_ns.len() as u64, groups.touched);
        assert!(
            touched.rows + touched.cells <= 60 * cells + 2 * BLOCK,
            "{unit:?} over {range_ns:?}: {touched:?} for {cells} cells"
        );
    }
}

#[test]
fn blocks_whose_values_cannot_match_are_not_read() {
    let store = store_of(30 * BLOCK as i64, |second| second as f64);
    let series = store.view().series(1).unwrap();
    let wanted = 100_000.0..100_010.0;
    let passes = |value: Scalar<'_>| matches!(value, Scalar::Number(number) if wanted.contains(&number));
    let values = [ValueFilter {
        field: 0,
        passes: &passes,
        bounds: (wanted.start, wanted.end),
    }];
    let query = GroupQuery {
        range_ns: (i64::MIN, i64::MAX),
        step: Unit::Month.into(),
        fields: &[0],
        metadata: None,
        stop: &|| false,
        values: &values,
    };
    let groups = group(&series, &query).unwrap();
    assert_eq!(groups.cell(0)[0].count, 10);
    assert!(groups.touched.rows <= 2 * BLOCK, "{:?}", groups.touched);
    let selections = [Selection {
        series: &series,
        fields: None,
        values: &values,
        rows: None,
    }];
    for descending in [false, true] {
        let query = ScanQuery {
            range_ns: (i64::MIN, i64::MAX),
            descending,
            after: None,
            skip: 1,
            limit: 100,
            metadata: None,
            stop: &|| false,
        };
        let page = scan(&selections, &query).unwrap();
        assert_eq!(page.rows.len(), 9);
    }
}

/// Regression: an ascending query went on through all later blocks when it had its cells.
#[test]
fn a_grouped_query_looks_at_no_block_behind_its_last_cell() {
    let store = store(30 * BLOCK as i64);
    let series = store.view().series(1).unwrap();
    let stop_checks = Cell::new(0);
    let stop = || {
        stop_checks.set(stop_checks.get() + 1);
        false
    };
    let query = GroupQuery {
        range_ns: (i64::MIN, i64::MAX),
        step: Unit::Minute.into(),
        fields: &[0],
        metadata: None,
        stop: &stop,
        values: &[],
    };
    let wanted = Wanted {
        rows_max: 10,
        descending: false,
        ..Wanted::ALL
    };
    let budget = Budget::unlimited();
    let mut grouping = Grouping::new(wanted, &budget);
    grouping.add(1, &series, &query, None).unwrap();
    let checks = stop_checks.get();
    assert!(
        checks <= 10,
        "{checks} checks for ten cells of the first of 30 blocks"
    );
}

#[test]
fn an_offset_skips_whole_blocks() {
    let store = store(200_000);
    let snapshot = [store.view().series(1).unwrap()];
    for descending in [false, true] {
        let selections = [Selection::new(&snapshot[0], None)];
        let query = ScanQuery {
            range_ns: (i64::MIN, i64::MAX),
            descending,
            after: None,
            skip: 150_000,
            limit: 10,
            metadata: None,
            stop: &|| false,
        };
        let page = scan(&selections, &query).unwrap();
        let (run, row) = page.rows[0];
        let first = page.runs[run as usize].columns.timestamps_ns[row as usize] / SECOND;
        assert_eq!(first, if descending { 49_999 } else { 150_000 });
        assert!(
            page.touched.rows <= 2 * BLOCK,
            "{} rows read to skip 150,000",
            page.touched.rows
        );
    }
}

/// A filter that selects few rows ends a scan early, again and again, without missing or repeating a row.
#[test]
fn a_scan_that_ends_early_goes_on_behind_the_rows_that_it_has_passed() {
    let store = store(20 * BLOCK as i64);
    let series = store.view().series(1).unwrap();
    let passes = |value: Scalar<'_>| value == Scalar::Number(7.0);
    let values = [ValueFilter {
        field: 0,
        passes: &passes,
        bounds: (7.0, 7.0),
    }];
    let selections = [Selection {
        series: &series,
        fields: None,
        values: &values,
        rows: None,
    }];
    let budget = Budget::unlimited();
    for descending in [false, true] {
        let (mut after, mut found, mut pages) = (None, Vec::new(), 0);
        loop {
            let query = ScanQuery {
                range_ns: (i64::MIN, i64::MAX),
                descending,
                after,
                skip: 0,
                limit: 150,
                metadata: None,
                stop: &|| false,
            };
            let (page, _held) = scan_some(&selections, &query, 2 * BLOCK, &budget).unwrap();
            assert!(page.touched.rows <= 4 * BLOCK, "{:?}", page.touched);
            let keys = page.rows.iter().map(|(run, row)| {
                let columns = &page.runs[*run as usize].columns;
                columns.key(*row as usize)
            });
            let keys: Vec<_> = keys.collect();
            after = page.reached.or(keys.last().copied()).or(after);
            found.extend(keys);
            pages += 1;
            if !page.more {
                break;
            }
        }
        assert!(pages > 8, "{pages} pages");
        let mut expected: Vec<(i64, u64)> = (0..20 * BLOCK as i64)
            .filter(|second| second % 100 == 7)
            .map(|second| (second * SECOND, second as u64 + 1))
            .collect();
        if descending {
            expected.reverse();
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn a_cancelled_query_returns_stopped() {
    let store = store(20_000);
    let snapshot = [store.view().series(1).unwrap()];
    let query = GroupQuery {
        range_ns: (i64::MIN, i64::MAX),
        step: Unit::Hour.into(),
        fields: &[0],
        metadata: None,
        stop: &|| true,
        values: &[],
    };
    assert_eq!(
        group(&snapshot[0], &query).unwrap_err(),
        crate::EngineError::Stopped
    );
}

/// Regression: a filter read every text of a block or head before it checked for cancellation.
#[test]
fn a_query_stops_between_metadata_texts() {
    const POINTS: u64 = 2 * BLOCK + 500;
    let mut store = Store::new();
    let mut writer = RowsWriter::new();
    for second in 1..=POINTS as i64 {
        writer.begin(1);
        writer.number(0, 1.0, 0);
        writer.metadata(&format!(r#"{{"n":{second}}}"#));
        writer.commit(second * SECOND);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    for sealed in [false, true] {
        if sealed {
            store
                .take_seals()
                .into_iter()
                .for_each(|seal| store.finish_seal(seal.run()));
        }
        let snapshot = [store.view().series(1).unwrap()];
        let series = &snapshot[0];
        let (stop_checks, read) = (Cell::new(0), Cell::new(0));
        // The first check is before the block or chunk, the second before its first text.
        let stop = || stop_checks.replace(stop_checks.get() + 1) >= 3;
        let filter = |_: Option<&str>| read.replace(read.get() + 1) > 0;
        let group_query = GroupQuery {
            range_ns: (i64::MIN, i64::MAX),
            step: Unit::Hour.into(),
            fields: &[0],
            metadata: Some(&filter),
            stop: &stop,
            values: &[],
        };
        let groups = group(series, &group_query);
        assert!(
            matches!(groups, Err(crate::EngineError::Stopped)),
            "sealed: {sealed}"
        );
        assert!(
            read.get() < 100,
            "{} texts were read, sealed: {sealed}",
            read.get()
        );
        stop_checks.set(0);
        read.set(0);
        let scan_query = ScanQuery {
            range_ns: (i64::MIN, i64::MAX),
            descending: false,
            after: None,
            skip: 0,
            limit: 10,
            metadata: Some(&filter),
            stop: &stop,
        };
        let selections = [Selection::new(series, None)];
        assert!(
            matches!(scan(&selections, &scan_query), Err(crate::EngineError::Stopped)),
            "sealed: {sealed}"
        );
        assert!(
            read.get() < 100,
            "{} texts were read, sealed: {sealed}",
            read.get()
        );
    }
}

#[test]
fn rows_of_a_range_are_counted_without_reading_blocks_within_it() {
    let store = store(200_000);
    let snapshot = [store.view().series(1).unwrap()];
    let series = &snapshot[0];
    for range_ns in [
        (0, 200_000 * SECOND),
        (1_234 * SECOND + 1, 150_000 * SECOND),
        (77 * 3_600 * SECOND, 78 * 3_600 * SECOND),
        (i64::MIN + 1, -1),
    ] {
        // Points at whole seconds from 0 on: the first is the next whole second.
        let first = (range_ns.0.max(0) + SECOND - 1) / SECOND;
        let last = (range_ns.1.div_euclid(SECOND)).min(199_999);
        let rows = (last - first + 1).max(0) as u64;
        assert_eq!(
            series.stats_within(range_ns, &|| false, &mut Err).unwrap().points,
            rows,
            "{range_ns:?}"
        );
    }
    let stopped = series.stats_within((1, 150_000 * SECOND), &|| true, &mut Err);
    assert!(matches!(stopped, Err(crate::EngineError::Stopped)));
    let range_ns = (1_000 * SECOND, 10_000 * SECOND);
    let mut hours = HourCounts::new(range_ns);
    assert_eq!(hours.add(series, &|| false).unwrap(), 9_001);
    let counted: Vec<_> = hours.hours().collect();
    let hour = 3_600 * SECOND;
    assert_eq!(counted, [(0, 2_600), (hour, 3_600), (2 * hour, 2_801)]);
    assert!(hours.add(series, &|| true).is_err());
}

/// A source that sends every second, and a field present in half of its minutes.
#[test]
fn cached_minutes_agree_with_the_rows() {
    let (mut store, mut writer, mut bytes) = (Store::new(), RowsWriter::new(), Vec::new());
    let points = 3 * BLOCK as i64 + 500;
    for start in (0..points).step_by(500) {
        writer.clear();
        bytes.clear();
        for second in start..points.min(start + 500) {
            writer.begin(1);
            writer.number(0, (second % 977) as f64 / 7.0, crate::rows::NOT_DECIMAL);
            if second / 60 % 2 == 0 {
                writer.number(1, second as f64, 0);
            }
            writer.commit(second * SECOND);
        }
        writer.encode(&mut bytes);
        store.apply(&bytes, start as u64 + 1, &[]).unwrap();
        let seals = store.take_seals();
        seals.into_iter().for_each(|seal| store.finish_seal(seal.run()));
    }
    let snapshot = [store.view().series(1).unwrap()];
    let run_query = |fields: &[u16], step, range_ns, metadata| {
        let query = GroupQuery {
            range_ns,
            step,
            fields,
            metadata,
            stop: &|| false,
            values: &[],
        };
        group(&snapshot[0], &query).unwrap()
    };
    let steps = [60, 300, 900].map(|seconds| Step::seconds(seconds).unwrap());
    let fields: [&[u16]; 3] = [&[1], &[0], &[0, 1]];
    let ranges = [
        (i64::MIN, i64::MAX),
        (BLOCK as i64 * SECOND / 3, i64::MAX),
        (61 * SECOND, 20_000 * SECOND + 1),
    ];
    for round in 0..3 {
        for (fields, step) in fields.iter().flat_map(|fields| steps.map(|step| (*fields, step))) {
            for range_ns in ranges {
                // Filtered by metadata, the query reads rows.
                let by_row = run_query(fields, step.into(), range_ns, Some(&|_| true));
                let found = run_query(fields, step.into(), range_ns, None);
                assert_eq!(
                    found.starts_ns, by_row.starts_ns,
                    "{step:?} {fields:?} {range_ns:?}"
                );
                let bits = |groups: &Groups| -> Vec<_> {
                    let of = |a: &Aggregate| (a.count, a.sum().to_bits(), a.min.to_bits(), a.max.to_bits());
                    groups.aggregates.iter().map(of).collect()
                };
                assert_eq!(bits(&found), bits(&by_row), "{step:?} {fields:?} {range_ns:?}");
                if round == 2 && range_ns == ranges[0] {
                    let read = found.touched.rows;
                    assert!(read <= 500, "{read} rows were read again for {step:?} {fields:?}");
                }
            }
        }
    }
}
