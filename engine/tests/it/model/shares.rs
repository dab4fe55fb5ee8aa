//! Shares of time that a boolean was true, each computed from all pairs of neighbouring values.

use std::collections::BTreeMap;

use engine::Aggregate;
use engine::query::{Budget, GroupQuery, Grouping, Wanted};

use super::bucket::Bucket;
use crate::naive::{Filter, Value};

/// The boolean field of the model.
const FIELD: u16 = 3;
/// Points of a source; with more, comparing all pairs for each step would take too long.
const POINTS_MAX: usize = 2_000;

impl Bucket {
    pub(super) fn check_shares(&mut self) {
        let range_ns = self.range();
        let step = self.step();
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let metadata_filter = |text: Option<&str>| text == metadata;
        let query = GroupQuery {
            range_ns,
            step: step.into(),
            fields: &[FIELD],
            metadata: metadata.map(|_| &metadata_filter as _),
            stop: &|| false,
            values: &[],
        };
        let snapshot = self.snapshot(&self.sources);
        for series in &snapshot {
            let filter = Filter {
                sources: &[series.source],
                range_ns,
                fields: Some(&[FIELD]),
                metadata,
            };
            let values: Vec<(i64, bool)> = self
                .naive
                .rows(&filter, false)
                .iter()
                .filter_map(|point| match point.values.get(&FIELD) {
                    Some(Value::Boolean(value)) => Some((point.timestamp_ns, *value)),
                    _ => None,
                })
                .collect();
            if values.len() > POINTS_MAX {
                continue;
            }
            let mut expected: BTreeMap<i64, Vec<bool>> = BTreeMap::new();
            for (at_ns, value) in &values {
                expected.entry(step.start_ns(*at_ns)).or_default().push(*value);
            }
            let wanted = Wanted {
                rows_max: self.rng.usize(1..40),
                descending: self.rng.bool(),
            };
            let budget = Budget::unlimited();
            let mut grouping = Grouping::new(wanted, &budget);
            grouping.add_true_shares(0, series, &query, &[7]).unwrap();
            let found = grouping.finish().unwrap();
            let mut starts: Vec<i64> = expected.keys().copied().collect();
            if wanted.descending {
                starts.reverse();
            }
            starts.truncate(wanted.rows_max);
            let cells: Vec<i64> = found.cells.iter().map(|cell| cell.start_ns).collect();
            assert_eq!(cells, starts, "{step:?} {range_ns:?}");
            for cell in &found.cells {
                let (number, aggregate) = cell.values().next().unwrap();
                assert_eq!(number, 7);
                let own = &expected[&cell.start_ns];
                assert_eq!(aggregate.count, own.len() as u64);
                assert_eq!(aggregate.min, f64::from(u8::from(own.iter().all(|value| *value))));
                assert_eq!(aggregate.max, f64::from(u8::from(own.iter().any(|value| *value))));
                let end_ns = step.next_ns(cell.start_ns);
                let share = share(&values, (cell.start_ns, end_ns), range_ns.1);
                assert_close(aggregate, share);
            }
        }
    }
}

/// The share of the known part of the step.
fn share(values: &[(i64, bool)], (start_ns, end_ns): (i64, i64), range_end_ns: i64) -> f64 {
    let (mut covered, mut of_true, mut last) = (0, 0, false);
    for (place, (at_ns, value)) in values.iter().enumerate() {
        let until_ns = match values.get(place + 1) {
            Some((next_ns, _)) => *next_ns,
            None => end_ns.min(range_end_ns),
        };
        let ns = i128::from(until_ns.min(end_ns)) - i128::from(*at_ns.max(&start_ns));
        if ns > 0 {
            covered += ns;
            of_true += if *value { ns } else { 0 };
        }
        if *at_ns < end_ns {
            last = *value;
        }
    }
    match covered {
        0 => f64::from(u8::from(last)),
        covered => of_true as f64 / covered as f64,
    }
}

fn assert_close(aggregate: &Aggregate, share: f64) {
    assert!(
        (aggregate.avg() - share).abs() < 1e-9,
        "{} {share}",
        aggregate.avg()
    );
}
