//! The deliveries of events about rules.

use std::sync::Arc;

use super::events::Events;
use crate::alerts::moment::RuleEvents;
use crate::catalog::{Bucket, Catalog, Delivery, Event, NewDeliveries, Receiver, Rule, Source};
use crate::delivery::{Overdue, Resolved, Trigger, delivery};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

impl Events {
    /// Bucket and source of a rule; `None` if they were deleted in the meantime: then so was the rule.
    pub(super) fn around(&self, rule: &Rule) -> Option<(Arc<Bucket>, Arc<Source>)> {
        self.catalog.read(|catalog| {
            let bucket = catalog.bucket(rule.bucket_id)?;
            Some((Arc::clone(bucket), Arc::clone(catalog.source(rule.source_id)?)))
        })
    }

    /// The silence that mutes an event of the rule at this time.
    pub(super) fn silence_of(&self, rule: &Rule, at_ns: i64) -> Option<ObjectId> {
        let in_force = |catalog: &Catalog| catalog.silence_of(rule, at_ns).map(|silence| silence.id);
        self.catalog.read(in_force)
    }

    /// The deliveries of a trigger: to the webhooks, and to the rule's own URL.
    pub(super) fn triggered(
        &self,
        rule: &Rule,
        bucket: &Bucket,
        trigger: &Trigger<'_>,
        now_ns: i64,
    ) -> NewDeliveries {
        let mut new = self.to_webhooks(Event::AlertTriggered, bucket, now_ns, trigger);
        new.deliveries.extend(self.to_rule(rule, bucket, trigger, now_ns));
        new
    }

    fn to_rule(&self, rule: &Rule, bucket: &Bucket, trigger: &Trigger<'_>, now_ns: i64) -> Option<Delivery> {
        let receiver = Receiver::Rule {
            rule_id: rule.id,
            url: rule.settings.webhook_url.clone()?,
        };
        let (organization_id, event) = (bucket.organization_id, Event::AlertTriggered);
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

    fn of_evaluations(
        &self,
        event: Event,
        rule: &Rule,
        due_at_ns: i64,
        resumed_at_ns: Option<i64>,
        now_ns: i64,
    ) -> NewDeliveries {
        let Some((bucket, source)) = self.around(rule) else {
            return NewDeliveries::default();
        };
        let data = Overdue {
            alert_id: rule.id,
            alert_name: &rule.settings.name,
            data_source_id: source.id,
            data_source_name: &source.name,
            due_at: Timestamp(due_at_ns),
            last_evaluated_at: rule.runtime.last_evaluated_at_ns.map(Timestamp),
            resumed_at: resumed_at_ns.map(Timestamp),
        };
        self.to_webhooks(event, &bucket, now_ns, &data)
    }
}

impl RuleEvents for Events {
    fn resolved(&self, rule: &Rule, triggered_at_ns: i64, resolved_at_ns: i64, now_ns: i64) -> NewDeliveries {
        // At the event's own moment, whether its trigger was muted or not.
        if self.silence_of(rule, resolved_at_ns).is_some() {
            return NewDeliveries::default();
        }
        let Some((bucket, source)) = self.around(rule) else {
            return NewDeliveries::default();
        };
        let data = Resolved {
            alert_id: rule.id,
            alert_name: &rule.settings.name,
            data_source_id: source.id,
            data_source_name: &source.name,
            condition: &rule.settings.text,
            triggered_at: Timestamp(triggered_at_ns),
            resolved_at: Timestamp(resolved_at_ns),
        };
        self.to_webhooks(Event::AlertResolved, &bucket, now_ns, &data)
    }

    fn overdue(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries {
        self.of_evaluations(Event::EvaluationOverdue, rule, due_at_ns, None, now_ns)
    }

    fn resumed(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries {
        self.of_evaluations(Event::EvaluationResumed, rule, due_at_ns, Some(now_ns), now_ns)
    }
}
