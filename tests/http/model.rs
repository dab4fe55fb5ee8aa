//! A naive model of the query: it keeps every point in a list and computes each answer from all of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::calendar::Unit;
use crate::scene::members;
use crate::support::given::point;
use crate::support::time::timestamp;

/// Members of a row that are not fields.
const ROW_KEYS: [&str; 5] = ["timestamp", "time", "dataSourceId", "values", "stats"];

#[derive(Clone)]
pub struct Sample {
    pub source: String,
    pub at: i64,
    pub values: BTreeMap<&'static str, Value>,
    pub metadata: Option<Value>,
}

impl Sample {
    pub fn number(source: &str, at: i64, field: &'static str, value: f64) -> Self {
        Self {
            source: source.to_owned(),
            at,
            values: BTreeMap::from([(field, json!(value))]),
            metadata: None,
        }
    }

    /// The sample as an entry of a batch.
    pub fn entry(&self) -> Value {
        let mut entry = point(&self.source, self.at, &json!(self.values));
        if let Some(metadata) = &self.metadata {
            entry["metadata"] = metadata.clone();
        }
        entry
    }
}

/// A grouped query.
#[derive(Clone)]
pub struct Grouping {
    pub unit: Unit,
    pub aggregation: &'static str,
    pub merge: bool,
    pub from: Option<i64>,
    pub until: Option<i64>,
    /// All sources if empty.
    pub sources: Vec<String>,
    /// All fields that the aggregation supports if empty.
    pub fields: Vec<&'static str>,
    pub zone: Option<i64>,
    pub descending: bool,
}

impl Grouping {
    pub fn new(unit: Unit, aggregation: &'static str) -> Self {
        Self {
            unit,
            aggregation,
            merge: false,
            from: None,
            until: None,
            sources: Vec::new(),
            fields: Vec::new(),
            zone: None,
            descending: false,
        }
    }

    /// The body of the query without `bucketId`.
    pub fn body(&self) -> Value {
        let mut filters = json!({});
        if let Some(from) = self.from {
            filters["startTime"] = json!(timestamp(from));
        }
        if let Some(until) = self.until {
            filters["endTime"] = json!(timestamp(until));
        }
        if !self.sources.is_empty() {
            filters["dataSourceIds"] = json!(self.sources);
        }
        if !self.fields.is_empty() {
            filters["fields"] = json!(self.fields);
        }
        if let Some(zone) = self.zone {
            filters["metadata"] = json!({"zone": zone});
        }
        let mut body =
            json!({"filters": filters, "aggregation": self.aggregation, "groupBy": self.unit.name()});
        if self.merge {
            body["mergeSources"] = json!(true);
        }
        if self.descending {
            body["sort"] = json!("desc");
        }
        body
    }

    /// The rows that chapter 5 of the contract requires.
    pub fn rows(&self, samples: &[Sample]) -> Vec<Row> {
        let mut groups: BTreeMap<(i64, Option<&str>), Group> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| self.selects(sample)) {
            let source = (!self.merge).then_some(sample.source.as_str());
            for (field, value) in &sample.values {
                let covered = self.aggregation == "count" || value.is_number();
                if covered && (self.fields.is_empty() || self.fields.contains(field)) {
                    let group = groups.entry((self.unit.start(sample.at), source)).or_default();
                    group.entry(field).or_default().push(value.as_f64());
                }
            }
        }
        let row = |((at, source), values): ((i64, Option<&str>), Group)| Row {
            at,
            source: source.map(str::to_owned),
            values: values
                .into_iter()
                .map(|(field, numbers)| (field, self.aggregate(&numbers)))
                .collect(),
        };
        let mut rows: Vec<Row> = groups.into_iter().map(row).collect();
        if self.descending {
            rows.reverse();
        }
        rows
    }

    fn selects(&self, sample: &Sample) -> bool {
        self.from.is_none_or(|from| from <= sample.at)
            && self.until.is_none_or(|until| sample.at <= until)
            && (self.sources.is_empty() || self.sources.contains(&sample.source))
            && self.zone.is_none_or(|zone| {
                sample
                    .metadata
                    .as_ref()
                    .is_some_and(|metadata| metadata["zone"] == zone)
            })
    }

    fn aggregate(&self, numbers: &[Option<f64>]) -> Aggregate {
        let present = || numbers.iter().flatten().copied();
        let sum: f64 = present().sum();
        let value = match self.aggregation {
            "count" => numbers.len() as f64,
            "sum" => sum,
            "avg" => sum / numbers.len() as f64,
            "min" => present().fold(f64::INFINITY, f64::min),
            _ => present().fold(f64::NEG_INFINITY, f64::max),
        };
        Aggregate {
            value,
            magnitude: present().map(f64::abs).sum(),
        }
    }
}

/// The values of a group by field; `None` for values that are not numbers.
type Group = BTreeMap<&'static str, Vec<Option<f64>>>;

#[derive(Debug)]
pub struct Row {
    pub at: i64,
    pub source: Option<String>,
    pub values: BTreeMap<&'static str, Aggregate>,
}

#[derive(Debug)]
pub struct Aggregate {
    pub value: f64,
    /// The sum of absolute values, to which the rounding error is relative.
    magnitude: f64,
}

impl Aggregate {
    pub fn equals(&self, found: &Value) -> bool {
        let allowed = 1e-9 * self.value.abs() + 1e-13 * self.magnitude;
        found
            .as_f64()
            .is_some_and(|found| (found - self.value).abs() <= allowed)
    }
}

/// Asserts that the rows equal the expected ones in every layout.
#[track_caller]
pub fn assert_rows(found: &[Value], expected: &[Row], context: &str) {
    let starts = |rows: &[Row]| {
        rows.iter()
            .map(|row| (timestamp(row.at), row.source.clone()))
            .collect::<Vec<_>>()
    };
    let found_starts: Vec<(String, Option<String>)> = found
        .iter()
        .map(|row| {
            let source = row
                .get("dataSourceId")
                .map(|id| id.as_str().unwrap_or("?").to_owned());
            (row["timestamp"].as_str().unwrap_or("?").to_owned(), source)
        })
        .collect();
    if let Some((nth, (found, expected))) = found_starts
        .iter()
        .zip(starts(expected))
        .enumerate()
        .find(|(_, (found, expected))| *found != expected)
    {
        panic!(
            "contract 5: groups and their order: row {nth} is {found:?} instead of {expected:?} ({context})"
        );
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "contract 5: only groups with data are rows, all of them ({context})"
    );
    for (found, expected) in found.iter().zip(expected) {
        assert_row(found, expected, context);
    }
}

#[track_caller]
fn assert_row(found: &Value, expected: &Row, context: &str) {
    assert_eq!(
        found["time"], found["timestamp"],
        "contract 5: a row has timestamp and time: {found} ({context})"
    );
    let fields: Vec<&str> = expected.values.keys().copied().collect();
    assert_eq!(
        members(&found["values"]),
        fields,
        "contract 5: `values` of a row: {found} ({context})"
    );
    for (field, aggregate) in &expected.values {
        let value = &found["values"][field];
        let right = aggregate.equals(value);
        assert!(
            right,
            "contract 5: grouped results are exact: {field} is {value} instead of {} in {found} ({context})",
            aggregate.value
        );
        if !ROW_KEYS.contains(field) {
            assert_eq!(
                found[field], *value,
                "contract 5: a row carries its fields flat too: {found} ({context})"
            );
        }
    }
    let mut keys: Vec<&str> = fields
        .into_iter()
        .filter(|field| !ROW_KEYS.contains(field))
        .collect();
    keys.extend(["timestamp", "time", "values"]);
    keys.extend(expected.source.as_ref().map(|_| "dataSourceId"));
    keys.extend(found.get("stats").map(|_| "stats"));
    keys.sort_unstable();
    assert_eq!(
        members(found),
        keys,
        "contract 5: the members of a grouped row ({context})"
    );
}
