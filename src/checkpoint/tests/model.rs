//! The model of the rooms: every request made, and whether it was acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use engine::query::{GroupQuery, group};
use engine::{Unit, Values};

use super::all_rows;
use super::deleting::{Deletions, Known};
use super::entries::Entries;
use crate::bucket::{BucketState, Digest};
use crate::catalog::Catalog;
use crate::checkpoint::Opened;
use crate::clock::DAY_NS;
use crate::ids::ObjectId;

/// A point. Its value is unique in a run, so that it identifies the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) source: u32,
    pub(super) timestamp_ns: i64,
    pub(super) value: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) bucket: u32,
    pub(super) rows: Vec<Row>,
    pub(super) key: Option<Digest>,
    pub(super) at_ns: i64,
    /// Sequence of its first row, once acknowledged.
    pub(super) acknowledged: Option<u64>,
}

/// Whether an object exists. Requests that were not acknowledged may or may not have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existence {
    MaybeCreated,
    Exists,
    MaybeDeleted,
    Deleted,
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) id: ObjectId,
    pub(super) bucket: ObjectId,
    pub(super) ordinal: Option<u32>,
    pub(super) existence: Existence,
}

#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pub(super) id: ObjectId,
    pub(super) ordinal: Option<u32>,
    pub(super) existence: Existence,
    /// Possible retentions in days: one, or two while a change is not acknowledged.
    pub(super) retention_days: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) buckets: Vec<Bucket>,
    pub(super) sources: Vec<Source>,
    pub(super) requests: Vec<Request>,
    pub(super) entries: Entries,
    pub(super) deletions: Deletions,
}

/// A stored row: sequence, timestamp and value.
type Stored = (u64, i64, u32);

/// The body of the answer to a request with a key.
pub(super) fn answer(bucket: u32, first_sequence: u64) -> Vec<u8> {
    let mut body = b"{\"_id\":\"".to_vec();
    body.extend_from_slice(&crate::ids::ObjectId::of_point(bucket, first_sequence).to_hex());
    body.extend_from_slice(b"\"}");
    body
}

/// Offset of the id in the answer.
pub(super) const ID_AT: usize = 8;

/// The digest of the request body of a key.
pub(super) fn body_digest(key: Digest) -> Digest {
    key.map(|byte| !byte)
}

impl Model {
    /// Fails if the recovered data differs from the acknowledged data.
    pub(super) fn check(&self, opened: &Opened, now_ns: i64) {
        self.check_catalog(&opened.catalog);
        self.entries
            .check(&opened.catalog, opened.ledger.ledger(), now_ns);
        for state in &opened.buckets {
            self.check_bucket(&opened.catalog, state, now_ns);
        }
        let expected = opened.catalog.buckets().count();
        assert_eq!(opened.buckets.len(), expected, "each bucket has its state");
    }

    /// Like `check`, but allows later requests that are not in this model.
    pub(super) fn check_at_least(&self, opened: &Opened, now_ns: i64) {
        self.check_catalog(&opened.catalog);
        for request in &self.requests {
            let Some(state) = opened
                .buckets
                .iter()
                .find(|state| state.ordinal == request.bucket)
            else {
                continue;
            };
            let bucket = opened
                .catalog
                .bucket_by_ordinal(request.bucket)
                .expect("a state belongs to a bucket");
            let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
            for (index, row) in (0u64..)
                .zip(&request.rows)
                .filter(|(_, row)| row.timestamp_ns >= cutoff_ns)
                .filter(|(_, row)| self.deletions.of(row.value) == Known::Stored)
            {
                let first = request.acknowledged.expect("acknowledged");
                let expected = (first + index, row.timestamp_ns, row.value);
                let found = rows_of(state, row.source, cutoff_ns)
                    .iter()
                    .filter(|it| **it == expected)
                    .count();
                assert_eq!(found, 1, "{row:?} of {request:?}");
            }
        }
    }

    fn check_catalog(&self, catalog: &Catalog) {
        let agrees = |existence, found: bool, what: &dyn std::fmt::Debug| match existence {
            Existence::Exists => assert!(found, "{what:?} is gone"),
            Existence::Deleted => assert!(!found, "{what:?} is back"),
            Existence::MaybeCreated | Existence::MaybeDeleted => {}
        };
        for bucket in &self.buckets {
            let found = catalog.bucket(bucket.id);
            agrees(bucket.existence, found.is_some(), bucket);
            if let Some(found) = found {
                assert!(
                    bucket.ordinal.is_none_or(|ordinal| ordinal == found.ordinal),
                    "{bucket:?}: {found:?}"
                );
                assert!(
                    bucket.retention_days.contains(&found.retention_days),
                    "{bucket:?}: {found:?}"
                );
            }
        }
        for source in self
            .sources
            .iter()
            .filter(|source| catalog.bucket(source.bucket).is_some())
        {
            let found = catalog.source(source.id);
            agrees(source.existence, found.is_some(), source);
            if let Some(found) = found {
                assert!(
                    source.ordinal.is_none_or(|ordinal| ordinal == found.ordinal),
                    "{source:?}: {found:?}"
                );
            }
        }
        let known = |id| self.buckets.iter().any(|bucket| bucket.id == id);
        assert!(
            catalog.buckets().all(|bucket| known(bucket.id)),
            "an unknown bucket"
        );
    }

    pub(super) fn check_bucket(&self, catalog: &Catalog, state: &BucketState, now_ns: i64) {
        let ordinal = state.ordinal;
        let bucket = catalog
            .bucket_by_ordinal(ordinal)
            .expect("a state belongs to a bucket");
        let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
        let mut stored: BTreeMap<u32, Vec<Stored>> = BTreeMap::new();
        for source in catalog.sources_of(bucket.id) {
            stored.insert(source.ordinal, rows_of(state, source.ordinal, cutoff_ns));
        }
        for source in self.sources.iter().filter(|source| source.bucket == bucket.id) {
            if let Some(gone) = source.ordinal.filter(|ordinal| !stored.contains_key(ordinal)) {
                assert_eq!(
                    rows_of(state, gone, i64::MIN),
                    [],
                    "rows of deleted source {gone}"
                );
            }
        }
        let mut by_value: BTreeMap<u32, (u32, Stored)> = BTreeMap::new();
        for (source, rows) in &stored {
            for row in rows {
                assert_eq!(
                    by_value.insert(row.2, (*source, *row)),
                    None,
                    "{row:?} of source {source} is there twice"
                );
            }
        }
        let (mut kept, mut gone) = (BTreeSet::new(), BTreeSet::new());
        let mut keys: BTreeMap<Digest, &Request> = BTreeMap::new();
        for request in self.requests.iter().filter(|request| request.bucket == ordinal) {
            let mut firsts = Vec::new();
            let mut missing = 0;
            for (index, row) in request.rows.iter().enumerate() {
                if row.timestamp_ns < cutoff_ns || !stored.contains_key(&row.source) {
                    continue;
                }
                let known = self.deletions.of(row.value);
                if known != Known::Stored {
                    let is_there = by_value.contains_key(&row.value);
                    assert!(!is_there || known == Known::InDoubt, "{row:?} was deleted");
                    if !is_there {
                        gone.insert(row.value);
                        continue;
                    }
                    kept.insert(row.value);
                }
                match by_value.remove(&row.value) {
                    Some((source, (sequence, timestamp_ns, _))) => {
                        assert_eq!(
                            (source, timestamp_ns),
                            (row.source, row.timestamp_ns),
                            "{row:?} was altered"
                        );
                        firsts.push(sequence - index as u64);
                    }
                    None => missing += 1,
                }
            }
            assert!(
                missing == 0 || firsts.is_empty(),
                "a part of {request:?} is missing ({missing} rows)"
            );
            let first = request.acknowledged.or(firsts.first().copied());
            assert!(
                firsts.iter().all(|it| Some(*it) == first),
                "sequences of {request:?} are now {firsts:?}"
            );
            if let Some(acknowledged) = request.acknowledged {
                assert_eq!(missing, 0, "{request:?} was acknowledged at {acknowledged}");
                let past = acknowledged + request.rows.len() as u64;
                assert!(
                    state.next_sequence >= past,
                    "{} would be given again: {request:?}",
                    state.next_sequence
                );
            }
            if let (Some(key), Some(_)) = (request.key, first) {
                keys.insert(key, request);
            }
            if let (Some(key), None) = (request.key, first)
                && missing > 0
                && !keys.contains_key(&key)
            {
                assert_eq!(
                    state.idempotency.get(&key, now_ns).expect("it reads"),
                    None,
                    "a key without its rows: {request:?}"
                );
            }
        }
        self.deletions.check_whole(&kept, &gone);
        assert!(by_value.is_empty(), "rows that were never sent: {by_value:?}");
        for (key, request) in keys {
            let found = state.idempotency.get(&key, now_ns).expect("it reads");
            let remembered = request.at_ns > now_ns - DAY_NS;
            assert_eq!(
                found.is_some(),
                remembered,
                "the answer to {request:?} is {found:?}"
            );
            if let (Some(found), Some(first)) = (found, request.acknowledged) {
                assert_eq!(found.body, body_digest(key));
                assert_eq!(
                    &*found.answer.body,
                    answer(ordinal, first),
                    "the answer to {request:?}"
                );
            }
        }
    }

    /// Adopts the observed state of unacknowledged requests.
    pub(super) fn settle(&mut self, opened: &Opened, now_ns: i64) {
        let catalog = &opened.catalog;
        self.entries.settle(catalog, opened.ledger.ledger(), now_ns);
        for bucket in &mut self.buckets {
            let found = catalog.bucket(bucket.id);
            bucket.existence = if found.is_some() {
                Existence::Exists
            } else {
                Existence::Deleted
            };
            if let Some(found) = found {
                bucket.ordinal = Some(found.ordinal);
                bucket.retention_days = vec![found.retention_days];
            }
        }
        for source in &mut self.sources {
            let found = catalog.source(source.id);
            source.existence = if found.is_some() {
                Existence::Exists
            } else {
                Existence::Deleted
            };
            source.ordinal = found.map(|found| found.ordinal).or(source.ordinal);
        }
        let mut found: BTreeMap<u32, u64> = BTreeMap::new();
        for state in &opened.buckets {
            let Some(bucket) = catalog.bucket_by_ordinal(state.ordinal) else {
                continue;
            };
            let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
            for source in catalog.sources_of(bucket.id) {
                let rows = rows_of(state, source.ordinal, cutoff_ns);
                found.extend(rows.iter().map(|(sequence, _, value)| (*value, *sequence)));
            }
        }
        self.deletions.settle(|value| found.contains_key(&value));
        self.requests.retain_mut(|request| {
            if request.acknowledged.is_none() {
                let mut rows = (0u64..).zip(&request.rows);
                request.acknowledged = rows.find_map(|(index, row)| Some(found.get(&row.value)? - index));
            }
            request.acknowledged.is_some()
        });
    }
}

/// The rows of a source, read in three ways that must agree: as rows, grouped, and counted.
pub(super) fn rows_of(state: &BucketState, source: u32, cutoff_ns: i64) -> Vec<Stored> {
    let counted = state.store.stats(source, cutoff_ns).expect("stats").points;
    let Some(series) = &state.store.view().series(source) else {
        assert_eq!(counted, 0);
        return Vec::new();
    };
    let range_ns = (cutoff_ns, i64::MAX);
    let stop = &|| false;
    let page = all_rows(series, range_ns).expect("rows");
    let rows: Vec<Stored> = page
        .rows
        .iter()
        .map(|(run, row)| {
            let (columns, row) = (&page.runs[*run as usize].columns, *row as usize);
            let (timestamp_ns, sequence) = columns.key(row);
            let Some(Values::Numbers { values, .. }) = columns.field(0).map(|column| &column.values) else {
                panic!("field 0 is a number");
            };
            (sequence, timestamp_ns, values[row] as u32)
        })
        .collect();
    let grouped = group(
        series,
        &GroupQuery {
            range_ns,
            step: Unit::Hour.into(),
            fields: &[0],
            metadata: None,
            stop,
            values: &[],
        },
    )
    .expect("groups");
    let count: u64 = grouped.aggregates.iter().map(|aggregate| aggregate.count).sum();
    let sum: f64 = grouped.aggregates.iter().map(engine::Aggregate::sum).sum();
    let rows_sum: f64 = rows.iter().map(|row| f64::from(row.2)).sum();
    assert_eq!(
        (count, sum),
        (rows.len() as u64, rows_sum),
        "grouped and raw of source {source}"
    );
    assert_eq!(counted, count, "counted and raw of source {source}");
    rows
}
