//! Applies the commands about rules, webhooks and deliveries.

use std::collections::HashSet;
use std::sync::Arc;

use super::body::EventBody;
use super::command::{AttemptMade, NewRule, Verdict};
use super::delivery::{AfterAttempt, Attempt, Delivery, DeliveryStatus, Receiver};
use super::fan_out::{FanOut, OwedRoom};
use super::history::{HistoryEntry, HistoryKind};
use super::ledger::{EntryKey, Stream};
use super::owed::OwedFigures;
use super::rule::{Rule, RuleRuntime, RuleSettings};
use super::state::Catalog;
use super::webhook::{DeliveryTotals, Webhook, WebhookSettings};
use crate::ids::ObjectId;

/// Error text of a delivery that was dropped to make room.
const GIVEN_UP: &str = "given up for a newer trigger: the organization owes as many deliveries as it may";

impl Catalog {
    pub(super) fn create_rule(&mut self, new: &NewRule) {
        self.rules.last_ordinal += 1;
        if let Some(bucket_id) = self.source(new.source_id).map(|source| source.bucket_id) {
            self.insert_rule(Arc::new(Rule {
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

    pub(super) fn insert_rule(&mut self, rule: Arc<Rule>) {
        self.hold_bucket(rule.bucket_id, |held| held.add_rule(&rule.settings));
        self.rules.insert(rule);
    }

    pub(super) fn delete_rule(&mut self, id: ObjectId) {
        if let Some(rule) = self.rules.remove(id) {
            self.hold_bucket(rule.bucket_id, |held| held.remove_rule(&rule.settings));
        }
    }

    pub(super) fn update_rule(
        &mut self,
        id: ObjectId,
        settings: &RuleSettings,
        runtime: RuleRuntime,
        at_ns: i64,
    ) {
        let Some(known) = self.rules.get(id).cloned() else {
            return;
        };
        self.hold_bucket(known.bucket_id, |held| {
            held.replace_rule(&known.settings, settings)
        });
        self.rules.change(id, |rule| {
            rule.settings = Arc::new(settings.clone());
            rule.runtime = runtime;
            rule.updated_at_ns = at_ns;
        });
    }

    pub(super) fn record_verdict(&mut self, verdict: &Verdict) {
        // The trigger is delivered to its receivers even if the rule was deleted between the decision and the log.
        self.owe(&verdict.deliveries);
        self.owe_shared(verdict.fan_out.as_ref());
        if let Some(room) = &verdict.room {
            let shared = verdict.fan_out.iter().flat_map(|it| &it.deliveries);
            let own = verdict.deliveries.iter().map(|delivery| delivery.id);
            let owed: Vec<ObjectId> = own.chain(shared.map(|(_, id, _)| *id)).collect();
            self.make_room(room, &owed, verdict.at_ns);
        }
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

    /// Adds a webhook as the newest one, or replaces it by a new version.
    pub(super) fn insert_webhook(&mut self, webhook: Webhook) {
        let known = self.outbox.webhook(webhook.id).cloned();
        self.hold(webhook.organization_id, |held| {
            known.iter().for_each(|known| held.remove_webhook(known));
            held.add_webhook(&webhook.settings);
        });
        self.outbox.insert_webhook(webhook);
    }

    /// Adds a webhook that has an ordinal already. It must be greater than those of all webhooks added before.
    pub(super) fn restore_webhook(&mut self, ordinal: u64, webhook: Arc<Webhook>) {
        self.hold(webhook.organization_id, |held| {
            held.add_webhook(&webhook.settings)
        });
        self.outbox.restore_webhook(ordinal, webhook);
    }

    pub(super) fn update_webhook(&mut self, id: ObjectId, settings: &WebhookSettings, at_ns: i64) {
        let Some(known) = self.outbox.webhook(id).cloned() else {
            return;
        };
        self.hold(known.organization_id, |held| {
            held.replace_webhook(&known.settings, settings)
        });
        self.outbox.change_webhook(id, |webhook| {
            webhook.settings.clone_from(settings);
            webhook.updated_at_ns = at_ns;
        });
    }

    /// Queues deliveries: new ones, and finished ones that are redelivered.
    pub(super) fn owe(&mut self, deliveries: &[Delivery]) {
        deliveries
            .iter()
            .for_each(|delivery| self.owe_one(delivery.clone()));
    }

    /// Queues the deliveries of one event that share its body.
    pub(super) fn owe_shared(&mut self, fan_out: Option<&FanOut>) {
        let deliveries = fan_out.into_iter().flat_map(FanOut::deliveries);
        deliveries.for_each(|delivery| self.owe_one(delivery));
    }

    fn owe_one(&mut self, delivery: Delivery) {
        let again = match self.outbox.pending_delivery(delivery.id) {
            Some(pending) => pending.again,
            None => {
                self.count_owed(&delivery);
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
            delivery.organization_id = self.organization_of(&delivery.receiver);
        }
        let released = self.outbox.owe(Arc::new(delivery));
        released.iter().for_each(|body| self.keep_body(body));
    }

    pub(super) fn organization_of(&self, receiver: &Receiver) -> Option<ObjectId> {
        match receiver {
            Receiver::Webhook(id) => self.webhook(*id).map(|webhook| webhook.organization_id),
            Receiver::Rule { rule_id, .. } => {
                let bucket_id = self.rule(*rule_id)?.bucket_id;
                self.bucket(bucket_id).map(|bucket| bucket.organization_id)
            }
        }
    }

    /// Moves a shared body to the ledger, where the finished deliveries that share it are. Called when no pending
    /// delivery shares it any more.
    fn keep_body(&mut self, body: &EventBody) {
        let key = EntryKey {
            stream: Stream::Events,
            owner: body.organization_id,
            at_ns: body.created_at_ns,
            id: body.id,
        };
        // Owned data always encodes.
        if let Ok(payload) = body.encode() {
            self.ledger.put(key, payload.into(), false);
        }
    }

    pub(super) fn delete_webhook(&mut self, id: ObjectId) {
        if let Some((webhook, bodies)) = self.outbox.remove_webhook(id) {
            self.hold(webhook.organization_id, |held| held.remove_webhook(&webhook));
            bodies.iter().for_each(|body| self.keep_body(body));
        }
    }

    /// Fails deliveries until the organization's pending deliveries are within these limits, or only those in `stay`
    /// are left.
    fn make_room(&mut self, room: &OwedRoom, stay: &[ObjectId], at_ns: i64) {
        let within =
            |owed: OwedFigures| owed.deliveries <= room.deliveries_max && owed.bytes <= room.bytes_max;
        if within(self.outbox.owed().of(room.organization_id)) {
            return;
        }
        let stay: HashSet<ObjectId> = stay.iter().copied().collect();
        while !within(self.outbox.owed().of(room.organization_id))
            && let Some(delivery_id) = self
                .outbox
                .owed()
                .first(room.organization_id, |id| stay.contains(&id))
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

    /// Adds the results of deliveries that were never in the outbox.
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
        let Some((delivery, body)) = self.outbox.take(made.delivery_id) else {
            return;
        };
        body.iter().for_each(|body| self.keep_body(body));
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
