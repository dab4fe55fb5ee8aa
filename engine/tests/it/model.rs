//! Random operations on a store and on the twin; every question must have one answer. The seed is printed by a
//! failing run: `TIDEWATCH_SEED=… cargo test -p engine` repeats it.

mod counts;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::query::{
    Budget, GroupQuery, Grouping, Groups, Position, ScanQuery, Selection, Wanted, group, scan,
};
use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{Aggregate, ExpiredRows, Seal, SeriesStats, SharedBytes, Snapshot, Store, Unit, Values};
use fastrand::Rng;

use crate::twin::{Point, Question, Twin, Value, compare};

const SECOND: i64 = 1_000_000_000;
const FIELDS: u16 = 5;

struct World {
    rng: Rng,
    store: Store,
    twin: Twin,
    /// Segment files by id, as on a disk.
    files: BTreeMap<u64, Arc<Vec<u8>>>,
    /// Log records that no segment covers: first sequence and rows.
    log: Vec<(u64, Vec<u8>)>,
    sources: Vec<u32>,
    next_sequence: u64,
    next_segment: u64,
    clock_ns: i64,
    cutoff_ns: i64,
    /// What had expired when the retention grew.
    expired: Vec<ExpiredRows>,
    sealing: Vec<Seal>,
}

impl World {
    fn new(seed: u64) -> Self {
        World {
            rng: Rng::with_seed(seed),
            store: Store::new(),
            twin: Twin::default(),
            files: BTreeMap::new(),
            log: Vec::new(),
            sources: vec![1, 2, 3],
            next_sequence: 1,
            next_segment: 1,
            clock_ns: 1_600_000_000 * SECOND,
            cutoff_ns: i64::MIN,
            expired: Vec::new(),
            sealing: Vec::new(),
        }
    }

    fn value(&mut self, field: u16) -> (Value, u8) {
        match field {
            0 => (Value::Number(f64::from(self.rng.i32(-3000..3000)) / 100.0), 2),
            1 => (Value::Number(f64::from(self.rng.u32(0..50))), 0),
            2 => (Value::Number(self.rng.f64() * 1e3 - 500.0), NOT_DECIMAL),
            3 => (Value::Boolean(self.rng.bool()), 0),
            _ => (Value::Text(format!("state {}", self.rng.u8(0..4))), 0),
        }
    }

    fn ingest(&mut self) {
        let rows = if self.rng.u8(0..4) == 0 {
            self.rng.u32(500..1_000)
        } else {
            self.rng.u32(1..40)
        };
        let one_source = self
            .rng
            .bool()
            .then(|| self.rng.choice(self.sources.clone()).unwrap());
        let step = *self
            .rng
            .choice(&[SECOND, SECOND / 10, 7 * SECOND, 300 * SECOND])
            .unwrap();
        let late = self.rng.u8(0..3) == 0;
        let sparse = self.rng.u8(0..3) == 0;
        let mut writer = RowsWriter::new();
        for _ in 0..rows {
            self.clock_ns += if self.rng.u8(0..10) == 0 { 0 } else { step };
            let mut timestamp_ns = self.clock_ns;
            if late && self.rng.bool() {
                timestamp_ns -= self.rng.i64(0..100_000) * SECOND;
            }
            let source = one_source.unwrap_or_else(|| self.rng.choice(self.sources.clone()).unwrap());
            writer.begin(source);
            if self.rng.u8(0..50) == 0 {
                writer.number(0, 1.0, 0);
                writer.abort();
                writer.begin(source);
            }
            let mut values = BTreeMap::new();
            for field in 0..FIELDS {
                if sparse && self.rng.bool() {
                    continue;
                }
                let (value, decimals) = self.value(field);
                match &value {
                    Value::Number(number) => writer.number(field, *number, decimals),
                    Value::Boolean(boolean) => writer.boolean(field, *boolean),
                    Value::Text(text) => writer.string(field, text),
                }
                values.insert(field, value);
            }
            if values.is_empty() {
                writer.number(1, 7.0, 0);
                values.insert(1, Value::Number(7.0));
            }
            let metadata = (self.rng.u8(0..4) == 0).then(|| format!("{{\"room\":{}}}", self.rng.u8(0..3)));
            if let Some(metadata) = &metadata {
                writer.metadata(metadata);
            }
            writer.commit(timestamp_ns);
            let sequence = self.next_sequence + self.twin_rows_pending();
            self.twin.points.push(Point {
                source,
                timestamp_ns,
                sequence,
                values,
                metadata,
            });
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        assert_eq!(self.store.apply(&bytes, self.next_sequence).unwrap(), rows);
        self.seal();
        self.log.push((self.next_sequence, bytes));
        self.next_sequence += u64::from(rows);
        let cutoff = self.cutoff_ns;
        self.twin.points.retain(|point| point.timestamp_ns >= cutoff);
    }

    /// Rows of the open request already given to the twin.
    fn twin_rows_pending(&self) -> u64 {
        self.twin
            .points
            .iter()
            .rev()
            .take_while(|point| point.sequence >= self.next_sequence)
            .count() as u64
    }

    /// Seals what fills blocks: at once, later, or never, as threads would.
    fn seal(&mut self) {
        self.sealing.extend(self.store.take_seals());
        while !self.sealing.is_empty() && self.rng.u8(0..4) > 0 {
            let seal = self.sealing.swap_remove(self.rng.usize(0..self.sealing.len()));
            self.store.finish_seal(seal.run());
        }
    }

    fn file(&self, id: u64) -> SharedBytes {
        let file: SharedBytes = Arc::clone(&self.files[&id]) as SharedBytes;
        file
    }

    fn checkpoint(&mut self, fail: bool) {
        let Some(checkpoint) = self.store.begin_checkpoint() else {
            return;
        };
        let covered = self.log.len();
        if self.rng.bool() {
            // Points keep coming while the checkpoint is written.
            self.ingest();
        }
        if fail {
            return;
        }
        let id = self.next_segment;
        self.next_segment += 1;
        let mut file = Vec::new();
        checkpoint.write(&mut file).unwrap();
        self.files.insert(id, Arc::new(file));
        self.store
            .finish_checkpoint(checkpoint, id, self.file(id), self.cutoff_ns)
            .unwrap();
        self.log.drain(..covered);
        self.forget_dead();
    }

    fn forget_dead(&mut self) {
        for id in self.store.take_dead_segments() {
            assert!(self.files.remove(&id).is_some(), "a dead segment was a file");
        }
        assert_eq!(
            self.files.keys().copied().collect::<Vec<_>>(),
            self.store.segments(),
            "files are those in use"
        );
    }

    fn merge(&mut self) {
        let Some(merge) = self.store.begin_merge() else {
            return;
        };
        if self.rng.bool() {
            self.remove_source();
        }
        let id = self.next_segment;
        self.next_segment += 1;
        let mut file = Vec::new();
        merge.write(&mut file, self.cutoff_ns).unwrap();
        self.files.insert(id, Arc::new(file));
        self.store
            .finish_merge(merge, id, self.file(id), self.cutoff_ns)
            .unwrap();
        self.forget_dead();
    }

    fn restart(&mut self) {
        let sources = self.sources.clone();
        let mut store = Store::new();
        for id in self.files.keys() {
            store.add_segment(*id, self.file(*id)).unwrap();
        }
        for (first_sequence, rows) in &self.log {
            store.apply(rows, *first_sequence).unwrap();
        }
        store.retain_sources(|source| sources.contains(&source));
        store.expire(self.cutoff_ns);
        self.store = store;
        self.sealing.clear();
        self.seal();
        self.forget_dead();
    }

    fn remove_source(&mut self) {
        if self.sources.len() < 2 {
            return;
        }
        let source = self.sources.swap_remove(self.rng.usize(0..self.sources.len()));
        let points = self
            .twin
            .points
            .iter()
            .filter(|point| point.source == source)
            .count() as u64;
        if self.cutoff_ns == i64::MIN && self.expired.is_empty() {
            assert_eq!(
                self.store.remove_source(source),
                points,
                "points of the source removed"
            );
        } else {
            self.store.remove_source(source);
        }
        self.twin.points.retain(|point| point.source != source);
        let next = self.sources.iter().max().unwrap().max(&source) + 1;
        self.sources.push(next);
        self.forget_dead();
    }

    fn expire(&mut self) {
        self.cutoff_ns = self
            .cutoff_ns
            .max(self.clock_ns - self.rng.i64(10_000..400_000) * SECOND);
        self.store.expire(self.cutoff_ns);
        let cutoff = self.cutoff_ns;
        self.twin.points.retain(|point| point.timestamp_ns >= cutoff);
        self.forget_dead();
    }

    /// The retention shrinks and grows again: what was before some moment is gone, what comes later is not.
    fn shrink_and_grow(&mut self) {
        let rows = ExpiredRows {
            before_ns: self.clock_ns - self.rng.i64(0..100_000) * SECOND,
            before_sequence: self.next_sequence,
        };
        self.expired.push(rows);
        self.twin
            .points
            .retain(|point| point.timestamp_ns >= rows.before_ns || point.sequence >= rows.before_sequence);
    }

    fn snapshot(&self, sources: &[u32]) -> Snapshot {
        let snapshot = self.store.snapshot(sources.iter().copied());
        snapshot.without(&self.expired.clone().into())
    }

    fn range(&mut self) -> (i64, i64) {
        let mut bound = |all: i64| match self.rng.u8(0..4) {
            0 => all,
            _ if self.twin.points.is_empty() => all,
            1 => {
                let point = self.rng.usize(0..self.twin.points.len());
                self.twin.points[point].timestamp_ns
            }
            _ => self.clock_ns - self.rng.i64(0..1_000_000) * SECOND / 3,
        };
        let (a, b) = (bound(i64::MIN), bound(i64::MAX));
        (a.min(b).max(self.cutoff_ns), a.max(b))
    }

    fn ask_rows(&mut self) {
        let range_ns = self.range();
        let sources: Vec<u32> = self
            .sources
            .iter()
            .copied()
            .filter(|_| self.rng.u8(0..3) > 0)
            .collect();
        let fields: Option<Vec<u16>> = self
            .rng
            .bool()
            .then(|| (0..FIELDS).filter(|_| self.rng.bool()).collect::<Vec<u16>>())
            .filter(|f| !f.is_empty());
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let descending = self.rng.bool();
        let question = Question {
            sources: &sources,
            range_ns,
            fields: fields.as_deref(),
            metadata,
        };
        let expected = self.twin.rows(&question, descending);
        let limit = self.rng.usize(1..3_000);
        let skip = if expected.is_empty() {
            0
        } else {
            self.rng.usize(0..expected.len() + 10)
        };
        let after: Option<Position> = (self.rng.bool() && skip > 0 && skip <= expected.len())
            .then(|| (expected[skip - 1].timestamp_ns, expected[skip - 1].sequence));
        let filter = |text: Option<&str>| text == metadata;
        let snapshot = self.snapshot(&sources);
        let selections: Vec<Selection<'_>> = snapshot
            .series
            .iter()
            .map(|series| Selection {
                series,
                fields: fields.as_deref().map(Arc::from),
            })
            .collect();
        let query = ScanQuery {
            range_ns,
            descending,
            after,
            skip: if after.is_some() { 0 } else { skip as u64 },
            limit,
            metadata: metadata.map(|_| &filter as _),
            stop: &|| false,
        };
        let page = scan(&selections, &query).unwrap();
        let expected = &expected[skip.min(expected.len())..];
        assert_eq!(page.more, expected.len() > limit, "whether more follows");
        assert_eq!(page.rows.len(), expected.len().min(limit), "rows of the page");
        for ((run, row), point) in page.rows.iter().zip(expected) {
            let (run, row) = (&page.runs[*run as usize], *row as usize);
            assert_eq!(run.source, point.source);
            assert_eq!(run.columns.key(row), (point.timestamp_ns, point.sequence));
            let text = run
                .columns
                .metadata
                .as_ref()
                .filter(|column| column.has(row))
                .map(|column| match &column.values {
                    Values::Texts(texts) => texts.get(row).to_string(),
                    _ => panic!("metadata is text"),
                });
            assert_eq!(text, point.metadata);
            for field in 0..FIELDS {
                if fields.as_ref().is_some_and(|fields| !fields.contains(&field)) {
                    continue;
                }
                let value = run
                    .columns
                    .field(field)
                    .filter(|column| column.has(row))
                    .map(|column| match &column.values {
                        Values::Numbers { values, .. } => Value::Number(values[row]),
                        Values::Booleans(values) => Value::Boolean(values[row]),
                        Values::Texts(texts) => Value::Text(texts.get(row).to_string()),
                    });
                assert_eq!(
                    value.as_ref(),
                    point.values.get(&field),
                    "field {field} of {point:?}"
                );
            }
        }
    }

    fn ask_groups(&mut self) {
        let range_ns = self.range();
        let unit = *self.rng.choice(&Unit::ALL).unwrap();
        let fields: Vec<u16> = (0..FIELDS).filter(|_| self.rng.bool()).collect();
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let filter = |text: Option<&str>| text == metadata;
        let query = GroupQuery {
            range_ns,
            unit,
            fields: &fields,
            metadata: metadata.map(|_| &filter as _),
            stop: &|| false,
        };
        let snapshot = self.snapshot(&self.sources);
        let budget = Budget::unlimited();
        let mut merged = Grouping::new(Wanted::ALL, &budget);
        for series in &snapshot.series {
            let groups = group(series, &query).unwrap();
            let sources = [series.source];
            let question = Question {
                sources: &sources,
                range_ns,
                fields: None,
                metadata,
            };
            compare(&groups, &self.twin.groups(&question, unit, &fields), fields.len());
            merged.add(0, series, &query, None).unwrap();
        }
        let question = Question {
            sources: &self.sources,
            range_ns,
            fields: None,
            metadata,
        };
        let mut groups = Groups::default();
        for cell in &merged.finish().unwrap().cells {
            groups.starts_ns.push(cell.start_ns);
            let first = groups.aggregates.len();
            groups
                .aggregates
                .resize(first + fields.len(), Aggregate::default());
            for (field, aggregate) in cell.values() {
                groups.aggregates[first + field as usize] = *aggregate;
            }
        }
        compare(&groups, &self.twin.groups(&question, unit, &fields), fields.len());
    }

    fn ask_stats(&mut self) {
        for source in &self.sources {
            let stats = if self.expired.is_empty() {
                self.store.stats(*source, self.cutoff_ns).unwrap()
            } else {
                let snapshot = self.snapshot(&[*source]);
                let series = snapshot.series.first();
                series.map_or(SeriesStats::default(), |series| {
                    series.stats(self.cutoff_ns).unwrap()
                })
            };
            let times = self
                .twin
                .points
                .iter()
                .filter(|point| point.source == *source)
                .map(|point| point.timestamp_ns);
            assert_eq!(
                stats.points,
                times.clone().count() as u64,
                "points of source {source}"
            );
            assert_eq!(
                stats.bounds_ns,
                times.clone().min().zip(times.max()),
                "bounds of source {source}"
            );
        }
    }
}

#[test]
fn the_store_answers_as_the_twin_does() {
    let fixed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap());
    let rounds = if fixed.is_some() { 1 } else { 24 };
    for round in 0..rounds {
        let seed = fixed.unwrap_or(0x71de_0000 + round);
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..120 {
            match world.rng.u8(0..26) {
                0..=9 => world.ingest(),
                10 => world.checkpoint(false),
                11 => {
                    let fail = world.rng.bool();
                    world.checkpoint(fail);
                }
                12 => world.merge(),
                13 => world.restart(),
                14 if world.rng.u8(0..4) == 0 => world.remove_source(),
                15 if world.rng.u8(0..4) == 0 => world.expire(),
                15 if world.rng.u8(0..3) == 0 => world.shrink_and_grow(),
                16 => world.ask_stats(),
                24 | 25 => world.ask_counts(),
                17..=20 => world.ask_groups(),
                _ => world.ask_rows(),
            }
        }
        world.ask_stats();
    }
}
