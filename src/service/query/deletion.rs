//! `POST /api/data/delete`: deletes the points that the filters of a query select.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use engine::query::{Budget, count_matching};
use engine::{EngineError, MergeError, PointFilter, RowFilters, SeriesRef, View};
use serde_json::Value;

use super::plan::{Plan, QuerySources, Tests, select};
use super::{QueryInput, Service};
use crate::bucket::IndexedView;
use crate::catalog::Source;
use crate::checkpoint::CheckpointError;
use crate::error::ServiceError;
use crate::query_pool::Stop;
use crate::series::SeriesIndex;
use crate::service::Caller;
use crate::service::concurrency::Place;

const RETRY_AFTER_SECONDS: u32 = 5;

/// A planned deletion, which selects points.
struct Selected {
    plan: Plan,
    index: Arc<SeriesIndex>,
    /// Sources that were named, by ordinal; empty if all are selected.
    named: HashMap<u32, Arc<Source>>,
    /// Held until the deletion has ended, even if its client is gone.
    _place: Option<Place>,
}

impl Service {
    /// Deletes the points that the filters select, from everything that counts or returns points; returns their number.
    /// With `is_dry_run`, only counts them. `filters`: as they were sent, for the audit.
    ///
    /// # Errors
    /// 404, 403; 400 for faults that depend on the sources; 503.
    pub async fn delete_points(
        &self,
        caller: &Caller,
        input: QueryInput,
        filters: Value,
        is_dry_run: bool,
    ) -> Result<u64, ServiceError> {
        let (bucket, sources) = self.catalog.read(|catalog| select(catalog, caller, &input))?;
        let place = match is_dry_run {
            true => None,
            false => Some(self.deletions.enter(caller.organization_id)?),
        };
        let (now_ns, buckets) = (self.now_ns(), self.buckets.clone());
        let count = move |stop: &Stop| {
            let indexed = buckets.indexed_view(&bucket)?;
            let plan = Plan::of(bucket, sources, input, now_ns, &indexed)?;
            let selected = Arc::new(Selected::of(plan, Arc::clone(&indexed.index), place));
            let points = match is_dry_run {
                true => selected.count(&indexed, stop)?,
                false => 0,
            };
            Ok((selected, points))
        };
        let organization = caller.organization_id;
        let counted = self.resources.queries.run_long(organization, count).await;
        let (selected, points) = counted.map_err(|error| self.buckets.damaged().explain(error))?;
        if is_dry_run {
            return Ok(points);
        }
        // Says why if the bucket is set apart; starts its actor if it has none.
        self.buckets.handle(&selected.plan.bucket)?;
        let ordinal = selected.plan.bucket.ordinal;
        let (auditor, bucket) = (self.auditor(caller), Arc::clone(&selected.plan.bucket));
        let record = move |points| auditor.points_deleted(&bucket, &filters, points);
        let deleted = self
            .checkpointer
            .delete_points(ordinal, selected, Some(Box::new(record)))
            .await;
        deleted.map_err(|error| self.buckets.damaged().explain(error.into()))
    }
}

impl Selected {
    fn of(plan: Plan, index: Arc<SeriesIndex>, place: Option<Place>) -> Self {
        let named = match &plan.sources {
            QuerySources::All(_) => HashMap::new(),
            QuerySources::Named(sources) => {
                let by_ordinal = sources.iter().map(|source| (source.ordinal, Arc::clone(source)));
                by_ordinal.collect()
            }
        };
        Selected {
            plan,
            index,
            named,
            _place: place,
        }
    }

    fn source(&self, ordinal: u32) -> Option<&Arc<Source>> {
        match &self.plan.sources {
            // Not a source that was created since.
            QuerySources::All(pages) => pages.get(ordinal),
            QuerySources::Named(_) => self.named.get(&ordinal),
        }
    }

    fn count(&self, indexed: &IndexedView, stop: &Stop) -> Result<u64, ServiceError> {
        let (range_ns, budget, stop) = (self.plan.range_ns, stop.budget(), || stop.now());
        let mut points = 0;
        for reached in &self.plan.reach(indexed, range_ns, budget, &|_| stop())?.series {
            let mut counted = Ok(0);
            let source = reached.source.ordinal;
            let ordinal = reached.series.ordinal;
            self.of_series(SeriesRef { ordinal, source }, &mut |filters| {
                counted = count_matching(&reached.series, range_ns, filters, &stop, budget);
            });
            points += counted?;
        }
        Ok(points)
    }
}

impl PointFilter for Selected {
    fn range_ns(&self) -> (i64, i64) {
        self.plan.range_ns
    }

    fn series(&self, view: &View) -> Result<Option<Vec<u32>>, MergeError> {
        let plan = &self.plan;
        if matches!(plan.sources, QuerySources::All(_)) && plan.input.dimensions.is_empty() {
            return Ok(None);
        }
        // Looked up now rather than when the deletion was planned, so that no batch is deleted in part.
        let indexed = IndexedView {
            view: view.clone(),
            index: Arc::clone(&self.index),
            reader: self.index.reader(),
        };
        let budget = Budget::unlimited();
        let reached = plan
            .reach(&indexed, plan.range_ns, &budget, &|_| false)
            .map_err(io::Error::other)?;
        Ok(Some(reached.series.iter().map(|it| it.series.ordinal).collect()))
    }

    fn of_series(&self, series: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>)) {
        let plan = &self.plan;
        let schema = self
            .source(series.source)
            .and_then(|source| plan.place(source).ok());
        let tests = Tests::of(plan);
        let Some(values) = schema.and_then(|schema| tests.filters_of(plan, &plan.schemas[schema])) else {
            return;
        };
        let passes = |metadata: Option<&str>| plan.passes(metadata);
        read(&RowFilters {
            metadata: plan.filter.is_some().then_some(&passes),
            values: &values,
        });
    }
}

impl From<CheckpointError> for ServiceError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Merge(MergeError::Engine(error)) | CheckpointError::Engine(error)
                if !matches!(error, EngineError::Stopped) =>
            {
                error.into()
            }
            CheckpointError::Journal(error) => error.into(),
            CheckpointError::TooManyDead(_) => Self::unavailable(error.to_string(), RETRY_AFTER_SECONDS),
            error => Self::unavailable(
                "the change could not be stored; send it again",
                RETRY_AFTER_SECONDS,
            )
            .caused_by(error),
        }
    }
}
