//! `GET /api/analytics/buckets/:bucketId`.

use std::sync::Arc;

use engine::query::{Estimate, GroupQuery, HourCounts, group};
use engine::{Aggregate, SeriesSnapshot, Unit, View};

use super::{Fired, Period};
use crate::catalog::{Bucket, Field, FieldType, Rule, RuleStatus, Source};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::query_pool::{Step, Stop, Turn};
use crate::service::query::{SHORT_VALUES_MAX, engine_error};
use crate::service::{Caller, Service, bucket_for};

/// Statistics of a bucket: points and triggers within a period.
pub struct BucketAnalytics {
    pub bucket: Arc<Bucket>,
    /// The period, which ends now.
    pub period: Period,
    /// Number of points of all time.
    pub points: u64,
    pub points_in_period: u64,
    /// Number of rules with status `active`.
    pub active_rules: u64,
    /// All sources, oldest first.
    pub sources: Vec<SourceAnalytics>,
    /// Start and number of points of each hour with points, ascending. Hours cut by the period count only what lies
    /// within it.
    pub hours: Vec<(i64, u64)>,
    /// The rules that fired in the period and how often: most frequent first, then oldest.
    pub triggers: Vec<(Arc<Rule>, u64)>,
}

/// Statistics of one source.
pub struct SourceAnalytics {
    pub source: Arc<Source>,
    /// Number of points in the period.
    pub points: u64,
    /// Timestamp of the latest point of all time, UTC nanoseconds.
    pub last_ns: Option<i64>,
    /// The number fields with values in the period, in order of declaration.
    pub values: Vec<(Arc<str>, Aggregate)>,
}

impl BucketAnalytics {
    /// Average points per day of the period.
    pub fn points_per_day(&self) -> f64 {
        self.points_in_period as f64 / self.period.days as f64
    }

    /// Number of triggers of all rules.
    pub fn trigger_count(&self) -> u64 {
        self.triggers.iter().map(|(_, count)| count).sum()
    }
}

/// What to compute, as of one time.
struct Question {
    bucket: Arc<Bucket>,
    period: Period,
    now_ns: i64,
    /// Oldest first.
    sources: Vec<Arc<Source>>,
    active_rules: u64,
    fired: Vec<Fired>,
}

impl Service {
    /// The analytics of a bucket over a period that ends now. `finish` builds the answer while still on the query pool.
    ///
    /// # Errors
    /// 404, 403; 503 if the server is overloaded.
    pub async fn bucket_analytics<R: Send + 'static>(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        period: Period,
        finish: impl FnOnce(&BucketAnalytics) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let now_ns = self.now_ns();
        let question = self.catalog.read(|catalog| {
            let active = |rule: &&Arc<Rule>| rule.settings.status == RuleStatus::Active;
            Ok::<_, ServiceError>(Question {
                bucket: bucket_for(catalog, caller, bucket_id)?,
                period,
                now_ns,
                sources: catalog.sources_of(bucket_id).cloned().collect(),
                active_rules: catalog.rules_of(bucket_id).filter(active).count() as u64,
                fired: Fired::of_bucket(catalog, &self.ledger, bucket_id, period.start_ns(now_ns)),
            })
        })?;
        let view = self.buckets.view(&question.bucket).await?;
        let mut finish = Some(finish);
        let answer = move |stop: &Stop, turn: Turn| {
            if turn == Turn::Short && question.is_long(&view)? {
                return Ok(Step::Long);
            }
            let analytics = question.answer(&view, stop)?;
            match finish.take() {
                Some(finish) => finish(&analytics).map(Step::Answer),
                None => Err(ServiceError::internal("BUG: analytics were asked twice")),
            }
        };
        let answered = self.queries.run(caller.organization_id, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl Question {
    /// Whether the cost exceeds a short turn.
    fn is_long(&self, view: &View) -> Result<bool, ServiceError> {
        let mut estimate = Estimate::new(SHORT_VALUES_MAX);
        estimate.add(self.sources.len() as u64);
        let fields = self.sources.iter().map(|source| source.schema.fields.len());
        let fields: Vec<u16> = (0..fields.max().unwrap_or(0) as u16).collect();
        let query = GroupQuery {
            range_ns: (self.period.start_ns(self.now_ns), self.now_ns),
            step: Unit::Hour.into(),
            fields: &fields,
            metadata: None,
            stop: &|| false,
        };
        for series in view.reaching(query.range_ns) {
            estimate.add_grouped(&series, &query).map_err(engine_error)?;
            if estimate.is_over() {
                break;
            }
        }
        Ok(estimate.is_over())
    }

    fn answer(&self, view: &View, stop: &Stop) -> Result<BucketAnalytics, ServiceError> {
        let start_ns = self.period.start_ns(self.now_ns);
        let cutoff_ns = self.bucket.retention_cutoff_ns(self.now_ns);
        let range_ns = (start_ns.max(cutoff_ns), self.now_ns);
        let mut over = Over {
            cutoff_ns,
            range_ns,
            hours: HourCounts::new(range_ns),
            stop,
        };
        let mut points = 0;
        let mut sources = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let series = view.source(source.ordinal);
            let source = Arc::clone(source);
            let (of_all_time, analytics) = match series {
                Some(series) => over.source(source, &series)?,
                None => (0, SourceAnalytics::empty(source)),
            };
            points += of_all_time;
            sources.push(analytics);
        }
        let fired = self.fired.iter().map(|fired| {
            let count = fired.count(start_ns)?;
            Ok((Arc::clone(&fired.rule), count))
        });
        let mut triggers = fired.collect::<Result<Vec<_>, ServiceError>>()?;
        triggers.retain(|(_, count)| *count > 0);
        // The sort is stable, and rules are in order of age.
        triggers.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(BucketAnalytics {
            bucket: Arc::clone(&self.bucket),
            period: self.period,
            points,
            points_in_period: sources.iter().map(|source| source.points).sum(),
            active_rules: self.active_rules,
            sources,
            hours: over.hours.hours().collect(),
            triggers,
        })
    }
}

/// Accumulates sources over the part of the period that has not expired.
struct Over<'a> {
    cutoff_ns: i64,
    range_ns: (i64, i64),
    hours: HourCounts,
    stop: &'a Stop,
}

impl Over<'_> {
    /// The statistics of a source, and its number of points of all time.
    fn source(
        &mut self,
        source: Arc<Source>,
        series: &SeriesSnapshot,
    ) -> Result<(u64, SourceAnalytics), ServiceError> {
        let stop = || self.stop.now();
        let stats = series.stats(self.cutoff_ns).map_err(engine_error)?;
        let points = self.hours.add(series, &stop).map_err(engine_error)?;
        let analytics = SourceAnalytics {
            points,
            last_ns: stats.bounds_ns.map(|(_, last_ns)| last_ns),
            ..SourceAnalytics::empty(source)
        };
        if points == 0 {
            return Ok((stats.points, analytics));
        }
        let number = |(_, field): &(u16, &Field)| field.kind == FieldType::Number;
        let fields: Vec<(u16, &Field)> = (0..)
            .zip(&analytics.source.schema.fields)
            .filter(number)
            .collect();
        let ordinals: Vec<u16> = fields.iter().map(|(ordinal, _)| *ordinal).collect();
        let query = GroupQuery {
            range_ns: self.range_ns,
            // The coarsest unit: gives few cells, which are then merged.
            step: Unit::Month.into(),
            fields: &ordinals,
            metadata: None,
            stop: &stop,
        };
        let months = group(series, &query).map_err(engine_error)?;
        let mut whole = vec![Aggregate::default(); fields.len()];
        for month in 0..months.starts_ns.len() {
            let parts = whole.iter_mut().zip(months.cell(month));
            parts.for_each(|(whole, part)| whole.merge(part));
        }
        let names = fields.iter().map(|(_, field)| Arc::clone(&field.name));
        let values = names
            .zip(whole)
            .filter(|(_, aggregate)| aggregate.count > 0)
            .collect();
        Ok((stats.points, SourceAnalytics { values, ..analytics }))
    }
}

impl SourceAnalytics {
    fn empty(source: Arc<Source>) -> Self {
        Self {
            source,
            points: 0,
            last_ns: None,
            values: Vec::new(),
        }
    }
}
