//! Histories and deliveries in the trace: verdicts of rules, deliveries that end, begin again and end again, and the
//! expected content of their lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::model::{Existence, Model};
use super::world::{Failure, ORGANIZATION, World, id};
use crate::catalog::{
    AfterAttempt, Attempt, AttemptMade, Body, Catalog, Command, Delivery, DeliveryStatus, EntryKey, Event,
    HistoryEntry, NewRule, Outcome, Receiver, RetryConfig, RuleForm, RuleRuntime, RuleSettings, RuleState,
    RuleStatus, Secret, Stream, Verdict, Webhook, WebhookFormat, WebhookSettings, WebhookStatus,
};
use crate::checkpoint::Rooms;
use crate::clock::{Clock, SECOND_NS};
use crate::ids::ObjectId;
use crate::ledger::{Content, Ledger};

/// An entry and its progress: one step for a verdict; for a delivery, one each time it becomes pending and one each
/// time it ends.
#[derive(Clone, Debug)]
struct TrackedEntry {
    text: Box<str>,
    acknowledged: u32,
    /// Whether the next step was requested.
    under_way: bool,
}

/// Rules and webhooks, and the expected content of their lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    owners: Vec<(Stream, ObjectId)>,
    noted: BTreeMap<EntryKey, TrackedEntry>,
}

/// A list, newest first: key, progress and text of each entry.
pub(super) type Listed = Vec<(EntryKey, u32, String)>;

/// The list of an owner as the service reads it; `None` if a part is unreadable.
fn list(
    catalog: &Catalog,
    ledger: &Ledger,
    (stream, owner): (Stream, ObjectId),
    now_ns: i64,
    (offset, limit): (u64, usize),
) -> Option<(Listed, u64)> {
    let pending = catalog
        .pending_deliveries_of(owner)
        .filter(|_| stream == Stream::Deliveries)
        .map(|delivery| {
            let Delivery {
                created_at_ns,
                id,
                again,
                ..
            } = **delivery;
            (created_at_ns, id, again, delivery.clone())
        });
    let view = ledger.view_with(catalog, stream, owner, pending);
    let page = view.page(stream.cutoff_ns(now_ns), offset, limit).ok()?;
    let describe = |(key, content): (EntryKey, Content<Arc<Delivery>>)| {
        let (steps, text) = match (stream, content) {
            (Stream::History, Content::Stored(payload)) => {
                let entry = HistoryEntry::decode(&payload).expect("a history's entry");
                (1, entry.evidence.expect("as sent").into_string())
            }
            (Stream::Triggers, Content::Stored(payload)) => {
                (1, String::from_utf8(payload.to_vec()).expect("nothing"))
            }
            (_, content) => {
                let delivery = match content {
                    Content::Stored(payload) => Delivery::decode(&payload).expect("a delivery"),
                    Content::Given(pending) => Delivery::clone(&pending),
                };
                let ended = delivery.status != DeliveryStatus::Pending;
                let steps = 2 * delivery.attempts.len() as u32 + u32::from(!ended);
                let body = delivery.body.sent_as(delivery.webhook_id).expect("its own");
                (steps, String::from_utf8(body.to_vec()).expect("text"))
            }
        };
        (key, steps, text)
    };
    page.damaged
        .is_empty()
        .then(|| (page.entries.into_iter().map(describe).collect(), page.total))
}

impl Entries {
    fn existing<'a>(&'a self, catalog: &'a Catalog) -> impl Iterator<Item = (Stream, ObjectId)> + 'a {
        self.owners
            .iter()
            .copied()
            .filter(|(stream, owner)| match stream {
                Stream::Deliveries => catalog.webhook(*owner).is_some(),
                _ => catalog.rule(*owner).is_some(),
            })
    }

    /// All lists; `None` if a part is unreadable.
    pub(super) fn listed(&self, catalog: &Catalog, ledger: &Ledger, now_ns: i64) -> Option<Vec<Listed>> {
        self.existing(catalog)
            .map(|owner| Some(list(catalog, ledger, owner, now_ns, (0, usize::MAX))?.0))
            .collect()
    }

    /// Fails if a list lacks an acknowledged step or shows more than the requested ones.
    pub(super) fn check(&self, catalog: &Catalog, ledger: &Ledger, now_ns: i64) {
        for owner in self.existing(catalog) {
            let whole = list(catalog, ledger, owner, now_ns, (0, usize::MAX));
            let (whole, total) = whole.unwrap_or_else(|| panic!("a list of {owner:?} does not read"));
            assert_eq!(total, whole.len() as u64, "the count of {owner:?}");
            assert!(
                whole.is_sorted_by(|a, b| a.0 > b.0),
                "newest first, each once: {whole:?}"
            );
            let offset = total / 2;
            let part = list(catalog, ledger, owner, now_ns, (offset, 3)).expect("it reads");
            let expected: Listed = whole.iter().skip(offset as usize).take(3).cloned().collect();
            assert_eq!(part, (expected, total), "from {offset} on");
            let found: BTreeMap<EntryKey, (u32, &String)> = whole
                .iter()
                .map(|(key, steps, text)| (*key, (*steps, text)))
                .collect();
            assert!(
                found.keys().all(|key| self.noted.contains_key(key)),
                "unknown entries"
            );
            let cutoff_ns = owner.0.cutoff_ns(now_ns);
            let of_owner = |key: &EntryKey| (key.stream, key.owner) == owner && key.at_ns >= cutoff_ns;
            for (key, noted) in self.noted.iter().filter(|(key, _)| of_owner(key)) {
                let (steps, text) = found
                    .get(key)
                    .map_or((0, None), |(steps, text)| (*steps, Some(*text)));
                let possible = noted.acknowledged..=noted.acknowledged + u32::from(noted.under_way);
                assert!(possible.contains(&steps), "{key:?}: {noted:?} is at {steps}");
                assert!(text.is_none_or(|text| **text == *noted.text), "{key:?}: {text:?}");
            }
        }
    }

    /// Adopts the observed state of unacknowledged steps.
    pub(super) fn settle(&mut self, catalog: &Catalog, ledger: &Ledger, now_ns: i64) {
        let lists = self.listed(catalog, ledger, now_ns).expect("the lists read");
        let found: BTreeMap<EntryKey, u32> = lists
            .into_iter()
            .flatten()
            .map(|(key, steps, _)| (key, steps))
            .collect();
        self.noted.retain(|key, noted| {
            noted.under_way = false;
            noted.acknowledged = found.get(key).copied().unwrap_or(0);
            noted.acknowledged > 0
        });
    }
}

impl World {
    /// Creates an entry, or an owner of entries.
    pub(super) async fn entry(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        match self.rng.u8(0..20) {
            0 => self.create_rule(rooms).await,
            1 => self.create_webhook(rooms).await,
            2 => self.delete_owner(rooms).await,
            3..11 => self.verdict(rooms).await,
            11..15 => self.add_delivery(rooms).await,
            _ => self.advance_a_delivery(rooms).await,
        }
    }

    /// Creates some entries of each kind.
    pub(super) async fn entries(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        for _ in 0..6 {
            self.verdict(rooms).await?;
            self.add_delivery(rooms).await?;
            self.advance_a_delivery(rooms).await?;
        }
        Ok(())
    }

    fn owner(&mut self, rooms: &Rooms, stream: Stream) -> Option<ObjectId> {
        let entries = self.model.lock().entries.clone();
        let existing: Vec<_> = rooms.catalog.read(|catalog| entries.existing(catalog).collect());
        let of_stream = existing.into_iter().filter(|(of, _)| *of == stream);
        self.rng
            .choice(of_stream.map(|(_, owner)| owner).collect::<Vec<_>>())
    }

    pub(super) async fn create_rule(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let sources = self.model.lock().sources.clone();
        let existing = sources
            .iter()
            .filter(|source| source.existence == Existence::Exists);
        let Some(source) = self.rng.choice(existing.collect::<Vec<_>>()) else {
            return Ok(());
        };
        let rule_id = self.next_id();
        let of_rule = [(Stream::History, rule_id), (Stream::Triggers, rule_id)];
        self.model.lock().entries.owners.extend(of_rule);
        let settings = RuleSettings {
            name: "r".into(),
            text: "value above 1".into(),
            form: RuleForm::Condition,
            parsed: None,
            webhook_url: None,
            cooldown_minutes: 5.0,
            status: RuleStatus::Active,
            evaluation: None,
        };
        let rule = NewRule {
            id: rule_id,
            source_id: source.id,
            settings,
            created_at_ns: self.clock.now_ns(),
        };
        rooms.journal.commit(Command::RuleCreated { rule }).await?;
        Ok(())
    }

    pub(super) async fn create_webhook(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let webhook_id = self.next_id();
        self.model
            .lock()
            .entries
            .owners
            .push((Stream::Deliveries, webhook_id));
        let at_ns = self.clock.now_ns();
        let webhook = Webhook {
            id: webhook_id,
            organization_id: id(ORGANIZATION),
            settings: WebhookSettings {
                url: "https://example.com/".into(),
                events: vec![Event::AlertTriggered],
                bucket_id: None,
                secret: Secret("s".into()),
                retry: RetryConfig::default(),
                status: WebhookStatus::Active,
                format: WebhookFormat::Standard,
            },
            totals: Default::default(),
            created_at_ns: at_ns,
            updated_at_ns: at_ns,
        };
        rooms.journal.commit(Command::WebhookCreated { webhook }).await?;
        Ok(())
    }

    async fn delete_owner(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let stream = self.rng.choice(Stream::OF_TAIL).unwrap_or(Stream::History);
        let Some(owner) = self.owner(rooms, stream) else {
            return Ok(());
        };
        let command = match stream {
            Stream::Deliveries => Command::WebhookDeleted { webhook_id: owner },
            _ => Command::RuleDeleted { rule_id: owner },
        };
        rooms.journal.commit(command).await?;
        Ok(())
    }

    /// A new id, and a text that no other entry has.
    fn entry_id(&mut self) -> (ObjectId, Box<str>) {
        let mut bytes = *self.next_id().as_bytes();
        let second = (self.clock.now_ns() / SECOND_NS) as u32;
        bytes[..4].copy_from_slice(&second.to_be_bytes());
        let id = ObjectId::from_bytes(bytes);
        let text = format!("\"{id}{}\"", "-".repeat(self.rng.usize(0..400)));
        (id, text.into())
    }

    /// Records that the next step of these entries is requested, requests it, and records its outcome.
    async fn take_step(
        &mut self,
        rooms: &Rooms,
        keys: Vec<(EntryKey, Box<str>)>,
        command: Command,
    ) -> Result<(), Failure> {
        let note = |change: &dyn Fn(&mut TrackedEntry)| {
            let mut model = self.model.lock();
            for (key, text) in &keys {
                let noted = model.entries.noted.entry(*key);
                change(noted.or_insert_with(|| TrackedEntry {
                    text: text.clone(),
                    acknowledged: 0,
                    under_way: false,
                }));
            }
        };
        note(&|noted| noted.under_way = true);
        rooms.journal.commit(command).await?;
        note(&|noted| {
            noted.under_way = false;
            noted.acknowledged += 1;
        });
        Ok(())
    }

    pub(super) async fn verdict(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let Some(rule_id) = self.owner(rooms, Stream::History) else {
            return Ok(());
        };
        let at_ns = self.clock.now_ns();
        let (id, text) = self.entry_id();
        let trigger_id = self.rng.bool().then(|| self.entry_id().0);
        let verdict = Verdict {
            id,
            rule_id,
            at_ns,
            outcome: Outcome::Met,
            evidence: Some(text.clone()),
            key_id: id,
            previous_state: RuleState::Armed,
            runtime: RuleRuntime::new(at_ns),
            trigger_id,
            silence_id: None,
            deliveries: Vec::new(),
            fan_out: None,
            room: None,
            told: Vec::new(),
        };
        let key = |stream, id| EntryKey {
            stream,
            owner: rule_id,
            at_ns,
            id,
        };
        let mut keys = vec![(key(Stream::History, id), text.clone())];
        if let Some(trigger_id) = trigger_id {
            keys.push((key(Stream::History, trigger_id), text));
            keys.push((key(Stream::Triggers, trigger_id), Box::default()));
        }
        self.take_step(rooms, keys, Command::VerdictRecorded { verdict })
            .await
    }

    async fn add_delivery(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let Some(owner) = self.owner(rooms, Stream::Deliveries) else {
            return Ok(());
        };
        let (id, text) = self.entry_id();
        let created_at_ns = self.clock.now_ns();
        let key = EntryKey {
            stream: Stream::Deliveries,
            owner,
            at_ns: created_at_ns,
            id,
        };
        let delivery = Delivery {
            id,
            webhook_id: id,
            receiver: Receiver::Webhook(owner),
            event: Event::AlertTriggered,
            body: Body::whole(text.as_bytes()),
            created_at_ns,
            status: DeliveryStatus::Pending,
            attempts: Vec::new(),
            tries: 0,
            next_attempt_at_ns: Some(created_at_ns),
            again: false,
            organization_id: None,
        };
        let deliveries = vec![delivery];
        self.take_step(rooms, vec![(key, text)], Command::DeliveriesQueued { deliveries })
            .await
    }

    /// An attempt at a pending delivery, or a redelivery of one that has ended.
    async fn advance_a_delivery(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let now_ns = self.clock.now_ns();
        let known: Vec<(EntryKey, TrackedEntry)> = {
            let model: &Model = &self.model.lock();
            let settled = model.entries.noted.iter().filter(|(key, noted)| {
                key.stream == Stream::Deliveries
                    && key.at_ns >= key.stream.cutoff_ns(now_ns)
                    && !noted.under_way
            });
            settled.map(|(key, noted)| (*key, noted.clone())).collect()
        };
        let Some((key, noted)) = self.rng.choice(known) else {
            return Ok(());
        };
        let (catalog, ledger) = (&rooms.catalog, &rooms.ledger);
        if catalog.read(|catalog| catalog.webhook(key.owner).is_none()) {
            return Ok(());
        }
        let command = if noted.acknowledged % 2 == 1 {
            let attempt = Attempt {
                at_ns: now_ns,
                status_code: Some(200),
                error: None,
                duration_ms: 1,
            };
            let then = self.rng.choice([AfterAttempt::Delivered, AfterAttempt::Failed]);
            let made = AttemptMade {
                delivery_id: key.id,
                attempt,
                then: then.unwrap_or(AfterAttempt::Delivered),
            };
            Command::AttemptMade { made }
        } else {
            let view = catalog.read(|catalog| ledger.view(catalog, key.stream, key.owner));
            let found = view.get(key.id, key.stream.cutoff_ns(now_ns)).expect("it reads");
            let (_, Content::Stored(payload)) = found.expect("it has ended");
            let delivery = Delivery::decode(&payload).expect("a delivery");
            let deliveries = vec![delivery];
            Command::DeliveriesQueued { deliveries }
        };
        self.take_step(rooms, vec![(key, noted.text)], command).await
    }
}
