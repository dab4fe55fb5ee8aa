//! What exists: organizations, users, keys, buckets, data sources, alert rules, webhooks, deliveries that are owed.
//!
//! A pure state machine in memory. A [`Command`] holds decided facts (ids, hashes and times are in
//! it); [`Catalog::apply`] makes the same state of the same commands on every machine, live and at
//! replay. It never reads a clock, never does I/O, never refuses: the service decides before, the
//! journal orders and keeps. Read by every room through [`CatalogHandle`]; written by the journal alone.

mod apply;
mod apply_alerts;
mod body;
mod bucket;
mod bytes;
mod calls;
mod changes;
mod collection;
mod command;
mod condition;
mod delivery;
mod fan_out;
mod frozen;
mod history;
mod holdings;
mod interner;
mod key;
mod ledger;
mod load;
mod object_key;
mod objects;
mod organization;
mod outbox;
mod owed;
mod pages;
mod revisions;
mod rule;
mod rules;
mod schema;
mod snapshot;
mod snapshot_error;
mod source;
mod source_image;
mod source_pages;
mod state;
pub mod text_bytes;
mod user;
mod webhook;

use std::sync::Arc;

use parking_lot::{RwLock, RwLockWriteGuard};

pub use body::{Body, BodyBytes, EventBody, EventName};
pub use bucket::{Bucket, Expired};
pub use bytes::Bytes;
pub use calls::{CallCounts, MonthCalls, MonthDay};
pub use changes::{Change, Changes};
pub use command::{AttemptMade, Command, NewBucket, NewRule, NewSource, SourceSettings, Verdict};
pub use condition::{ConditionValue, Operator, ParsedCondition};
pub use delivery::{AfterAttempt, Attempt, Delivery, DeliveryStatus, Receiver};
pub use fan_out::{FanOut, OwedRoom, Owing};
pub use frozen::Frozen;
pub use history::{HistoryEntry, HistoryKind};
pub use holdings::Holdings;
pub use key::{Key, KeyHash, KeyType};
pub use ledger::{EntryKey, FrozenTail, LedgerTail, Stream, TailEntry, bucket_owner};
pub use load::CatalogLoader;
pub use object_key::ObjectKey;
pub use organization::{Organization, Plan, PlanLimits};
pub use owed::OwedFigures;
pub use revisions::Revisions;
pub use rule::{
    Evaluation, Input, Outcome, Parameter, Rule, RuleForm, RuleRuntime, RuleSettings, RuleState, RuleStatus,
    Standing,
};
pub use schema::{Field, FieldType, Schema, SchemaMode};
pub use snapshot::Snapshot;
pub use snapshot_error::SnapshotError;
pub use source::{Source, SourceStatus};
pub use source_pages::SourcePages;
pub use state::{BucketContents, Catalog};
pub use user::{EndedSession, PasswordHash, User};
pub use webhook::{DeliveryTotals, Event, RetryConfig, Secret, Webhook, WebhookSettings, WebhookStatus};

/// The catalog, shared between the rooms.
#[derive(Clone, Default)]
pub struct CatalogHandle(Arc<RwLock<Catalog>>);

impl CatalogHandle {
    /// Shares this catalog, as replayed from snapshot and log.
    pub fn new(catalog: Catalog) -> Self {
        Self(Arc::new(RwLock::new(catalog)))
    }

    /// Looks something up. The closure must be short: it never waits, allocates little, and hands
    /// out `Arc`s; changes wait for it.
    pub fn read<R>(&self, look: impl FnOnce(&Catalog) -> R) -> R {
        look(&self.0.read())
    }

    /// Applies a durable command. Called by the journal in log order, by nobody else.
    pub fn apply(&self, command: &Command) {
        self.0.write().apply(command);
    }

    /// The state as it is now, for a checkpoint; the ledger's tail is set apart with it.
    pub fn freeze(&self) -> Frozen {
        let mut catalog = self.0.write();
        catalog.ledger.freeze();
        // Readers may look on while the rest is gathered, which takes longer.
        RwLockWriteGuard::downgrade(catalog).freeze()
    }

    /// The frozen tail is in these run files from now on. `adopt` makes them known to readers in the same moment:
    /// whoever reads the catalog finds an entry here or there, never in both.
    pub fn ledger_saved(&self, frozen: &FrozenTail, adopt: impl FnOnce()) {
        let mut catalog = self.0.write();
        catalog.ledger.forget(frozen);
        adopt();
    }
}

#[cfg(test)]
mod tests;
