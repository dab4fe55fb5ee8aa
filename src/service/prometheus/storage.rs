//! The points of a bucket as samples.

use std::collections::BTreeMap;
use std::fmt::Display;

use engine::query::{Position, for_each_value, may_have_values};
use engine::{EngineError, SeriesSnapshot};
use promql::{Error, Hints, Labels, Matcher, STALE_MARKER, Storage, TimeRange, VisitSamples};

use super::is_name;
use super::metrics::{has_ends, metric_name};
use super::samples::{Collected, WithEnds};
use crate::bucket::IndexedView;
use crate::catalog::SourcePages;
use crate::clock::MILLISECOND_NS;
use crate::query_pool::Stop;

/// A snapshot of a bucket.
pub(super) struct BucketStorage<'q> {
    pub(super) indexed: IndexedView,
    pub(super) sources: &'q SourcePages,
    /// Points before this time have expired.
    pub(super) cutoff_ns: i64,
    pub(super) stop: &'q Stop,
}

/// A field of a series.
pub(super) struct Column {
    pub(super) series: SeriesSnapshot,
    field: u16,
    /// Whether the ends of the series are about this field.
    pub(super) has_ends: bool,
}

pub(super) fn failed(error: impl Display) -> Error {
    tracing::error!(%error, "series cannot be read");
    Error::internal("the series cannot be read; the server's log says why")
}

pub(super) fn of_engine(error: EngineError) -> Error {
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
            let metrics = fields.filter_map(|(ordinal, field)| {
                let name = metric_name(source, field)?;
                Some((ordinal, name, has_ends(field)))
            });
            let wanted = metrics.filter(|(_, name, _)| names.iter().all(|matcher| matcher.matches(name)));
            let wanted: Vec<(u16, String, bool)> = wanted.collect();
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
                for (field, metric, has_ends) in &wanted {
                    let labels = self.labels_of(source, &series, metric)?;
                    let matches = |matcher: &Matcher| matcher.matches(labels.get(matcher.name()));
                    if matchers.iter().all(matches)
                        && (source.schema.fields.len() == 1
                            || may_have_values(&series, *field, range_ns).map_err(of_engine)?)
                        && let Some(series) = self.indexed.view.series(series.ordinal)
                    {
                        let (field, has_ends) = (*field, *has_ends);
                        found.entry(labels).or_default().push(Column {
                            series,
                            field,
                            has_ends,
                        });
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
        column: &Column,
        range_ns: (i64, i64),
        each: impl FnMut(Position, f64),
    ) -> Result<(), Error> {
        let stop = || self.stop.now();
        for_each_value(
            &column.series,
            column.field,
            range_ns,
            self.stop.budget(),
            &stop,
            each,
        )
        .map_err(of_engine)
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
        let found = self.series_of(matchers, range)?;
        let ends = self.ends_of(&found, range_ns)?;
        let mut collected = Collected::default();
        for (labels, columns) in found {
            collected.clear();
            match columns.as_slice() {
                [column] => {
                    let mut with_ends = WithEnds::new(ends.of(column), &mut collected);
                    self.read(column, range_ns, |position, value| {
                        with_ends.value(position, value)
                    })?;
                    with_ends.finish();
                }
                columns => {
                    let mut all: Vec<(Position, f64)> = Vec::new();
                    for column in columns {
                        self.read(column, range_ns, |position, value| all.push((position, value)))?;
                        all.extend(ends.of(column).iter().map(|position| (*position, STALE_MARKER)));
                    }
                    all.sort_by_key(|(position, _)| *position);
                    all.into_iter()
                        .for_each(|(position, value)| collected.push(position, value));
                }
            }
            let Some(samples) = collected.samples() else {
                continue;
            };
            if visit(labels, samples).is_break() {
                break;
            }
        }
        Ok(())
    }
}
