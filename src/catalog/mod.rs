//! The catalog of all objects: organizations, users, keys, buckets, data sources, alert rules, webhooks, silences,
//! annotations, boards, pending deliveries.
//!
//! A pure state machine in memory. A [`Command`] holds decided facts, including ids, hashes and times.
//! [`Catalog::apply`] produces the same state from the same commands on every machine, live and at replay. It never
//! reads a clock, never does I/O and never refuses: the service decides first, the journal orders and stores. Every
//! room reads the catalog through [`CatalogHandle`]; only the journal writes it.

mod annotation;
mod apply;
mod apply_alerts;
mod apply_people;
mod audit;
mod board;
mod body;
mod bucket;
mod bytes;
mod calls;
mod collection;
mod command;
mod condition;
mod delivery;
mod frozen;
mod holdings;
mod interner;
mod invitation;
mod key;
mod ledger;
mod load;
mod names;
mod object_key;
mod objects;
mod organization;
mod outbox;
mod packed;
mod pages;
mod registry;
mod revisions;
mod rule;
mod schema;
mod session;
mod silence;
mod snapshot;
mod source;
mod state;
pub mod text_bytes;
mod user;
mod webhook;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockWriteGuard};

use crate::ids::ObjectId;

pub use annotation::{Annotation, AnnotationSettings};
pub use audit::{Actor, ActorKind, Audit, AuditEntry, AuditVerb, Target, TargetKind};
pub use board::{Board, BoardRange, BoardSettings, Level, Panel, PanelKind, Share, Threshold, Variable};
pub use body::{Body, BodyBytes, EventBody, EventName};
pub use bucket::{Bucket, Expired};
pub use bytes::Bytes;
pub use calls::{CallCounts, MonthCalls, MonthDay};
pub use command::{
    AttemptMade, Command, FreshnessChange, NewBucket, NewRule, NewSource, SourceSettings, Verdict,
};
pub use condition::{ConditionValue, Operator, ParsedCondition, json_number};
pub use delivery::{
    AfterAttempt, Attempt, Delivery, DeliveryStatus, FanOut, NewDeliveries, PendingLimits, Receiver,
};
pub use frozen::{Change, Frozen};
pub use holdings::Holdings;
pub use invitation::Invitation;
pub use key::{FormerValue, Key, KeyCalls, KeyHash, KeyType, LastUse};
pub(crate) use ledger::kept_series_owner;
pub use ledger::{
    EntryKey, FrozenTail, LedgerTail, SeriesEntry, Stream, TailEntry, bucket_owner, series_owner,
    source_of_series_owner,
};
pub use load::{CatalogLoader, SnapshotError};
pub(crate) use names::names;
pub use object_key::ObjectKey;
pub use organization::{Organization, Plan, PlanLimits};
pub use outbox::PendingTotals;
pub use packed::{TailPayload, Unpacker};
pub use revisions::{Revisions, SourcesVersion};
pub use rule::{
    Acknowledgement, Evaluation, HistoryEntry, HistoryKind, Input, Outcome, Parameter, Rule, RuleForm,
    RuleRuntime, RuleSettings, RuleState, RuleStatus, Standing,
};
pub use schema::{Field, FieldType, Schema, SchemaMode};
pub use session::UserSession;
pub use silence::Silence;
pub use snapshot::Snapshot;
pub use source::{Dimensions, Duplicates, Freshness, MetricType, Source, SourcePages, SourceStatus};
pub use state::{BucketContents, Catalog};
pub use user::{PasswordHash, PasswordReset, Role, User};
pub use webhook::{
    DeliveryTotals, Event, FormatName, RetryConfig, Secret, Webhook, WebhookFormat, WebhookSettings,
    WebhookStatus,
};

/// The catalog, shared between the rooms.
#[derive(Clone)]
pub struct CatalogHandle {
    catalog: Arc<RwLock<Catalog>>,
    /// Unique among the catalogs of this process.
    number: u64,
}

/// The number of the next catalog's handle.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl Default for CatalogHandle {
    fn default() -> Self {
        Self::new(Catalog::default())
    }
}

impl CatalogHandle {
    /// Shares a catalog that was replayed from snapshot and log.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog: Arc::new(RwLock::new(catalog)),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Reads from the catalog. Changes wait for the closure, so it must be short: it never blocks, allocates little,
    /// and returns `Arc`s.
    pub fn read<R>(&self, look: impl FnOnce(&Catalog) -> R) -> R {
        look(&self.catalog.read())
    }

    /// The version of an organization's sources; `None` if there is no such organization.
    pub fn sources_version(&self, organization_id: ObjectId) -> Option<SourcesVersion> {
        let revisions = self.read(|catalog| catalog.revisions(organization_id))?;
        Some(SourcesVersion {
            catalog: self.number,
            organization_id,
            buckets: revisions.buckets,
            sources: revisions.sources,
        })
    }

    /// Applies a durable command. Called only by the journal, in log order.
    pub fn apply(&self, command: &Command) {
        self.catalog.write().apply(command);
    }

    /// Takes a snapshot for a checkpoint, and freezes the ledger's tail.
    pub fn freeze(&self) -> Frozen {
        let mut catalog = self.catalog.write();
        catalog.ledger.freeze();
        // Readers may continue while the rest is collected, which takes longer.
        RwLockWriteGuard::downgrade(catalog).freeze()
    }

    /// Drops the frozen tail, which run files hold now. `adopt` publishes these files under the same lock: a reader of
    /// the catalog finds each entry in exactly one of the two places.
    pub fn ledger_saved(&self, frozen: &FrozenTail, adopt: impl FnOnce()) {
        let mut catalog = self.catalog.write();
        catalog.ledger.forget(frozen);
        adopt();
    }
}

#[cfg(test)]
mod tests;
