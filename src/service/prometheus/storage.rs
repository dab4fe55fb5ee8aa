//! The points of a bucket as samples.

use std::collections::BTreeMap;
use std::fmt::Display;

use engine::query::{Position, for_each_value, may_have_values};
use engine::{EngineError, SeriesSnapshot};
use promql::{Error, Hints, Labels, Matcher, Samples, Storage, TimeRange, VisitSamples};

use super::is_name;
use super::metrics::metric_name;
use crate::bucket::IndexedView;
use crate::catalog::SourcePages;
use crate::query_pool::Stop;

const MILLISECOND_NS: i64 = 1_000_000;

/// A snapshot of a bucket.
pub(super) struct BucketStorage<'q> {
    pub(super) indexed: IndexedView,
    pub(super) sources: &'q SourcePages,
    /// Points before this time have expired.
    pub(super) cutoff_ns: i64,
    pub(super) stop: &'q Stop,
}

/// A field of a series.
type Column = (SeriesSnapshot, u16);

pub(super) fn failed(error: impl Display) -> Error {
    tracing::error!(%error, "series cannot be read");
    Error::internal("the series cannot be read; the server's log says why")
}

fn of_engine(error: EngineError) -> Error {
    match error {
        // The evaluation ends with a timeout, as it asks whether it may go on.
        EngineError::Stopped => {
            Error::execution("the query took too long: narrow its time range or its selectors")
        }
        EngineError::OverBudget { bytes_max } => Error::execution(format!(
            "the query would hold more than {bytes_max} bytes of memory (query.memory_bytes_max): narrow its time range or \
             its selectors"
        )),
        error => failed(error),
    }
}

impl BucketStorage<'_> {
    /// The label sets that the matchers match, with the fields that have their samples. Metrics of several sources may have
    /// the same labels.
    pub(super) fn series_of(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<BTreeMap<Labels, Vec<Column>>, Error> {
        let range_ns = self.range_ns(range);
        let mut found: BTreeMap<Labels, Vec<Column>> = BTreeMap::new();
        if range_ns.0 > range_ns.1 {
            return Ok(found);
        }
        let names: Vec<&Matcher> = matchers.iter().filter(|matcher| is_name(matcher)).collect();
        for source in self.sources.iter() {
            let fields = (0_u16..).zip(&source.schema.fields);
            let metrics = fields.filter_map(|(ordinal, field)| Some((ordinal, metric_name(source, field)?)));
            let wanted = metrics.filter(|(_, name)| names.iter().all(|matcher| matcher.matches(name)));
            let wanted: Vec<(u16, String)> = wanted.collect();
            if wanted.is_empty() {
                continue;
            }
            for series in self.candidates(source, matchers)? {
                if self.stop.now() {
                    return Err(of_engine(EngineError::Stopped));
                }
                if !series.overlaps(range_ns) {
                    continue;
                }
                for (field, metric) in &wanted {
                    let labels = self.labels_of(source, &series, metric)?;
                    let matches = |matcher: &Matcher| matcher.matches(labels.get(matcher.name()));
                    if matchers.iter().all(matches)
                        && (source.schema.fields.len() == 1
                            || may_have_values(&series, *field, range_ns).map_err(of_engine)?)
                        && let Some(series) = self.indexed.view.series(series.ordinal)
                    {
                        found.entry(labels).or_default().push((series, *field));
                    }
                }
            }
        }
        Ok(found)
    }

    fn range_ns(&self, range: TimeRange) -> (i64, i64) {
        let start_ns = range.after_ms.saturating_add(1).saturating_mul(MILLISECOND_NS);
        let end_ns = range
            .until_ms
            .saturating_mul(MILLISECOND_NS)
            .saturating_add(MILLISECOND_NS - 1);
        (start_ns.max(self.cutoff_ns), end_ns)
    }

    fn read(
        &self,
        (series, field): &Column,
        range_ns: (i64, i64),
        each: impl FnMut(Position, f64),
    ) -> Result<(), Error> {
        let stop = || self.stop.now();
        for_each_value(series, *field, range_ns, self.stop.budget(), &stop, each).map_err(of_engine)
    }
}

impl Storage for BucketStorage<'_> {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        _: &Hints,
        visit: VisitSamples<'_>,
    ) -> Result<(), Error> {
        let range_ns = self.range_ns(range);
        let (mut times, mut values): (Vec<i64>, Vec<f64>) = (Vec::new(), Vec::new());
        for (labels, columns) in self.series_of(matchers, range)? {
            times.clear();
            values.clear();
            let mut push = |(timestamp_ns, _): Position, value: f64| {
                let time_ms = timestamp_ns.div_euclid(MILLISECOND_NS);
                // Of one instant, the later arrival counts.
                if times.last() == Some(&time_ms) {
                    times.pop();
                    values.pop();
                }
                times.push(time_ms);
                values.push(value);
            };
            match columns.as_slice() {
                [column] => self.read(column, range_ns, push)?,
                columns => {
                    let mut all: Vec<(Position, f64)> = Vec::new();
                    for column in columns {
                        self.read(column, range_ns, |position, value| all.push((position, value)))?;
                    }
                    all.sort_by_key(|(position, _)| *position);
                    all.into_iter()
                        .for_each(|(position, value)| push(position, value));
                }
            }
            if times.is_empty() {
                continue;
            }
            let samples = Samples {
                times: &times,
                values: &values,
            };
            if visit(labels, samples).is_break() {
                break;
            }
        }
        Ok(())
    }
}
