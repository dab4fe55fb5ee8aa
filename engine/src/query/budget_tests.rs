//! Queries under small budgets: they stay within their memory, and their answers equal those of a naive computation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;

use super::{Budget, GroupQuery, Grouped, Grouping, ScanQuery, Selection, Wanted, scan_within};
use crate::calendar::Unit;
use crate::rows::RowsWriter;
use crate::store::Store;
use crate::{EngineError, SeriesSnapshot, Values};

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;

/// A row of a source: time, sequence, values by field.
#[derive(Clone)]
struct Point {
    source: u32,
    at_ns: i64,
    sequence: u64,
    values: BTreeMap<u16, f64>,
    odd: bool,
}

/// Sources with common and rare fields, partly in overlapping blocks.
fn filled(random: &mut Rng) -> (Store, Vec<Point>) {
    let (sources, fields) = (random.u32(1..5), random.u16(1..40));
    let rows = random.usize(1..30_000);
    let interval_ns = [SECOND, 20 * SECOND, 3 * MINUTE][random.usize(..3)];
    let (shuffled, wide) = (random.bool(), random.bool());
    let mut store = Store::new();
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    let mut points: Vec<Point> = Vec::with_capacity(rows);
    for first in (0..rows).step_by(1_000) {
        writer.clear();
        bytes.clear();
        for row in first..rows.min(first + 1_000) {
            let place = if shuffled && random.u8(..) < 100 {
                random.usize(..rows)
            } else {
                row
            };
            let source = random.u32(..sources);
            let mut values = BTreeMap::new();
            for field in 0..fields {
                if (wide && row % usize::from(fields) == usize::from(field)) || (!wide && random.u8(..) < 200)
                {
                    values.insert(field, random.i32(-1_000..1_000) as f64);
                }
            }
            let odd = random.bool();
            writer.begin(source);
            for (field, value) in &values {
                writer.number(*field, *value, 0);
            }
            if odd {
                writer.metadata("{\"odd\":1}");
            }
            writer.commit(place as i64 * interval_ns);
            points.push(Point {
                source,
                at_ns: place as i64 * interval_ns,
                sequence: row as u64 + 1,
                values,
                odd,
            });
        }
        writer.encode(&mut bytes);
        store.apply(&bytes, first as u64 + 1, &[]).unwrap();
        if random.bool() {
            store
                .take_seals()
                .into_iter()
                .for_each(|seal| store.finish_seal(seal.run()));
        }
    }
    points.sort_by_key(|point| (point.at_ns, point.sequence));
    (store, points)
}

fn is_odd(text: Option<&str>) -> bool {
    text.is_some()
}

type Cells = BTreeMap<(i64, u32), BTreeMap<u32, (u64, f64, f64, f64)>>;

fn snapshot_of(store: &Store, sources: Range<u32>) -> Vec<SeriesSnapshot> {
    sources.filter_map(|source| store.view().series(source)).collect()
}

fn check_groups(random: &mut Rng, snapshot: &[SeriesSnapshot], points: &[Point], budget: &Budget) -> bool {
    let span = points.last().map_or(0, |point| point.at_ns);
    let (one, other) = (
        random.i64(-MINUTE..=span + MINUTE),
        random.i64(-MINUTE..=span + MINUTE),
    );
    let range_ns = (one.min(other), one.max(other));
    let unit = Unit::ALL[random.usize(..3)];
    let fields: Vec<u16> = (0..40).filter(|_| random.u8(..) < 180).collect();
    let filtered = random.u8(..4) == 0;
    let most = [3, 100, 20_000][random.usize(..3)];
    let wanted = Wanted {
        rows_max: random.usize(1..=most),
        descending: random.bool(),
        ..Wanted::ALL
    };
    let merged = random.bool();
    let read = |all: &[SeriesSnapshot]| {
        let query = GroupQuery {
            range_ns,
            step: unit.into(),
            fields: &fields,
            metadata: filtered.then_some(&is_odd as _),
            stop: &|| false,
            values: &[],
        };
        let mut grouping = Grouping::new(wanted, budget);
        for series in all {
            let source = if merged { 0 } else { series.source };
            grouping.add(source, series, &query, None)?;
        }
        grouping.finish()
    };
    // Different sources may be read by different threads.
    let together = if merged {
        snapshot.len().max(1)
    } else {
        random.usize(1..5)
    };
    let read_by_threads = || {
        std::thread::scope(|scope| {
            let parts = snapshot.chunks(together).map(|part| scope.spawn(|| read(part)));
            let parts: Vec<_> = parts.collect();
            let mut parts = parts.into_iter().map(|part| part.join().unwrap());
            let mut grouped = parts.next().unwrap_or_else(|| read(&[]))?;
            grouped.join(parts.collect::<Result<_, _>>()?, wanted)?;
            Ok(grouped)
        })
    };
    let grouped: Grouped<'_> = match read_by_threads() {
        Ok(grouped) => grouped,
        Err(EngineError::OverBudget { .. }) => return false,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(grouped.held.bytes(), budget.held());
    let mut expected = Cells::new();
    let counts =
        |point: &&Point| (range_ns.0..=range_ns.1).contains(&point.at_ns) && (!filtered || point.odd);
    for point in points.iter().filter(counts) {
        let source = if merged { 0 } else { point.source };
        for (number, field) in (0u32..).zip(&fields) {
            let Some(value) = point.values.get(field) else {
                continue;
            };
            let cell = expected.entry((unit.start_ns(point.at_ns), source)).or_default();
            let entry = cell
                .entry(number)
                .or_insert((0, 0.0, f64::INFINITY, f64::NEG_INFINITY));
            *entry = (
                entry.0 + 1,
                entry.1 + value,
                entry.2.min(*value),
                entry.3.max(*value),
            );
        }
    }
    let found: Vec<_> = grouped
        .cells
        .iter()
        .map(|cell| {
            let values = cell.values().map(|(number, aggregate)| {
                (
                    number,
                    (aggregate.count, aggregate.sum(), aggregate.min, aggregate.max),
                )
            });
            ((cell.start_ns, cell.source), values.collect::<BTreeMap<_, _>>())
        })
        .collect();
    let all = expected.into_iter();
    let expected: Vec<_> = match wanted.descending {
        true => all.rev().take(wanted.rows_max).collect(),
        false => all.take(wanted.rows_max).collect(),
    };
    // Whole numbers, whose sums are exact in any order.
    assert!(
        found == expected,
        "{} cells instead of {}: {wanted:?}, {unit:?}, {range_ns:?}",
        found.len(),
        expected.len()
    );
    true
}

fn check_rows(random: &mut Rng, snapshot: &[SeriesSnapshot], points: &[Point], budget: &Budget) -> bool {
    let fields: Option<Arc<[u16]>> = random
        .bool()
        .then(|| (0..40).filter(|_| random.u8(..) < 30).collect());
    let filtered = random.u8(..4) == 0;
    let descending = random.bool();
    let most = [5, 500, 20_000][random.usize(..3)];
    let limit = random.usize(1..=most);
    let skip = [0, random.usize(..2_000)][random.usize(..2)];
    let selections: Vec<Selection<'_>> = snapshot
        .iter()
        .map(|series| Selection::new(series, fields.clone()))
        .collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending,
        after: None,
        skip: skip as u64,
        limit,
        metadata: filtered.then_some(&is_odd as _),
        stop: &|| false,
    };
    let (page, held) = match scan_within(&selections, &query, budget) {
        Ok(answer) => answer,
        Err(EngineError::OverBudget { .. }) => return false,
        Err(other) => panic!("{other}"),
    };
    let counts = |point: &&Point| {
        let has = |fields: &Arc<[u16]>| fields.iter().any(|field| point.values.contains_key(field));
        (!filtered || point.odd) && fields.as_ref().is_none_or(has)
    };
    let mut expected: Vec<&Point> = points.iter().filter(counts).collect();
    if descending {
        expected.reverse();
    }
    let expected = expected.get(skip..).unwrap_or_default();
    assert_eq!(page.more, expected.len() > limit);
    assert_eq!(page.rows.len(), expected.len().min(limit));
    for ((run, row), point) in page.rows.iter().zip(expected) {
        let (run, row) = (&page.runs[*run as usize], *row as usize);
        assert_eq!(run.source, point.source);
        assert_eq!(run.columns.key(row), (point.at_ns, point.sequence));
        for (field, value) in &point.values {
            if fields.as_ref().is_some_and(|fields| !fields.contains(field)) {
                continue;
            }
            let column = run.columns.field(*field).expect("the row has the field");
            let Values::Numbers { values, .. } = &column.values else {
                panic!("numbers")
            };
            assert!(column.has(row) && values[row] == *value);
        }
        let metadata = run.columns.metadata.as_ref();
        assert_eq!(metadata.is_some_and(|metadata| metadata.has(row)), point.odd);
    }
    drop(held);
    true
}

#[test]
fn a_query_holds_its_budget_and_answers_exactly_or_is_refused() {
    let seed =
        std::env::var("TIDEWATCH_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..12 {
        let (store, points) = filled(&mut random);
        let snapshot = snapshot_of(&store, 0..5);
        for _ in 0..20 {
            let budget = Budget::new(1 << random.usize(12..27));
            let answer = match random.bool() {
                true => check_groups(&mut random, &snapshot, &points, &budget),
                false => check_rows(&mut random, &snapshot, &points, &budget),
            };
            if answer {
                answered += 1
            } else {
                refused += 1
            }
            assert!(budget.most() <= budget.bytes_max(), "seed {seed}");
            assert_eq!(budget.held(), 0, "all is given back, seed {seed}");
        }
    }
    assert!(
        answered > 0 && refused > 0,
        "{answered} answered, {refused} refused, seed {seed}"
    );
}

/// Regression: the window was not known before there were more steps than it has room for.
#[test]
fn merged_sources_are_read_only_as_far_as_the_window_reaches() {
    const SERIES: u32 = 50;
    const ROWS: i64 = 60;
    let mut store = Store::new();
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    for row in 0..ROWS {
        for source in 0..SERIES {
            writer.begin(source);
            writer.number(0, f64::from(source), 0);
            writer.commit(row * MINUTE);
        }
    }
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    for descending in [false, true] {
        let query = GroupQuery {
            range_ns: (i64::MIN, i64::MAX),
            step: Unit::Minute.into(),
            fields: &[0],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let budget = Budget::unlimited();
        let wanted = Wanted {
            rows_max: 2,
            descending,
            ..Wanted::ALL
        };
        let mut grouping = Grouping::new(wanted, &budget);
        for snapshot in snapshot_of(&store, 0..SERIES) {
            grouping.add(7, &snapshot, &query, None).unwrap();
        }
        let grouped = grouping.finish().unwrap();
        let counts = grouped
            .cells
            .iter()
            .map(|cell| cell.values().next().unwrap().1.count);
        assert_eq!(counts.collect::<Vec<_>>(), [u64::from(SERIES); 2]);
        // One series as a whole, one until the window is known, of the others the rows of two steps.
        let rows_max = 2 * ROWS as u64 + 2 * u64::from(SERIES);
        assert!(grouped.touched.rows <= rows_max, "{:?}", grouped.touched);
    }
}

/// One source of 256 fields, each row with one of them. Regression: every cell held all fields.
fn wide(rows: i64) -> Store {
    let mut store = Store::new();
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    for row in 0..rows {
        writer.begin(1);
        writer.number((row % 256) as u16, row as f64, 0);
        writer.commit(row * MINUTE);
    }
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    store
        .take_seals()
        .into_iter()
        .for_each(|seal| store.finish_seal(seal.run()));
    store
}

#[test]
fn a_wide_source_costs_only_the_requested_cells() {
    let store = wide(60_000);
    let snapshot = [store.view().series(1).unwrap()];
    let fields: Vec<u16> = (0..256).collect();
    for descending in [false, true] {
        for rows_max in [2, 1_000, 10_001] {
            let query = GroupQuery {
                range_ns: (i64::MIN, i64::MAX),
                step: Unit::Minute.into(),
                fields: &fields,
                metadata: None,
                stop: &|| false,
                values: &[],
            };
            let budget = Budget::unlimited();
            let mut grouping = Grouping::new(
                Wanted {
                    rows_max,
                    descending,
                    ..Wanted::ALL
                },
                &budget,
            );
            grouping.add(1, &snapshot[0], &query, None).unwrap();
            let grouped = grouping.finish().unwrap();
            assert_eq!(grouped.cells.len(), rows_max);
            assert!(
                grouped.touched.blocks <= 1 + rows_max.div_ceil(crate::BLOCK_ROWS_MAX) as u64,
                "no further than the cells wanted: {:?}",
                grouped.touched
            );
            let most = budget.most();
            assert!(
                most < (1 << 20) + 200 * rows_max,
                "{most} bytes for {rows_max} cells, descending: {descending}"
            );
        }
    }
}

/// Regression: a filter that matched nothing kept every run that it had opened.
#[test]
fn a_scan_releases_blocks_it_has_passed() {
    let store = wide(200_000);
    let snapshot = [store.view().series(1).unwrap()];
    let selections = [Selection::new(&snapshot[0], None)];
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit: 100,
        metadata: Some(&is_odd),
        stop: &|| false,
    };
    let budget = Budget::unlimited();
    let (page, _held) = scan_within(&selections, &query, &budget).unwrap();
    assert!(page.rows.is_empty());
    assert_eq!(page.touched.rows, 200_000);
    assert_eq!(page.touched.blocks, 200_000 / crate::BLOCK_ROWS_MAX as u64);
    let most = budget.most();
    assert!(most < 500_000, "{most} bytes for one run at a time");
}

/// As many sources as rows on the page: each is opened and keeps few rows.
#[test]
fn a_page_of_many_sources_holds_few_rows_of_each() {
    const SOURCES: u32 = 300;
    let mut store = Store::new();
    let (mut writer, mut bytes) = (RowsWriter::new(), Vec::new());
    for source in 0..SOURCES {
        for row in 0..8_192 {
            writer.begin(source);
            writer.number(0, f64::from(source), 0);
            writer.commit(row * SECOND + i64::from(source));
        }
        writer.encode(&mut bytes);
        store.apply(&bytes, 1 + 8_192 * u64::from(source), &[]).unwrap();
        writer.clear();
        bytes.clear();
    }
    store
        .take_seals()
        .into_iter()
        .for_each(|seal| store.finish_seal(seal.run()));
    let snapshot = snapshot_of(&store, 0..SOURCES);
    let selections: Vec<Selection<'_>> = snapshot
        .iter()
        .map(|series| Selection::new(series, None))
        .collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: true,
        after: None,
        skip: 0,
        limit: 100_000,
        metadata: None,
        stop: &|| false,
    };
    let budget = Budget::new(32 << 20);
    let (page, _held) = scan_within(&selections, &query, &budget).unwrap();
    assert_eq!(page.rows.len(), 100_000);
    let times = page
        .rows
        .iter()
        .map(|(run, row)| page.runs[*run as usize].columns.key(*row as usize));
    assert!(times.is_sorted_by(|one, other| one > other), "newest first");
}
