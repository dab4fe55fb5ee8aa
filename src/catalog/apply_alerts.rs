//! What the commands about rules, webhooks and deliveries do.

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

/// What a delivery that makes room says of itself.
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
        // The trigger is owed to its receivers even when the rule was deleted between decision and log.
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

    /// Adds a webhook, the newest one, or puts a new version in the place of the old.
    pub(super) fn insert_webhook(&mut self, webhook: Webhook) {
        let known = self.outbox.webhook(webhook.id).cloned();
        self.hold(webhook.organization_id, |held| {
            known.iter().for_each(|known| held.remove_webhook(known));
            held.add_webhook(&webhook.settings);
        });
        self.outbox.insert_webhook(webhook);
    }

    /// Adds a webhook that has its ordinal, which is greater than those of all that were added before.
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

    /// New deliveries, and such that had finished and begin again.
    pub(super) fn owe(&mut self, deliveries: &[Delivery]) {
        deliveries
            .iter()
            .for_each(|delivery| self.owe_one(delivery.clone()));
    }

    /// Deliveries of one event that share its body.
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

    /// Owes a delivery as it is. One that an older program made is told whose it is.
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

    /// Nothing owed shares this body any more: from now on it is where the finished deliveries are that do.
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

    /// Ends deliveries as failed until what the organization owes is within these bounds, or nothing else is left than
    /// these, which stay.
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
