//! Deliveries over the real journal on a simulated disk, with a scripted transport.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Arbiter;
use disk::sim::{Crash, SimDisk};
use wal::LogOptions;

use super::script::Script;
use crate::catalog::{
    Body, Bytes, Catalog, CatalogHandle, Command, Delivery, DeliveryTotals, Event, Field, FieldType,
    NewBucket, NewSource, Organization, PasswordHash, Plan, Receiver, RetryConfig, SchemaMode, Secret,
    SourceSettings, SourceStatus, Stream, User, Webhook, WebhookFormat, WebhookSettings, WebhookStatus,
};
use crate::clock::{Clock, ManualClock, SECOND_NS};
use crate::delivery::guard::Guard;
use crate::delivery::handle::Shared;
use crate::delivery::resolve::SystemResolver;
use crate::delivery::{Deliveries, delivery};
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::{
    Journal, JournalHandle, JournalOptions, JournalWriter, LocalShard, Record, ShardLog, THE_SHARD,
};

pub(super) const START_NS: i64 = 1_700_000_000 * SECOND_NS;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) clock: Arc<ManualClock>,
    pub(super) catalog: CatalogHandle,
    pub(super) journal: JournalHandle,
    pub(super) script: Script,
    pub(super) deliveries: Deliveries,
    ids: ObjectIds,
    writer: JournalWriter,
}

pub(super) fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

pub(super) const ORGANIZATION: u64 = 1;
pub(super) const BUCKET: u64 = 2;

impl World {
    /// An organization with a bucket.
    pub(super) async fn new() -> Self {
        let world = Self::open(SimDisk::new(1), START_NS, Script::default());
        let at_ns = START_NS;
        let organization = Organization {
            id: id(ORGANIZATION),
            name: "o".into(),
            plan: Plan::Enterprise,
            invitations: Vec::new(),
            created_at_ns: at_ns,
            updated_at_ns: at_ns,
        };
        let password = PasswordHash {
            memory_kib: 1,
            passes: 1,
            lanes: 1,
            salt: Bytes([1; 16]),
            hash: Bytes([2; 32]),
        };
        let user = User::new(id(3), organization.id, "a@b", "a", password, at_ns);
        world.commit(Command::SignedUp { organization, user }).await;
        let bucket = NewBucket {
            id: id(BUCKET),
            organization_id: id(ORGANIZATION),
            name: "b".into(),
            description: None,
            retention_days: 30,
            created_at_ns: at_ns,
        };
        world.commit(Command::BucketCreated { bucket }).await;
        world
    }

    fn open(disk: SimDisk, now_ns: i64, script: Script) -> Self {
        let mut catalog = Catalog::default();
        let mut replay = |_, payload: &[u8]| {
            if let Record::Command(command) = Record::decode(payload)? {
                catalog.apply(&command);
            }
            Ok(())
        };
        let options = LogOptions {
            // A full disk has an effect immediately.
            room_bytes: 0,
            ..LogOptions::default()
        };
        let mut log = LocalShard::new(Arc::new(disk.clone()), Path::new("log").to_owned(), options);
        let replayed = log.replay(0, &mut replay).unwrap();
        let journal = Journal::start(log.into_log().unwrap()).unwrap();
        let catalog = CatalogHandle::new(catalog);
        let options = JournalOptions {
            queue_bytes_max: 16 << 20,
            tail_bytes_max: 1 << 30,
        };
        let (writer, journal) = journal.open(THE_SHARD, replayed.tail(), catalog.clone(), options, |_| ());
        let clock = Arc::new(ManualClock::new(now_ns));
        let shared = Shared {
            catalog: catalog.clone(),
            journal: journal.clone(),
            clock: clock.clone(),
            guard: Guard::new(true, Arc::new(SystemResolver)),
            recent: Default::default(),
            stats: Default::default(),
        };
        let for_actor = script.clone();
        let deliveries =
            Deliveries::start_with(shared, &Arbiter::new().handle(), || for_actor.transport()).unwrap();
        World {
            disk,
            clock,
            catalog,
            journal,
            script,
            deliveries,
            ids: ObjectIds::new().unwrap(),
            writer,
        }
    }

    /// The next process: with the durable state, another clock, and a script without requests.
    pub(super) fn restart(mut self, now_ns: i64) -> Self {
        let found = self.disk.crash(Crash::KINDS[0]);
        drop(self.deliveries);
        self.writer.close().unwrap();
        World::open(found, now_ns, Script::default())
    }

    /// A source with a number field `t`; the first has the ordinal 0.
    pub(super) async fn source(&self, number: u64, name: &str) {
        let field = Field {
            name: "t".into(),
            kind: FieldType::Number,
            unit: None,
            description: None,
        };
        let source = NewSource {
            id: id(number),
            bucket_id: id(BUCKET),
            settings: SourceSettings {
                name: name.into(),
                kind: "k".into(),
                description: None,
                fields: vec![field],
                schema_mode: SchemaMode::Strict,
                downsampling: false,
                status: SourceStatus::Active,
                dimensions: None,
                duplicates: Default::default(),
                expected_interval_seconds: None,
            },
            metric_type: None,
            created_at_ns: START_NS,
        };
        self.commit(Command::SourceCreated { source }).await;
    }

    pub(super) async fn commit(&self, command: Command) {
        self.journal.commit(command).await.unwrap();
    }

    /// Creates a webhook for all events, with this many retries.
    pub(super) async fn webhook(&self, number: u64, url: &str, max_retries: u8) -> ObjectId {
        let webhook = Webhook {
            id: id(number),
            organization_id: id(ORGANIZATION),
            settings: WebhookSettings {
                url: url.into(),
                events: Event::REGISTERED.to_vec(),
                bucket_id: None,
                secret: Secret("s".into()),
                retry: RetryConfig {
                    max_retries,
                    backoff_multiplier: 1.0,
                },
                status: WebhookStatus::Active,
                format: WebhookFormat::Standard,
            },
            totals: DeliveryTotals::default(),
            created_at_ns: START_NS,
            updated_at_ns: START_NS,
        };
        self.commit(Command::WebhookCreated { webhook }).await;
        id(number)
    }

    pub(super) fn delivery(&self, receiver: Receiver) -> Delivery {
        let now_ns = self.clock.now_ns();
        let body = |webhook_id: ObjectId| Body::whole(webhook_id.to_string().into_bytes());
        let (organization_id, event) = (id(ORGANIZATION), Event::AlertTriggered);
        delivery(receiver, organization_id, event, &self.ids, now_ns, body)
    }

    /// Adds a pending delivery to the queue.
    pub(super) async fn add_pending(&self, receiver: Receiver) -> ObjectId {
        self.queue(self.delivery(receiver)).await
    }

    pub(super) async fn queue(&self, delivery: Delivery) -> ObjectId {
        let id = delivery.id;
        let deliveries = vec![delivery];
        self.commit(Command::DeliveriesQueued { deliveries }).await;
        self.deliveries.queued(vec![id]);
        id
    }

    pub(super) fn pending(&self, id: ObjectId) -> Option<Arc<Delivery>> {
        self.catalog.read(|catalog| catalog.pending_delivery(id).cloned())
    }

    /// The ledger's entry of a delivery that has ended.
    pub(super) fn ended(&self, webhook_id: ObjectId, id: ObjectId) -> Delivery {
        let entries = self
            .catalog
            .read(|catalog| catalog.ledger().of(Stream::Deliveries, webhook_id));
        let entry = entries.into_iter().find(|(key, _)| key.id == id);
        Delivery::decode(&entry.expect("it has ended").1.payload.to_vec()).unwrap()
    }

    pub(super) fn totals(&self, webhook_id: ObjectId) -> DeliveryTotals {
        self.catalog
            .read(|catalog| catalog.webhook(webhook_id).map(|webhook| webhook.totals))
            .unwrap_or_default()
    }

    /// Waits until the condition holds.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
