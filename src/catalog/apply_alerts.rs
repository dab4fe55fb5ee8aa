//! What the commands about rules, webhooks and deliveries do.

use std::sync::Arc;

use super::command::{AttemptMade, NewRule, Verdict};
use super::delivery::{AfterAttempt, Delivery, DeliveryStatus};
use super::history::{HistoryEntry, HistoryKind};
use super::ledger::{EntryKey, Stream};
use super::rule::{Rule, RuleRuntime, RuleSettings};
use super::state::Catalog;
use super::webhook::{DeliveryTotals, WebhookSettings};
use crate::ids::ObjectId;

impl Catalog {
    pub(super) fn create_rule(&mut self, new: &NewRule) {
        self.rules.last_ordinal += 1;
        if let Some(bucket_id) = self.source(new.source_id).map(|source| source.bucket_id) {
            self.rules.insert(Arc::new(Rule {
                id: new.id,
                ordinal: self.rules.last_ordinal,
                bucket_id,
                source_id: new.source_id,
                settings: Arc::new(new.settings.clone()),
                runtime: RuleRuntime::new(new.created_at_ns),
                created_at_ns: new.created_at_ns,
                updated_at_ns: new.created_at_ns,
            }));
        }
    }

    pub(super) fn update_rule(
        &mut self,
        id: ObjectId,
        settings: &RuleSettings,
        runtime: RuleRuntime,
        at_ns: i64,
    ) {
        self.rules.change(id, |rule| {
            rule.settings = Arc::new(settings.clone());
            rule.runtime = runtime;
            rule.updated_at_ns = at_ns;
        });
    }

    pub(super) fn record_verdict(&mut self, verdict: &Verdict) {
        // The trigger is owed to its receivers even when the rule was deleted between decision and log.
        self.owe(&verdict.deliveries);
        let Some(state) = self.rules.get(verdict.rule_id).map(|_| verdict.runtime.state) else {
            return;
        };
        self.rules
            .change(verdict.rule_id, |rule| rule.runtime = verdict.runtime);
        let entry = |kind| HistoryEntry {
            kind,
            outcome: verdict.outcome,
            previous_state: verdict.previous_state,
            state,
            evidence: verdict.evidence.clone(),
            key_id: verdict.key_id,
        };
        self.remember(verdict, verdict.id, &entry(HistoryKind::Verdict));
        if let Some(trigger_id) = verdict.trigger_id {
            self.remember(verdict, trigger_id, &entry(HistoryKind::Trigger));
            let key = EntryKey {
                stream: Stream::Triggers,
                owner: verdict.rule_id,
                at_ns: verdict.at_ns,
                id: trigger_id,
            };
            self.ledger.put(key, Arc::default(), false);
        }
    }

    fn remember(&mut self, verdict: &Verdict, id: ObjectId, entry: &HistoryEntry) {
        let key = EntryKey {
            stream: Stream::History,
            owner: verdict.rule_id,
            at_ns: verdict.at_ns,
            id,
        };
        // Owned data always encodes.
        if let Ok(payload) = entry.encode() {
            self.ledger.put(key, payload.into(), false);
        }
    }

    pub(super) fn update_webhook(&mut self, id: ObjectId, settings: &WebhookSettings, at_ns: i64) {
        self.outbox.change_webhook(id, |webhook| {
            webhook.settings.clone_from(settings);
            webhook.updated_at_ns = at_ns;
        });
    }

    /// New deliveries, and such that had finished and begin again.
    pub(super) fn owe(&mut self, deliveries: &[Delivery]) {
        for delivery in deliveries {
            let again = match self.outbox.pending_delivery(delivery.id) {
                Some(pending) => pending.again,
                None => {
                    self.count_owed(delivery);
                    delivery.again || delivery.status != DeliveryStatus::Pending
                }
            };
            self.outbox.owe(Arc::new(Delivery {
                status: DeliveryStatus::Pending,
                again,
                ..delivery.clone()
            }));
        }
    }

    /// A delivery is pending from now on: one more, or one that counts as ended no longer.
    fn count_owed(&mut self, delivery: &Delivery) {
        self.outbox.change_webhook(delivery.receiver.owner(), |webhook| {
            let totals = &mut webhook.totals;
            match delivery.status {
                DeliveryStatus::Pending => totals.total += 1,
                DeliveryStatus::Delivered => totals.successful = totals.successful.saturating_sub(1),
                DeliveryStatus::Failed => totals.failed = totals.failed.saturating_sub(1),
            }
        });
    }

    /// Adds up what became of deliveries that were never in the outbox.
    pub(super) fn count_deliveries(&mut self, counts: &[(ObjectId, DeliveryTotals)]) {
        for (webhook_id, counted) in counts {
            self.outbox
                .change_webhook(*webhook_id, |webhook| webhook.totals.add(*counted));
        }
    }

    pub(super) fn record_attempt(&mut self, made: &AttemptMade) {
        self.outbox.change(made.delivery_id, |delivery| {
            delivery.attempted(made.attempt.clone(), made.then);
        });
        if matches!(made.then, AfterAttempt::Retry(_)) {
            return;
        }
        let Some(delivery) = self.outbox.take(made.delivery_id) else {
            return;
        };
        let owner = delivery.receiver.owner();
        let delivered = delivery.status == DeliveryStatus::Delivered;
        self.outbox.change_webhook(owner, |webhook| {
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
        // Owned data always encodes.
        if let Ok(payload) = delivery.encode() {
            self.ledger.put(key, payload.into(), delivery.again);
        }
    }
}
