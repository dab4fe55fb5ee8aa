//! Results whose cells of rollup levels are used where they are stored have the same cells as those that copy all.

use std::sync::Arc;

use engine::query::{Budget, CellsPart, GroupQuery, GroupedParts, Grouping, Wanted, group};
use engine::rows::RowsWriter;
use engine::{SegmentFile, SegmentWriter, SeriesSnapshot, Store, Unit};
use fastrand::Rng;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
const ROWS: i64 = 40_000;
const FIELDS: &[u16] = &[0, 1, 2];

/// A row of one source: two fields in all rows, one in some.
fn write(writer: &mut RowsWriter, at_ns: i64, rng: &mut Rng) {
    writer.begin(1);
    writer.number(0, f64::from(rng.u32(0..1_000)), 0);
    writer.number(1, f64::from(rng.i32(-500..500)) / 10.0, 1);
    if at_ns / HOUR_NS % 2 == 0 && rng.u8(0..20) == 0 {
        writer.number(2, f64::from(rng.u32(0..9)), 0);
    }
    writer.commit(at_ns);
}

/// Adds rows at these times as a segment of a store.
fn seal(store: &mut Store, number: u64, times_ns: impl Iterator<Item = i64>, rng: &mut Rng) {
    let (mut rows, mut writer, mut bytes) = (Store::new(), RowsWriter::new(), Vec::new());
    times_ns.for_each(|at_ns| write(&mut writer, at_ns, rng));
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

/// Compares a page of a query; returns how many of its cells are shared.
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
    let shared = shared_cells(&parts);
    drop(found);
    assert_eq!(budget.held(), 0);
    shared
}

/// Compares pages of all steps; returns how many cells are shared.
fn compare(store: &Store, rng: &mut Rng) -> usize {
    let view = store.view();
    let series = view.series(1).unwrap();
    let mut shared = 0;
    let seconds = |rng: &mut Rng| rng.i64(-100..ROWS + 100) * SECOND_NS + rng.i64(0..SECOND_NS);
    for round in 0..60 {
        let (one, other) = (seconds(rng), seconds(rng));
        let range_ns = match round % 3 {
            0 => (i64::MIN, i64::MAX),
            _ => (one.min(other), one.max(other)),
        };
        let query = query(range_ns, if round % 8 == 7 { Unit::Hour } else { Unit::Minute });
        shared += compare_page(&series, &query, rng);
    }
    shared
}

#[test]
fn shared_cells_are_those_that_would_be_copied() {
    let seed =
        std::env::var("TIDEWATCH_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("TIDEWATCH_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut store = Store::new();
    // A gap, and blocks that meet within a minute.
    let ordered = (0..ROWS).filter(|second| !(20_000..23_000).contains(second));
    seal(&mut store, 1, ordered.map(|second| second * SECOND_NS), &mut rng);
    let in_order = compare(&store, &mut rng);
    assert!(in_order > 1_000, "{in_order} cells are shared");

    // Late rows, in a segment and in memory: in the midst of a block, in the gap, and where two blocks meet.
    let late = (9_000..9_100).chain(21_000..21_010);
    seal(&mut store, 2, late.map(|second| second * SECOND_NS), &mut rng);
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    (8_180..8_200).for_each(|second| write(&mut writer, second * SECOND_NS, &mut rng));
    writer.encode(&mut bytes);
    store.apply(&bytes, 9_000_000, &[]).unwrap();
    let with_late = compare(&store, &mut rng);
    assert!(with_late > 1_000, "{with_late} cells are shared");

    // A whole block that overlaps two others.
    let between = (25_000..34_000).map(|second| second * SECOND_NS + SECOND_NS / 2);
    seal(&mut store, 3, between, &mut rng);
    let overlapped = compare(&store, &mut rng);
    assert!(overlapped > 300, "{overlapped} cells are shared");
}

#[test]
fn a_page_reads_no_further_than_its_cells() {
    let mut store = Store::new();
    seal(
        &mut store,
        1,
        (0..ROWS).map(|second| second * SECOND_NS),
        &mut Rng::with_seed(1),
    );
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

fn shared_cells(parts: &[CellsPart<'_>]) -> usize {
    let levels = parts.iter().filter(|part| matches!(part, CellsPart::Level(_)));
    levels.map(CellsPart::len).sum()
}

#[test]
fn shared_cells_of_ordered_rows_fit_into_every_budget_that_copies_fit_into() {
    let mut store = Store::new();
    let times_ns = (0..ROWS).map(|second| second * SECOND_NS);
    seal(&mut store, 1, times_ns, &mut Rng::with_seed(1));
    let view = store.view();
    let series = view.series(1).unwrap();
    let query = query((i64::MIN, i64::MAX), Unit::Minute);
    for (rows_max, descending) in [(usize::MAX, false), (usize::MAX, true), (300, false), (20, true)] {
        let mut expected = all_copied(&series, &query);
        if descending {
            expected.reverse();
        }
        expected.truncate(rows_max);
        let wanted = Wanted {
            rows_max,
            descending,
            ..Wanted::ALL
        };
        let (mut sharing_fits, mut copying_fits) = (0, 0);
        for kilobytes in (0..400).step_by(2) {
            let budget = Budget::new(kilobytes << 10);
            let mut copying = Grouping::new(wanted, &budget);
            let copied = copying.add(0, &series, &query, None);
            let copied = copied.and_then(|()| copying.finish()).is_ok();
            let mut sharing = Grouping::in_parts(wanted, &budget);
            let added = sharing.add(0, &series, &query, None);
            let found = added.and_then(|()| sharing.finish_parts());
            assert!(found.is_ok() || !copied, "{kilobytes} KiB for {rows_max} rows");
            if let Ok(found) = found {
                let (parts, _) = found.page(0, rows_max);
                assert_alike(&cells_of(&parts), &expected, "within a budget");
                sharing_fits += 1;
            }
            copying_fits += u32::from(copied);
        }
        println!("{rows_max} rows: {copying_fits} and {sharing_fits}");
        assert!(copying_fits > 0 && sharing_fits < 200);
    }
}

#[test]
fn levels_that_are_copied_after_all_are_released() {
    let mut store = Store::new();
    let mut rng = Rng::with_seed(1);
    seal(
        &mut store,
        1,
        (0..ROWS).map(|second| second * SECOND_NS),
        &mut rng,
    );
    let held = |store: &Store| {
        let view = store.view();
        let series = view.series(1).unwrap();
        let query = query((i64::MIN, i64::MAX), Unit::Minute);
        let budget = Budget::unlimited();
        let found = in_parts(&series, &query, (usize::MAX, false), &budget);
        let shared = shared_cells(&found.page(0, usize::MAX).0);
        let mut copying = Grouping::new(Wanted::ALL, &budget);
        let in_parts = budget.held();
        copying.add(0, &series, &query, None).unwrap();
        let copied = copying.finish().unwrap();
        let of_copies = budget.held() - in_parts;
        drop((found, copied));
        (shared, in_parts, of_copies)
    };
    let (shared, in_parts, of_copies) = held(&store);
    assert!(
        shared > 600 && in_parts < of_copies,
        "{shared} {in_parts} {of_copies}"
    );
    // A late row in each block.
    let late = (4_000..ROWS).step_by(8_192);
    seal(&mut store, 2, late.map(|second| second * SECOND_NS + 1), &mut rng);
    let (shared, in_parts, of_copies) = held(&store);
    assert_eq!(shared, 0);
    assert!(
        in_parts <= of_copies + of_copies / 8,
        "{in_parts} against {of_copies}"
    );
}

#[test]
fn cells_with_few_of_many_fields_are_copied() {
    const FEW: u16 = 40;
    let (mut store, mut writer, mut bytes) = (Store::new(), RowsWriter::new(), Vec::new());
    for second in 0..20_000 {
        writer.begin(1);
        writer.number(0, second as f64, 0);
        writer.number(1 + (second / 600 % i64::from(FEW)) as u16, 1.0, 0);
        writer.commit(second * SECOND_NS);
    }
    writer.encode(&mut bytes);
    let mut rows = Store::new();
    rows.apply(&bytes, 1, &[]).unwrap();
    let checkpoint = rows.begin_checkpoint().unwrap();
    let segment = SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap();
    let file = SegmentFile::open(1, Arc::new(segment)).unwrap();
    store.add_segment(file.part(1).unwrap().unwrap());
    let view = store.view();
    let series = view.series(1).unwrap();
    let all: Vec<u16> = (0..=FEW).collect();
    for (fields, is_shared) in [(&all[..], false), (&all[..1], true)] {
        let query = GroupQuery {
            fields,
            ..query((i64::MIN, i64::MAX), Unit::Minute)
        };
        let budget = Budget::unlimited();
        let found = in_parts(&series, &query, (usize::MAX, false), &budget);
        let (parts, _) = found.page(0, usize::MAX);
        assert_eq!(shared_cells(&parts) > 0, is_shared, "{} fields", fields.len());
        assert_alike(&cells_of(&parts), &all_copied(&series, &query), "sparse fields");
    }
}
