//! Series that are sampled together, in one grouped query: their rows lie in the same steps, whose lists are shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::query::{Budget, GroupQuery, Grouped, Grouping, Wanted};
use engine::rows::RowsWriter;
use engine::{SegmentFile, SegmentWriter, SeriesSnapshot, Store, Unit};

const QUARTER_NS: i64 = 900 * 1_000_000_000;
const HOUR_NS: i64 = 4 * QUARTER_NS;
const SERIES: u32 = 12;
const GROUPS: u32 = 3;
const ROWS: i64 = 400;

/// The value of a field in a row of a series; one field has values in few rows.
fn value(series: u32, row: i64, field: u16) -> Option<f64> {
    let value = f64::from(series * 1_000 + u32::from(field) * 100) + (row * 7 % 90) as f64;
    (field == 0 || row % 9 == 0).then_some(value)
}

/// Every second series begins with a later row, so that there are two kinds of blocks.
fn first_row(series: u32) -> i64 {
    i64::from(series % 2) * 3
}

/// The rows of all series, half of them in one segment, half in another.
fn sealed() -> Store {
    let mut sealed = Store::new();
    for (number, rows) in [(1, 0..ROWS / 2), (2, ROWS / 2..ROWS)] {
        let (mut store, mut writer, mut bytes) = (Store::new(), RowsWriter::new(), Vec::new());
        for row in rows {
            for series in (0..SERIES).filter(|series| row >= first_row(*series)) {
                writer.begin(series);
                for field in [0, 1] {
                    if let Some(value) = value(series, row, field) {
                        writer.number(field, value, 0);
                    }
                }
                writer.commit(row * QUARTER_NS);
            }
        }
        writer.encode(&mut bytes);
        store.apply(&bytes, number * 100_000, &[]).unwrap();
        let checkpoint = store.begin_checkpoint().unwrap();
        let segment = SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap();
        let file = SegmentFile::open(number, Arc::new(segment)).unwrap();
        sealed.add_segment(file.part(1).unwrap().unwrap());
    }
    sealed
}

#[test]
fn series_that_are_sampled_together_have_the_cells_of_their_rows() {
    let store = sealed();
    let view = store.view();
    let series: Vec<SeriesSnapshot> = (0..SERIES).map(|series| view.series(series).unwrap()).collect();
    let within = |(first, last): (i64, i64), row: i64| (first..=last).contains(&(row * QUARTER_NS));
    for (fields, range_ns) in [
        (&[0u16] as &[u16], (i64::MIN, i64::MAX)),
        (&[0, 1], (5 * QUARTER_NS, 333 * QUARTER_NS)),
    ] {
        // Count and sum of each field by start and group.
        let mut expected: BTreeMap<(i64, u32), BTreeMap<u32, (u64, f64)>> = BTreeMap::new();
        for series in 0..SERIES {
            for row in (first_row(series)..ROWS).filter(|row| within(range_ns, *row)) {
                for (field, value) in fields
                    .iter()
                    .filter_map(|field| Some((field, value(series, row, *field)?)))
                {
                    let start_ns = row * QUARTER_NS / HOUR_NS * HOUR_NS;
                    let cell = expected.entry((start_ns, series % GROUPS)).or_default();
                    let (count, sum) = cell.entry(u32::from(*field)).or_default();
                    (*count, *sum) = (*count + 1, *sum + value);
                }
            }
        }
        for (rows_max, descending) in [1, 10, 77, usize::MAX]
            .into_iter()
            .flat_map(|max| [(max, false), (max, true)])
        {
            let budget = Budget::unlimited();
            let wanted = Wanted {
                rows_max,
                descending,
                ..Wanted::ALL
            };
            let mut grouping: Grouping<'_> = Grouping::new(wanted, &budget);
            let query = GroupQuery {
                range_ns,
                step: Unit::Hour.into(),
                fields,
                metadata: None,
                stop: &|| false,
                values: &[],
            };
            for (number, series) in (0..SERIES).zip(&series) {
                grouping.add(number % GROUPS, series, &query, None).unwrap();
            }
            let found: Grouped<'_> = grouping.finish().unwrap();
            let found = found.cells.into_iter().map(|cell| {
                let key = (cell.start_ns, cell.source);
                let values = cell.values().map(|(field, it)| (field, (it.count, it.sum())));
                (key, values.collect::<BTreeMap<_, _>>())
            });
            let found: Vec<_> = found.collect();
            let mut expected: Vec<_> = expected.clone().into_iter().collect();
            if descending {
                expected.reverse();
            }
            expected.truncate(rows_max);
            assert_eq!(
                found, expected,
                "{fields:?}, {rows_max} rows, descending {descending}"
            );
        }
    }
}
