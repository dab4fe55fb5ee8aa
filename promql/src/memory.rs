//! Series in memory: a storage for tests, benches and examples.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::labels::Labels;
use crate::matcher::Matcher;
use crate::storage::{Hints, Samples, Storage, TimeRange, VisitSamples};

/// Series in memory, visited in the order of their labels.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    series: BTreeMap<Labels, (Vec<i64>, Vec<f64>)>,
}

impl MemoryStorage {
    /// Adds a sample, which has to be later than the series' last one.
    pub fn push(&mut self, labels: &Labels, time_ms: i64, value: f64) {
        let (times, values) = self.series.entry(labels.clone()).or_default();
        debug_assert!(times.last().is_none_or(|last| *last < time_ms));
        times.push(time_ms);
        values.push(value);
    }

    /// All series, in the order of their labels.
    pub fn series(&self) -> impl Iterator<Item = (&Labels, Samples<'_>)> {
        self.series
            .iter()
            .map(|(labels, (times, values))| (labels, Samples { times, values }))
    }
}

impl Storage for MemoryStorage {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        _hints: &Hints,
        visit: VisitSamples<'_>,
    ) -> Result<(), Error> {
        for (labels, samples) in self.series() {
            if !matchers
                .iter()
                .all(|matcher| matcher.matches(labels.get(matcher.name())))
            {
                continue;
            }
            let from = samples.times.partition_point(|time| *time <= range.after_ms);
            let to = samples.times.partition_point(|time| *time <= range.until_ms);
            if from >= to {
                continue;
            }
            let selected = Samples {
                times: &samples.times[from..to],
                values: &samples.values[from..to],
            };
            if visit(labels.clone(), selected).is_break() {
                break;
            }
        }
        Ok(())
    }
}
