//! `GET /api/analytics/buckets/:bucketId`.

use std::sync::Arc;

use engine::query::{Estimate, GroupQuery, HourCounts, group};
use engine::{Aggregate, SeriesSnapshot, Unit, View};

use super::{Fired, Period};
use crate::catalog::{Bucket, FieldType, Rule, RuleStatus, Schema, Source};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::query_pool::{Step, Stop, Turn};
use crate::service::query::SHORT_VALUES_MAX;
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
struct PlannedAnalytics {
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
        finish: impl Fn(&BucketAnalytics) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let now_ns = self.now_ns();
        let planned = self.catalog.read(|catalog| {
            let active = |rule: &&Arc<Rule>| rule.settings.status == RuleStatus::Active;
            Ok::<_, ServiceError>(PlannedAnalytics {
                bucket: bucket_for(catalog, caller, bucket_id)?,
                period,
                now_ns,
                sources: catalog.sources_of(bucket_id).cloned().collect(),
                active_rules: catalog.rules_of(bucket_id).filter(active).count() as u64,
                fired: Fired::of_bucket(catalog, &self.ledger, bucket_id, period.start_ns(now_ns)),
            })
        })?;
        let view = self.buckets.view(&planned.bucket)?;
        let answer = move |stop: &Stop, turn: Turn| {
            if turn == Turn::Short && planned.is_long(&view)? {
                return Ok(Step::Long);
            }
            finish(&planned.compute(&view, stop)?).map(Step::Answer)
        };
        let answered = self.resources.queries.run(caller.organization_id, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl PlannedAnalytics {
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
            values: &[],
        };
        for series in view.reaching(query.range_ns) {
            estimate.add_grouped(&series, &query)?;
            if estimate.is_over() {
                break;
            }
        }
        Ok(estimate.is_over())
    }

    fn compute(&self, view: &View, stop: &Stop) -> Result<BucketAnalytics, ServiceError> {
        let start_ns = self.period.start_ns(self.now_ns);
        let cutoff_ns = self.bucket.retention_cutoff_ns(self.now_ns);
        let range_ns = (start_ns.max(cutoff_ns), self.now_ns);
        let stop = || stop.now();
        let (mut points, mut hours) = (0, HourCounts::new(range_ns));
        let mut sources = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let mut analytics = SourceAnalytics {
                source: Arc::clone(source),
                points: 0,
                last_ns: None,
                values: Vec::new(),
            };
            let mut values = Aggregates::of(&source.schema);
            for series in view.source(source.ordinal) {
                let stats = series.stats(cutoff_ns)?;
                points += stats.points;
                analytics.last_ns = analytics.last_ns.max(stats.bounds_ns.map(|(_, last_ns)| last_ns));
                let in_period = hours.add(&series, &stop)?;
                analytics.points += in_period;
                if in_period > 0 {
                    values.add(&series, range_ns, &stop)?;
                }
            }
            analytics.values = values.found();
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
            hours: hours.hours().collect(),
            triggers,
        })
    }
}

/// Aggregates of the number fields of a source, in order of declaration.
struct Aggregates {
    ordinals: Vec<u16>,
    names: Vec<Arc<str>>,
    whole: Vec<Aggregate>,
}

impl Aggregates {
    fn of(schema: &Schema) -> Self {
        let fields = (0..).zip(&schema.fields);
        let numbers = fields.filter(|(_, field)| field.kind == FieldType::Number);
        let (ordinals, names): (Vec<u16>, Vec<_>) = numbers
            .map(|(ordinal, field)| (ordinal, Arc::clone(&field.name)))
            .unzip();
        let whole = vec![Aggregate::default(); names.len()];
        Aggregates {
            ordinals,
            names,
            whole,
        }
    }

    /// Adds the values of a series in the range.
    fn add(
        &mut self,
        series: &SeriesSnapshot,
        range_ns: (i64, i64),
        stop: &dyn Fn() -> bool,
    ) -> Result<(), ServiceError> {
        let query = GroupQuery {
            range_ns,
            // The coarsest unit: gives few cells, which are then merged.
            step: Unit::Month.into(),
            fields: &self.ordinals,
            metadata: None,
            stop,
            values: &[],
        };
        let months = group(series, &query)?;
        for month in 0..months.starts_ns.len() {
            for (whole, part) in self.whole.iter_mut().zip(months.cell(month)) {
                whole.merge(part);
            }
        }
        Ok(())
    }

    /// The fields that have values.
    fn found(self) -> Vec<(Arc<str>, Aggregate)> {
        let values = self.names.into_iter().zip(self.whole);
        values.filter(|(_, aggregate)| aggregate.count > 0).collect()
    }
}
