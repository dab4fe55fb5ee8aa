//! Revision numbers: for each organization and each kind of object, a counter of changes. Kept only in memory: a client
//! that compares numbers across restarts of the server must distinguish the runs.

use super::{Catalog, Command};
use crate::ids::ObjectId;

/// The last change of each kind of object. Compare only for equality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Revisions {
    /// Name and plan.
    pub organization: u64,
    pub buckets: u64,
    /// Data sources and their schemas.
    pub sources: u64,
    /// Alert rules, their verdicts and states.
    pub rules: u64,
    /// Webhooks and their deliveries.
    pub webhooks: u64,
    /// API keys, except their last use.
    pub keys: u64,
    /// Silences; that one ends by itself is no change.
    pub silences: u64,
    pub annotations: u64,
    /// Boards and their links.
    pub boards: u64,
    /// Members and invitations.
    pub members: u64,
}

/// Distinguishes states of an organization's sources in this process: equal if no source or bucket has changed between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcesVersion {
    /// The number of the catalog's handle.
    pub catalog: u64,
    pub organization_id: ObjectId,
    pub buckets: u64,
    pub sources: u64,
}

impl Revisions {
    /// A number that changes whenever one of the counters does, because they only grow.
    pub fn total(&self) -> u64 {
        let Revisions {
            organization,
            buckets,
            sources,
            rules,
            webhooks,
            keys,
            silences,
            annotations,
            boards,
            members,
        } = self;
        organization + buckets + sources + rules + webhooks + keys + silences + annotations + boards + members
    }
}

/// Selects the counter of a kind.
type Kind = fn(&mut Revisions) -> &mut u64;

const ORGANIZATION: Kind = |it| &mut it.organization;
const BUCKETS: Kind = |it| &mut it.buckets;
const SOURCES: Kind = |it| &mut it.sources;
const RULES: Kind = |it| &mut it.rules;
const WEBHOOKS: Kind = |it| &mut it.webhooks;
const KEYS: Kind = |it| &mut it.keys;
const SILENCES: Kind = |it| &mut it.silences;
const MEMBERS: Kind = |it| &mut it.members;
const ANNOTATIONS: Kind = |it| &mut it.annotations;
const BOARDS: Kind = |it| &mut it.boards;

impl Catalog {
    /// The revisions of an organization.
    pub fn revisions(&self, organization_id: ObjectId) -> Option<Revisions> {
        let entry = self.organizations.get(&organization_id);
        entry.map(|entry| entry.revisions)
    }

    /// Updates the revisions for a command. Called before the command is applied, while the objects that it deletes
    /// still exist.
    pub(super) fn revise(&mut self, command: &Command) {
        let (organization_id, kinds): (_, &[Kind]) = match command {
            // These are visible to nobody, or only to a user who has just signed in; call counts and last uses change
            // with every call.
            Command::ServerSecretSet { .. }
            | Command::BucketOrdinalsBegun { .. }
            | Command::SignedUp { .. }
            | Command::PasswordChanged { .. }
            | Command::SessionBegun { .. }
            | Command::SessionsTouched { .. }
            | Command::SessionEnded { .. }
            | Command::ResetCreated { .. }
            | Command::CallsCounted { .. }
            | Command::KeyCallsCounted { .. }
            | Command::KeysTouched { .. }
            // What is audited is counted when it is applied; its entry in the audit is no object.
            | Command::Audited { .. }
            | Command::PointsDeleted { .. } => return,
            Command::InvitationCreated { organization_id, .. }
            | Command::InvitationDeleted { organization_id, .. } => (Some(*organization_id), &[MEMBERS]),
            Command::InvitationAccepted { user, .. } => (Some(user.organization_id), &[MEMBERS]),
            Command::MemberRoleChanged { user_id, .. } | Command::MemberRemoved { user_id } => {
                let user = self.user(*user_id);
                (user.map(|user| user.organization_id), &[MEMBERS])
            }
            Command::OrganizationRenamed { organization_id, .. }
            | Command::PlanChanged { organization_id, .. } => (Some(*organization_id), &[ORGANIZATION]),
            Command::KeyCreated { key } => (Some(key.organization_id), &[KEYS]),
            Command::KeyDeleted { key_id } | Command::KeyRotated { key_id, .. } => {
                let key = self.keys.get(*key_id);
                (key.map(|key| self.organization_of_key(key)), &[KEYS])
            }
            Command::BucketCreated { bucket } => (Some(bucket.organization_id), &[BUCKETS]),
            Command::BucketUpdated { bucket_id, .. } => {
                (self.organization_of_bucket(*bucket_id), &[BUCKETS, WEBHOOKS])
            }
            Command::BucketDeleted { bucket_id } => {
                let organization_id = self.organization_of_bucket(*bucket_id);
                (
                    organization_id,
                    &[BUCKETS, SOURCES, RULES, WEBHOOKS, KEYS, SILENCES, ANNOTATIONS],
                )
            }
            Command::SourceCreated { source } => {
                (self.organization_of_bucket(source.bucket_id), &[BUCKETS, SOURCES])
            }
            Command::SourceUpdated { source_id, .. }
            | Command::SchemaExtended { source_id, .. }
            | Command::MetricTyped { source_id, .. } => {
                (self.organization_of_source(*source_id), &[SOURCES])
            }
            Command::SourceDeleted { source_id } => (
                self.organization_of_source(*source_id),
                &[BUCKETS, SOURCES, RULES, ANNOTATIONS],
            ),
            Command::FreshnessChanged { changes, .. } => {
                for change in changes {
                    self.count_change(
                        self.organization_of_source(change.source_id),
                        &[SOURCES, WEBHOOKS],
                    );
                }
                return;
            }
            Command::RuleCreated { rule } => (self.organization_of_source(rule.source_id), &[RULES]),
            Command::RuleUpdated { rule_id, .. }
            | Command::RuleAcknowledged { rule_id, .. }
            | Command::RuleDeleted { rule_id } => (self.organization_of_rule(*rule_id), &[RULES]),
            Command::VerdictRecorded { verdict } => {
                let has_deliveries = verdict.trigger_id.is_some() || !verdict.told.is_empty();
                let kinds: &[Kind] = match has_deliveries {
                    true => &[RULES, WEBHOOKS],
                    false => &[RULES],
                };
                (self.organization_of_rule(verdict.rule_id), kinds)
            }
            Command::RuleResolved { rule_id, .. } | Command::RuleOverdue { rule_id, .. } => {
                (self.organization_of_rule(*rule_id), &[RULES, WEBHOOKS])
            }
            Command::WebhookCreated { webhook } => (Some(webhook.organization_id), &[WEBHOOKS]),
            Command::WebhookUpdated { webhook_id, .. } | Command::WebhookDeleted { webhook_id } => {
                (self.organization_of_webhook(*webhook_id), &[WEBHOOKS])
            }
            Command::SilenceCreated { silence } => (Some(silence.organization_id), &[SILENCES]),
            Command::SilenceDeleted { silence_id } => {
                let silence = self.silence(*silence_id);
                (silence.map(|silence| silence.organization_id), &[SILENCES])
            }
            Command::AnnotationCreated { annotation } => {
                (self.organization_of_bucket(annotation.bucket_id), &[ANNOTATIONS])
            }
            Command::AnnotationUpdated { annotation_id, .. }
            | Command::AnnotationDeleted { annotation_id } => {
                let bucket_id = self.annotation(*annotation_id).map(|it| it.bucket_id);
                let organization_id = bucket_id.and_then(|id| self.organization_of_bucket(id));
                (organization_id, &[ANNOTATIONS])
            }
            Command::BoardCreated { board } => (Some(board.organization_id), &[BOARDS]),
            Command::BoardUpdated { board_id, .. }
            | Command::BoardDeleted { board_id }
            | Command::BoardShared { board_id, .. }
            | Command::BoardUnshared { board_id, .. } => {
                let board = self.board(*board_id);
                (board.map(|board| board.organization_id), &[BOARDS])
            }
            Command::DeliveriesQueued { deliveries } => {
                for delivery in deliveries {
                    let known = delivery.organization_id;
                    let organization_id = known.or_else(|| self.organization_of_receiver(&delivery.receiver));
                    self.count_change(organization_id, &[WEBHOOKS]);
                }
                return;
            }
            Command::AttemptMade { made } => {
                let delivery = self.pending_delivery(made.delivery_id);
                (delivery.and_then(|it| it.organization_id), &[WEBHOOKS])
            }
            Command::DeliveriesCounted { counts } => {
                for (webhook_id, _) in counts {
                    self.count_change(self.organization_of_webhook(*webhook_id), &[WEBHOOKS]);
                }
                return;
            }
        };
        self.count_change(organization_id, kinds);
    }

    fn count_change(&mut self, organization_id: Option<ObjectId>, kinds: &[Kind]) {
        if let Some(entry) = organization_id.and_then(|id| self.organizations.get_mut(&id)) {
            for kind in kinds {
                *kind(&mut entry.revisions) += 1;
            }
        }
    }
}
