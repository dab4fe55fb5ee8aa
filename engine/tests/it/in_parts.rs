//! Results whose cells of rollup levels are used where they are stored have the same cells as those that copy all.

use std::sync::Arc;

use engine::query::{Budget, CellsPart, GroupQuery, GroupedParts, Grouping, Wanted, group};
use engine::rows::RowsWriter;
use engine::{SegmentFile, SegmentWriter, SeriesSnapshot, Store, Unit};
use fastrand::Rng;

const SECOND_NS: i64 = 1_000_000_000;
const ROWS: i64 = 40_000;
const FIELDS: &[u16] = &[0, 1, 2];

/// A row of one source: two fields in all rows, one in some.
fn write(writer: &mut RowsWriter, second: i64, rng: &mut Rng) {
    writer.begin(1);
    writer.number(0, f64::from(rng.u32(0..1_000)), 0);
    writer.number(1, f64::from(rng.i32(-500..500)) / 10.0, 1);
    if second / 3_600 % 2 == 0 && rng.u8(0..20) == 0 {
        writer.number(2, f64::from(rng.u32(0..9)), 0);
    }
    writer.commit(second * SECOND_NS);
}

/// Adds rows of these seconds as a segment of a store.
fn seal(store: &mut Store, number: u64, seconds: impl Iterator<Item = i64>, rng: &mut Rng) {
    let (mut rows, mut writer, mut bytes) = (Store::new(), RowsWriter::new(), Vec::new());
    seconds.for_each(|second| write(&mut writer, second, rng));
    writer.encode(&mut bytes);
    rows.apply(&bytes, number * 1_000_000, &[]).unwrap();
    let checkpoint = rows.begin_checkpoint().unwrap();
    let segment = SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap();
    let file = SegmentFile::open(number, Arc::new(segment)).unwrap();
    store.add_segment(file.part(1).unwrap().unwrap());
}

/// The cells of a page: start, and count, sum, minimum and maximum of each field.
type Cells = Vec<(i64, Vec<(u32, u64, f64, f64, f64)>)>;

fn cells_of(parts: &[CellsPart<'_>]) -> Cells {
    let mut cells = Cells::new();
    for part in parts {
        match part {
            CellsPart::Copied(copied) => cells.extend(copied.iter().map(|cell| {
                let values = cell.values();
                let values = values.map(|(field, it)| (field, it.count, it.sum(), it.min, it.max));
                (cell.start_ns, values.collect())
            })),
            CellsPart::Level(of_level) => cells.extend((0..of_level.len()).map(|index| {
                let (level, cell) = (of_level.level, of_level.cell(index));
                let values = level.columns().map(|(field, column)| (field, column[cell]));
                let values = values.filter(|(_, it)| it.count > 0);
                let values = values.map(|(field, it)| (field, it.count, it.sum(), it.min, it.max));
                (level.starts_ns()[cell], values.collect())
            })),
        }
    }
    cells
}

fn query(range_ns: (i64, i64), step: Unit) -> GroupQuery<'static> {
    GroupQuery {
        range_ns,
        step: step.into(),
        fields: FIELDS,
        metadata: None,
        stop: &|| false,
        values: &[],
    }
}

fn all_copied(series: &SeriesSnapshot, query: &GroupQuery<'_>) -> Cells {
    let groups = group(series, query).unwrap();
    let starts = groups.starts_ns.iter().enumerate();
    let cells = starts.map(|(index, start_ns)| {
        let values = (0..).zip(groups.cell(index)).filter(|(_, it)| it.count > 0);
        let values = values.map(|(field, it)| (field, it.count, it.sum(), it.min, it.max));
        (*start_ns, values.collect())
    });
    cells.collect()
}

fn in_parts<'b>(
    series: &SeriesSnapshot,
    query: &GroupQuery<'_>,
    (rows_max, descending): (usize, bool),
    budget: &'b Budget,
) -> GroupedParts<'b> {
    let wanted = Wanted {
        rows_max,
        descending,
        ..Wanted::ALL
    };
    let mut grouping = Grouping::in_parts(wanted, budget);
    grouping.add(0, series, query, None).unwrap();
    grouping.finish_parts().unwrap()
}

/// Sums may have been added up in another order.
fn assert_alike(found: &Cells, expected: &Cells, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for ((start_ns, found), (expected_ns, expected)) in found.iter().zip(expected) {
        assert_eq!((start_ns, found.len()), (expected_ns, expected.len()), "{what}");
        for (one, other) in found.iter().zip(expected) {
            let (sum, other_sum) = (one.2, other.2);
            assert!(
                (sum - other_sum).abs() <= 1e-9 * sum.abs().max(1.0),
                "{what}: {one:?} {other:?}"
            );
            assert_eq!(
                (one.0, one.1, one.3, one.4),
                (other.0, other.1, other.3, other.4),
                "{what}"
            );
        }
    }
}

/// Compares a page of a query; returns how many of its cells were not copied.
pub(crate) fn compare_page(series: &SeriesSnapshot, query: &GroupQuery<'_>, rng: &mut Rng) -> usize {
    let descending = rng.bool();
    let mut expected = all_copied(series, query);
    if descending {
        expected.reverse();
    }
    let offset = if rng.bool() { 0 } else { rng.usize(0..300) };
    let limit = if rng.bool() { 10_000 } else { rng.usize(1..300) };
    let budget = Budget::unlimited();
    let found = in_parts(series, query, (offset + limit + 1, descending), &budget);
    let (parts, more) = found.page(offset, limit);
    let what = format!(
        "{:?} {:?}, {offset} + {limit}, {descending}",
        query.range_ns, query.step
    );
    assert_eq!(more, expected.len() > offset + limit, "{what}");
    expected.drain(..offset.min(expected.len()));
    expected.truncate(limit);
    assert!(parts.iter().all(|part| !part.is_empty()));
    assert_alike(&cells_of(&parts), &expected, &what);
    let levels = parts.iter().filter(|part| matches!(part, CellsPart::Level(_)));
    let not_copied = levels.map(CellsPart::len).sum::<usize>();
    drop(found);
    assert_eq!(budget.held(), 0);
    not_copied
}

/// Compares pages of all steps; returns how many cells were not copied.
fn compare(store: &Store, rng: &mut Rng) -> usize {
    let view = store.view();
    let series = view.series(1).unwrap();
    let mut not_copied = 0;
    let seconds = |rng: &mut Rng| rng.i64(-100..ROWS + 100) * SECOND_NS + rng.i64(0..SECOND_NS);
    for round in 0..60 {
        let (one, other) = (seconds(rng), seconds(rng));
        let range_ns = match round % 3 {
            0 => (i64::MIN, i64::MAX),
            _ => (one.min(other), one.max(other)),
        };
        let query = query(range_ns, [Unit::Minute, Unit::Hour][round % 2]);
        not_copied += compare_page(&series, &query, rng);
    }
    not_copied
}

#[test]
fn cells_that_are_not_copied_are_those_that_would_be() {
    let seed =
        std::env::var("TIDEWATCH_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("TIDEWATCH_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut store = Store::new();
    // A gap, and blocks that meet within a minute.
    let ordered = (0..ROWS).filter(|second| !(20_000..23_000).contains(second));
    seal(&mut store, 1, ordered, &mut rng);
    let in_order = compare(&store, &mut rng);
    assert!(in_order > 1_000, "{in_order} cells are not copied");

    // Late rows, in a segment and in memory: into a block, and over the border of two.
    let late = (9_000..9_100).chain(21_000..21_010);
    seal(&mut store, 2, late, &mut rng);
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    (30_000..30_005).for_each(|second| write(&mut writer, second, &mut rng));
    writer.encode(&mut bytes);
    store.apply(&bytes, 9_000_000, &[]).unwrap();
    let mixed = compare(&store, &mut rng);
    assert!(mixed > 100 && mixed < in_order, "{mixed} cells are not copied");
}

#[test]
fn a_page_reads_no_further_than_its_cells() {
    let mut store = Store::new();
    seal(&mut store, 1, 0..ROWS, &mut Rng::with_seed(1));
    let view = store.view();
    let series = view.series(1).unwrap();
    let query = query((i64::MIN, i64::MAX), Unit::Minute);
    for descending in [false, true] {
        let budget = Budget::unlimited();
        let page = in_parts(&series, &query, (21, descending), &budget);
        let all = in_parts(&series, &query, (usize::MAX, descending), &budget);
        assert_eq!(page.touched.blocks, 1, "descending {descending}");
        assert!(all.touched.blocks >= 4, "{:?}", all.touched);
    }
}

#[test]
fn cells_that_do_not_fit_into_the_budget_are_not_taken() {
    let mut store = Store::new();
    seal(&mut store, 1, 0..ROWS, &mut Rng::with_seed(1));
    let view = store.view();
    let series = view.series(1).unwrap();
    let query = query((i64::MIN, i64::MAX), Unit::Hour);
    let expected = all_copied(&series, &query);
    let outcomes = [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24].map(|bytes| {
        let budget = Budget::new(bytes);
        let mut grouping = Grouping::in_parts(Wanted::ALL, &budget);
        let added = grouping.add(0, &series, &query, None);
        let found = added.and_then(|()| grouping.finish_parts());
        found
            .map(|found| assert_eq!(cells_of(&found.page(0, usize::MAX).0), expected))
            .is_ok()
    });
    assert!(!outcomes[0] && outcomes[4], "{outcomes:?}");
    assert!(outcomes.is_sorted(), "{outcomes:?}");
}
