//! What exists: organizations, users, keys, buckets and data sources.
//!
//! A pure state machine in memory. A [`Command`] holds decided facts (ids, hashes and times are in
//! it); [`Catalog::apply`] makes the same state of the same commands on every machine, live and at
//! replay. It never reads a clock, never does I/O, never refuses: the service decides before, the
//! journal orders and keeps. Read by every room through [`CatalogHandle`]; written by the journal alone.

mod apply;
mod bucket;
mod bytes;
mod collection;
mod command;
mod interner;
mod key;
mod organization;
mod schema;
mod snapshot;
mod source;
mod state;
mod user;

use std::sync::Arc;

use parking_lot::RwLock;

pub use bucket::Bucket;
pub use bytes::Bytes;
pub use command::{Command, NewBucket, NewSource, SourceSettings};
pub use key::{Key, KeyHash, KeyType};
pub use organization::{Organization, Plan, PlanLimits};
pub use schema::{Field, FieldType, Schema, SchemaMode};
pub use snapshot::{Frozen, SnapshotError};
pub use source::{Source, SourceStatus};
pub use state::{BucketContents, Catalog};
pub use user::{PasswordHash, User};

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
}

#[cfg(test)]
mod tests;
