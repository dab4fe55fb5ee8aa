//! The deliveries of events about rules. No limit refuses them; older deliveries make room.

use std::sync::Arc;

use serde::Serialize;

use super::Service;
use super::allowance::trigger_room;
use crate::alerts::moment;
use crate::catalog::{
    Bucket, Catalog, CatalogHandle, Delivery, Event, NewDeliveries, Receiver, Rule, Source, Webhook,
};
use crate::config::Config;
use crate::delivery::{Overdue, Resolved, Trigger, delivery, new_deliveries};
use crate::ids::ObjectIds;
use crate::timestamp::Timestamp;

/// Makes them.
#[derive(Clone)]
pub struct RuleEvents {
    catalog: CatalogHandle,
    ids: Arc<ObjectIds>,
    config: Arc<Config>,
}

/// What the event of a rule is about, and who may hear of it.
pub(super) struct Surroundings {
    pub bucket: Arc<Bucket>,
    pub source: Arc<Source>,
    /// Those of the organization that subscribe to the event.
    webhooks: Vec<Arc<Webhook>>,
}

impl RuleEvents {
    pub fn new(catalog: CatalogHandle, ids: Arc<ObjectIds>, config: Arc<Config>) -> Self {
        Self { catalog, ids, config }
    }

    /// `None` if the bucket or the source was deleted in the meantime; then so was the rule.
    pub(super) fn surroundings(&self, rule: &Rule, event: Event) -> Option<Surroundings> {
        self.catalog.read(|catalog| {
            let bucket = catalog.bucket(rule.bucket_id)?;
            let webhooks = catalog.webhooks_of(bucket.organization_id);
            let subscribers = webhooks.filter(|webhook| webhook.receives(event, bucket.id));
            Some(Surroundings {
                source: Arc::clone(catalog.source(rule.source_id)?),
                webhooks: subscribers.cloned().collect(),
                bucket: Arc::clone(bucket),
            })
        })
    }

    /// One delivery for each webhook, and room for them.
    fn to_webhooks(
        &self,
        event: Event,
        around: &Surroundings,
        now_ns: i64,
        data: &impl Serialize,
    ) -> NewDeliveries {
        let bucket = &around.bucket;
        let new = new_deliveries(event, bucket.id, &around.webhooks, &self.ids, now_ns, data);
        let room = |catalog: &Catalog| trigger_room(&self.config, catalog, bucket.organization_id);
        NewDeliveries {
            room: Some(self.catalog.read(room)),
            ..new
        }
    }

    /// The deliveries of a trigger: to the webhooks, and to the rule's own URL.
    pub(super) fn triggered(
        &self,
        rule: &Rule,
        around: &Surroundings,
        trigger: &Trigger<'_>,
        now_ns: i64,
    ) -> NewDeliveries {
        let event = Event::AlertTriggered;
        let mut new = self.to_webhooks(event, around, now_ns, trigger);
        new.deliveries.extend(self.to_rule(rule, around, trigger, now_ns));
        new
    }

    fn to_rule(
        &self,
        rule: &Rule,
        around: &Surroundings,
        trigger: &Trigger<'_>,
        now_ns: i64,
    ) -> Option<Delivery> {
        let receiver = Receiver::Rule {
            rule_id: rule.id,
            url: rule.settings.webhook_url.clone()?,
        };
        let (organization_id, event) = (around.bucket.organization_id, Event::AlertTriggered);
        let body = |_| trigger.rule_body();
        Some(delivery(
            receiver,
            organization_id,
            event,
            &self.ids,
            now_ns,
            body,
        ))
    }

    fn silence(
        &self,
        event: Event,
        rule: &Rule,
        due_at_ns: i64,
        resumed_at_ns: Option<i64>,
        now_ns: i64,
    ) -> NewDeliveries {
        let Some(around) = self.surroundings(rule, event) else {
            return NewDeliveries::default();
        };
        let data = Overdue {
            alert_id: rule.id,
            alert_name: &rule.settings.name,
            data_source_id: around.source.id,
            data_source_name: &around.source.name,
            due_at: Timestamp(due_at_ns),
            last_evaluated_at: rule.runtime.last_evaluated_at_ns.map(Timestamp),
            resumed_at: resumed_at_ns.map(Timestamp),
        };
        self.to_webhooks(event, &around, now_ns, &data)
    }
}

impl moment::RuleEvents for RuleEvents {
    fn resolved(&self, rule: &Rule, triggered_at_ns: i64, resolved_at_ns: i64, now_ns: i64) -> NewDeliveries {
        let Some(around) = self.surroundings(rule, Event::AlertResolved) else {
            return NewDeliveries::default();
        };
        let data = Resolved {
            alert_id: rule.id,
            alert_name: &rule.settings.name,
            data_source_id: around.source.id,
            data_source_name: &around.source.name,
            condition: &rule.settings.text,
            triggered_at: Timestamp(triggered_at_ns),
            resolved_at: Timestamp(resolved_at_ns),
        };
        self.to_webhooks(Event::AlertResolved, &around, now_ns, &data)
    }

    fn overdue(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries {
        self.silence(Event::EvaluationOverdue, rule, due_at_ns, None, now_ns)
    }

    fn resumed(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries {
        self.silence(Event::EvaluationResumed, rule, due_at_ns, Some(now_ns), now_ns)
    }
}

impl Service {
    pub(super) fn rule_events(&self) -> RuleEvents {
        let ids = Arc::clone(&self.resources.ids);
        RuleEvents::new(self.catalog.clone(), ids, Arc::clone(&self.config))
    }
}
