//! Statistics of rows in steps, each computed from all values of the step and the one before each of them.

use std::collections::{BTreeMap, BTreeSet};

use engine::LocalStep;
use engine::query::{
    Budget, Cell, Completion, GroupQuery, Grouped, Grouping, NeededField, Needs, Statistics, Value as Kept,
    Wanted,
};

use super::FIELDS;
use super::bucket::Bucket;
use crate::naive::{Filter, Point, Value};

const QUANTILES: [f64; 4] = [0.01, 0.5, 0.95, 0.999];

/// Everything that can be computed.
const ALL: Needs = Needs {
    ends: true,
    newest: false,
    moments: true,
    growth: true,
    over_time: true,
    values: true,
    distinct: true,
};

/// The values of a field in a step, over all sources.
#[derive(Default)]
struct Expected {
    /// By position.
    values: BTreeMap<(i64, u64), Value>,
    increase: Option<f64>,
    rate: Option<f64>,
    covered: f64,
    weighed: f64,
}

/// By start, number of the source, and field.
type Cells = BTreeMap<(i64, u32), BTreeMap<u16, Expected>>;

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Boolean(boolean) => Some(f64::from(u8::from(*boolean))),
        Value::Text(_) => None,
    }
}

impl Bucket {
    pub(super) fn check_statistics(&mut self) {
        let range_ns = self.range();
        let (zone, step) = (self.zone(), self.step());
        let step = step.by(self.rng.bool().then_some(&zone));
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let is_merged = self.rng.bool();
        let sources: Vec<u32> = self
            .sources
            .iter()
            .copied()
            .filter(|_| self.rng.u8(0..4) > 0)
            .collect();
        let mut expected = Cells::default();
        let mut rows_of = Vec::new();
        for (index, source) in (0..).zip(&sources) {
            let filter = Filter {
                sources: &[*source],
                range_ns,
                fields: None,
                metadata,
            };
            let rows = self.naive.rows(&filter, false);
            rows_of.push(rows.iter().map(|point| (*point).clone()).collect::<Vec<Point>>());
            let number = if is_merged { 0 } else { index };
            for field in 0..FIELDS {
                add_source(&rows, field, number, step, range_ns.1, &mut expected);
            }
        }
        if is_merged {
            add_gaps(&rows_of, step, &mut expected);
        }
        let starts: Vec<i64> = expected.keys().map(|(start_ns, _)| *start_ns).collect();
        let some_start = |rng: &mut fastrand::Rng| rng.choice(&starts).copied().unwrap_or_default();
        let mut wanted = Wanted {
            rows_max: self.rng.usize(1..200),
            descending: self.rng.bool(),
            ..Wanted::ALL
        };
        if self.rng.u8(0..3) == 0 {
            let (one, other) = (some_start(&mut self.rng), some_start(&mut self.rng));
            wanted.starts_ns = (one.min(other), one.max(other));
        }
        let metadata_filter = |text: Option<&str>| text == metadata;
        let fields: Vec<u16> = (0..FIELDS).collect();
        let query = GroupQuery {
            range_ns,
            step,
            fields: &fields,
            metadata: metadata.map(|_| &metadata_filter as _),
            stop: &|| false,
            values: &[],
        };
        // Fields that need nothing before the step are read only where they are wanted.
        let follows = self.rng.bool();
        // First and last values alone are read from blocks that store them.
        let are_ends = !follows && self.rng.bool();
        let needs = match are_ends {
            true => Needs {
                ends: true,
                newest: self.rng.bool(),
                ..Needs::default()
            },
            false => Needs {
                growth: follows,
                over_time: follows,
                ..ALL
            },
        };
        let needed: Vec<NeededField> = fields
            .iter()
            .map(|field| NeededField {
                field: *field,
                number: u32::from(*field) + 7,
                needs,
            })
            .collect();
        let completion = Completion {
            quantiles: &QUANTILES,
            is_merged,
            holds_until_ns: range_ns.1,
        };
        let budget = Budget::new(1 << 30);
        let mut grouping: Grouping<'_, Statistics> = Grouping::new(wanted, &budget);
        let snapshot = self.snapshot(&sources);
        for (index, series) in (0..).zip(&snapshot) {
            let number = if is_merged { 0 } else { index };
            grouping
                .add_rows(number, series, &query, &needed, &completion)
                .unwrap();
        }
        let Grouped { cells, held, .. } = grouping.finish_merged(step).unwrap();
        drop(snapshot);
        let (first_ns, last_ns) = wanted.starts_ns;
        let mut keys: Vec<(i64, u32)> = expected.keys().copied().collect();
        keys.retain(|(start_ns, _)| (first_ns..=last_ns).contains(start_ns));
        if wanted.descending {
            keys.reverse();
        }
        keys.truncate(wanted.rows_max);
        let found: Vec<(i64, u32)> = cells.iter().map(|cell| (cell.start_ns, cell.source)).collect();
        assert_eq!(found, keys, "{step:?} {range_ns:?} {wanted:?}");
        for cell in cells {
            let expected = &expected[&(cell.start_ns, cell.source)];
            check_cell(cell, expected, needs);
        }
        drop(held);
        assert_eq!(budget.held(), 0);
    }
}

/// Adds the values of a source's field, whose rows are in order.
fn add_source(rows: &[&Point], field: u16, source: u32, step: LocalStep<'_>, end_ns: i64, cells: &mut Cells) {
    let values: Vec<(i64, u64, &Value)> = rows
        .iter()
        .filter_map(|point| Some((point.timestamp_ns, point.sequence, point.values.get(&field)?)))
        .collect();
    let mut place = 0;
    while place < values.len() {
        let start_ns = step.start_ns(values[place].0);
        let next_ns = step.next_ns(values[place].0);
        let past = place
            + values[place..]
                .iter()
                .take_while(|(at_ns, ..)| *at_ns < next_ns)
                .count();
        let cell = cells
            .entry((start_ns, source))
            .or_default()
            .entry(field)
            .or_default();
        let (mut increase, mut grown) = (0.0, false);
        for index in place..past {
            let (at_ns, sequence, value) = values[index];
            cell.values.insert((at_ns, sequence), value.clone());
            let Some(own) = number(value) else { continue };
            if let Some((_, _, before)) = index.checked_sub(1).map(|before| values[before])
                && let Some(before) = number(before)
            {
                increase += if own < before { own } else { own - before };
                grown = true;
            }
        }
        // Each value holds from its time, or the start of the step, to the next value or the end.
        for index in place.saturating_sub(1)..past {
            let Some(own) = number(values[index].2) else {
                continue;
            };
            let from_ns = values[index].0.max(start_ns);
            let until_ns = values
                .get(index + 1)
                .map_or(end_ns, |(at_ns, ..)| *at_ns)
                .min(next_ns);
            let seconds = (i128::from(until_ns) - i128::from(from_ns)) as f64 / 1e9;
            if seconds > 0.0 {
                cell.covered += seconds;
                cell.weighed += own * seconds;
            }
        }
        if grown {
            let from_ns = values[place.saturating_sub(1)].0;
            let seconds = (values[past - 1].0 - from_ns) as f64 / 1e9;
            *cell.increase.get_or_insert_default() += increase;
            if seconds > 0.0 {
                *cell.rate.get_or_insert_default() += increase / seconds;
            }
        }
        place = past;
    }
}

/// Adds the time for which values of a source hold in steps in which it has none.
fn add_gaps(sources: &[Vec<Point>], step: LocalStep<'_>, cells: &mut Cells) {
    for ((start_ns, _), fields) in cells {
        let next_ns = step.next_ns(*start_ns);
        for (field, cell) in fields {
            for rows in sources {
                let values = || {
                    let rows = rows.iter();
                    rows.filter_map(|point| Some((point.timestamp_ns, number(point.values.get(field)?)?)))
                };
                let before = values().take_while(|(at_ns, _)| at_ns < start_ns).last();
                let after = values().find(|(at_ns, _)| at_ns >= start_ns);
                if let (Some((_, own)), Some((after_ns, _))) = (before, after)
                    && after_ns >= next_ns
                {
                    let seconds = (next_ns - *start_ns) as f64 / 1e9;
                    cell.covered += seconds;
                    cell.weighed += own * seconds;
                }
            }
        }
    }
}

fn check_cell(cell: Cell<Statistics>, expected: &BTreeMap<u16, Expected>, needs: Needs) {
    let follows = needs.growth;
    let fields: Vec<u32> = cell.values().map(|(number, _)| number).collect();
    let numbers: Vec<u32> = expected.keys().map(|field| u32::from(*field) + 7).collect();
    assert_eq!(fields, numbers);
    for ((_, mut found), (field, expected)) in cell.into_values().zip(expected) {
        let values: Vec<&Value> = expected.values.values().collect();
        let ends = found.ends().unwrap().clone();
        let end = |(position, value): (&(i64, u64), &Value)| (*position, kept(value));
        assert_eq!(Some(ends.last.clone()), expected.values.last_key_value().map(end));
        if needs.newest {
            continue;
        }
        assert_eq!(found.aggregate.count, values.len() as u64);
        assert_eq!(
            Some(ends.first.clone()),
            expected.values.first_key_value().map(end)
        );
        if !needs.distinct {
            continue;
        }
        let distinct: BTreeSet<String> = values.iter().map(|value| format!("{value:?}")).collect();
        assert_eq!(found.distinct(), distinct.len() as u64);
        let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
        let Some(numbers) = numbers else { continue };
        if follows {
            let over_time = match expected.covered {
                0.0 => *numbers.last().unwrap(),
                covered => expected.weighed / covered,
            };
            assert_close(found.over_time(), Some(over_time));
        }
        if matches!(values[0], Value::Boolean(_)) {
            continue;
        }
        assert_close(found.aggregate.avg().into(), Some(mean(&numbers)));
        assert_close(ends.delta(), Some(numbers.last().unwrap() - numbers[0]));
        if follows {
            assert_close(found.increase(), expected.increase);
            assert_close(found.rate(), expected.rate);
        }
        let squares = numbers
            .iter()
            .map(|value| (value - mean(&numbers)).powi(2))
            .sum::<f64>();
        let variance = squares / (numbers.len() as f64 - 1.0);
        assert_close(found.stddev(), (numbers.len() > 1).then(|| variance.sqrt()));
        let mut sorted = numbers;
        sorted.sort_by(f64::total_cmp);
        for share in QUANTILES {
            let rank = (sorted.len() - 1) as f64 * share;
            let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
            assert_close(found.quantile(share), Some(low + (high - low) * rank.fract()));
        }
        assert!(*field < 3);
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn kept(value: &Value) -> Kept {
    match value {
        Value::Number(number) => Kept::Number(*number),
        Value::Boolean(boolean) => Kept::Boolean(*boolean),
        Value::Text(text) => Kept::Text(text.as_str().into()),
    }
}

#[track_caller]
fn assert_close(found: Option<f64>, expected: Option<f64>) {
    let scale = expected.map_or(1.0, f64::abs).max(1.0);
    let are_close = match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * scale,
        (found, expected) => found == expected,
    };
    assert!(are_close, "{found:?} for {expected:?}");
}
