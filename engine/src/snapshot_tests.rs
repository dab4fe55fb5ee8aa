//! A view shows one moment despite concurrent writes, and data that it skips by bounds has no rows in the range.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::query::{GroupQuery, Position, ScanQuery, Selection, group, scan};
use crate::rows::RowsWriter;
use crate::saved::{BUCKET, checkpoint, part, segments, store_of, write_merge};
use crate::{
    Cache, Content, EngineError, ExpiredRows, Merge, Seal, SegmentFile, SegmentWriter, SeriesSnapshot,
    SharedBytes, Store, Unit, View,
};

/// Ordinals of the sources: within a page, across pages, across groups, and some far apart.
const SOURCES: [u32; 12] = [
    0,
    1,
    31,
    32,
    33,
    500,
    1_023,
    1_024,
    1_025,
    5_000,
    70_001,
    1_000_000_000,
];
/// Has most of the rows, so that its blocks fill.
const BUSY: u32 = 32;

/// The expected content of a store.
#[derive(Clone, Default)]
struct Model {
    rows: BTreeMap<u32, BTreeSet<Position>>,
    /// Older blocks may have been removed.
    cutoff_ns: i64,
}

impl Model {
    /// The rows of a source within the range that no cutoff can have removed.
    fn within(&self, source: u32, range_ns: (i64, i64), expired: &[ExpiredRows]) -> Vec<Position> {
        let gone = |(timestamp_ns, sequence): &Position| {
            let holds = |it: &ExpiredRows| *timestamp_ns < it.before_ns && *sequence < it.before_sequence;
            expired.iter().any(holds)
        };
        let inside = |(timestamp_ns, _): &&Position| (range_ns.0..=range_ns.1).contains(timestamp_ns);
        let rows = self.rows.get(&source).into_iter().flatten().filter(inside);
        rows.filter(|row| !gone(row)).copied().collect()
    }
}

fn rows_of(series: &[SeriesSnapshot], range_ns: (i64, i64)) -> Vec<(u32, Position)> {
    let selections: Vec<_> = series.iter().map(|series| Selection::new(series, None)).collect();
    let query = ScanQuery {
        range_ns,
        descending: false,
        after: None,
        skip: 0,
        limit: 1 << 20,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&selections, &query).unwrap();
    let row = |(run, row): &(u32, u32)| {
        let run = &page.runs[*run as usize];
        (run.source, run.columns.key(*row as usize))
    };
    let mut rows: Vec<_> = page.rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// Number of rows of a series within a range, counted by a grouped query.
fn grouped_rows(series: &SeriesSnapshot, range_ns: (i64, i64)) -> u64 {
    let query = GroupQuery {
        range_ns,
        step: Unit::Month.into(),
        fields: &[0],
        metadata: None,
        stop: &|| false,
        values: &[],
    };
    let groups = group(series, &query).unwrap();
    groups.aggregates.iter().map(|it| it.count).sum()
}

/// Compares a view with the model of its moment, over a range and with expired rows.
fn check(view: &View, model: &Model, range_ns: (i64, i64), expired: &Arc<[ExpiredRows]>) {
    let range_ns = (range_ns.0.max(model.cutoff_ns), range_ns.1);
    let view = view.clone().without(expired);
    let expected: Vec<(u32, Position)> = SOURCES
        .iter()
        .flat_map(|source| {
            let rows = model.within(*source, range_ns, expired);
            rows.into_iter().map(|row| (*source, row))
        })
        .collect();
    let reaching: Vec<SeriesSnapshot> = view.reaching(range_ns).collect();
    assert!(reaching.is_sorted_by_key(|series| series.source));
    assert_eq!(
        rows_of(&reaching, range_ns),
        expected,
        "by bounds, {range_ns:?} {expired:?}"
    );
    let series: Vec<SeriesSnapshot> = SOURCES.iter().filter_map(|it| view.series(*it)).collect();
    assert_eq!(
        rows_of(&series, range_ns),
        expected,
        "of all, {range_ns:?} {expired:?}"
    );
    let counted =
        |series: &SeriesSnapshot| series.stats_within(range_ns, &|| false, &mut Err).unwrap().points;
    assert_eq!(series.iter().map(counted).sum::<u64>(), expected.len() as u64);
    let grouped = series.iter().map(|series| grouped_rows(series, range_ns));
    assert_eq!(grouped.sum::<u64>(), expected.len() as u64);
    let stats = view.stats(range_ns.0, &|| false, &mut Err).unwrap();
    let live = |source: &u32| model.within(*source, (range_ns.0, i64::MAX), expired);
    let live: Vec<i64> = SOURCES
        .iter()
        .flat_map(live)
        .map(|(timestamp_ns, _)| timestamp_ns)
        .collect();
    assert_eq!(stats.points, live.len() as u64);
    let bounds = live.iter().min().copied().zip(live.iter().max().copied());
    assert_eq!(stats.bounds_ns, bounds);
    for series in &series {
        let live = model.within(series.source, (range_ns.0, i64::MAX), expired);
        assert_eq!(series.stats(range_ns.0).unwrap().points, live.len() as u64);
    }
}

/// A store, its pending operations and its model.
struct World {
    random: fastrand::Rng,
    store: Store,
    model: Model,
    sequence: u64,
    now_ns: i64,
    segment: u64,
    seals: Vec<Seal>,
    merge: Option<(Merge, SharedBytes)>,
}

impl World {
    fn append(&mut self) {
        let mut writer = RowsWriter::new();
        let busy = self.random.bool();
        let first_sequence = self.sequence;
        for _ in 0..self.random.u64(1..if busy { 4_000 } else { 40 }) {
            let source = if busy {
                BUSY
            } else {
                self.random.choice(SOURCES).unwrap()
            };
            let late = if self.random.u8(..8) == 0 {
                self.random.i64(0..3_000)
            } else {
                0
            };
            self.now_ns += self.random.i64(0..3);
            let timestamp_ns = self.now_ns - late;
            writer.begin(source);
            writer.number(0, self.sequence as f64, 0);
            writer.commit(timestamp_ns);
            let rows = self.model.rows.entry(source).or_default();
            rows.insert((timestamp_ns, self.sequence));
            self.sequence += 1;
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        self.store.apply(&bytes, first_sequence, &[]).unwrap();
        self.seals.extend(self.store.take_seals());
    }

    fn save(&mut self) {
        self.seals.clear();
        self.segment += 1;
        if self.store.unsaved().0 > 0 {
            checkpoint(&mut self.store, self.segment);
        }
    }

    /// Writes a checkpoint, and removes rows before a later cutoff.
    fn expire(&mut self) {
        self.seals.clear();
        self.segment += 1;
        self.model.cutoff_ns = self.random.i64(self.model.cutoff_ns..=self.now_ns);
        let cutoff_ns = self.model.cutoff_ns;
        if let Some(checkpoint) = self.store.begin_checkpoint() {
            let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment)).unwrap();
            let file = SegmentFile::open(self.segment, Arc::new(bytes)).unwrap();
            self.store
                .finish_checkpoint(checkpoint, file.part(BUCKET).unwrap(), cutoff_ns);
        }
    }

    fn begin_merge(&mut self) {
        let chosen: Vec<u64> = self.store.live_segments().iter().map(|(id, _)| *id).collect();
        if let Some(merge) = self.store.begin_merge(&chosen) {
            let bytes = write_merge(&merge);
            self.merge = Some((merge, bytes));
        }
    }

    fn finish_merge(&mut self) {
        if let Some((merge, bytes)) = self.merge.take() {
            self.segment += 1;
            let cutoff_ns = self.model.cutoff_ns;
            self.store
                .finish_merge(merge, Some(part(self.segment, &bytes)), cutoff_ns);
        }
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..12 => self.append(),
            12..14 => {
                for seal in std::mem::take(&mut self.seals) {
                    self.store.finish_seal(seal.run());
                }
            }
            14 => {
                let source = self.random.choice(SOURCES).unwrap();
                self.store.remove_source(source);
                self.model.rows.remove(&source);
                // A server never reuses ordinals, so a merge cannot restore these rows there.
                self.merge = None;
            }
            15 | 16 => self.save(),
            17 => self.expire(),
            18 if self.merge.is_none() => self.begin_merge(),
            _ => self.finish_merge(),
        }
    }

    fn range_ns(&mut self) -> (i64, i64) {
        match self.random.u8(..4) {
            0 => (i64::MIN, i64::MAX),
            // The latest rows.
            1 => (self.now_ns - self.random.i64(0..20), i64::MAX),
            _ => {
                let (one, other) = (self.random.i64(0..=self.now_ns), self.random.i64(0..=self.now_ns));
                (one.min(other), one.max(other))
            }
        }
    }

    fn expired(&mut self) -> Arc<[ExpiredRows]> {
        let count = self.random.usize(..3);
        let rows = (0..count).map(|_| ExpiredRows {
            before_ns: self.random.i64(0..=self.now_ns),
            before_sequence: self.random.u64(..=self.sequence),
        });
        rows.collect()
    }
}

#[test]
fn views_are_consistent_and_bounds_skip_no_requested_row() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut world = World {
        random: fastrand::Rng::with_seed(seed),
        store: Store::new(),
        model: Model::default(),
        sequence: 1,
        now_ns: 10_000,
        segment: 0,
        seals: Vec::new(),
        merge: None,
    };
    let mut held: Vec<(View, Model)> = Vec::new();
    for _ in 0..400 {
        world.step();
        if world.random.u8(..4) == 0 {
            held.push((world.store.view(), world.model.clone()));
        }
        if held.len() > 5 || (world.random.u8(..8) == 0 && !held.is_empty()) {
            let (view, model) = held.swap_remove(world.random.usize(..held.len()));
            check(&view, &model, (i64::MIN, i64::MAX), &Arc::default());
            for _ in 0..3 {
                let (range_ns, expired) = (world.range_ns(), world.expired());
                check(&view, &model, range_ns, &expired);
            }
        }
    }
    for (view, model) in held {
        check(&view, &model, (i64::MIN, i64::MAX), &Arc::default());
    }
}

/// Views are checked one after the other, so that a failure identifies the view.
#[test]
fn a_view_does_not_see_later_changes() {
    let mut world = World {
        random: fastrand::Rng::with_seed(7),
        store: Store::new(),
        model: Model::default(),
        sequence: 1,
        now_ns: 10_000,
        segment: 0,
        seals: Vec::new(),
        merge: None,
    };
    type Step = fn(&mut World);
    let remove: Step = |world| {
        world.store.remove_source(BUSY);
        world.model.rows.remove(&BUSY);
    };
    let seal: Step = |world| {
        assert!(!world.seals.is_empty(), "a block is full");
        let seals = std::mem::take(&mut world.seals);
        seals
            .into_iter()
            .for_each(|seal| world.store.finish_seal(seal.run()));
    };
    let fill: Step = |world| (0..40).for_each(|_| world.append());
    let steps: [(&str, Step); 10] = [
        ("rows", fill),
        ("finish_seal", seal),
        ("finish_checkpoint", World::save),
        ("more rows", fill),
        ("another finish_checkpoint", World::save),
        ("begin_merge", World::begin_merge),
        ("finish_merge", World::finish_merge),
        ("expiry", World::expire),
        ("removal", remove),
        ("removal of all", |world| {
            world.store.remove_all();
            world.model.rows.clear();
        }),
    ];
    let mut held = Vec::new();
    for (name, step) in steps {
        held.push((name, world.store.view(), world.model.clone()));
        step(&mut world);
        for (before, view, model) in &held {
            println!("after {name}, the view from before {before}");
            check(view, model, (i64::MIN, i64::MAX), &Arc::default());
        }
    }
    assert_eq!(
        world
            .store
            .view()
            .stats(i64::MIN, &|| false, &mut Err)
            .unwrap()
            .points,
        0
    );
}

/// Regression: after expiry, every query looked at all blocks of that time and rewrote those that the cutoff cut.
#[test]
fn a_query_of_the_last_rows_reads_no_earlier_block() {
    const ROWS: u64 = 1_000;
    const BLOCKS: u64 = 10;
    let segments = segments(BLOCKS, ROWS);
    let range_ns = ((BLOCKS * ROWS) as i64 - 10, i64::MAX);
    let cached_bytes = |expired: &[ExpiredRows]| {
        let cache = Cache::new(16 << 20);
        let store = store_of(&segments, cache.clone());
        let series = store.view().without(&expired.into()).series(0).unwrap();
        assert_eq!(
            series.stats_within(range_ns, &|| false, &mut Err).unwrap().points,
            10
        );
        assert_eq!(grouped_rows(&series, range_ns), 10);
        assert_eq!(rows_of(std::slice::from_ref(&series), range_ns).len(), 10);
        cache.bytes()
    };
    let cut = ExpiredRows {
        before_ns: (8 * ROWS) as i64 + 5,
        before_sequence: 8 * ROWS,
    };
    assert!(cached_bytes(&[]) > 0);
    assert_eq!(cached_bytes(&[]), cached_bytes(&[cut]));
}

/// A file that is on this machine except for its first byte.
struct NotWhole(SharedBytes);

impl Content for NotWhole {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn tail(&self) -> &[u8] {
        &self.0.tail()[1..]
    }

    fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, EngineError> {
        self.0.read(range)
    }
}

#[test]
fn a_series_knows_what_is_on_this_machine_and_whether_rows_have_expired() {
    let mut store = Store::new();
    let mut writer = RowsWriter::new();
    for at in [10, 20] {
        writer.begin(0);
        writer.number(0, 1.5, 1);
        writer.commit(at);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    let series = store.view().series(0).unwrap();
    assert!(series.is_here(), "rows that no file has");
    let whole = checkpoint(&mut store, 1);
    assert!(store.view().series(0).unwrap().is_here(), "a whole file");
    let remote: SharedBytes = Arc::new(NotWhole(whole));
    let mut store = Store::new();
    store.add_segment(part(1, &remote));
    let series = store.view().series(0).unwrap();
    assert!(!series.is_here());

    assert_eq!(
        [(0, 9), (0, 10), (20, 90), (21, 90)].map(|range| series.blocks_within(range)),
        [0, 1, 1, 0]
    );
    let without = |before_ns| {
        let expired = ExpiredRows {
            before_ns,
            before_sequence: u64::MAX,
        };
        store.view().without(&[expired].into()).series(0).unwrap()
    };
    assert!(series.none_expired() && without(10).none_expired() && !without(11).none_expired());
}
