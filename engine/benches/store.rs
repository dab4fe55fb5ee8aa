//! What the engine costs by itself, each bench a question:
//! - append: what does a request of 1,000 points cost from columns through the log's bytes into the store?
//! - append of a row to each of 1,000 sources: and what when a reader holds them?
//! - a bucket of many sources: does a view cost the same whatever their number, and an empty range next to nothing?
//! - seal: what does compressing a full block with its rollups cost?
//! - raw scan: how near do pages of rows come to bare pco decoding of the same columns?
//! - group: what do rollups save over reading the rows?
//! - merged: what does a cell of a few rows cost, when many series with one small block each are put into few groups?
//! - cold open: does opening a segment cost its footer only?

#![expect(clippy::unwrap_used, reason = "a bench that cannot run says so by its panic")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engine::query::{Budget, GroupQuery, Grouping, ScanQuery, Selection, Wanted, group, scan};
use engine::rows::RowsWriter;
use engine::{BLOCK_ROWS_MAX, SegmentFile, SegmentPart, SegmentWriter, SeriesSnapshot, Store, Unit};

const BUCKET: u32 = 1;
const SOURCE: u32 = 1;
const SECOND_NS: i64 = 1_000_000_000;
const REQUEST_ROWS: usize = 1_000;
const POINTS: usize = 1_000_000;

/// One point a second: two walks with decimals and a counter.
struct Points {
    random: fastrand::Rng,
    mantissas: [i64; 3],
    timestamp_ns: i64,
}

impl Points {
    fn new() -> Self {
        Points {
            random: fastrand::Rng::with_seed(1),
            mantissas: [2_015, 1_013, 12_345],
            timestamp_ns: 1_767_225_600 * SECOND_NS,
        }
    }

    fn write(&mut self, count: usize, rows: &mut RowsWriter) {
        rows.clear();
        for _ in 0..count {
            let [hundredths, tenths, counter] = &mut self.mantissas;
            *hundredths += self.random.i64(-3..=3);
            *tenths += self.random.i64(-3..=3);
            *counter += self.random.i64(0..=3);
            rows.begin(SOURCE);
            rows.number(0, *hundredths as f64 / 100.0, 2);
            rows.number(1, *tenths as f64 / 10.0, 1);
            rows.number(2, *counter as f64, 0);
            rows.commit(self.timestamp_ns);
            self.timestamp_ns += SECOND_NS;
        }
    }
}

fn filled(points: usize) -> Store {
    let (mut store, mut rows, mut series) = (Store::new(), RowsWriter::new(), Points::new());
    let mut done = 0;
    while done < points {
        let count = REQUEST_ROWS.min(points - done);
        series.write(count, &mut rows);
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        store.apply(&encoded, done as u64 + 1, &[]).unwrap();
        done += count;
    }
    store
}

fn segment(points: usize) -> Arc<Vec<u8>> {
    let checkpoint = filled(points).begin_checkpoint().unwrap();
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment));
    Arc::new(bytes.unwrap())
}

fn part(segment: &Arc<Vec<u8>>) -> SegmentPart {
    let file = SegmentFile::open(1, segment.clone()).unwrap();
    file.part(BUCKET).unwrap().unwrap()
}

fn opened(segment: &Arc<Vec<u8>>) -> [SeriesSnapshot; 1] {
    let mut store = Store::new();
    store.add_segment(part(segment));
    [store.view().series(SOURCE).unwrap()]
}

fn append(criterion: &mut Criterion) {
    let mut rows = RowsWriter::new();
    Points::new().write(REQUEST_ROWS, &mut rows);
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    let mut group = criterion.benchmark_group("append of 1,000 points");
    group.throughput(Throughput::Elements(REQUEST_ROWS as u64));
    group.bench_function("columns to log bytes", |bencher| {
        bencher.iter(|| {
            encoded.clear();
            rows.encode(&mut encoded);
            encoded.len()
        });
    });
    group.bench_function("log bytes into the store", |bencher| {
        bencher.iter_batched_ref(
            Store::new,
            |store| store.apply(&encoded, 1, &[]).unwrap(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// A batch of a row each for so many sources.
fn wide_batch(sources: u32, first_ns: i64) -> Vec<u8> {
    let mut rows = RowsWriter::new();
    for source in 0..sources {
        rows.begin(source);
        rows.number(0, f64::from(source), 0);
        rows.commit(first_ns + i64::from(source));
    }
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    encoded
}

/// With a reader that holds all sources, the batch copies what it touches: pages, heads and chunks begun.
fn append_wide(criterion: &mut Criterion) {
    const SOURCES: u32 = 1_000;
    /// Batches before the measured one: rows in the chunk of each source.
    const BEFORE: i64 = 100;
    let store = || {
        let mut store = Store::new();
        for batch in 0..BEFORE {
            let encoded = wide_batch(SOURCES, batch * SECOND_NS);
            store
                .apply(&encoded, 1 + batch as u64 * u64::from(SOURCES), &[])
                .unwrap();
        }
        store
    };
    let encoded = wide_batch(SOURCES, BEFORE * SECOND_NS);
    let mut group = criterion.benchmark_group("append of a row to each of 1,000 sources");
    group.throughput(Throughput::Elements(u64::from(SOURCES)));
    group.sample_size(20);
    group.bench_function("nobody reads", |bencher| {
        bencher.iter_batched_ref(
            store,
            |store| store.apply(&encoded, 1 << 20, &[]).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("a reader holds all of them", |bencher| {
        bencher.iter_batched_ref(
            || {
                let store = store();
                let view = store.view();
                let held: Vec<_> = (0..SOURCES).map(|source| view.series(source)).collect();
                (store, held)
            },
            |(store, _)| store.apply(&encoded, 1 << 20, &[]).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// A batch of a row for each of so many sources, saved.
fn wide_store(sources: u32) -> Store {
    let mut store = Store::new();
    store.apply(&wide_batch(sources, 0), 1, &[]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment));
    let mut opened = Store::new();
    opened.add_segment(part(&Arc::new(bytes.unwrap())));
    opened
}

fn breadth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a bucket of many sources");
    for sources in [1_000, 100_000] {
        let store = wide_store(sources);
        let newest_ns = i64::from(sources) - 1;
        group.bench_function(format!("view of {sources}"), |bencher| {
            bencher.iter(|| store.view())
        });
        let view = store.view();
        let reaching = |range_ns: (i64, i64)| view.reaching(range_ns).count();
        group.bench_function(format!("empty range of {sources}"), |bencher| {
            bencher.iter(|| reaching((newest_ns + 1, i64::MAX)));
        });
        group.bench_function(format!("newest row of {sources}"), |bencher| {
            bencher.iter(|| reaching((newest_ns, i64::MAX)));
        });
        group.bench_function(format!("points of {sources}"), |bencher| {
            bencher.iter(|| view.stats(i64::MIN, &|| false, &mut Err).unwrap().points);
        });
        group.bench_function(format!("all of {sources}"), |bencher| {
            bencher.iter(|| {
                (0..sources)
                    .filter_map(|source| view.series(source))
                    .collect::<Vec<_>>()
            });
        });
    }
    group.finish();
}

fn seal(criterion: &mut Criterion) {
    // One row less than a block: what is measured begins with the checkpoint.
    let checkpoint = filled(BLOCK_ROWS_MAX - 1).begin_checkpoint().unwrap();
    let mut group = criterion.benchmark_group("seal");
    group.throughput(Throughput::Elements(BLOCK_ROWS_MAX as u64 - 1));
    group.bench_function("a block of three fields with rollups", |bencher| {
        bencher.iter(|| {
            let mut sink = std::io::sink();
            let mut segment = SegmentWriter::new(&mut sink).unwrap();
            segment.begin_bucket(BUCKET);
            checkpoint.write(&mut segment).unwrap();
            segment.finish().unwrap()
        });
    });
    group.finish();
}

fn raw_scan(criterion: &mut Criterion) {
    const ROWS: usize = 12 * BLOCK_ROWS_MAX;
    let snapshot = opened(&segment(ROWS));
    let mut series = Points::new();
    let mut columns = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    let mut rows = RowsWriter::new();
    for _ in 0..ROWS {
        series.write(1, &mut rows);
        columns[0].push(series.timestamp_ns);
        columns[1..]
            .iter_mut()
            .zip(series.mantissas)
            .for_each(|(column, mantissa)| column.push(mantissa));
    }
    let config = pco::ChunkConfig::default();
    let blocks: Vec<Vec<u8>> = columns
        .iter()
        .flat_map(|column| column.chunks(BLOCK_ROWS_MAX))
        .map(|block| pco::standalone::simple_compress(block, &config).unwrap())
        .collect();
    let mut group = criterion.benchmark_group("raw scan");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("rows in order", |bencher| {
        bencher.iter(|| {
            let selection = Selection::new(&snapshot[0], None);
            let query = ScanQuery {
                range_ns: (i64::MIN, i64::MAX),
                descending: false,
                after: None,
                skip: 0,
                limit: ROWS,
                metadata: None,
                stop: &|| false,
            };
            scan(&[selection], &query).unwrap().rows.len()
        });
    });
    group.bench_function("bare pco of the same columns", |bencher| {
        let mut values = vec![0i64; BLOCK_ROWS_MAX];
        bencher.iter(|| {
            for block in &blocks {
                black_box(pco::standalone::simple_decompress_into(block, &mut values).unwrap());
            }
        });
    });
    group.finish();
}

fn grouped(criterion: &mut Criterion) {
    let snapshot = opened(&segment(POINTS));
    let mut benches = criterion.benchmark_group("hourly average of 1,000,000 points");
    benches.throughput(Throughput::Elements(POINTS as u64));
    let all = |_: Option<&str>| true;
    // A filter on metadata that all rows pass: the same answer, from rows.
    let questions: [(&str, Option<engine::query::MetadataFilter<'_>>); 2] =
        [("from rollups", None), ("from raw rows", Some(&all))];
    for (name, metadata) in questions {
        benches.bench_function(name, |bencher| {
            bencher.iter(|| {
                let query = GroupQuery {
                    range_ns: (i64::MIN, i64::MAX),
                    step: Unit::Hour.into(),
                    fields: &[0],
                    metadata,
                    stop: &|| false,
                    values: &[],
                };
                group(&snapshot[0], &query).unwrap().starts_ns.len()
            });
        });
    }
    benches.finish();
}

fn merged(criterion: &mut Criterion) {
    const SERIES: u32 = 10_000;
    const GROUPS: u32 = 100;
    const ROWS: i64 = 672;
    const QUARTER_NS: i64 = 900 * SECOND_NS;
    let (mut store, mut rows) = (Store::new(), RowsWriter::new());
    let mut random = fastrand::Rng::with_seed(1);
    let mut tenths = vec![5_000; SERIES as usize];
    for row in 0..ROWS {
        rows.clear();
        for (series, tenths) in (0..).zip(&mut tenths) {
            *tenths += random.i64(-3..=3);
            rows.begin(series);
            rows.number(0, *tenths as f64 / 10.0, 1);
            rows.commit(row * QUARTER_NS);
        }
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        store
            .apply(&encoded, 1 + row as u64 * u64::from(SERIES), &[])
            .unwrap();
    }
    let checkpoint = store.begin_checkpoint().unwrap();
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment)).unwrap();
    let mut store = Store::new();
    store.add_segment(part(&Arc::new(bytes)));
    let view = store.view();
    let of_group = |group: u32| (group..SERIES).step_by(GROUPS as usize);
    let series: Vec<(u32, SeriesSnapshot)> = (0..GROUPS)
        .flat_map(|group| of_group(group).map(move |series| (group, series)))
        .map(|(group, series)| (group, view.series(series).unwrap()))
        .collect();
    let mut benches = criterion.benchmark_group("hourly averages of 10,000 series in 100 groups");
    benches.throughput(Throughput::Elements(u64::from(SERIES) * ROWS as u64));
    benches.sample_size(20);
    benches.bench_function("four rows an hour", |bencher| {
        bencher.iter(|| {
            let budget = Budget::unlimited();
            let mut grouping: Grouping<'_> = Grouping::new(Wanted::ALL, &budget);
            let query = GroupQuery {
                range_ns: (i64::MIN, i64::MAX),
                step: Unit::Hour.into(),
                fields: &[0],
                metadata: None,
                stop: &|| false,
                values: &[],
            };
            for (group, series) in &series {
                grouping.add(*group, series, &query, None).unwrap();
            }
            grouping.finish().unwrap().cells.len()
        });
    });
    benches.finish();
}

fn cold_open(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cold open of a segment");
    for points in [POINTS / 10, POINTS] {
        let segment = segment(points);
        group.throughput(Throughput::Elements(points as u64));
        group.bench_function(format!("{points} points"), |bencher| {
            bencher.iter_batched_ref(
                Store::new,
                |store| store.add_segment(part(&segment)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    append,
    append_wide,
    breadth,
    seal,
    raw_scan,
    grouped,
    merged,
    cold_open
);
criterion_main!(benches);
