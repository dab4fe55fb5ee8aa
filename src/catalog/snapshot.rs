//! The whole catalog as bytes: what a checkpoint writes and a restart reads. Layout in FORMAT.md.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Bytes;
use super::bucket::Bucket;
use super::calls::{CallCounts, MonthDay};
use super::delivery::Delivery;
use super::key::Key;
use super::ledger::{FrozenTail, bucket_owner};
use super::organization::Organization;
use super::rule::Rule;
use super::schema::{Schema, SchemaMode};
use super::source::{Source, SourceStatus};
use super::state::Catalog;
use super::user::User;
use super::webhook::Webhook;
use crate::ids::ObjectId;

/// Rises when an older program could misread the snapshot; added members do not raise it.
const VERSION: u32 = 1;

/// A point in time of the catalog: cheap to take (shared pointers), so that encoding, which is not,
/// happens while the catalog lives on.
#[derive(Default)]
pub struct Frozen {
    server_secret: Option<Bytes<32>>,
    last_bucket_ordinal: u32,
    organizations: Vec<(Arc<Organization>, Arc<CallCounts>)>,
    users: Vec<Arc<User>>,
    buckets: Vec<(Arc<Bucket>, u32)>,
    keys: Vec<Arc<Key>>,
    sources: Vec<Arc<Source>>,
    last_rule_ordinal: u64,
    rules: Vec<Arc<Rule>>,
    webhooks: Vec<Arc<Webhook>>,
    deliveries: Vec<Arc<Delivery>>,
    ledger_tail: FrozenTail,
    ledger_runs: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Image {
    version: u32,
    #[serde(default)]
    server_secret: Option<Bytes<32>>,
    #[serde(default)]
    last_bucket_ordinal: u32,
    #[serde(default)]
    organizations: Vec<Arc<Organization>>,
    #[serde(default)]
    calls: Vec<(ObjectId, MonthDay, u64)>,
    #[serde(default)]
    users: Vec<Arc<User>>,
    #[serde(default)]
    buckets: Vec<BucketImage>,
    #[serde(default)]
    keys: Vec<Arc<Key>>,
    #[serde(default)]
    schemas: Vec<Arc<Schema>>,
    #[serde(default)]
    sources: Vec<SourceImage>,
    #[serde(default)]
    last_rule_ordinal: u64,
    #[serde(default)]
    rules: Vec<Arc<Rule>>,
    #[serde(default)]
    webhooks: Vec<Arc<Webhook>>,
    #[serde(default)]
    deliveries: Vec<Arc<Delivery>>,
    /// Not the catalog's: which buckets had a manifest on the disk before this was written.
    #[serde(default)]
    manifests: Vec<u32>,
    #[serde(default)]
    ledger_runs: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct BucketImage {
    bucket: Arc<Bucket>,
    next_source_ordinal: u32,
}

/// A source whose schema is an index into the image's schemas.
#[derive(Serialize, Deserialize)]
struct SourceImage {
    id: ObjectId,
    ordinal: u32,
    bucket_id: ObjectId,
    name: Box<str>,
    kind: Arc<str>,
    description: Option<Box<str>>,
    schema: u32,
    schema_mode: SchemaMode,
    downsampling: bool,
    status: SourceStatus,
    created_at_ns: i64,
    updated_at_ns: i64,
}

/// A snapshot that cannot be read.
#[derive(Debug)]
pub enum SnapshotError {
    /// No snapshot, or damaged.
    Malformed(rmp_serde::decode::Error),
    /// Written by a newer program.
    UnknownVersion {
        /// The version it states.
        found: u32,
    },
    /// A source names a schema that the snapshot does not hold.
    MissingSchema {
        /// The source.
        source_id: ObjectId,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(cause) => write!(f, "catalog snapshot is malformed: {cause}"),
            Self::UnknownVersion { found } => write!(
                f,
                "catalog snapshot has version {found}, this program reads up to {VERSION}: start the newer program"
            ),
            Self::MissingSchema { source_id } => {
                write!(f, "catalog snapshot lacks the schema of data source {source_id}")
            }
        }
    }
}

impl std::error::Error for SnapshotError {}

impl Catalog {
    /// The state as it is now, but for entries of the ledger that were put since its tail was frozen. Takes about as
    /// long as copying one pointer per resource.
    pub fn freeze(&self) -> Frozen {
        // By ordinal, so that equal catalogs give equal bytes.
        let mut buckets: Vec<_> = self
            .buckets
            .values()
            .map(|entry| (Arc::clone(&entry.bucket), entry.next_source_ordinal))
            .collect();
        buckets.sort_unstable_by_key(|(bucket, _)| bucket.ordinal);
        let mut users: Vec<_> = self.users.values().cloned().collect();
        users.sort_unstable_by_key(|user| user.id);
        let sources = buckets
            .iter()
            .flat_map(|(bucket, _)| self.sources_of(bucket.id))
            .cloned()
            .collect();
        let organization_keys = self
            .organization_order
            .iter()
            .flat_map(|id| self.organization_keys(*id));
        let bucket_keys = buckets.iter().flat_map(|(bucket, _)| self.bucket_keys(bucket.id));
        let mut rules: Vec<_> = self.rules().cloned().collect();
        rules.sort_unstable_by_key(|rule| rule.ordinal);
        let webhooks = self
            .organization_order
            .iter()
            .flat_map(|id| self.webhooks_of(*id));
        let mut deliveries: Vec<_> = self.pending_deliveries().cloned().collect();
        deliveries.sort_unstable_by_key(|delivery| delivery.id);
        Frozen {
            last_rule_ordinal: self.rules.last_ordinal,
            rules,
            webhooks: webhooks.cloned().collect(),
            deliveries,
            ledger_tail: self.ledger.frozen(),
            ledger_runs: self.ledger.runs().to_vec(),
            server_secret: self.server_secret,
            last_bucket_ordinal: self.last_bucket_ordinal,
            organizations: self.organizations_with_calls().collect(),
            users,
            keys: organization_keys.chain(bucket_keys).cloned().collect(),
            buckets,
            sources,
        }
    }

    /// Reads a snapshot: the catalog, and the ordinals given to [`Frozen::encode`].
    ///
    /// # Errors
    /// Bytes that are no snapshot, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Vec<u32>), SnapshotError> {
        let image: Image = rmp_serde::from_slice(bytes).map_err(SnapshotError::Malformed)?;
        if image.version > VERSION {
            return Err(SnapshotError::UnknownVersion { found: image.version });
        }
        let mut catalog = Self {
            server_secret: image.server_secret,
            last_bucket_ordinal: image.last_bucket_ordinal,
            ..Self::default()
        };
        image
            .organizations
            .into_iter()
            .for_each(|it| catalog.insert_organization(Arc::unwrap_or_clone(it)));
        catalog.restore_calls(&image.calls);
        image
            .users
            .into_iter()
            .for_each(|user| catalog.insert_user(Arc::unwrap_or_clone(user)));
        for BucketImage {
            bucket,
            next_source_ordinal,
        } in image.buckets
        {
            catalog.insert_bucket(Arc::unwrap_or_clone(bucket), next_source_ordinal);
        }
        image
            .keys
            .into_iter()
            .for_each(|key| catalog.insert_key(Arc::unwrap_or_clone(key)));
        let schemas: Vec<_> = image
            .schemas
            .into_iter()
            .map(|schema| catalog.schemas.intern(schema))
            .collect();
        for source in image.sources {
            let schema = schemas
                .get(source.schema as usize)
                .ok_or(SnapshotError::MissingSchema { source_id: source.id })?;
            let kind = catalog.kinds.intern(Arc::clone(&source.kind));
            catalog.insert_source(source.with(kind, Arc::clone(schema)));
        }
        catalog.rules.last_ordinal = image.last_rule_ordinal;
        image
            .rules
            .into_iter()
            .for_each(|rule| catalog.rules.insert(rule));
        image
            .webhooks
            .into_iter()
            .for_each(|webhook| catalog.outbox.insert_webhook(Arc::unwrap_or_clone(webhook)));
        image
            .deliveries
            .into_iter()
            .for_each(|delivery| catalog.outbox.owe(delivery));
        catalog.ledger.set_runs(image.ledger_runs);
        Ok((catalog, image.manifests))
    }
}

impl Frozen {
    /// The snapshot's bytes, which name the buckets that have a manifest by their ordinals. Equal catalogs give equal
    /// bytes.
    ///
    /// # Errors
    /// Never for what a catalog holds; the encoder's type says so all the same.
    pub fn encode(&self, manifests: &[u32]) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let mut numbers: HashMap<*const Schema, u32> = HashMap::new();
        let mut schemas = Vec::new();
        let mut sources = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let number = *numbers.entry(Arc::as_ptr(&source.schema)).or_insert_with(|| {
                schemas.push(Arc::clone(&source.schema));
                schemas.len() as u32 - 1
            });
            sources.push(SourceImage::of(source, number));
        }
        rmp_serde::to_vec_named(&Image {
            version: VERSION,
            server_secret: self.server_secret,
            last_bucket_ordinal: self.last_bucket_ordinal,
            organizations: self.organizations.iter().map(|(it, _)| Arc::clone(it)).collect(),
            calls: self.calls(),
            users: self.users.clone(),
            buckets: self
                .buckets
                .iter()
                .map(|(bucket, next)| BucketImage {
                    bucket: Arc::clone(bucket),
                    next_source_ordinal: *next,
                })
                .collect(),
            keys: self.keys.clone(),
            schemas,
            sources,
            last_rule_ordinal: self.last_rule_ordinal,
            rules: self.rules.clone(),
            webhooks: self.webhooks.clone(),
            deliveries: self.deliveries.clone(),
            manifests: manifests.to_vec(),
            ledger_runs: self.ledger_runs.clone(),
        })
    }

    /// By organization, then month.
    fn calls(&self) -> Vec<(ObjectId, MonthDay, u64)> {
        let of_organization = |(organization, calls): &(Arc<Organization>, Arc<CallCounts>)| {
            let mut totals: Vec<_> = calls
                .totals()
                .map(|total| (organization.id, total.month, total.calls))
                .collect();
            totals.sort_unstable();
            totals
        };
        self.organizations.iter().flat_map(of_organization).collect()
    }

    /// Entries of the ledger that no run file holds yet. They are not in the snapshot: what it names must hold them.
    pub fn ledger_tail(&self) -> &FrozenTail {
        &self.ledger_tail
    }

    /// The run files that the snapshot names, oldest first.
    pub fn ledger_runs(&self) -> &[u64] {
        &self.ledger_runs
    }

    /// Has the snapshot name these run files, which hold the frozen tail, too.
    pub fn set_ledger_runs(&mut self, runs: Vec<u64>) {
        self.ledger_runs = runs;
        self.ledger_tail = FrozenTail::default();
    }

    /// Rules, webhooks and buckets: whose entries of the ledger are kept.
    pub fn ledger_owners(&self) -> HashSet<ObjectId> {
        let rules = self.rules.iter().map(|rule| rule.id);
        let webhooks = self.webhooks.iter().map(|webhook| webhook.id);
        let buckets = self
            .buckets
            .iter()
            .map(|(bucket, _)| bucket_owner(bucket.ordinal));
        rules.chain(webhooks).chain(buckets).collect()
    }
}

impl SourceImage {
    fn of(source: &Source, schema: u32) -> Self {
        Self {
            id: source.id,
            ordinal: source.ordinal,
            bucket_id: source.bucket_id,
            name: source.name.clone(),
            kind: Arc::clone(&source.kind),
            description: source.description.clone(),
            schema,
            schema_mode: source.schema_mode,
            downsampling: source.downsampling,
            status: source.status,
            created_at_ns: source.created_at_ns,
            updated_at_ns: source.updated_at_ns,
        }
    }

    fn with(self, kind: Arc<str>, schema: Arc<Schema>) -> Source {
        Source {
            id: self.id,
            ordinal: self.ordinal,
            bucket_id: self.bucket_id,
            name: self.name,
            kind,
            description: self.description,
            schema,
            schema_mode: self.schema_mode,
            downsampling: self.downsampling,
            status: self.status,
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.updated_at_ns,
        }
    }
}
