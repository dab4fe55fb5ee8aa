//! The commands that change the catalog, and how they are written to the log.
//!
//! Each holds decided facts: ids, hashes and times are in it, so that replay makes the same state.
//! Members may be added with a default, never renamed, removed or given another meaning (FORMAT.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::bucket::Bucket;
use super::key::Key;
use super::organization::{Organization, Plan};
use super::schema::{Field, SchemaMode};
use super::source::SourceStatus;
use super::user::{PasswordHash, User};
use crate::ids::ObjectId;

/// One change of the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "members are named for what they set")]
pub enum Command {
    /// The secret that signs bearer tokens; the first one stays.
    ServerSecretSet { secret: Bytes<32> },
    /// An organization and its first user.
    SignedUp { organization: Organization, user: User },
    /// A new password; ends the user's older tokens.
    PasswordChanged {
        user_id: ObjectId,
        password: PasswordHash,
    },
    /// A new name.
    OrganizationRenamed {
        organization_id: ObjectId,
        name: Box<str>,
        at_ns: i64,
    },
    /// Another plan; what exists stays.
    PlanChanged {
        organization_id: ObjectId,
        plan: Plan,
        at_ns: i64,
    },
    /// A key of an organization or of a bucket.
    KeyCreated { key: Key },
    /// The key stops working.
    KeyDeleted { key_id: ObjectId },
    /// Minutes since the epoch in which keys were last used.
    KeysTouched { touches: Vec<(ObjectId, u32)> },
    /// A bucket; its ordinal is the next one.
    BucketCreated { bucket: NewBucket },
    /// The bucket's settings as they are from now on.
    BucketUpdated {
        bucket_id: ObjectId,
        name: Box<str>,
        description: Option<Box<str>>,
        retention_days: u32,
        at_ns: i64,
    },
    /// The bucket, its sources and its keys are gone.
    BucketDeleted { bucket_id: ObjectId },
    /// A source; its ordinal is the bucket's next one.
    SourceCreated { source: NewSource },
    /// The source's settings as they are from now on; the fields are merged over the schema.
    SourceUpdated {
        source_id: ObjectId,
        settings: SourceSettings,
        at_ns: i64,
    },
    /// Fields that ingested points brought; those already there stay as they are.
    SchemaExtended {
        source_id: ObjectId,
        fields: Vec<Field>,
        at_ns: i64,
    },
    /// The source is gone.
    SourceDeleted { source_id: ObjectId },
}

/// A bucket before it has its ordinal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewBucket {
    /// Identifies it.
    pub id: ObjectId,
    /// Its owner.
    pub organization_id: ObjectId,
    /// Unique within the organization.
    pub name: Box<str>,
    /// Free text.
    pub description: Option<Box<str>>,
    /// How long its points are kept.
    pub retention_days: u32,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

impl NewBucket {
    pub(super) fn numbered(&self, ordinal: u32) -> Bucket {
        Bucket {
            id: self.id,
            ordinal,
            organization_id: self.organization_id,
            name: self.name.clone(),
            description: self.description.clone(),
            retention_days: self.retention_days,
            expired_before_ns: i64::MIN,
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.created_at_ns,
        }
    }
}

/// A source before it has its ordinal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewSource {
    /// Identifies it.
    pub id: ObjectId,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// All that can be set.
    pub settings: SourceSettings,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
}

/// What can be set of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSettings {
    /// Unique within the bucket.
    pub name: Box<str>,
    /// The API's `type`.
    pub kind: Arc<str>,
    /// Free text.
    pub description: Option<Box<str>>,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// What happens to undeclared fields.
    pub schema_mode: SchemaMode,
    /// Whether large raw queries are aggregated by themselves.
    pub downsampling: bool,
    /// Whether it takes data.
    pub status: SourceStatus,
}

impl Command {
    /// The record for the log: MessagePack with named members.
    ///
    /// # Errors
    /// Never for commands made of owned data; the encoder's type says so all the same.
    pub fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads a record of the log. Unknown members are ignored, missing ones with a default get it.
    ///
    /// # Errors
    /// Bytes that are no command, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
