//! Prometheus queries (contract 16): a bucket's series as PromQL sees them, and what is asked of them.

mod labels;
mod metrics;
mod samples;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use promql::{Error, Labels, Limits, METRIC_NAME, Matcher, Query, TimeRange};

use super::{Caller, Service};
use crate::catalog::{Bucket, MetricType};
use crate::error::ServiceError;
use crate::query_pool::Stop;
use storage::BucketStorage;

/// A question.
pub enum Question {
    /// The value at an instant.
    Instant { query: Query, at_ms: i64 },
    /// The values at steps.
    Range {
        query: Query,
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
    },
    /// The series that one of the selectors matches; all if there are none.
    Series {
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    },
    /// The names of their labels.
    LabelNames {
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    },
    /// The values of one of their labels.
    LabelValues {
        name: String,
        selectors: Vec<Vec<Matcher>>,
        range: TimeRange,
    },
    /// What is known of each metric.
    Metadata { metric: Option<String>, limit: usize },
}

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricMetadata {
    /// As Prometheus spells it.
    pub metric_type: &'static str,
    pub help: String,
    pub unit: String,
}

/// The answer to a question.
pub enum Found {
    Value(promql::Value),
    Series(BTreeSet<Labels>),
    Texts(BTreeSet<Arc<str>>),
    Metadata(BTreeMap<String, BTreeSet<MetricMetadata>>),
}

/// An answer as the caller has written it.
pub type Answered = Result<Vec<u8>, Error>;

impl Service {
    /// Answers a question about the series of a bucket, within the time that it may take, which is at most that of every
    /// query. `write` writes the answer, on the query pool.
    ///
    /// # Errors
    /// 503. What is wrong with the question is in the answer.
    pub async fn ask(
        &self,
        caller: &Caller,
        bucket: Arc<Bucket>,
        question: Question,
        timeout: Option<Duration>,
        write: impl Fn(&Found) -> Vec<u8> + Send + 'static,
    ) -> Result<Answered, ServiceError> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let (buckets, now_ns) = (self.buckets.clone(), self.now_ns());
        let sources = self.catalog.read(|catalog| catalog.source_pages_of(bucket.id));
        let memory_bytes_max = self.config.query.memory_bytes_max;
        let answer = move |stop: &Stop| {
            let storage = BucketStorage {
                indexed: buckets.indexed_view(&bucket)?,
                sources: &sources,
                cutoff_ns: bucket.retention_cutoff_ns(now_ns),
                stop,
            };
            let is_interrupted = || stop.now() || until.is_some_and(|until| Instant::now() >= until);
            let limits = Limits {
                memory_bytes_max,
                is_interrupted: &is_interrupted,
            };
            Ok(storage.answer(&question, limits).map(|found| write(&found)))
        };
        let answered = self
            .resources
            .queries
            .run_long(caller.organization_id, answer)
            .await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl BucketStorage<'_> {
    fn answer(&self, question: &Question, limits: Limits<'_>) -> Result<Found, Error> {
        Ok(match question {
            Question::Instant { query, at_ms } => Found::Value(query.instant(self, *at_ms, limits)?),
            Question::Range {
                query,
                start_ms,
                end_ms,
                step_ms,
            } => Found::Value(query.range(self, *start_ms, *end_ms, *step_ms, limits)?),
            Question::Series { selectors, range } => {
                let mut found = BTreeSet::new();
                self.each_labels(selectors, *range, limits, |labels| {
                    found.insert(labels.clone());
                })?;
                Found::Series(found)
            }
            Question::LabelNames { selectors, range } => {
                let mut found: BTreeSet<Arc<str>> = BTreeSet::new();
                self.each_labels(selectors, *range, limits, |labels| {
                    for label in labels
                        .iter()
                        .filter(|label| !found.contains(&label.name))
                        .cloned()
                        .collect::<Vec<_>>()
                    {
                        found.insert(label.name);
                    }
                })?;
                Found::Texts(found)
            }
            Question::LabelValues {
                name,
                selectors,
                range,
            } => {
                let mut found: BTreeSet<Arc<str>> = BTreeSet::new();
                self.each_labels(selectors, *range, limits, |labels| {
                    let value = labels.get(name);
                    if !value.is_empty() && !found.contains(value) {
                        found.insert(value.into());
                    }
                })?;
                Found::Texts(found)
            }
            Question::Metadata { metric, limit } => Found::Metadata(self.metadata(metric.as_deref(), *limit)),
        })
    }

    /// Passes on the labels of the series that one of the selectors matches.
    fn each_labels(
        &self,
        selectors: &[Vec<Matcher>],
        range: TimeRange,
        limits: Limits<'_>,
        mut each: impl FnMut(&Labels),
    ) -> Result<(), Error> {
        let all = [Vec::new()];
        let selectors = if selectors.is_empty() { &all[..] } else { selectors };
        for matchers in selectors {
            let mut bytes = 0;
            for (labels, _) in self.series_of(matchers, range)? {
                bytes += labels
                    .iter()
                    .map(|label| label.name.len() + label.value.len() + LABEL_BYTES)
                    .sum::<usize>();
                if bytes > limits.memory_bytes_max {
                    return Err(Error::execution(
                        "the series would take more memory than a query may have (query.memory_bytes_max): narrow match[], \
                         start or end",
                    ));
                }
                each(&labels);
            }
        }
        Ok(())
    }

    fn metadata(&self, metric: Option<&str>, limit: usize) -> BTreeMap<String, BTreeSet<MetricMetadata>> {
        let mut found: BTreeMap<String, BTreeSet<MetricMetadata>> = BTreeMap::new();
        for source in self.sources.iter() {
            for field in &source.schema.fields {
                let Some(name) = metrics::metric_name(source, field) else {
                    continue;
                };
                if metric.is_some_and(|metric| metric != name)
                    || (found.len() >= limit && !found.contains_key(&name))
                {
                    continue;
                }
                found.entry(name).or_default().insert(MetricMetadata {
                    metric_type: source.metric_type.map_or(UNKNOWN, MetricType::name),
                    help: source.description.as_deref().unwrap_or_default().to_owned(),
                    unit: field.unit.as_deref().unwrap_or_default().to_owned(),
                });
            }
        }
        found
    }
}

/// The type of a metric of which no agent has told one.
const UNKNOWN: &str = "unknown";

/// Approximate memory of a label beside its texts.
const LABEL_BYTES: usize = 48;

/// Whether this is the label that holds the name of a metric.
fn is_name(matcher: &Matcher) -> bool {
    matcher.name() == METRIC_NAME
}
