//! Deletions of points in a trace: which points they select, and what the model knows of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::query::ValueFilter;
use engine::rows::Scalar;
use engine::{MergeError, PointFilter, RowFilters, SeriesRef, View};
use tokio::sync::oneshot;

use super::model::{Existence, Model, Row, rows_of};
use super::world::{Failure, RunningRooms, World};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::deleting::{DeletionOrder, DeletionWritten};
use crate::clock::{Clock, DAY_NS};
use crate::ids::ObjectId;

/// Selects points of one source or of all by time, and by their values.
#[derive(Clone, Debug)]
struct Chosen {
    source: Option<u32>,
    range_ns: (i64, i64),
    divisor: u32,
}

impl Chosen {
    fn selects(&self, row: &Row) -> bool {
        let (start, end) = self.range_ns;
        self.source.is_none_or(|source| source == row.source)
            && (start..=end).contains(&row.timestamp_ns)
            && row.value.is_multiple_of(self.divisor)
    }
}

impl PointFilter for Chosen {
    fn range_ns(&self) -> (i64, i64) {
        self.range_ns
    }

    fn series(&self, _: &View) -> Result<Option<Vec<u32>>, MergeError> {
        Ok(self.source.map(|source| vec![source]))
    }

    fn of_series(&self, _: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>)) {
        let passes = |value: Scalar<'_>| matches!(value, Scalar::Number(number) if (number as u32).is_multiple_of(self.divisor));
        let filter = ValueFilter {
            field: 0,
            passes: &passes,
            bounds: (f64::NEG_INFINITY, f64::INFINITY),
        };
        let metadata = None;
        match self.divisor {
            1 => read(&RowFilters {
                metadata,
                values: &[],
            }),
            _ => read(&RowFilters {
                metadata,
                values: &[filter],
            }),
        }
    }
}

/// More than the sources of any bucket of a trace.
const SOURCES_MAX: u32 = 100;

/// What the model knows of deletions, by the unique values of points.
#[derive(Clone, Debug, Default)]
pub(super) struct Deletions {
    deleted: BTreeSet<u32>,
    /// Of each deletion that was not acknowledged: all of them are there, or none.
    in_doubt: Vec<BTreeSet<u32>>,
}

/// What is known of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Stored,
    Deleted,
    InDoubt,
}

impl Deletions {
    pub(super) fn of(&self, value: u32) -> Known {
        match value {
            _ if self.deleted.contains(&value) => Known::Deleted,
            _ if self.in_doubt.iter().any(|values| values.contains(&value)) => Known::InDoubt,
            _ => Known::Stored,
        }
    }

    /// Asserts that no deletion took effect in part, given the points in doubt that are there and those that are not.
    pub(super) fn check_whole(&self, kept: &BTreeSet<u32>, gone: &BTreeSet<u32>) {
        for values in &self.in_doubt {
            let is_part = !values.is_disjoint(kept) && !values.is_disjoint(gone);
            assert!(!is_part, "a part of a deletion: {values:?}, left are {kept:?}");
        }
    }

    /// Adopts the observed outcome.
    pub(super) fn settle(&mut self, is_there: impl Fn(u32) -> bool) {
        for values in std::mem::take(&mut self.in_doubt) {
            if !values.iter().any(|value| is_there(*value)) {
                self.deleted.extend(values);
            }
        }
    }
}

impl Model {
    /// Whether a source of the bucket may be deleted, as the answer to its deletion was an error.
    fn has_doubtful_sources(&self, bucket: ObjectId) -> bool {
        let mut sources = self.sources.iter().filter(|source| source.bucket == bucket);
        sources.any(|source| source.existence == Existence::MaybeDeleted)
    }

    /// The values of the acknowledged points in a bucket that the filter selects.
    fn selected(&self, bucket: u32, chosen: &Chosen) -> BTreeSet<u32> {
        let requests = self.requests.iter().filter(|request| request.bucket == bucket);
        let requests = requests.filter(|request| request.acknowledged.is_some());
        let rows = requests.flat_map(|request| &request.rows);
        let id = self
            .buckets
            .iter()
            .find(|it| it.ordinal == Some(bucket))
            .map(|it| it.id);
        let is_source = |row: &&Row| {
            let mut sources = self.sources.iter().filter(|source| Some(source.bucket) == id);
            sources.any(|it| it.ordinal == Some(row.source) && it.existence == Existence::Exists)
        };
        let selected = rows.filter(is_source).filter(|row| chosen.selects(row));
        let values = selected.map(|row| row.value);
        values
            .filter(|value| self.deletions.of(*value) == Known::Stored)
            .collect()
    }
}

impl RunningRooms {
    /// Deletes points, as the checkpointer does: no merge is in progress, and a checkpoint comes first.
    fn delete_points(&mut self, bucket: u32, filter: Arc<dyn PointFilter>) -> Result<u64, CheckpointError> {
        self.end_merge();
        self.on_thread(|task| {
            task.checkpoint()?;
            let (done, mut answer) = oneshot::channel();
            let order = DeletionOrder {
                bucket,
                filter,
                record: None,
                done,
            };
            let Some(job) = task.begin_deletion(order) else {
                return answer.try_recv().expect("the reason is sent");
            };
            let DeletionWritten { written, handle, .. } = job.run(&AtomicBool::new(false));
            let deleted = task.finish_deletion(bucket, &handle, written)?;
            if task.publish.is_some() {
                task.checkpoint()?;
            }
            Ok(deleted)
        })
    }
}

impl World {
    /// Deletes some points of a bucket.
    pub(super) async fn delete_points(&mut self, live: &mut RunningRooms) -> Result<(), Failure> {
        if !self.model.lock().deletions.in_doubt.is_empty() {
            return self.settle_deletions(live).await;
        }
        let Some(bucket_id) = self.pick_bucket() else {
            return Ok(());
        };
        let catalog = &live.rooms.catalog;
        let Some(bucket) = catalog.read(|catalog| catalog.bucket(bucket_id).cloned()) else {
            return Ok(());
        };
        if self.model.lock().has_doubtful_sources(bucket_id) {
            // Their points are there or not.
            return Ok(());
        }
        // The checkpointer finds the actors of buckets that have had a request.
        live.rooms.buckets.handle(&bucket)?;
        let now_ns = self.clock.now_ns();
        let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
        let range_ns = match self.rng.u8(0..3) {
            0 => (cutoff_ns, i64::MAX),
            _ => {
                let start = now_ns - self.rng.i64(0..5 * DAY_NS);
                (start.max(cutoff_ns), start + self.rng.i64(0..DAY_NS))
            }
        };
        let chosen = Chosen {
            source: self.rng.bool().then(|| self.rng.u32(0..3)),
            range_ns,
            divisor: self.rng.u32(1..4),
        };
        let selected = {
            let mut model = self.model.lock();
            let selected = model.selected(bucket.ordinal, &chosen);
            model.deletions.in_doubt.push(selected.clone());
            selected
        };
        let filter = Arc::new(chosen.clone());
        let deleted = live
            .delete_points(bucket.ordinal, filter)
            .map_err(Failure::Checkpoint)?;
        assert_eq!(deleted, selected.len() as u64, "{chosen:?}");
        let deletions = &mut self.model.lock().deletions;
        deletions.in_doubt.clear();
        deletions.deleted.extend(selected);
        Ok(())
    }

    /// After a deletion that failed: the manifest of a checkpoint says the same as the stores, which know the outcome.
    async fn settle_deletions(&mut self, live: &mut RunningRooms) -> Result<(), Failure> {
        live.checkpoint().map_err(Failure::Checkpoint)?;
        let mut found = BTreeSet::new();
        for (_, handle) in live.rooms.buckets.running() {
            let values = handle.with(|state| -> BTreeSet<u32> {
                let sources = (0..SOURCES_MAX).flat_map(|source| rows_of(state, source, i64::MIN));
                sources.map(|(_, _, value)| value).collect()
            });
            found.extend(values.await?);
        }
        self.model.lock().deletions.settle(|value| found.contains(&value));
        Ok(())
    }
}
