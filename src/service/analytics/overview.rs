//! `GET /api/analytics/overview`.
//!
//! The disk usage of an organization consists of the segments of its buckets, the ledger entries of its buckets, rules
//! and webhooks, and the log records whose points are not in segments yet. Expired blocks and blocks of deleted sources
//! count until their file is rewritten. Not counted are small shared parts: the manifest, the catalog, event bodies
//! sent to several webhooks, other log records, and space that the log preallocates.

use std::sync::Arc;

use engine::query::{Estimate, GroupQuery};
use engine::{EngineError, Unit};

use super::{Fired, Period};
use crate::bucket::{BucketFigures, DamagedBlocks};
use crate::catalog::{Bucket, Catalog, Organization};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ledger::Ledger;
use crate::query_pool::{Step, Stop, Turn};
use crate::service::query::SHORT_VALUES_MAX;
use crate::service::{Caller, Service};

/// Statistics of an organization.
#[derive(Clone)]
pub struct Overview {
    pub organization: Arc<Organization>,
    pub buckets: u64,
    /// Number of sources of all buckets.
    pub sources: u64,
    /// Number of points of all buckets.
    pub points: u64,
    /// Number of alert rules of all buckets.
    pub alert_rules: u64,
    /// Number of keys of the organization and of all its buckets.
    pub keys: u64,
    /// API calls in this calendar month.
    pub calls_this_month: u64,
    /// Disk usage in bytes.
    pub storage_bytes: u64,
    /// Time of the last ingest, whatever its timestamps, UTC nanoseconds.
    pub last_ingested_at_ns: Option<i64>,
    /// Time at which a rule last fired, UTC nanoseconds.
    pub last_triggered_at_ns: Option<i64>,
    pub points_last_day: u64,
    pub triggers_last_day: u64,
    /// Buckets with a damaged block, whose points are not counted here.
    pub incomplete_buckets: Vec<ObjectId>,
}

/// What to compute, with the figures known from the catalog.
struct PlannedOverview {
    now_ns: i64,
    overview: Overview,
    fired: Vec<Fired>,
    /// Rules and webhooks, whose ledger entries belong to the organization.
    owners: Vec<ObjectId>,
    ledger: Ledger,
    damaged: DamagedBlocks,
}

impl Overview {
    /// Calls in percent of the plan's limit, to two decimals; `None` without a limit.
    pub fn calls_percentage(&self) -> Option<f64> {
        let limit = self.organization.plan.limits().calls_max?;
        Some((self.calls_this_month as f64 / limit as f64 * 10_000.0).round() / 100.0)
    }
}

impl Service {
    /// The overview of the caller's organization. `finish` builds the answer while still on the query pool.
    ///
    /// # Errors
    /// 404 if the organization was deleted; 503 if the server is overloaded.
    pub async fn overview<R: Send + 'static>(
        &self,
        caller: &Caller,
        finish: impl Fn(&Overview) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let (planned, buckets) = self.plan_overview(caller)?;
        let figures = self.buckets.figures(buckets).await?;
        let answer = move |stop: &Stop, turn: Turn| {
            if turn == Turn::Short && planned.is_long(&figures)? {
                return Ok(Step::Long);
            }
            finish(&planned.compute(&figures, stop)?).map(Step::Answer)
        };
        self.resources.queries.run(caller.organization_id, answer).await
    }

    /// Collects the figures from the catalog, and the buckets.
    fn plan_overview(&self, caller: &Caller) -> Result<(PlannedOverview, Vec<Arc<Bucket>>), ServiceError> {
        let organization = self.organization(caller.organization_id)?;
        let now_ns = self.now_ns();
        let id = organization.id;
        let (buckets, keys, owners): (Vec<Arc<Bucket>>, _, Vec<_>) = self.catalog.read(|catalog| {
            (
                catalog.buckets_of(id).cloned().collect(),
                catalog.key_count(id) as u64,
                catalog.webhooks_of(id).map(|webhook| webhook.id).collect(),
            )
        });
        let mut planned = PlannedOverview {
            now_ns,
            overview: Overview {
                organization,
                buckets: buckets.len() as u64,
                sources: 0,
                points: 0,
                alert_rules: 0,
                keys,
                calls_this_month: self.calls_this_month(id),
                storage_bytes: 0,
                last_ingested_at_ns: None,
                last_triggered_at_ns: None,
                points_last_day: 0,
                triggers_last_day: 0,
                incomplete_buckets: Vec::new(),
            },
            fired: Vec::new(),
            owners,
            ledger: self.ledger.clone(),
            damaged: self.buckets.damaged().clone(),
        };
        // One catalog lock per bucket, so that writers of the catalog wait for at most one bucket.
        for bucket in &buckets {
            self.catalog
                .read(|catalog| planned.add_bucket(catalog, bucket.id));
        }
        Ok((planned, buckets))
    }
}

impl PlannedOverview {
    fn add_bucket(&mut self, catalog: &Catalog, bucket_id: ObjectId) {
        let overview = &mut self.overview;
        let contents = catalog.contents_of(bucket_id);
        overview.sources += contents.sources;
        overview.alert_rules += contents.alert_rules;
        overview.keys += contents.keys;
        for rule in catalog.rules_of(bucket_id) {
            self.owners.push(rule.id);
            overview.last_triggered_at_ns = overview
                .last_triggered_at_ns
                .max(rule.runtime.last_triggered_at_ns);
        }
        let since_ns = Period::DAY.start_ns(self.now_ns);
        self.fired
            .extend(Fired::of_bucket(catalog, &self.ledger, bucket_id, since_ns));
    }

    /// Whether the cost exceeds a short turn: for each source, the blocks at both ends of the day are read.
    fn is_long(&self, figures: &[(Arc<Bucket>, BucketFigures)]) -> Result<bool, ServiceError> {
        let mut estimate = Estimate::new(SHORT_VALUES_MAX);
        let query = GroupQuery {
            range_ns: (Period::DAY.start_ns(self.now_ns), self.now_ns),
            step: Unit::Month.into(),
            fields: &[],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let views = figures.iter().map(|(_, figures)| &figures.view);
        for series in views.flat_map(|view| view.reaching(query.range_ns)) {
            estimate.add(1);
            match estimate.add_grouped(&series, &query) {
                // The answer skips damaged blocks.
                Err(EngineError::Damaged(_)) => {}
                added => added?,
            }
            if estimate.is_over() {
                break;
            }
        }
        Ok(estimate.is_over())
    }

    fn compute(
        &self,
        figures: &[(Arc<Bucket>, BucketFigures)],
        stop: &Stop,
    ) -> Result<Overview, ServiceError> {
        let mut overview = self.overview.clone();
        let since_ns = Period::DAY.start_ns(self.now_ns);
        let stop = || stop.now();
        for (bucket, figures) in figures {
            overview.storage_bytes += figures.disk_bytes;
            overview.last_ingested_at_ns = overview.last_ingested_at_ns.max(figures.ingested_at_ns);
            let cutoff_ns = bucket.retention_cutoff_ns(self.now_ns);
            let range_ns = (since_ns.max(cutoff_ns), self.now_ns);
            // A damaged block of one bucket must not hide the figures of the others.
            let mut is_incomplete = false;
            let mut pass_over = |error| {
                self.damaged.pass_over(error)?;
                is_incomplete = true;
                Ok(())
            };
            let stats = figures.view.stats(cutoff_ns, &stop, &mut pass_over);
            overview.points += stats?.points;
            for series in figures.view.reaching(range_ns) {
                let stats = series.stats_within(range_ns, &stop, &mut pass_over);
                overview.points_last_day += stats?.points;
            }
            if is_incomplete {
                overview.incomplete_buckets.push(bucket.id);
            }
        }
        for owner in &self.owners {
            overview.storage_bytes += self.ledger.bytes_of(*owner).map_err(ServiceError::internal)?;
        }
        for fired in &self.fired {
            overview.triggers_last_day += fired.count(since_ns)?;
        }
        Ok(overview)
    }
}
