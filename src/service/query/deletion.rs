//! `POST /api/data/delete`: deletes the points that the filters of a query select.

use std::collections::HashMap;
use std::sync::Arc;

use engine::query::count_matching;
use engine::{EngineError, MergeError, PointFilter, RowFilters};
use serde_json::Value;

use super::plan::{Plan, QuerySources, Tests, select};
use super::{QueryInput, Service};
use crate::catalog::Source;
use crate::checkpoint::CheckpointError;
use crate::error::ServiceError;
use crate::query_pool::{Step, Stop, Turn, wait};
use crate::service::Caller;
use crate::service::concurrency::Place;

const RETRY_AFTER_SECONDS: u32 = 5;

/// A planned deletion, which selects points.
struct Selected {
    plan: Plan,
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
        let mut selected = Some((bucket, sources, input, place));
        let mut planned = None;
        let count = move |stop: &Stop, turn: Turn| {
            if turn == Turn::Short {
                return Ok(Step::Long);
            }
            if let Some((bucket, sources, input, place)) = selected.take() {
                planned = Some(Arc::new(Selected::of(
                    Plan::of(bucket, sources, input, now_ns)?,
                    place,
                )));
            }
            let Some(selected) = &planned else {
                return Err(ServiceError::internal("BUG: a long turn without a plan"));
            };
            let points = match is_dry_run {
                true => selected.count(&wait(buckets.view(&selected.plan.bucket))?, stop)?,
                false => 0,
            };
            Ok(Step::Answer((Arc::clone(selected), points)))
        };
        let organization = caller.organization_id;
        let counted = self.resources.queries.run(organization, count).await;
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
    fn of(plan: Plan, place: Option<Place>) -> Self {
        let named = match &plan.sources {
            QuerySources::All(_) => HashMap::new(),
            QuerySources::Named(sources) => {
                let by_ordinal = sources.iter().map(|source| (source.ordinal, Arc::clone(source)));
                by_ordinal.collect()
            }
        };
        Selected {
            plan,
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

    fn count(&self, view: &engine::View, stop: &Stop) -> Result<u64, ServiceError> {
        let (range_ns, budget) = (self.plan.range_ns, stop.budget());
        let mut points = 0;
        for reached in self.plan.reach(view, range_ns, budget)?.sources {
            let mut counted = Ok(0);
            self.of_source(reached.source.ordinal, &mut |filters| {
                counted = count_matching(&reached.series, range_ns, filters, &|| stop.now(), budget);
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

    fn sources(&self) -> Option<Vec<u32>> {
        match &self.plan.sources {
            QuerySources::All(_) => None,
            QuerySources::Named(sources) => Some(sources.iter().map(|source| source.ordinal).collect()),
        }
    }

    fn of_source(&self, source: u32, read: &mut dyn FnMut(&RowFilters<'_>)) {
        let plan = &self.plan;
        let schema = self.source(source).and_then(|source| plan.place(source).ok());
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
