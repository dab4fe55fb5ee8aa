//! A directory with every kind of file, and helpers to read it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix::System;
use disk::Disk;
use disk::sim::{Crash, SimDisk};
use engine::rows::RowsWriter;

use crate::bucket::{Ingest, Ingested};
use crate::catalog::{
    Bytes, Command, Field, FieldType, NewBucket, NewRule, NewSource, Organization, Outcome, PasswordHash,
    Plan, RuleForm, RuleRuntime, RuleSettings, RuleState, RuleStatus, SchemaMode, SourceSettings,
    SourceStatus, User, Verdict,
};
use crate::check::check;
use crate::checkpoint::DataDir;
use crate::checkpoint::{Layout, Rooms, open, start, start_pools};
use crate::clock::{ManualClock, SECOND_NS};
use crate::config::Config;
use crate::ids::ObjectId;
use crate::journal::{AnswerView, IdempotencyView, IngestRecord};
use crate::progress::tests::Heard;

pub(super) const NOW_NS: i64 = 1_700_000_000 * SECOND_NS;
pub(super) const POINTS: u32 = 20;
pub(super) const VERDICTS: u8 = 5;

pub(super) fn id(number: u8) -> ObjectId {
    ObjectId::from_bytes([number; 12])
}

pub(super) async fn set_up(rooms: &Rooms) {
    let organization = Organization {
        id: id(1),
        name: "o".into(),
        plan: Plan::Enterprise,
        invitations: Vec::new(),
        created_at_ns: NOW_NS,
        updated_at_ns: NOW_NS,
    };
    let user = User::new(
        id(2),
        id(1),
        "a@b",
        "a",
        PasswordHash {
            memory_kib: 1,
            passes: 1,
            lanes: 1,
            salt: Bytes([1; 16]),
            hash: Bytes([2; 32]),
        },
        NOW_NS,
    );
    let bucket = NewBucket {
        id: id(3),
        organization_id: id(1),
        name: "cellar".into(),
        description: None,
        retention_days: 3_650,
        created_at_ns: NOW_NS,
    };
    let mut commands = vec![
        Command::SignedUp { organization, user },
        Command::BucketCreated { bucket },
    ];
    for source in 4..6 {
        let field = Field {
            name: "value".into(),
            kind: FieldType::Number,
            unit: None,
            description: None,
        };
        let settings = SourceSettings {
            name: format!("s{source}").into(),
            kind: "sensor".into(),
            description: None,
            fields: vec![field],
            schema_mode: SchemaMode::Strict,
            downsampling: false,
            status: SourceStatus::Active,
            dimensions: None,
            duplicates: Default::default(),
            expected_interval_seconds: None,
        };
        let source = NewSource {
            id: id(source),
            bucket_id: id(3),
            settings,
            metric_type: None,
            created_at_ns: NOW_NS,
        };
        commands.push(Command::SourceCreated { source });
    }
    let settings = RuleSettings {
        name: "r".into(),
        text: "value above 1".into(),
        form: RuleForm::Condition,
        parsed: None,
        webhook_url: None,
        cooldown_minutes: 5.0,
        status: RuleStatus::Active,
        evaluation: None,
    };
    let rule = NewRule {
        id: id(6),
        source_id: id(4),
        settings,
        created_at_ns: NOW_NS,
    };
    commands.push(Command::RuleCreated { rule });
    for command in commands {
        rooms.journal.commit(command).await.unwrap();
    }
}

/// Ingests twenty points of each of the two sources, with an idempotency key.
pub(super) async fn ingest(rooms: &Rooms, key: u8) {
    let bucket = rooms
        .catalog
        .read(|catalog| catalog.bucket(id(3)).cloned())
        .unwrap();
    let mut writer = RowsWriter::new();
    for index in 0..POINTS {
        for source in 0..2 {
            writer.begin(source);
            writer.number(0, f64::from(index), 0);
            writer.commit(NOW_NS + i64::from(index) * SECOND_NS);
        }
    }
    let answer = AnswerView {
        status: 201,
        body: b"{}",
    };
    let entry = IdempotencyView {
        key: [key; 16],
        body: [0; 16],
        answer,
    };
    let record = IngestRecord::new(
        bucket.ordinal,
        NOW_NS,
        2 * POINTS,
        Some((entry, None)),
        &[],
        |out| writer.encode(out),
    );
    let ingest = Ingest {
        record,
        rows: 2 * POINTS,
        memory_bytes: writer.memory_bytes(),
        sources: vec![0, 1],
        series: Vec::new(),
        repeats: Vec::new(),
        releases: 0,
        alone: None,
        idempotency: Some(([key; 16], [0; 16])),
        now_ns: NOW_NS,
    };
    let stored = rooms.buckets.ingest(&bucket, ingest).await.unwrap();
    assert!(matches!(stored, Ingested::Stored { .. }));
}

/// Records five verdicts on the rule.
pub(super) async fn record_verdicts(rooms: &Rooms, round: u8) {
    for number in 0..VERDICTS {
        let at_ns = NOW_NS + i64::from(round) * SECOND_NS;
        let verdict = Verdict {
            id: id(100 + round * VERDICTS + number),
            rule_id: id(6),
            at_ns,
            outcome: Outcome::Met,
            evidence: Some("{}".into()),
            key_id: id(2),
            previous_state: RuleState::Armed,
            runtime: RuleRuntime::new(at_ns),
            trigger_id: None,
            silence_id: None,
            deliveries: Vec::new(),
            fan_out: None,
            room: None,
            told: Vec::new(),
        };
        let command = Command::VerdictRecorded { verdict };
        rooms.journal.commit(command).await.unwrap();
    }
}

/// A directory of one bucket: segments and runs of two checkpoints, and a trimmed log with more than one checkpoint's
/// records.
pub(super) fn directory() -> SimDisk {
    directory_after(&[(&[1], true), (&[2], true), (&[3, 4, 5], false)])
}

/// A directory without a checkpoint: all data is in the log.
pub(super) fn directory_without_checkpoint() -> SimDisk {
    directory_after(&[(&[1, 2, 3, 4, 5], false)])
}

fn directory_after(runs: &[(&[u8], bool)]) -> SimDisk {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::defaults().unwrap();
    config.storage.data_dir = home.path().join("data");
    std::fs::create_dir(&config.storage.data_dir).unwrap();
    for (keys, orderly) in runs {
        run_rooms(&config, keys, *orderly);
    }
    let disk = SimDisk::new(1);
    copy(&config.storage.data_dir, Path::new("data"), &disk);
    disk
}

/// Runs rooms that accept points and verdicts with these keys; if `orderly`, they end with a checkpoint.
pub(super) fn run_rooms(config: &Config, keys: &[u8], orderly: bool) {
    in_rooms(config, async |rooms| {
        for key in keys {
            ingest(rooms, *key).await;
            record_verdicts(rooms, *key).await;
        }
        if orderly {
            rooms.checkpointer.close().await.unwrap();
        }
    });
}

/// Runs rooms, and `work` with them.
pub(super) fn in_rooms(config: &Config, work: impl AsyncFnOnce(&Rooms)) {
    let system = System::new();
    system.block_on(async {
        let clock = Arc::new(ManualClock::new(NOW_NS));
        let rooms = start(config, start_pools(config, 1).unwrap(), clock, None).await;
        let rooms = rooms.unwrap_or_else(|error| panic!("{error}"));
        if rooms.catalog.read(|catalog| catalog.bucket(id(3)).is_none()) {
            set_up(&rooms).await;
        }
        work(&rooms).await;
    });
    System::current().stop();
    system.run().unwrap();
}

pub(super) fn copy(from: &Path, to: &Path, disk: &SimDisk) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &to, disk);
        } else {
            disk.put(&to, &std::fs::read(&path).unwrap());
        }
    }
}

pub(super) fn layout() -> Layout {
    Layout::of(Path::new("data"))
}

pub(super) fn data_dir(disk: &SimDisk) -> DataDir {
    DataDir {
        disk: Arc::new(disk.clone()),
        layout: layout(),
    }
}

pub(super) fn run(disk: &SimDisk, repair: bool) -> (bool, String) {
    let (mut report, progress) = (Vec::new(), Heard::new());
    let whole =
        check(&data_dir(disk), repair, &progress, &mut report).unwrap_or_else(|error| panic!("{error}"));
    let report = String::from_utf8(report).unwrap();
    if report.contains("sound: ") && report.contains("manifest: everything") {
        progress.assert_all();
    }
    (whole, report)
}

/// Number of points after a start; `Err` has the reason why it does not start.
pub(super) fn points(disk: &SimDisk) -> Result<u64, String> {
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, &layout()).map_err(|error| error.to_string())?;
    if let Some(fault) = opened.set_apart.values().next() {
        return Err(fault.to_string());
    }
    let state = opened.buckets.first().ok_or("no bucket")?;
    Ok((0..2)
        .map(|source| state.store.stats(source, i64::MIN).unwrap().points)
        .sum())
}

pub(super) fn fork(disk: &SimDisk) -> SimDisk {
    disk.crash(Crash::KINDS[0])
}

/// Damages more than one bit of a byte, which no checksum can correct.
pub(super) fn damage_byte(disk: &SimDisk, path: &Path, offset: u64) {
    disk.flip_bit(path, offset, 1);
    disk.flip_bit(path, offset, 3);
}

pub(super) fn with_suffix(disk: &SimDisk, suffix: &str) -> Vec<PathBuf> {
    let ends = |path: &PathBuf| path.to_string_lossy().ends_with(suffix);
    disk.files().into_keys().filter(ends).collect()
}
