//! One function per endpoint, independent of HTTP: it checks permissions, decides, and calls the room that does
//! the work.
//!
//! A change is decided under a lock of its organization. The lock is held until the journal has the change
//! (`decision`), so that decide, log and apply are one step for others of that organization, while organizations share
//! one sync. Called by `http`; tests call it with a manual clock and no socket.

pub mod access;
pub mod accounts;
mod allowance;
pub mod analytics;
pub mod annotations;
mod audit;
pub mod backtest;
pub mod boards;
pub mod buckets;
mod cluster_counts;
mod cluster_status;
mod concurrency;
pub mod data;
mod decision;
pub mod dimensions;
mod directory;
pub mod evaluations;
pub mod events;
mod figures;
mod freshness;
pub mod invitations;
pub mod keys;
pub mod login_limiter;
pub mod members;
mod node;
pub mod operator;
pub mod organization;
pub mod page;
pub mod passwords;
pub mod prometheus;
pub mod query;
pub mod quota;
mod records;
pub mod resets;
mod resources;
mod rule_dimensions;
mod rule_events;
pub mod rules;
mod secret_text;
pub mod sessions;
mod shard_name;
mod shard_table;
pub mod shares;
mod signup_limiter;
pub mod silences;
mod sliding_window;
pub mod sources;
pub mod tokens;
mod triggers;
pub mod webhook_format;
pub mod webhooks;

use std::sync::Arc;

use log_store::Shard;
use parking_lot::Mutex;

use crate::alerts::Alerts;
use crate::bucket::Buckets;
use crate::catalog::{Catalog, CatalogHandle};
use crate::checkpoint::{Checkpointer, Rooms};
use crate::clock::Clock;
use crate::config::Config;
use crate::delivery::Deliveries;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::{Journal, JournalError};
use crate::ledger::Ledger;
use crate::limits::{
    DELETIONS_OF_ORGANIZATION_MAX, EXPORTS_OF_ORGANIZATION_MAX, IMPORTS_OF_ORGANIZATION_MAX,
};
use crate::metrics::Sharded;

pub use figures::{Figures, IngestFigures, PublishFigures};

pub use crate::cluster::{NodeStatus, ShardStatus};
pub use cluster_counts::ClusterFigures;
pub use cluster_status::{
    ClusterStatus, MachineStatus, PendingTails, Seen, ServerStatus, StatusReader, Tails,
};
pub use directory::{Directory, Lookup};
pub use node::{Cluster, Location, Node, Owner, ShardService};
pub use resources::Resources;
pub use shard_name::{ClusterTag, ShardName};
pub use shard_table::ShardTable;

pub use access::{Access, Admission, Caller, Credential, bucket_for, rule_for, source_for};
use concurrency::Concurrency;
use decision::Decisions;
use figures::IngestCounts;
use freshness::Watch;
use sessions::SessionUse;
use shares::LinkLimiter;
use tokens::Tokens;

/// The rooms of a shard that endpoints call, and their state.
pub struct Service {
    /// The validated configuration.
    pub config: Arc<Config>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// What shards share.
    pub resources: Arc<Resources>,
    /// Its place in a cluster; `None` on one machine, where there is no other shard.
    place: Option<ShardPlace>,
    /// Organizations, users, keys, buckets, sources, rules, webhooks, silences, annotations and boards.
    pub catalog: CatalogHandle,
    /// Stores the points.
    pub buckets: Buckets,
    /// Stores histories and finished deliveries.
    pub ledger: Ledger,
    /// Writes checkpoints, which keep recovery short.
    pub checkpointer: Checkpointer,
    /// Changes rules and tracks which are due.
    pub alerts: Alerts,
    /// Delivers to webhooks.
    pub deliveries: Deliveries,
    /// Issues and verifies bearer tokens.
    pub tokens: Tokens,
    /// Uses of keys that are not in the log yet: the minute of each, at most one for each key and minute.
    unsaved_key_uses: Mutex<Vec<(ObjectId, u32)>>,
    /// Uses of sessions that are not in the log yet, at most one for each session and minute.
    unsaved_session_uses: Mutex<Vec<SessionUse>>,
    /// Organizations with calls that are not in the log yet, without duplicates.
    unsaved_calls: Mutex<Vec<ObjectId>>,
    /// Keys with calls that are not durable yet.
    unsaved_key_calls: Mutex<Vec<ObjectId>>,
    /// The sources that are expected to send.
    watch: Watch,
    /// Deletions of points in progress.
    deletions: Concurrency,
    exports: Concurrency,
    imports: Concurrency,
    /// Counts the requests with links to boards.
    link_calls: LinkLimiter,
    /// Makes changes durable.
    decisions: Decisions,
    ingested: Sharded<IngestCounts>,
    /// Writes the log even if the checkpointer has panicked.
    _log_writer: Arc<Journal>,
}

/// A shard's place in a cluster.
pub struct ShardPlace {
    /// The shard.
    pub shard: Shard,
    /// As keys and tokens name it.
    pub name: ShardName,
    /// Where accounts are.
    pub directory: Arc<dyn Directory>,
}

impl Service {
    /// Makes the service from opened rooms. The catalog must have its server secret.
    ///
    /// # Errors
    /// The catalog has no secret.
    pub fn new(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        rooms: Rooms,
        alerts: Alerts,
        deliveries: Deliveries,
        resources: Arc<Resources>,
        place: Option<ShardPlace>,
    ) -> Result<Self, ServiceError> {
        let Rooms {
            catalog,
            journal,
            log_writer,
            buckets,
            ledger,
            checkpointer,
            recovered: _,
        } = rooms;
        let name_of_shard = place.as_ref().map(|place| place.name);
        let secret = catalog
            .read(|catalog| catalog.server_secret().copied())
            .ok_or_else(|| ServiceError::internal("the catalog has no server secret"))?;
        let service = Self {
            config,
            clock,
            resources,
            place,
            _log_writer: log_writer,
            catalog,
            buckets,
            ledger,
            checkpointer,
            alerts,
            deliveries,
            tokens: Tokens::new(&secret, name_of_shard)?,
            unsaved_key_uses: Mutex::default(),
            unsaved_session_uses: Mutex::default(),
            unsaved_calls: Mutex::default(),
            unsaved_key_calls: Mutex::default(),
            watch: Watch::default(),
            deletions: Concurrency::new("deletions of points", DELETIONS_OF_ORGANIZATION_MAX),
            exports: Concurrency::new("exports", EXPORTS_OF_ORGANIZATION_MAX),
            imports: Concurrency::new("imports", IMPORTS_OF_ORGANIZATION_MAX),
            link_calls: LinkLimiter::default(),
            decisions: Decisions::new(journal),
            ingested: Sharded::default(),
        };
        service.watch_sources();
        Ok(service)
    }

    /// Whether the server accepts writes.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn readiness(&self) -> Result<(), String> {
        self.decisions.readiness()?;
        self.buckets.readiness()
    }

    /// Why the shard's log takes no more records until the shard is opened again.
    pub fn log_failure(&self) -> Option<JournalError> {
        self.decisions.log_failure()
    }

    /// Ends the shard's work here without a word to its log, which has another owner.
    pub fn abandon(&self) {
        self.checkpointer.abandon();
    }

    /// Records that the data directory was removed or replaced. Nothing is stored until a restart.
    pub fn directory_is_gone(&self) {
        self.decisions.directory_is_gone();
    }

    /// Returns the ids of the buckets that are set apart because they failed to open or panicked.
    pub fn buckets_set_apart(&self) -> Vec<String> {
        let ordinals = self.buckets.all_set_apart().into_keys();
        let id = |catalog: &Catalog, ordinal| Some(catalog.bucket_by_ordinal(ordinal)?.id.to_string());
        self.catalog
            .read(|catalog| ordinals.filter_map(|ordinal| id(catalog, ordinal)).collect())
    }

    /// The current time in UTC nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    pub fn next_id(&self) -> ObjectId {
        self.resources.ids.next(self.now_ns())
    }
}

#[cfg(test)]
mod tests;
