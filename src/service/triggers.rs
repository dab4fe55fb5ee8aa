//! The content of trigger notifications: taken from the evidence if it has it, otherwise from the parsed condition and
//! the source's newest point.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::allowance::trigger_room;
use super::query::{Layout, QueryInput};
use super::{Caller, Service};
use crate::catalog::{Catalog, CatalogHandle, Event, Owing, ParsedCondition, Receiver, Rule};
use crate::config::Config;
use crate::delivery::{Named, Point, Trigger, TriggerPoint, delivery, owing};
use crate::error::ServiceError;
use crate::ids::ObjectIds;
use crate::ingest::timestamp;
use crate::timestamp::Timestamp;

/// What the evidence says about a trigger.
#[derive(Default)]
pub(super) struct Facts {
    current_value: Option<Box<RawValue>>,
    threshold: Option<Box<RawValue>>,
    operator: Option<Box<RawValue>>,
    data_point: Option<Box<RawValue>>,
}

impl Facts {
    /// Extracts the facts. Evidence that is not an object has none.
    pub fn of(evidence: Option<&str>) -> Self {
        let members =
            evidence.and_then(|text| serde_json::from_str::<HashMap<String, Box<RawValue>>>(text).ok());
        let Some(mut members) = members else {
            return Self::default();
        };
        Self {
            current_value: members.remove("currentValue"),
            threshold: members.remove("threshold"),
            operator: members.remove("operator"),
            data_point: members.remove("dataPoint").map(with_metadata),
        }
    }

    /// Whether the newest point is needed to fill in missing facts.
    pub fn need_point(&self) -> bool {
        self.current_value.is_none() || self.data_point.is_none()
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
#[derive(Deserialize)]
pub(super) struct NewestPoint {
    timestamp: String,
    values: Box<RawValue>,
    #[serde(default)]
    metadata: Option<Box<RawValue>>,
}

impl NewestPoint {
    fn value(&self, field: &str) -> Option<Box<RawValue>> {
        let values: HashMap<String, &RawValue> = serde_json::from_str(self.values.get()).ok()?;
        values.get(field).map(|value| (*value).to_owned())
    }

    fn point(&self) -> Option<Point<'_>> {
        Some(Point {
            timestamp: Timestamp(timestamp::parse(&self.timestamp).ok()?),
            values: &self.values,
            metadata: self.metadata.as_deref(),
        })
    }
}

/// Builds the deliveries of triggers.
#[derive(Clone)]
pub(super) struct Triggers {
    catalog: CatalogHandle,
    ids: Arc<ObjectIds>,
    config: Arc<Config>,
}

impl Service {
    pub(super) fn triggers(&self) -> Triggers {
        Triggers {
            catalog: self.catalog.clone(),
            ids: Arc::clone(&self.ids),
            config: Arc::clone(&self.config),
        }
    }

    /// The newest point of a rule's source, if there is one.
    pub(super) async fn newest_point(
        &self,
        caller: &Caller,
        rule: &Rule,
    ) -> Result<Option<NewestPoint>, ServiceError> {
        #[derive(Deserialize)]
        struct Answer {
            data: Vec<NewestPoint>,
        }
        let input = QueryInput {
            bucket_id: rule.bucket_id,
            source_ids: vec![rule.source_id],
            start_ns: None,
            end_ns: None,
            metadata: Map::new(),
            fields: Vec::new(),
            grouping: None,
            limit: Some(1),
            offset: 0,
            descending: true,
            cursor: None,
            merge_sources: false,
            downsampling: false,
            max_points: None,
            layout: Layout::Rows,
            timezone: None,
        };
        // A single row is a single piece.
        let answered = self.query(caller, input, |body, _| Ok(body)).await?;
        let mut answer: Answer = serde_json::from_slice(&answered.piece).map_err(ServiceError::internal)?;
        Ok(answer.data.pop())
    }
}

impl Triggers {
    /// One delivery per subscribed webhook, and one for the rule's own URL.
    pub fn owing(&self, rule: &Rule, facts: &Facts, newest: Option<&NewestPoint>, now_ns: i64) -> Owing {
        let found = self.catalog.read(|catalog| {
            let bucket = catalog.bucket(rule.bucket_id)?;
            let source = catalog.source(rule.source_id)?;
            let webhooks: Vec<_> = catalog
                .webhooks_of(bucket.organization_id)
                .filter(|webhook| webhook.hears(Event::AlertTriggered, bucket.id))
                .cloned()
                .collect();
            Some((Arc::clone(bucket), Arc::clone(source), webhooks))
        });
        // If the bucket or source was deleted in the meantime, so was the rule.
        let Some((bucket, source, webhooks)) = found else {
            return Owing::default();
        };
        let parsed = rule.settings.parsed.as_ref();
        let threshold = parsed.and_then(|parsed| to_raw_value(&parsed.to_json()["value"]).ok());
        let operator = parsed.and_then(|parsed| to_raw_value(&parsed.operator).ok());
        let value_of = |parsed: &ParsedCondition| newest?.value(&parsed.field);
        let current_value = parsed.and_then(value_of);
        let trigger = Trigger {
            rule_id: rule.id,
            rule_name: &rule.settings.name,
            condition: &rule.settings.text,
            bucket: Named {
                id: bucket.id,
                name: &bucket.name,
            },
            source: Named {
                id: source.id,
                name: &source.name,
            },
            current_value: facts.current_value.as_deref().or(current_value.as_deref()),
            threshold: facts.threshold.as_deref().or(threshold.as_deref()),
            operator: facts.operator.as_deref().or(operator.as_deref()),
            triggered_at_ns: now_ns,
            point: match &facts.data_point {
                Some(point) => Some(TriggerPoint::Evidence(point)),
                None => newest.and_then(NewestPoint::point).map(TriggerPoint::Newest),
            },
        };
        let mut owing = owing(
            Event::AlertTriggered,
            bucket.id,
            &webhooks,
            &self.ids,
            now_ns,
            |webhook_id| trigger.body(webhook_id),
        );
        if let Some(url) = &rule.settings.webhook_url {
            let receiver = Receiver::Rule {
                rule_id: rule.id,
                url: url.clone(),
            };
            let body = |_| trigger.rule_body();
            let (organization_id, event) = (bucket.organization_id, Event::AlertTriggered);
            let delivery = delivery(receiver, organization_id, event, &self.ids, now_ns, body);
            owing.deliveries.push(delivery);
        }
        let room = |catalog: &Catalog| trigger_room(&self.config, catalog, bucket.organization_id);
        owing.room = Some(self.catalog.read(room));
        owing
    }
}
