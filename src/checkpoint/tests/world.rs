//! A small world on a simulated disk, and the ledger of what it was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use engine::query::{ScanQuery, Selection, scan};
use engine::rows::RowsWriter;
use engine::{Store, Values};
use wal::disk::Disk;
use wal::disk::sim::SimDisk;

use crate::bucket::{BucketState, Ingest, Ingested};
use crate::catalog::{
    Bytes, Command, Field, FieldType, NewBucket, NewSource, Organization, PasswordHash, Plan, SchemaMode,
    SourceSettings, SourceStatus, User,
};
use crate::checkpoint::layout::Layout;
use crate::checkpoint::open::{OpenError, Opened, open};
use crate::checkpoint::start::{Rooms, start_on};
use crate::clock::ManualClock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::{AnswerView, IdempotencyView, IngestRecord};

pub(super) const NOW_NS: i64 = 1_800_000_000_000_000_000;
const BUCKETS: u64 = 2;
const SOURCES: u64 = 2;

/// An ingest as sent: rows `(source ordinal, value)`, each value used once in the world.
#[derive(Clone, Debug)]
pub(super) struct Request {
    number: u64,
    bucket: u64,
    rows: Vec<(u32, u64)>,
    keyed: bool,
}

/// What was tried, and what was acknowledged.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    tried: Vec<Request>,
    /// Number of the request → sequence of its first row.
    stored: BTreeMap<u64, u64>,
    /// (bucket, source) whose deletion was tried, and those whose deletion was acknowledged.
    deleting: BTreeSet<(u64, u32)>,
    deleted: BTreeSet<(u64, u32)>,
    next: u64,
}

pub(super) fn config() -> Config {
    let mut config = Config::default();
    config.storage.data_dir = PathBuf::from("/data");
    config
}

pub(super) fn start(disk: &SimDisk) -> Result<Rooms, OpenError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    start_on(
        Arc::clone(&shared),
        shared,
        &config(),
        Arc::new(ManualClock::new(NOW_NS)),
    )
}

pub(super) fn reopen(disk: &SimDisk) -> Result<Opened, OpenError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    open(
        &shared,
        Arc::clone(&shared),
        &Layout {
            data_dir: config().storage.data_dir,
        },
    )
}

/// Runs within an actix system, as the server does.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    actix::System::new().block_on(future)
}

fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn bucket_id(bucket: u64) -> ObjectId {
    id(100 + bucket)
}

fn source_id(bucket: u64, source: u64) -> ObjectId {
    id(1_000 + bucket * 100 + source)
}

fn key_of(number: u64) -> [u8; 16] {
    let mut key = [7; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// The commands that make the world's organization, buckets and sources.
pub(super) fn foundation() -> Vec<Command> {
    let name = |text: &str| -> Box<str> { text.into() };
    let organization = Organization {
        id: id(1),
        name: name("plant"),
        plan: Plan::Enterprise,
        created_at_ns: 0,
        updated_at_ns: 0,
    };
    let password = PasswordHash {
        memory_kib: 1,
        passes: 1,
        lanes: 1,
        salt: Bytes([0; 16]),
        hash: Bytes([0; 32]),
    };
    let user = User {
        id: id(2),
        organization_id: id(1),
        email: name("a@example.com"),
        name: name("a"),
        password,
        password_version: 0,
        created_at_ns: 0,
    };
    let mut commands = vec![Command::SignedUp { organization, user }];
    for bucket in 0..BUCKETS {
        let made = NewBucket {
            id: bucket_id(bucket),
            organization_id: id(1),
            name: format!("bucket {bucket}").into(),
            description: None,
            retention_days: 30,
            created_at_ns: 0,
        };
        commands.push(Command::BucketCreated { bucket: made });
        for source in 0..SOURCES {
            let value = Field {
                name: "value".into(),
                kind: FieldType::Number,
                unit: None,
                description: None,
            };
            let settings = SourceSettings {
                name: format!("source {source}").into(),
                kind: "sensor".into(),
                description: None,
                fields: vec![value],
                schema_mode: SchemaMode::Strict,
                downsampling: true,
                status: SourceStatus::Active,
            };
            let source = NewSource {
                id: source_id(bucket, source),
                bucket_id: bucket_id(bucket),
                settings,
                created_at_ns: 0,
            };
            commands.push(Command::SourceCreated { source });
        }
    }
    commands
}

impl Ledger {
    /// Sends one ingest; what the server says goes into the ledger.
    pub(super) async fn ingest(&mut self, rooms: &Rooms, rows: u64) -> Result<(), ServiceError> {
        self.next += 1;
        let (number, bucket) = (self.next, self.next % BUCKETS);
        let known = rooms.catalog.read(|catalog| {
            let sources = catalog
                .sources_of(bucket_id(bucket))
                .map(|source| source.ordinal)
                .collect::<Vec<_>>();
            catalog
                .bucket(bucket_id(bucket))
                .cloned()
                .map(|bucket| (bucket, sources))
        });
        let Some((found, sources)) = known.filter(|(_, sources)| !sources.is_empty()) else {
            return Ok(());
        };
        let rows: Vec<(u32, u64)> = (0..rows)
            .map(|row| (sources[(row % sources.len() as u64) as usize], number * 100 + row))
            .collect();
        let mut writer = RowsWriter::new();
        for (source, value) in &rows {
            writer.begin(*source);
            writer.number(0, *value as f64, 0);
            // Every third is late.
            writer.commit(NOW_NS + (*value as i64) * if value % 3 == 0 { -1_000 } else { 1_000 });
        }
        let keyed = number.is_multiple_of(2);
        let answer = AnswerView {
            status: 201,
            body: b"answer",
        };
        let entry = IdempotencyView {
            key: key_of(number),
            body: [1; 16],
            answer,
        };
        let count = rows.len() as u32;
        let record = IngestRecord::new(
            found.ordinal,
            NOW_NS,
            count,
            keyed.then_some((entry, None)),
            |out| writer.encode(out),
        );
        let touched = writer.sources().collect();
        self.tried.push(Request {
            number,
            bucket,
            rows,
            keyed,
        });
        let idempotency = keyed.then(|| (key_of(number), [1; 16]));
        let ingest = Ingest {
            record,
            rows: count,
            sources: touched,
            idempotency,
            now_ns: NOW_NS,
        };
        match rooms.buckets.ingest(&found, ingest).await? {
            Ingested::Stored { first_sequence } => drop(self.stored.insert(number, first_sequence)),
            other => panic!("request {number} answered {other:?}"),
        }
        Ok(())
    }

    pub(super) async fn delete_source(
        &mut self,
        rooms: &Rooms,
        bucket: u64,
        source: u64,
    ) -> Result<(), ServiceError> {
        let source_id = source_id(bucket, source);
        let known = rooms.catalog.read(|catalog| {
            Some((
                catalog.bucket(bucket_id(bucket))?.clone(),
                catalog.source(source_id)?.ordinal,
            ))
        });
        let Some((found, ordinal)) = known else {
            return Ok(());
        };
        self.deleting.insert((bucket, ordinal));
        rooms
            .buckets
            .delete_source(&found, ordinal, Command::SourceDeleted { source_id })
            .await?;
        self.deleted.insert((bucket, ordinal));
        Ok(())
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.stored.len()
    }

    /// Holds what was recovered against what was promised.
    pub(super) fn check(&self, opened: &Opened) {
        for bucket in 0..BUCKETS {
            let ordinal = opened
                .catalog
                .bucket(bucket_id(bucket))
                .map(|found| found.ordinal);
            let state = opened
                .buckets
                .iter()
                .map(|(state, _)| state)
                .find(|state| Some(state.ordinal) == ordinal);
            let found = state.map(rows_of).unwrap_or_default();
            let requests = || self.tried.iter().filter(move |request| request.bucket == bucket);
            for request in requests() {
                self.check_request(request, &found, state);
            }
            let known: BTreeSet<u64> = requests()
                .flat_map(|request| &request.rows)
                .map(|row| row.1)
                .collect();
            assert!(
                found.keys().all(|value| known.contains(value)),
                "rows that nobody sent"
            );
        }
    }

    fn check_request(
        &self,
        request: &Request,
        found: &BTreeMap<u64, Vec<(u32, u64)>>,
        state: Option<&BucketState>,
    ) {
        let gone = |source: u32| self.deleting.contains(&(request.bucket, source));
        let surely_gone = |source: u32| self.deleted.contains(&(request.bucket, source));
        let kept: Vec<&(u32, u64)> = request.rows.iter().filter(|row| !gone(row.0)).collect();
        let present = kept.iter().filter(|row| found.contains_key(&row.1)).count();
        let stored = self.stored.get(&request.number);
        match stored {
            Some(first) => {
                assert_eq!(present, kept.len(), "acknowledged rows of {request:?}");
                for (place, (source, value)) in request.rows.iter().enumerate() {
                    if !gone(*source) {
                        assert_eq!(
                            found[value],
                            [(*source, first + place as u64)],
                            "once, with its id: {request:?}"
                        );
                    }
                }
                if request.keyed {
                    let entry =
                        state.and_then(|state| state.idempotency.get(&key_of(request.number), NOW_NS));
                    assert!(
                        entry.is_some_and(|entry| &*entry.answer.body == b"answer"),
                        "the key of {request:?}"
                    );
                }
            }
            None => assert!(present == 0 || present == kept.len(), "half of {request:?}"),
        }
        for (source, value) in request.rows.iter().filter(|row| surely_gone(row.0)) {
            assert!(
                !found.contains_key(value),
                "a row of the deleted source {source}: {request:?}"
            );
        }
    }
}

/// Value → source and sequence of each row that has it.
fn rows_of(state: &BucketState) -> BTreeMap<u64, Vec<(u32, u64)>> {
    let mut rows: BTreeMap<u64, Vec<(u32, u64)>> = BTreeMap::new();
    let store: &Store = &state.store;
    let snapshot = store.snapshot(0..SOURCES as u32 + 2);
    let selections: Vec<Selection<'_>> = snapshot
        .series
        .iter()
        .map(|series| Selection { series, fields: None })
        .collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit: 1_000_000,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&selections, &query).unwrap();
    for (run, row) in &page.rows {
        let run = &page.runs[*run as usize];
        let Some(Values::Numbers { values, .. }) = run.columns.field(0).map(|column| &column.values) else {
            panic!("a number in every row");
        };
        let (_, sequence) = run.columns.key(*row as usize);
        rows.entry(values[*row as usize] as u64)
            .or_default()
            .push((run.source, sequence));
    }
    rows
}
