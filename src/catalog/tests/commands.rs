//! Random commands for the snapshot test, from a seed.

mod audit;
mod boards;
mod marks;
mod people;

use std::sync::Arc;

use super::super::*;
use super::alerts::{attempt, delivery, rule_settings, verdict, webhook};
use super::{field, id, password, settings};
use crate::clock::DAY_NS;
use crate::ids::ObjectId;

/// A small generator (splitmix64), so that a printed seed repeats a run on any machine.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len())])
    }
}

/// Generates commands that a service could issue, most of them about existing objects.
pub(super) struct CommandGenerator {
    random: SplitMix,
    made: u64,
    organizations: Vec<ObjectId>,
    users: Vec<ObjectId>,
    keys: Vec<ObjectId>,
    buckets: Vec<ObjectId>,
    sources: Vec<ObjectId>,
    rules: Vec<ObjectId>,
    webhooks: Vec<ObjectId>,
    silences: Vec<ObjectId>,
    annotations: Vec<ObjectId>,
    boards: Vec<ObjectId>,
    /// Links of boards, each with its board.
    shares: Vec<(ObjectId, ObjectId)>,
    invitations: Vec<(ObjectId, Invitation)>,
    deliveries: Vec<ObjectId>,
    /// The deliveries as first queued.
    queued: Vec<Delivery>,
    /// Whether there are commands that the snapshot of older programs does not support: about silences, annotations,
    /// boards and people, and events for several webhooks.
    is_recent: bool,
}

impl CommandGenerator {
    pub fn new(seed: u64) -> Self {
        let none = Vec::new;
        Self {
            random: SplitMix(seed),
            made: 0,
            organizations: none(),
            users: none(),
            keys: none(),
            buckets: none(),
            sources: none(),
            rules: Vec::new(),
            webhooks: Vec::new(),
            silences: Vec::new(),
            annotations: Vec::new(),
            boards: Vec::new(),
            shares: Vec::new(),
            invitations: Vec::new(),
            deliveries: Vec::new(),
            queued: Vec::new(),
            is_recent: false,
        }
    }

    /// Also generates commands that older programs did not support.
    pub fn recent(seed: u64) -> Self {
        Self {
            is_recent: true,
            ..Self::new(seed)
        }
    }

    fn fields(&mut self) -> Vec<Field> {
        let count = 1 + self.random.below(3);
        (0..count)
            .map(|n| field(&format!("f{}", n + self.random.below(2) * 3), FieldType::ALL[n]))
            .collect()
    }

    pub fn next(&mut self) -> Command {
        loop {
            if let Some(command) = self.entry_alone() {
                return command;
            }
            if let Some(command) = self.attempt() {
                return self.perhaps_audited(command);
            }
        }
    }

    fn attempt(&mut self) -> Option<Command> {
        if self.random.below(3) == 0 {
            return self.attempt_at_alerts();
        }
        self.made += 1;
        let (new, at_ns) = (id(self.made), self.made as i64 * DAY_NS);
        let name: Box<str> = format!("n{}", self.made).into();
        Some(match self.random.below(18) {
            0 => Command::ServerSecretSet {
                secret: Bytes([self.made as u8; 32]),
            },
            17 => Command::BucketOrdinalsBegun {
                first: self.made as u32 * 10,
            },
            1 => {
                let user_id = id(self.made << 32);
                self.organizations.push(new);
                self.users.push(user_id);
                Command::SignedUp {
                    organization: Organization {
                        id: new,
                        name: name.clone(),
                        plan: Plan::Free,
                        invitations: Vec::new(),
                        created_at_ns: at_ns,
                        updated_at_ns: at_ns,
                    },
                    user: User::new(user_id, new, name.clone(), name, password(1), at_ns),
                }
            }
            2 => Command::PasswordChanged {
                user_id: self.random.pick(&self.users)?,
                password: password(2),
                session: None,
            },
            3 => Command::OrganizationRenamed {
                organization_id: self.random.pick(&self.organizations)?,
                name,
                at_ns,
            },
            4 => Command::PlanChanged {
                organization_id: self.random.pick(&self.organizations)?,
                plan: self.random.pick(&Plan::ALL)?,
                at_ns,
            },
            5 => {
                let organization_id = self.random.pick(&self.organizations)?;
                let bucket_id = self
                    .random
                    .pick(&self.buckets)
                    .filter(|_| self.random.below(2) == 0);
                self.keys.push(new);
                let mut hash = [0; 32];
                hash[..8].copy_from_slice(&self.made.to_le_bytes());
                let kind = if bucket_id.is_some() {
                    KeyType::Write
                } else {
                    KeyType::Admin
                };
                let key = Key {
                    id: new,
                    organization_id,
                    bucket_id,
                    kind,
                    name,
                    hash: Bytes(hash),
                    shown_prefix: "svc_".into(),
                    created_at_ns: at_ns,
                    expires_at_ns: self.made.is_multiple_of(3).then_some(at_ns + 1),
                    former: None,
                    last_used_minute: LastUse::default(),
                    calls: KeyCalls::default(),
                };
                Command::KeyCreated { key }
            }
            6 => match self.random.below(3) {
                0 => Command::KeyDeleted {
                    key_id: self.random.pick(&self.keys)?,
                },
                1 => {
                    let mut hash = [1; 32];
                    hash[..8].copy_from_slice(&self.made.to_le_bytes());
                    Command::KeyRotated {
                        key_id: self.random.pick(&self.keys)?,
                        hash: Bytes(hash),
                        shown_prefix: "svc_n".into(),
                        former_until_ns: self.made.is_multiple_of(2).then_some(at_ns),
                    }
                }
                _ => Command::KeyCallsCounted {
                    totals: vec![(self.random.pick(&self.keys)?, 20_000, self.made)],
                },
            },
            7 => Command::KeysTouched {
                touches: vec![(self.random.pick(&self.keys)?, self.made as u32)],
            },
            8 => {
                self.buckets.push(new);
                Command::BucketCreated {
                    bucket: NewBucket {
                        id: new,
                        organization_id: self.random.pick(&self.organizations)?,
                        name,
                        description: None,
                        retention_days: 30,
                        created_at_ns: at_ns,
                    },
                }
            }
            9 => Command::BucketUpdated {
                bucket_id: self.random.pick(&self.buckets)?,
                name,
                description: Some("changed".into()),
                retention_days: 1 + self.random.below(60) as u32,
                at_ns,
                next_sequence: (self.random.below(4) > 0).then_some(self.made),
                deliveries: Vec::new(),
                fan_out: self.fan_out(Event::BucketUpdated, at_ns),
            },
            10 if self.random.below(4) == 0 => Command::BucketDeleted {
                bucket_id: self.random.pick(&self.buckets)?,
            },
            10 | 11 => {
                self.sources.push(new);
                let settings = settings(&name, self.fields());
                let bucket_id = self.random.pick(&self.buckets)?;
                Command::SourceCreated {
                    source: NewSource {
                        id: new,
                        bucket_id,
                        settings,
                        metric_type: None,
                        created_at_ns: at_ns,
                    },
                }
            }
            12 => Command::SourceUpdated {
                source_id: self.random.pick(&self.sources)?,
                settings: settings(&name, self.fields()),
                at_ns,
            },
            13 => Command::SchemaExtended {
                source_id: self.random.pick(&self.sources)?,
                fields: self.fields(),
                at_ns,
            },
            15 => Command::SessionEnded {
                user_id: self.random.pick(&self.users)?,
                session: self.random.below(100) as u64,
                at_ns,
            },
            14 => Command::CallsCounted {
                totals: vec![(
                    self.random.pick(&self.organizations)?,
                    20_000 + 30 * self.random.below(3) as u32,
                    self.random.below(1_000) as u64,
                )],
            },
            _ => Command::SourceDeleted {
                source_id: self.random.pick(&self.sources)?,
            },
        })
    }
    fn delivery(&mut self, receiver: Receiver) -> Delivery {
        self.made += 1;
        self.deliveries.push(id(self.made));
        let queued = delivery(self.made, receiver);
        self.queued.push(queued.clone());
        queued
    }

    /// An event with deliveries to one to four webhooks.
    fn fan_out(&mut self, event: Event, at_ns: i64) -> Option<FanOut> {
        if !self.is_recent {
            return None;
        }
        let organization_id = self.random.pick(&self.organizations)?;
        self.made += 1;
        let event_id = id(self.made);
        let body = EventBody::new(
            event_id,
            organization_id,
            at_ns,
            event_id.to_string().into_bytes(),
        );
        let body = Arc::new(body);
        let mut deliveries = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let webhook_id = self.random.pick(&self.webhooks)?;
            // A redelivery has its own body.
            let own = self.delivery(Receiver::Webhook(webhook_id));
            if let Some(queued) = self.queued.last_mut() {
                (queued.event, queued.created_at_ns) = (event, at_ns);
            }
            deliveries.push((webhook_id, own.id, own.webhook_id));
        }
        Some(FanOut {
            event,
            body,
            deliveries,
        })
    }

    /// Commands that create many sources in one bucket.
    pub fn bucket_of_many_sources(&mut self, sources: usize) -> Vec<Command> {
        let mut commands = Vec::new();
        while self.buckets.is_empty() {
            commands.push(self.next());
        }
        commands.extend((0..sources).map(|_| {
            self.made += 1;
            let new = id(self.made);
            self.sources.push(new);
            let settings = settings(&format!("n{}", self.made), self.fields());
            Command::SourceCreated {
                source: NewSource {
                    id: new,
                    bucket_id: self.buckets[0],
                    settings,
                    metric_type: None,
                    created_at_ns: self.made as i64,
                },
            }
        }));
        commands
    }

    fn attempt_at_alerts(&mut self) -> Option<Command> {
        if self.is_recent && self.random.below(8) == 0 {
            return match self.random.below(4) {
                0 => self.attempt_at_silences(),
                1 => self.attempt_at_boards(),
                2 => self.attempt_at_people(),
                _ => self.attempt_at_annotations(),
            };
        }
        self.made += 1;
        let (new, at_ns) = (id(self.made), self.made as i64 * DAY_NS);
        Some(match self.random.below(13) {
            0 | 1 => {
                let source_id = self.random.pick(&self.sources)?;
                self.rules.push(new);
                Command::RuleCreated {
                    rule: NewRule {
                        id: new,
                        source_id,
                        settings: rule_settings("temperature above 30"),
                        created_at_ns: at_ns,
                    },
                }
            }
            2 if self.random.below(3) == 0 => Command::RuleAcknowledged {
                rule_id: self.random.pick(&self.rules)?,
                acknowledgement: Acknowledgement {
                    at_ns,
                    by: new,
                    note: Some("seen".into()),
                },
            },
            2 => Command::RuleUpdated {
                rule_id: self.random.pick(&self.rules)?,
                settings: rule_settings("temperature below 5"),
                runtime: RuleRuntime::new(at_ns),
                at_ns,
            },
            3 if self.random.below(8) == 0 => Command::MetricTyped {
                source_id: self.random.pick(&self.sources)?,
                metric_type: MetricType::ALL[self.random.below(MetricType::ALL.len())],
            },
            3 if self.random.below(4) == 0 => {
                let told = NewDeliveries {
                    fan_out: self.fan_out(Event::SourceStale, at_ns),
                    ..NewDeliveries::default()
                };
                let change = FreshnessChange {
                    source_id: self.random.pick(&self.sources)?,
                    stale_since_ns: (self.random.below(2) == 0).then_some(at_ns),
                    told,
                };
                Command::FreshnessChanged {
                    changes: vec![change],
                    at_ns,
                }
            }
            3 if self.random.below(3) > 0 => {
                let rule_id = self.random.pick(&self.rules)?;
                let told = NewDeliveries {
                    fan_out: self.fan_out(Event::AlertResolved, at_ns),
                    ..NewDeliveries::default()
                };
                match self.random.below(2) {
                    0 => Command::RuleResolved { rule_id, at_ns, told },
                    _ => Command::RuleOverdue {
                        rule_id,
                        due_at_ns: at_ns,
                        at_ns,
                        told,
                    },
                }
            }
            3 => Command::RuleDeleted {
                rule_id: self.random.pick(&self.rules)?,
            },
            4 | 5 => {
                let rule_id = self.random.pick(&self.rules)?;
                let receiver = Receiver::Rule {
                    rule_id,
                    url: "https://example.com".into(),
                };
                let mut verdict = verdict(self.made, rule_id, at_ns);
                verdict.deliveries.push(self.delivery(receiver));
                if let Some(webhook_id) = self.random.pick(&self.webhooks) {
                    verdict
                        .deliveries
                        .push(self.delivery(Receiver::Webhook(webhook_id)));
                }
                verdict.fan_out = self.fan_out(Event::AlertTriggered, at_ns);
                if let Some(fan_out) = &verdict.fan_out {
                    verdict.room = Some(PendingLimits {
                        organization_id: fan_out.body.organization_id,
                        deliveries_max: 5,
                        bytes_max: 5_000,
                    });
                }
                let resumed = NewDeliveries {
                    fan_out: self.fan_out(Event::EvaluationResumed, at_ns),
                    ..NewDeliveries::default()
                };
                verdict.told.push(resumed);
                Command::VerdictRecorded { verdict }
            }
            6 => {
                let organization_id = self.random.pick(&self.organizations)?;
                self.webhooks.push(new);
                Command::WebhookCreated {
                    webhook: webhook(self.made, organization_id),
                }
            }
            7 if self.random.below(3) == 0 => Command::WebhookDeleted {
                webhook_id: self.random.pick(&self.webhooks)?,
            },
            7 => Command::DeliveriesCounted {
                counts: vec![(
                    self.random.pick(&self.webhooks)?,
                    DeliveryTotals {
                        total: 2,
                        successful: 1,
                        failed: 1,
                        last_at_ns: Some(at_ns),
                        last_delivered: Some(true),
                    },
                )],
            },
            8 => {
                let mut settings = webhook(self.made, new).settings;
                settings.url = format!("https://example.com/{}", self.made).into();
                Command::WebhookUpdated {
                    webhook_id: self.random.pick(&self.webhooks)?,
                    settings,
                    at_ns,
                }
            }
            9 if self.random.below(2) == 0 => {
                let webhook_id = self.random.pick(&self.webhooks)?;
                let deliveries = vec![self.delivery(Receiver::Webhook(webhook_id))];
                Command::DeliveriesQueued { deliveries }
            }
            // A redelivery, whether or not the delivery has ended.
            9 => {
                let known = self.random.below(self.queued.len().max(1));
                let deliveries = vec![Delivery {
                    status: DeliveryStatus::Failed,
                    attempts: vec![attempt(new, at_ns, AfterAttempt::Failed).attempt],
                    ..self.queued.get(known)?.clone()
                }];
                Command::DeliveriesQueued { deliveries }
            }
            _ => {
                let delivery_id = self.random.pick(&self.deliveries)?;
                let after = [
                    AfterAttempt::Delivered,
                    AfterAttempt::Retry(at_ns),
                    AfterAttempt::Failed,
                ];
                Command::AttemptMade {
                    made: attempt(delivery_id, at_ns, self.random.pick(&after)?),
                }
            }
        })
    }
}
