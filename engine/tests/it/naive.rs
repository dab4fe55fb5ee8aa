//! The naive model: a list of points; every query reads all of them.

use std::collections::BTreeMap;

use engine::LocalStep;
use engine::query::Groups;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Boolean(bool),
    Text(String),
}

#[derive(Clone, Debug)]
pub struct Point {
    pub source: u32,
    pub timestamp_ns: i64,
    pub sequence: u64,
    pub values: BTreeMap<u16, Value>,
    pub metadata: Option<String>,
}

#[derive(Default)]
pub struct NaiveStore {
    pub points: Vec<Point>,
}

pub struct Filter<'a> {
    pub sources: &'a [u32],
    pub range_ns: (i64, i64),
    pub fields: Option<&'a [u16]>,
    pub metadata: Option<&'a str>,
}

impl NaiveStore {
    fn matching<'t>(&'t self, filter: &'t Filter<'_>) -> impl Iterator<Item = &'t Point> {
        self.points.iter().filter(move |point| {
            filter.sources.contains(&point.source)
                && (filter.range_ns.0..=filter.range_ns.1).contains(&point.timestamp_ns)
                && filter
                    .fields
                    .is_none_or(|fields| fields.iter().any(|field| point.values.contains_key(field)))
                && filter
                    .metadata
                    .is_none_or(|text| point.metadata.as_deref() == Some(text))
        })
    }

    pub fn rows<'t>(&'t self, filter: &'t Filter<'_>, descending: bool) -> Vec<&'t Point> {
        let mut rows: Vec<&Point> = self.matching(filter).collect();
        rows.sort_by_key(|point| (point.timestamp_ns, point.sequence));
        if descending {
            rows.reverse();
        }
        rows
    }

    /// By cell and field: count, sum, min, max. Fields that are not numbers have only a count.
    pub fn groups(
        &self,
        filter: &Filter<'_>,
        step: LocalStep<'_>,
        fields: &[u16],
    ) -> BTreeMap<i64, Vec<(u64, f64, f64, f64)>> {
        let mut cells: BTreeMap<i64, Vec<(u64, f64, f64, f64)>> = BTreeMap::new();
        for point in self.matching(filter) {
            let cell = cells
                .entry(step.start_ns(point.timestamp_ns))
                .or_insert_with(|| vec![(0, 0.0, f64::INFINITY, f64::NEG_INFINITY); fields.len()]);
            for (cell, field) in cell.iter_mut().zip(fields) {
                match point.values.get(field) {
                    Some(Value::Number(value)) => {
                        *cell = (cell.0 + 1, cell.1 + value, cell.2.min(*value), cell.3.max(*value));
                    }
                    Some(_) => cell.0 += 1,
                    None => {}
                }
            }
        }
        cells.retain(|_, cell| cell.iter().any(|field| field.0 > 0));
        cells
    }
}

/// Asserts that the groups equal those of the naive model.
pub fn compare(groups: &Groups, expected: &BTreeMap<i64, Vec<(u64, f64, f64, f64)>>, fields: usize) {
    assert_eq!(
        groups.starts_ns,
        expected.keys().copied().collect::<Vec<_>>(),
        "starts of the cells"
    );
    for (index, cell) in expected.values().enumerate() {
        assert_eq!(groups.cell(index).len(), fields);
        for (aggregate, (count, sum, min, max)) in groups.cell(index).iter().zip(cell) {
            assert_eq!(aggregate.count, *count);
            // Booleans and texts are only counted: the naive model has neither sums nor extremes of them.
            if *count > 0 && min.is_finite() {
                let scale = sum.abs().max(1.0);
                assert!(
                    (aggregate.sum() - sum).abs() <= 1e-9 * scale,
                    "sum {} for {sum}",
                    aggregate.sum()
                );
                assert_eq!((aggregate.min, aggregate.max), (*min, *max));
            }
        }
    }
}
