//! One bucket of the model: a store, its naive model, and the state that a server would have.

use std::collections::{BTreeMap, HashSet};

use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{ExpiredRows, Seal, SegmentPart, SeriesSnapshot, SeriesStats, Store};
use fastrand::Rng;

use super::{FIELDS, SECOND};
use crate::naive::{NaiveStore, Point, Value};

pub(super) struct Bucket {
    pub(super) ordinal: u32,
    pub(super) rng: Rng,
    pub(super) store: Store,
    pub(super) naive: NaiveStore,
    /// Log records that no segment covers: first sequence and rows.
    pub(super) log: Vec<(u64, Vec<u8>)>,
    pub(super) sources: Vec<u32>,
    next_sequence: u64,
    pub(super) clock_ns: i64,
    pub(super) cutoff_ns: i64,
    /// Rows that had expired when the retention grew.
    pub(super) expired: Vec<ExpiredRows>,
    /// Sequences of expired points.
    pub(super) gone: HashSet<u64>,
    sealing: Vec<Seal>,
    /// Cells of answers that were shared with the store's cache.
    pub(super) cells_shared: usize,
}

impl Bucket {
    pub(super) fn new(ordinal: u32, seed: u64) -> Self {
        Bucket {
            ordinal,
            rng: Rng::with_seed(seed),
            store: Store::new(),
            naive: NaiveStore::default(),
            log: Vec::new(),
            sources: vec![1, 2, 3],
            next_sequence: 1,
            clock_ns: 1_600_000_000 * SECOND,
            cutoff_ns: i64::MIN,
            expired: Vec::new(),
            gone: HashSet::new(),
            sealing: Vec::new(),
            cells_shared: 0,
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

    pub(super) fn ingest(&mut self) {
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
            let sequence = self.next_sequence + self.naive_rows_pending();
            self.naive.points.push(Point {
                source,
                timestamp_ns,
                sequence,
                values,
                metadata,
            });
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        assert_eq!(self.store.apply(&bytes, self.next_sequence, &[]).unwrap(), rows);
        self.seal();
        self.log.push((self.next_sequence, bytes));
        self.next_sequence += u64::from(rows);
        self.forget_expired();
    }

    /// Rows of the open request that the naive model already has.
    fn naive_rows_pending(&self) -> u64 {
        self.naive
            .points
            .iter()
            .rev()
            .take_while(|point| point.sequence >= self.next_sequence)
            .count() as u64
    }

    /// Seals full blocks at once, later, or never, as threads would.
    pub(super) fn seal(&mut self) {
        self.sealing.extend(self.store.take_seals());
        while !self.sealing.is_empty() && self.rng.u8(0..4) > 0 {
            let seal = self.sealing.swap_remove(self.rng.usize(0..self.sealing.len()));
            self.store.finish_seal(seal.run());
        }
    }

    /// Restarts from the content of the files and the log.
    pub(super) fn restart(&mut self, parts: impl Iterator<Item = SegmentPart>) {
        let sources = self.sources.clone();
        let mut store = Store::new();
        parts.for_each(|part| store.add_segment(part));
        for (first_sequence, rows) in &self.log {
            store.apply(rows, *first_sequence, &[]).unwrap();
        }
        store.retain_sources(|source| sources.contains(&source));
        store.expire(self.cutoff_ns);
        self.store = store;
        self.sealing.clear();
        self.seal();
    }

    pub(super) fn remove_source(&mut self) {
        if self.sources.len() < 2 {
            return;
        }
        let source = self.sources.swap_remove(self.rng.usize(0..self.sources.len()));
        let points = self
            .naive
            .points
            .iter()
            .filter(|point| point.source == source)
            .count() as u64;
        let removed = self.store.remove_source(source);
        if self.cutoff_ns == i64::MIN && self.expired.is_empty() {
            assert_eq!(removed, points, "points of the source removed");
        }
        self.naive.points.retain(|point| point.source != source);
        let next = self.sources.iter().max().unwrap().max(&source) + 1;
        self.sources.push(next);
    }

    pub(super) fn expire(&mut self) {
        self.cutoff_ns = self
            .cutoff_ns
            .max(self.clock_ns - self.rng.i64(10_000..400_000) * SECOND);
        self.store.expire(self.cutoff_ns);
        self.forget_expired();
    }

    /// Shrinks and grows the retention: points before some moment are gone, later ones are not.
    pub(super) fn shrink_and_grow(&mut self) {
        self.expired.push(ExpiredRows {
            before_ns: self.clock_ns - self.rng.i64(0..100_000) * SECOND,
            before_sequence: self.next_sequence,
        });
        self.forget_expired();
    }

    /// Rows within the retention that have expired.
    pub(super) fn expired_rows(&self) -> Vec<ExpiredRows> {
        let reached = |rows: &&ExpiredRows| rows.before_ns > self.cutoff_ns;
        self.expired.iter().filter(reached).copied().collect()
    }

    fn forget_expired(&mut self) {
        let is_gone = |point: &Point| {
            let is_in = |rows: &ExpiredRows| {
                point.timestamp_ns < rows.before_ns && point.sequence < rows.before_sequence
            };
            point.timestamp_ns < self.cutoff_ns || self.expired.iter().any(is_in)
        };
        let points = std::mem::take(&mut self.naive.points);
        let (gone, left): (Vec<Point>, Vec<Point>) = points.into_iter().partition(is_gone);
        self.gone.extend(gone.iter().map(|point| point.sequence));
        self.naive.points = left;
    }

    pub(super) fn snapshot(&self, sources: &[u32]) -> Vec<SeriesSnapshot> {
        let view = self.store.view().without(&self.expired_rows().into());
        sources.iter().filter_map(|source| view.series(*source)).collect()
    }

    pub(super) fn check_stats(&mut self) {
        for source in &self.sources {
            let stats = if self.expired.is_empty() {
                self.store.stats(*source, self.cutoff_ns).unwrap()
            } else {
                let snapshot = self.snapshot(&[*source]);
                let series = snapshot.first();
                series.map_or(SeriesStats::default(), |series| {
                    series.stats(self.cutoff_ns).unwrap()
                })
            };
            let times = self
                .naive
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
