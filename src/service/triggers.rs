//! The content of trigger notifications: taken from the evidence if it has it, otherwise from the parsed condition and
//! the source's newest point.

use std::collections::HashMap;

use engine::query::{Page, ScanQuery, Selection, scan_within};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::events::Events;
use super::query::metadata_of;
use super::{Caller, Service};
use crate::catalog::{NewDeliveries, ParsedCondition, Rule, Schema};
use crate::delivery::{Named, Point, Trigger, raw_json, values_of};
use crate::error::ServiceError;
use crate::query_pool::{Step, Stop};
use crate::timestamp::Timestamp;

/// Members of the evidence that a trigger's webhook body repeats.
const FACTS: [&str; 4] = ["currentValue", "threshold", "operator", "dataPoint"];

/// Those members. Other members of the evidence are not kept while the verdict waits: they could be many.
pub(super) struct Facts(HashMap<String, Box<RawValue>>);

impl Facts {
    /// Extracts the facts. Evidence that is not an object has none.
    pub fn of(evidence: Option<&str>) -> Self {
        let members = evidence.and_then(|text| serde_json::from_str(text).ok());
        let mut facts: HashMap<String, _> = members.unwrap_or_default();
        facts.retain(|name, _| FACTS.contains(&name.as_str()));
        facts.shrink_to_fit();
        if let Some(point) = facts.remove("dataPoint") {
            facts.insert("dataPoint".to_owned(), with_metadata(point));
        }
        Self(facts)
    }

    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|value| &**value)
    }

    /// Whether the newest point is needed to fill in missing facts.
    pub fn need_point(&self) -> bool {
        self.get("currentValue").is_none() || self.get("dataPoint").is_none()
    }
}

/// In webhook bodies every point has metadata, possibly an empty object.
fn with_metadata(point: Box<RawValue>) -> Box<RawValue> {
    match serde_json::from_str::<Map<String, Value>>(point.get()) {
        Ok(mut members) if !members.contains_key("metadata") => {
            members.insert("metadata".to_owned(), Value::Object(Map::new()));
            to_raw_value(&members).unwrap_or(point)
        }
        _ => point,
    }
}

/// The newest point of a source.
pub(super) struct NewestPoint {
    values: Box<RawValue>,
    /// The [`Point`] as JSON.
    point: Box<RawValue>,
}

impl NewestPoint {
    /// The first row of this page, whose source has this schema.
    fn of(page: &Page, schema: &Schema) -> Option<Self> {
        let (run, row) = *page.rows.first()?;
        let (columns, row) = (&page.runs.get(run as usize)?.columns, row as usize);
        let fields = (0..).zip(&schema.fields);
        let values =
            fields.filter_map(|(ordinal, field)| Some((&*field.name, columns.field(ordinal)?.value(row)?)));
        let values = values_of(values)?;
        let metadata = metadata_of(columns, row).and_then(raw_json);
        let point = Point {
            id: None,
            timestamp: Timestamp(columns.key(row).0),
            values: &values,
            metadata: metadata.as_deref(),
        };
        let point = to_raw_value(&point).ok()?;
        Some(Self { values, point })
    }

    fn value(&self, field: &str) -> Option<Box<RawValue>> {
        let values: HashMap<String, &RawValue> = serde_json::from_str(self.values.get()).ok()?;
        values.get(field).map(|value| (*value).to_owned())
    }
}

impl Service {
    /// The newest point of a rule's source, if there is one.
    pub(super) async fn newest_point(
        &self,
        caller: &Caller,
        rule: &Rule,
    ) -> Result<Option<NewestPoint>, ServiceError> {
        let (bucket, source) = self.find_source(caller, rule.bucket_id, rule.source_id)?;
        let range_ns = (bucket.retention_cutoff_ns(self.now_ns()), i64::MAX);
        let buckets = self.buckets.clone();
        let read = move |stop: &Stop, _| {
            let view = buckets.view(&bucket)?;
            let series: Vec<_> = view.source(source.ordinal).collect();
            let selections: Vec<_> = series.iter().map(|series| Selection::new(series, None)).collect();
            let query = ScanQuery {
                range_ns,
                descending: true,
                after: None,
                skip: 0,
                limit: 1,
                metadata: None,
                stop: &|| stop.now(),
            };
            let (page, _held) = scan_within(&selections, &query, stop.budget())?;
            stop.touched(page.touched);
            Ok(Step::Answer(NewestPoint::of(&page, &source.schema)))
        };
        let answered = self.resources.queries.run(caller.organization_id, read).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl Events {
    /// One delivery per subscribed webhook, and one for the rule's own URL.
    pub(super) fn of_trigger(
        &self,
        rule: &Rule,
        facts: &Facts,
        newest: Option<&NewestPoint>,
        now_ns: i64,
    ) -> NewDeliveries {
        let Some((bucket, source)) = self.around(rule) else {
            return NewDeliveries::default();
        };
        let parsed = rule.settings.parsed.as_ref();
        let threshold = parsed.and_then(|parsed| to_raw_value(&parsed.value.to_json()).ok());
        let operator = parsed.and_then(|parsed| to_raw_value(&parsed.operator).ok());
        let value_of = |parsed: &ParsedCondition| newest?.value(&parsed.field);
        let current_value = parsed.and_then(value_of);
        let trigger = Trigger {
            alert_id: rule.id,
            alert_name: &rule.settings.name,
            condition: &rule.settings.text,
            bucket: Named {
                id: bucket.id,
                name: &bucket.name,
            },
            data_source_id: source.id,
            data_source_name: &source.name,
            current_value: facts.get("currentValue").or(current_value.as_deref()),
            threshold: facts.get("threshold").or(threshold.as_deref()),
            operator: facts.get("operator").or(operator.as_deref()),
            triggered_at: Timestamp(now_ns),
            data_point: facts.get("dataPoint").or(newest.map(|newest| &*newest.point)),
        };
        self.triggered(rule, &bucket, &trigger, now_ns)
    }
}
