//! The audit: who changed what, and from where (contract, chapter 14).

use serde::{Deserialize, Serialize};

use super::{Catalog, Command, EntryKey, Stream, names};
use crate::ids::ObjectId;

/// An entry of the audit of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    pub id: ObjectId,
    pub organization_id: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    pub entry: AuditEntry,
}

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub verb: AuditVerb,
    pub actor: Actor,
    pub target: Target,
    /// A JSON object with what the change replaced, without secrets.
    pub changes: Box<str>,
    /// The client's IP address, if it was known.
    pub address: Option<Box<str>>,
}

/// Who made a change. The name is that of the time of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub kind: ActorKind,
    /// `None` for the operator.
    pub id: Option<ObjectId>,
    pub name: Box<str>,
}

/// What was changed. The name is that of the time of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub kind: TargetKind,
    pub id: ObjectId,
    pub name: Box<str>,
}

/// The kinds of those who make changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    User,
    Key,
    /// Whoever runs the server.
    Operator,
}

names!(ActorKind: User => "user", Key => "key", Operator => "operator");

/// The kinds of what is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    Organization,
    Member,
    Invitation,
    Key,
    Bucket,
    Source,
    /// Points of a bucket, whose id and name the target has.
    Data,
    Rule,
    Webhook,
    /// A silence.
    Mute,
    Annotation,
    Board,
}

names!(
    TargetKind: Organization => "organization", Member => "member", Invitation => "invitation", Key => "key",
    Bucket => "bucket", Source => "source", Data => "data", Rule => "rule", Webhook => "webhook", Mute => "mute",
    Annotation => "annotation", Board => "board"
);

/// What is done to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerb {
    Created,
    Updated,
    Deleted,
    Rotated,
    Acknowledged,
}

names!(
    AuditVerb: Created => "created", Updated => "updated", Deleted => "deleted", Rotated => "rotated",
    Acknowledged => "acknowledged"
);

impl AuditEntry {
    /// Decodes an entry of the ledger.
    ///
    /// # Errors
    /// The bytes are no entry, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

impl Catalog {
    /// Applies a command together with its entry in the audit.
    pub(super) fn apply_audited(&mut self, command: &Command, audit: &Audit) {
        self.apply(command);
        // The only command whose checks are made in the order of the log: it has no effect if the invitation is gone.
        let is_refused = match command {
            Command::InvitationAccepted { user, .. } => self.user(user.id).is_none(),
            _ => false,
        };
        if !is_refused {
            self.record_audit(audit);
        }
    }

    /// Adds an entry to the audit.
    pub(super) fn record_audit(&mut self, audit: &Audit) {
        let key = EntryKey {
            stream: Stream::Audit,
            owner: audit.organization_id,
            at_ns: audit.at_ns,
            id: audit.id,
        };
        self.put_entry(key, &audit.entry, false);
    }
}
