//! Applies the commands about rules, webhooks and deliveries.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use serde::Serialize;

use super::text_bytes::of_webhook;
use super::{
    AfterAttempt, Attempt, AttemptMade, Catalog, Delivery, DeliveryStatus, EntryKey, EventBody, FanOut,
    HistoryEntry, HistoryKind, NewDeliveries, NewRule, PendingLimits, PendingTotals, Rule, RuleRuntime,
    Source, Stream, Verdict, Webhook,
};
use crate::ids::ObjectId;

/// Error text of a delivery that was dropped to make room.
const GIVEN_UP: &str = "given up for a newer event: the organization owes as many deliveries as it may";

impl Catalog {
    pub(super) fn create_rule(&mut self, new: &NewRule) {
        let ordinal = self.rules.next_ordinal();
        if let Some(bucket_id) = self.source(new.source_id).map(|source| source.bucket_id) {
            self.insert_rule(Arc::new(Rule {
                id: new.id,
                ordinal,
                bucket_id,
                source_id: new.source_id,
                settings: Arc::new(new.settings.clone()),
                runtime: RuleRuntime::new(new.created_at_ns),
                created_at_ns: new.created_at_ns,
                updated_at_ns: new.created_at_ns,
                acknowledgement: None,
                overdue_told_ns: None,
            }));
        }
    }

    /// Inserts a rule or replaces it by a new version.
    pub(super) fn insert_rule(&mut self, rule: Arc<Rule>) {
        let known = self.rule(rule.id).cloned();
        self.update_holdings(self.organization_of_bucket(rule.bucket_id), |it| {
            it.count_rule(1, &rule.settings);
            known.iter().for_each(|known| it.count_rule(-1, &known.settings));
        });
        self.rules.insert(rule.ordinal, rule);
    }

    pub(super) fn delete_rule(&mut self, id: ObjectId) {
        if let Some(rule) = self.rules.remove(id) {
            let owner = self.organization_of_bucket(rule.bucket_id);
            self.update_holdings(owner, |it| it.count_rule(-1, &rule.settings));
        }
    }

    /// Returns the rules that were removed.
    pub(super) fn remove_rules_of_source(&mut self, source: &Source) -> Vec<Arc<Rule>> {
        let rules = self.rules_of(source.bucket_id);
        let of_source = rules.filter(|rule| rule.source_id == source.id);
        let ids: Vec<_> = of_source.map(|rule| rule.id).collect();
        ids.into_iter().filter_map(|id| self.rules.remove(id)).collect()
    }

    pub(super) fn record_verdict(&mut self, verdict: &Verdict) {
        let trigger = NewDeliveries {
            deliveries: verdict.deliveries.clone(),
            fan_out: verdict.fan_out.clone(),
            room: verdict.room,
        };
        // Events are delivered to their receivers even if the rule was deleted between the decision and the log.
        let told: Vec<&NewDeliveries> = iter::once(&trigger).chain(&verdict.told).collect();
        self.queue_owed(&told, verdict.at_ns);
        if !self.rules.contains(verdict.rule_id) {
            return;
        }
        self.rules
            .change(verdict.rule_id, |rule| rule.runtime = verdict.runtime);
        let entry = |kind| HistoryEntry {
            kind,
            outcome: verdict.outcome,
            previous_state: verdict.previous_state,
            state: verdict.runtime.state,
            evidence: verdict.evidence.clone(),
            key_id: verdict.key_id,
            silence_id: verdict.silence_id.filter(|_| kind == HistoryKind::Trigger),
        };
        let key = |stream, id| EntryKey {
            stream,
            owner: verdict.rule_id,
            at_ns: verdict.at_ns,
            id,
        };
        let history = |id| key(Stream::History, id);
        self.put_entry(history(verdict.id), &entry(HistoryKind::Verdict), false);
        if let Some(trigger_id) = verdict.trigger_id {
            self.put_entry(history(trigger_id), &entry(HistoryKind::Trigger), false);
            let trigger = key(Stream::Triggers, trigger_id);
            self.ledger.put(trigger, Arc::default(), false);
        }
    }

    /// Adds an entry to the ledger: MessagePack with named members.
    pub(super) fn put_entry(&mut self, key: EntryKey, entry: &impl Serialize, again: bool) {
        // Owned data always encodes.
        if let Ok(payload) = rmp_serde::to_vec_named(entry) {
            self.ledger.put(key, payload.into(), again);
        }
    }

    /// Adds a webhook as the newest one, or replaces it by a new version.
    pub(super) fn add_webhook(&mut self, webhook: Webhook) {
        let ordinal = self.webhooks.ordinal_of(webhook.id);
        self.insert_webhook(ordinal, Arc::new(webhook));
    }

    /// Adds a webhook that has an ordinal already, or replaces it by a new version.
    pub(super) fn insert_webhook(&mut self, ordinal: u64, webhook: Arc<Webhook>) {
        let known = self.webhook(webhook.id);
        let before = known.map_or(0, |known| of_webhook(&known.settings));
        let after = of_webhook(&webhook.settings);
        self.update_holdings(webhook.organization_id, |it| it.replace_text(before, after));
        self.webhooks.insert(ordinal, webhook);
    }

    /// Queues the deliveries of events that are always owed, and makes room for them.
    pub(super) fn queue_owed(&mut self, events: &[&NewDeliveries], at_ns: i64) {
        for event in events {
            self.queue_deliveries(&event.deliveries, event.fan_out.as_ref());
        }
        let mut rooms = events.iter().filter_map(|event| event.room);
        // They are of one organization.
        if let Some(room) = rooms.next_back() {
            let stay = events.iter().flat_map(|event| event.ids()).collect();
            self.make_room(&room, &stay, at_ns);
        }
    }

    /// Queues deliveries: new ones, finished ones that are redelivered, and those that share the body of an event.
    pub(super) fn queue_deliveries(&mut self, deliveries: &[Delivery], fan_out: Option<&FanOut>) {
        let shared = fan_out.into_iter().flat_map(FanOut::deliveries);
        let all = deliveries.iter().cloned().chain(shared);
        all.for_each(|delivery| self.queue_delivery(delivery));
    }

    fn queue_delivery(&mut self, delivery: Delivery) {
        let again = match self.pending_delivery(delivery.id) {
            Some(pending) => pending.again,
            None => {
                self.count_queued(&delivery);
                delivery.again || delivery.status != DeliveryStatus::Pending
            }
        };
        self.restore_delivery(Delivery {
            status: DeliveryStatus::Pending,
            again,
            ..delivery
        });
    }

    /// Queues a delivery unchanged, except that a delivery of an older program gets its organization.
    pub(super) fn restore_delivery(&mut self, mut delivery: Delivery) {
        if delivery.organization_id.is_none() {
            delivery.organization_id = self.organization_of_receiver(&delivery.receiver);
        }
        let released = self.outbox.insert(Arc::new(delivery));
        released.iter().for_each(|body| self.move_body_to_ledger(body));
    }

    /// Moves a shared body to the ledger, where the finished deliveries that share it are. Called when no pending
    /// delivery shares it any more.
    fn move_body_to_ledger(&mut self, body: &EventBody) {
        let key = EntryKey {
            stream: Stream::Events,
            owner: body.organization_id,
            at_ns: body.created_at_ns,
            id: body.id,
        };
        self.put_entry(key, body, false);
    }

    pub(super) fn delete_webhook(&mut self, id: ObjectId) {
        let Some(webhook) = self.webhooks.remove(id) else {
            return;
        };
        let bytes = of_webhook(&webhook.settings);
        self.update_holdings(webhook.organization_id, |it| it.replace_text(bytes, 0));
        let pending: Vec<_> = self.pending_deliveries_of(id).map(|it| it.id).collect();
        for delivery_id in pending {
            self.take_delivery(delivery_id);
        }
    }

    /// Removes a pending delivery.
    fn take_delivery(&mut self, id: ObjectId) -> Option<Arc<Delivery>> {
        let (delivery, body) = self.outbox.remove(id)?;
        body.iter().for_each(|body| self.move_body_to_ledger(body));
        Some(delivery)
    }

    /// Fails deliveries until the organization's pending deliveries are within these limits, or only those that stay are
    /// left.
    fn make_room(&mut self, room: &PendingLimits, stay: &HashSet<ObjectId>, at_ns: i64) {
        let within =
            |owed: PendingTotals| owed.deliveries <= room.deliveries_max && owed.bytes <= room.bytes_max;
        if within(self.owed(room.organization_id)) {
            return;
        }
        while !within(self.owed(room.organization_id))
            && let Some(delivery_id) = self
                .outbox
                .first_to_drop(room.organization_id, |id| stay.contains(&id))
        {
            let attempt = Attempt {
                at_ns,
                status_code: None,
                error: Some(GIVEN_UP.into()),
                duration_ms: 0,
            };
            let then = AfterAttempt::Failed;
            self.record_attempt(&AttemptMade {
                delivery_id,
                attempt,
                then,
            });
        }
    }

    /// Updates the webhook's totals for a delivery that becomes pending: either a new one, or one that had finished and
    /// no longer counts as such.
    fn count_queued(&mut self, delivery: &Delivery) {
        self.webhooks.change(delivery.receiver.owner(), |webhook| {
            let totals = &mut webhook.totals;
            match delivery.status {
                DeliveryStatus::Pending => totals.total += 1,
                DeliveryStatus::Delivered => totals.successful = totals.successful.saturating_sub(1),
                DeliveryStatus::Failed => totals.failed = totals.failed.saturating_sub(1),
            }
        });
    }

    pub(super) fn record_attempt(&mut self, made: &AttemptMade) {
        self.outbox.change(made.delivery_id, |delivery| {
            delivery.attempted(made.attempt.clone(), made.then);
        });
        if matches!(made.then, AfterAttempt::Retry(_)) {
            return;
        }
        let Some(delivery) = self.take_delivery(made.delivery_id) else {
            return;
        };
        let owner = delivery.receiver.owner();
        let delivered = delivery.status == DeliveryStatus::Delivered;
        self.webhooks.change(owner, |webhook| {
            let totals = &mut webhook.totals;
            totals.successful += u64::from(delivered);
            totals.failed += u64::from(!delivered);
            totals.last_at_ns = Some(made.attempt.ended_at_ns());
            totals.last_delivered = Some(delivered);
        });
        if self.rule(owner).is_none() && self.webhook(owner).is_none() {
            return;
        }
        let key = EntryKey {
            stream: Stream::Deliveries,
            owner,
            at_ns: delivery.created_at_ns,
            id: delivery.id,
        };
        self.put_entry(key, &delivery, delivery.again);
    }
}
