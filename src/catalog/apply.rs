//! Applies each command to the catalog. Deterministic and total: a command about an object that no longer exists has no
//! effect, so replaying over a newer snapshot is harmless.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collection::Collection;
use super::holdings::HoldingsTracker;
use super::state::{BucketEntry, OrganizationEntry, SourceById};
use super::text_bytes;
use super::{
    Bucket, Catalog, Command, Field, FormerValue, Key, KeyHash, MonthCalls, MonthDay, NewSource,
    Organization, Revisions, Rule, RuleState, Schema, Source, SourceSettings, Webhook,
};
use crate::ids::ObjectId;

impl Catalog {
    /// Applies a command.
    pub fn apply(&mut self, command: &Command) {
        self.revise(command);
        match command {
            Command::ServerSecretSet { secret } => {
                self.server_secret.get_or_insert(*secret);
            }
            Command::SignedUp { organization, user } => {
                self.insert_organization(Arc::new(organization.clone()));
                self.insert_user(Arc::new(user.clone()));
            }
            Command::PasswordChanged {
                user_id,
                password,
                session,
            } => self.change_password(*user_id, password, session.as_ref()),
            Command::SessionBegun { user_id, session } => {
                self.change_user(*user_id, |user| user.begin_session(session.clone()));
            }
            Command::SessionsTouched { touches } => self.touch_sessions(touches),
            Command::SessionEnded { user_id, session, .. } => {
                self.change_user(*user_id, |user| user.end_session(*session));
            }
            Command::InvitationCreated {
                organization_id,
                invitation,
            } => self.create_invitation(*organization_id, invitation),
            Command::InvitationDeleted {
                organization_id,
                invitation_id,
            } => self.delete_invitation(*organization_id, *invitation_id),
            Command::InvitationAccepted { invitation_id, user } => {
                self.accept_invitation(*invitation_id, user);
            }
            Command::MemberRoleChanged { user_id, role } => {
                self.change_user(*user_id, |user| user.role = *role);
            }
            Command::MemberRemoved { user_id } => self.remove_user(*user_id),
            Command::ResetCreated { user_id, reset } => self.set_reset(*user_id, Some(*reset)),
            Command::OrganizationRenamed {
                organization_id,
                name,
                at_ns,
            } => self.change_organization(*organization_id, *at_ns, |it| it.name.clone_from(name)),
            Command::PlanChanged {
                organization_id,
                plan,
                at_ns,
            } => self.change_organization(*organization_id, *at_ns, |it| it.plan = *plan),
            Command::CallsCounted { totals } => {
                for (organization_id, month, calls) in totals {
                    self.restore_calls(*organization_id, *month, *calls);
                }
            }
            Command::KeyCreated { key } => self.add_key(key.clone()),
            Command::KeyRotated {
                key_id,
                hash,
                shown_prefix,
                former_until_ns,
            } => self.rotate_key(*key_id, *hash, shown_prefix, *former_until_ns),
            Command::KeyCallsCounted { totals } => {
                for (id, month, calls) in totals {
                    if let Some(key) = self.keys.get(*id) {
                        key.calls.restore(*month, *calls);
                    }
                }
            }
            Command::KeyDeleted { key_id } => self.delete_key(*key_id),
            Command::KeysTouched { touches } => {
                for (id, minute) in touches {
                    if let Some(key) = self.keys.get(*id) {
                        key.touch(*minute);
                    }
                }
            }
            Command::BucketCreated { bucket } => {
                self.last_bucket_ordinal += 1;
                self.insert_bucket(Arc::new(bucket.numbered(self.last_bucket_ordinal)), 0);
            }
            Command::BucketOrdinalsBegun { first } => {
                self.last_bucket_ordinal = self.last_bucket_ordinal.max(first.saturating_sub(1));
            }
            Command::BucketUpdated {
                bucket_id,
                name,
                description,
                retention_days,
                at_ns,
                next_sequence,
                deliveries,
                fan_out,
            } => {
                self.queue_deliveries(deliveries, fan_out.as_ref());
                self.change_bucket(*bucket_id, *at_ns, |bucket| {
                    bucket.name.clone_from(name);
                    bucket.description.clone_from(description);
                    if bucket.retention_days != *retention_days {
                        // Points that have expired stay expired under any later retention.
                        match *next_sequence {
                            Some(next_sequence) => bucket.expire(*at_ns, next_sequence),
                            None => bucket.expired_before_ns = bucket.retention_cutoff_ns(*at_ns),
                        }
                        bucket.retention_days = *retention_days;
                    }
                });
            }
            Command::BucketDeleted { bucket_id } => self.delete_bucket(*bucket_id),
            Command::SourceCreated { source } => self.create_source(source),
            Command::SourceUpdated {
                source_id,
                settings,
                at_ns,
            } => self.update_source(*source_id, settings, *at_ns),
            Command::SchemaExtended {
                source_id,
                fields,
                at_ns,
            } => self.extend_schema(*source_id, fields, *at_ns),
            Command::MetricTyped {
                source_id,
                metric_type,
            } => self.change_source(*source_id, |source| source.metric_type = Some(*metric_type)),
            Command::FreshnessChanged { changes, at_ns } => {
                for change in changes {
                    self.queue_owed(&[&change.told], *at_ns);
                    self.change_source(change.source_id, |source| {
                        source.stale_since_ns = change.stale_since_ns;
                    });
                }
            }
            Command::SourceDeleted { source_id } => self.delete_source(*source_id),
            Command::RuleCreated { rule } => self.create_rule(rule),
            Command::RuleUpdated {
                rule_id,
                settings,
                runtime,
                at_ns,
            } => {
                if let Some(known) = self.rule(*rule_id) {
                    self.insert_rule(Arc::new(Rule {
                        settings: Arc::new(settings.clone()),
                        runtime: *runtime,
                        updated_at_ns: *at_ns,
                        ..Rule::clone(known)
                    }));
                }
            }
            Command::RuleAcknowledged {
                rule_id,
                acknowledgement,
            } => self.rules.change(*rule_id, |rule| {
                rule.acknowledgement = Some(acknowledgement.clone());
            }),
            Command::RuleDeleted { rule_id } => self.delete_rule(*rule_id),
            Command::VerdictRecorded { verdict } => self.record_verdict(verdict),
            Command::RuleResolved { rule_id, at_ns, told } => {
                self.queue_owed(&[told], *at_ns);
                self.rules
                    .change(*rule_id, |rule| rule.runtime.state = RuleState::Armed);
            }
            Command::RuleOverdue {
                rule_id,
                due_at_ns,
                at_ns,
                told,
            } => {
                self.queue_owed(&[told], *at_ns);
                self.rules
                    .change(*rule_id, |rule| rule.overdue_told_ns = Some(*due_at_ns));
            }
            Command::WebhookCreated { webhook } => self.add_webhook(webhook.clone()),
            Command::WebhookUpdated {
                webhook_id,
                settings,
                at_ns,
            } => {
                if let Some(known) = self.webhook(*webhook_id) {
                    self.add_webhook(Webhook {
                        settings: settings.clone(),
                        updated_at_ns: *at_ns,
                        ..Webhook::clone(known)
                    });
                }
            }
            Command::WebhookDeleted { webhook_id } => self.delete_webhook(*webhook_id),
            Command::SilenceCreated { silence } => self.create_silence(silence),
            Command::SilenceDeleted { silence_id } => self.delete_silence(*silence_id),
            Command::AnnotationCreated { annotation } => self.create_annotation(annotation),
            Command::AnnotationUpdated {
                annotation_id,
                settings,
                at_ns,
            } => self.update_annotation(*annotation_id, settings, *at_ns),
            Command::AnnotationDeleted { annotation_id } => self.delete_annotation(*annotation_id),
            Command::BoardCreated { board } => self.create_board(board),
            Command::BoardUpdated {
                board_id,
                settings,
                at_ns,
            } => self.update_board(*board_id, settings, *at_ns),
            Command::BoardDeleted { board_id } => self.delete_board(*board_id),
            Command::BoardShared { board_id, share } => self.share_board(*board_id, share),
            Command::BoardUnshared { board_id, share_id } => self.unshare_board(*board_id, *share_id),
            Command::DeliveriesQueued { deliveries } => self.queue_deliveries(deliveries, None),
            Command::AttemptMade { made } => self.record_attempt(made),
            Command::Audited { command, audit } => self.apply_audited(command, audit),
            Command::PointsDeleted { audit } => self.record_audit(audit),
            // Results of deliveries that were never in the outbox.
            Command::DeliveriesCounted { counts } => {
                for (webhook_id, counted) in counts {
                    self.webhooks
                        .change(*webhook_id, |webhook| webhook.totals.add(*counted));
                }
            }
        }
    }

    pub(super) fn insert_organization(&mut self, organization: Arc<Organization>) {
        let id = organization.id;
        let mut holdings = HoldingsTracker::default();
        holdings.replace_text(0, organization.name.len());
        self.index_invitations(&organization);
        let entry = OrganizationEntry {
            organization,
            calls: Arc::default(),
            members: BTreeSet::new(),
            buckets: Collection::default(),
            holdings,
            revisions: Revisions::default(),
        };
        if self.organizations.insert(id, entry).is_none() {
            self.organization_order.push(id);
        }
    }

    /// Adds a key as the newest one. Has no effect if the key exists.
    pub(super) fn add_key(&mut self, key: Key) {
        if !self.keys.contains(key.id) {
            let ordinal = self.keys.next_ordinal();
            self.insert_key(ordinal, Arc::new(key));
        }
    }

    /// Adds a key that has an ordinal already. Has no effect if its owner does not exist.
    pub(super) fn insert_key(&mut self, ordinal: u64, key: Arc<Key>) {
        let owner_exists = match key.bucket_id {
            Some(bucket_id) => self.buckets.contains_key(&bucket_id),
            None => self.organizations.contains_key(&key.organization_id),
        };
        if owner_exists {
            self.update_holdings(self.organization_of_key(&key), |it| it.count_key(1, &key));
            self.index_key(&key);
            self.keys.insert(ordinal, key);
        }
    }

    pub(super) fn insert_bucket(&mut self, bucket: Arc<Bucket>, next_source_ordinal: u32) {
        if let Some(owner) = self.organizations.get_mut(&bucket.organization_id) {
            owner.buckets.insert(bucket.ordinal, Arc::clone(&bucket));
            owner.holdings.replace_text(0, of_bucket(&bucket));
            self.bucket_by_ordinal.insert(bucket.ordinal, bucket.id);
            let entry = BucketEntry {
                bucket,
                sources: Collection::default(),
                next_source_ordinal,
            };
            self.buckets.insert(entry.bucket.id, entry);
        }
    }

    /// Inserts a source or replaces it by a new version.
    pub(super) fn insert_source(&mut self, source: Arc<Source>) {
        if let Some(entry) = self.buckets.get_mut(&source.bucket_id) {
            let known = entry.sources.members.get(source.ordinal).cloned();
            entry.sources.insert(source.ordinal, Arc::clone(&source));
            if let Some(owner) = self.organizations.get_mut(&entry.bucket.organization_id) {
                // Add the new version first, so that a schema shared by both versions stays.
                owner.holdings.count_source(1, &source);
                known
                    .iter()
                    .for_each(|known| owner.holdings.count_source(-1, known));
            }
            self.sources.replace(SourceById(source));
        }
    }

    fn change_organization(&mut self, id: ObjectId, at_ns: i64, change: impl FnOnce(&mut Organization)) {
        if let Some(entry) = self.organizations.get_mut(&id) {
            let bytes_before = entry.organization.name.len();
            let organization = Arc::make_mut(&mut entry.organization);
            change(organization);
            organization.updated_at_ns = at_ns;
            entry.holdings.replace_text(bytes_before, organization.name.len());
        }
    }

    /// Restores a total of calls, which never lowers the count.
    pub(super) fn restore_calls(&mut self, organization_id: ObjectId, month: MonthDay, calls: u64) {
        if let Some(entry) = self.organizations.get(&organization_id) {
            entry.calls.restore(MonthCalls { month, calls });
        }
    }

    /// Makes the key findable by its values.
    fn index_key(&mut self, key: &Arc<Key>) {
        for hash in key.hashes() {
            self.key_by_hash.insert(hash, Arc::clone(key));
        }
    }

    fn rotate_key(&mut self, id: ObjectId, hash: KeyHash, shown_prefix: &str, former_until_ns: Option<i64>) {
        let Some(key) = self.keys.get(id).cloned() else {
            return;
        };
        for hash in key.hashes() {
            self.key_by_hash.remove(&hash);
        }
        let former = |until_ns| FormerValue {
            hash: key.hash,
            until_ns,
        };
        let former = former_until_ns.map(former);
        self.keys.change(id, |key| {
            key.former = former;
            key.hash = hash;
            key.shown_prefix = shown_prefix.into();
        });
        if let Some(key) = self.keys.get(id).cloned() {
            self.index_key(&key);
        }
    }

    fn delete_key(&mut self, id: ObjectId) {
        if let Some(key) = self.keys.remove(id) {
            for hash in key.hashes() {
                self.key_by_hash.remove(&hash);
            }
            self.update_holdings(self.organization_of_key(&key), |it| it.count_key(-1, &key));
        }
    }

    fn change_bucket(&mut self, id: ObjectId, at_ns: i64, change: impl FnOnce(&mut Bucket)) {
        if let Some(entry) = self.buckets.get_mut(&id) {
            let bytes_before = of_bucket(&entry.bucket);
            let bucket = Arc::make_mut(&mut entry.bucket);
            change(bucket);
            bucket.updated_at_ns = at_ns;
            if let Some(owner) = self.organizations.get_mut(&bucket.organization_id) {
                owner.holdings.replace_text(bytes_before, of_bucket(bucket));
                owner.buckets.insert(bucket.ordinal, Arc::clone(&entry.bucket));
            }
        }
    }

    fn delete_bucket(&mut self, id: ObjectId) {
        let Some(entry) = self.buckets.remove(&id) else {
            return;
        };
        let (keys, rules) = (self.keys.remove_all_of(id), self.rules.remove_all_of(id));
        let annotations = self.annotations.remove_all_of(id);
        for key in &keys {
            for hash in key.hashes() {
                self.key_by_hash.remove(&hash);
            }
        }
        for source in entry.sources.members.iter() {
            self.sources.remove(&source.id);
        }
        self.bucket_by_ordinal.remove(&entry.bucket.ordinal);
        if let Some(owner) = self.organizations.get_mut(&entry.bucket.organization_id) {
            owner.buckets.remove(entry.bucket.ordinal);
            let holdings = &mut owner.holdings;
            holdings.replace_text(of_bucket(&entry.bucket), 0);
            let sources = entry.sources.members.iter();
            sources.for_each(|source| holdings.count_source(-1, source));
            keys.iter().for_each(|key| holdings.count_key(-1, key));
            rules
                .iter()
                .for_each(|rule| holdings.count_rule(-1, &rule.settings));
            annotations
                .iter()
                .for_each(|it| holdings.count_annotation(-1, &it.settings));
        }
        self.delete_silences_without_bucket(entry.bucket.organization_id);
    }

    fn create_source(&mut self, new: &NewSource) {
        let Some(entry) = self.buckets.get_mut(&new.bucket_id) else {
            return;
        };
        let ordinal = entry.next_source_ordinal;
        entry.next_source_ordinal += 1;
        let source = Arc::new(Source {
            id: new.id,
            ordinal,
            bucket_id: new.bucket_id,
            name: new.settings.name.clone(),
            kind: self.kinds.intern(Arc::clone(&new.settings.kind)),
            description: new.settings.description.clone(),
            schema: self.schemas.intern(Schema::from(new.settings.fields.clone())),
            schema_mode: new.settings.schema_mode,
            downsampling: new.settings.downsampling,
            status: new.settings.status,
            dimensions: new.settings.dimensions.clone(),
            duplicates: new.settings.duplicates,
            expected_interval_seconds: new.settings.expected_interval_seconds,
            stale_since_ns: None,
            metric_type: new.metric_type,
            created_at_ns: new.created_at_ns,
            updated_at_ns: new.created_at_ns,
        });
        self.insert_source(source);
    }

    fn update_source(&mut self, id: ObjectId, settings: &SourceSettings, at_ns: i64) {
        let Some(known) = self.source(id).cloned() else {
            return;
        };
        let schema = match known.schema.merged(&settings.fields) {
            Some(merged) => self.schemas.intern(merged),
            None => Arc::clone(&known.schema),
        };
        let source = Arc::new(Source {
            name: settings.name.clone(),
            kind: self.kinds.intern(Arc::clone(&settings.kind)),
            description: settings.description.clone(),
            schema,
            schema_mode: settings.schema_mode,
            downsampling: settings.downsampling,
            status: settings.status,
            dimensions: settings.dimensions.clone(),
            duplicates: settings.duplicates,
            expected_interval_seconds: settings.expected_interval_seconds,
            updated_at_ns: at_ns,
            ..*known
        });
        self.insert_source(source);
    }

    fn extend_schema(&mut self, id: ObjectId, fields: &[Field], at_ns: i64) {
        let Some(known) = self.source(id).cloned() else {
            return;
        };
        if let Some(extended) = known.schema.extended(fields) {
            let schema = self.schemas.intern(extended);
            self.insert_source(Arc::new(Source {
                schema,
                updated_at_ns: at_ns,
                ..(*known).clone()
            }));
        }
    }

    fn change_source(&mut self, id: ObjectId, change: impl FnOnce(&mut Source)) {
        if let Some(known) = self.source(id) {
            let mut source = Source::clone(known);
            change(&mut source);
            self.insert_source(Arc::new(source));
        }
    }

    fn delete_source(&mut self, id: ObjectId) {
        let Some(SourceById(source)) = self.sources.take(&id) else {
            return;
        };
        self.delete_annotations_of_source(&source);
        let rules = self.remove_rules_of_source(&source);
        if let Some(entry) = self.buckets.get_mut(&source.bucket_id) {
            entry.sources.remove(source.ordinal);
        }
        self.update_holdings(self.organization_of_bucket(source.bucket_id), |it| {
            it.count_source(-1, &source);
            rules.iter().for_each(|rule| it.count_rule(-1, &rule.settings));
        });
    }
}

fn of_bucket(bucket: &Bucket) -> usize {
    text_bytes::of_bucket(&bucket.name, bucket.description.as_deref())
}
