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
pub mod buckets;
pub mod data;
mod decision;
pub mod evaluations;
mod figures;
pub mod keys;
pub mod login_limiter;
pub mod operator;
pub mod organization;
pub mod page;
pub mod passwords;
pub mod query;
pub mod quota;
mod records;
pub mod rules;
mod signup_limiter;
mod sliding_window;
pub mod sources;
pub mod tokens;
mod triggers;
pub mod webhooks;

use std::sync::Arc;
use std::thread::available_parallelism;

use parking_lot::Mutex;

use crate::alerts::Alerts;
use crate::bucket::Buckets;
use crate::catalog::{Catalog, CatalogHandle};
use crate::checkpoint::{Checkpointer, Rooms};
use crate::clock::Clock;
use crate::config::Config;
use crate::delivery::Deliveries;
use crate::error::ServiceError;
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::metrics::Sharded;
use crate::query_pool::QueryPool;
use crate::random;

pub use figures::{Figures, IngestFigures, PublishFigures};

pub use access::{Access, Admission, Caller, Credential, bucket_for, rule_for, source_for};
use decision::Decisions;
use figures::IngestCounts;
use login_limiter::LoginLimiter;
use passwords::Passwords;
use signup_limiter::SignUpLimiter;
use tokens::Tokens;

/// The rooms that endpoints call, and their shared state.
pub struct Service {
    /// The validated configuration.
    pub config: Arc<Config>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Generates ids.
    pub ids: Arc<ObjectIds>,
    /// Organizations, users, keys, buckets, sources, rules and webhooks.
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
    /// Runs scans and aggregations.
    pub queries: QueryPool,
    /// Issues and verifies bearer tokens.
    pub tokens: Tokens,
    /// A random number that distinguishes this run of the server from others.
    run: u64,
    passwords: Passwords,
    logins: Arc<LoginLimiter>,
    /// Separate from log-in failures: somebody who only knows the email cannot keep its owner from changing the
    /// password.
    password_guesses: Arc<LoginLimiter>,
    sign_ups: SignUpLimiter,
    /// Uses of keys that are not in the log yet: the minute of each, at most one for each key and minute.
    unsaved_key_uses: Mutex<Vec<(ObjectId, u32)>>,
    /// Organizations with calls that are not in the log yet, without duplicates.
    unsaved_calls: Mutex<Vec<ObjectId>>,
    /// Makes changes durable.
    decisions: Decisions,
    ingested: Sharded<IngestCounts>,
    /// Writes the log even if the checkpointer has panicked.
    _log_writer: Arc<Journal>,
}

impl Service {
    /// Makes the service from opened rooms. The catalog must have its server secret.
    ///
    /// # Errors
    /// Fails when the operating system provides no random bytes or no thread, or when the catalog has no secret.
    pub fn new(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        rooms: Rooms,
        alerts: Alerts,
        deliveries: Deliveries,
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
        let secret = catalog
            .read(|catalog| catalog.server_secret().copied())
            .ok_or_else(|| ServiceError::internal("the catalog has no server secret"))?;
        let cores = available_parallelism().map_or(1, usize::from);
        let threads = if config.query.threads == 0 {
            cores / 2
        } else {
            config.query.threads
        };
        let queries = QueryPool::start(
            threads,
            config.query.queue_max,
            config.query.timeout,
            config.query.memory_bytes_max,
        );
        let queries = queries.map_err(ServiceError::internal)?;
        let sign_ups = SignUpLimiter::new(config.accounts.signups_per_hour_max);
        Ok(Self {
            config,
            clock,
            ids: Arc::new(ObjectIds::new()?),
            _log_writer: log_writer,
            catalog,
            buckets,
            ledger,
            checkpointer,
            alerts,
            deliveries,
            queries,
            tokens: Tokens::new(&secret)?,
            run: u64::from_le_bytes(random::bytes()?),
            passwords: Passwords::start().map_err(ServiceError::internal)?,
            logins: Arc::new(LoginLimiter::new("failed sign-ins")),
            password_guesses: Arc::new(LoginLimiter::new("wrong passwords")),
            sign_ups,
            unsaved_key_uses: Mutex::default(),
            unsaved_calls: Mutex::default(),
            decisions: Decisions::new(journal),
            ingested: Sharded::default(),
        })
    }

    /// Whether the server accepts writes.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn readiness(&self) -> Result<(), String> {
        self.decisions.readiness()?;
        self.buckets.readiness()
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
        self.ids.next(self.now_ns())
    }
}

#[cfg(test)]
mod tests;
