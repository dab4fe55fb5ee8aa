use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix::System;
use engine::rows::RowsWriter;
use wal::disk::Disk;
use wal::disk::sim::{Crash, SimDisk};

use super::check;
use crate::bucket::{Ingest, Ingested};
use crate::catalog::{
    Bytes, Command, Field, FieldType, NewBucket, NewRule, NewSource, Organization, Outcome, PasswordHash,
    Plan, RuleForm, RuleRuntime, RuleSettings, RuleState, RuleStatus, SchemaMode, SourceSettings,
    SourceStatus, User, Verdict,
};
use crate::checkpoint::{Layout, Rooms, open, start};
use crate::clock::{ManualClock, SECOND_NS};
use crate::config::Config;
use crate::ids::ObjectId;
use crate::journal::{AnswerView, IdempotencyView, IngestRecord};

const NOW_NS: i64 = 1_700_000_000 * SECOND_NS;
const POINTS: u32 = 20;
const VERDICTS: u8 = 5;

fn id(number: u8) -> ObjectId {
    ObjectId::from_bytes([number; 12])
}

async fn set_up(rooms: &Rooms) {
    let organization = Organization {
        id: id(1),
        name: "o".into(),
        plan: Plan::Enterprise,
        created_at_ns: NOW_NS,
        updated_at_ns: NOW_NS,
    };
    let user = User {
        id: id(2),
        organization_id: id(1),
        email: "a@b".into(),
        name: "a".into(),
        password: PasswordHash {
            memory_kib: 1,
            passes: 1,
            lanes: 1,
            salt: Bytes([1; 16]),
            hash: Bytes([2; 32]),
        },
        password_version: 0,
        created_at_ns: NOW_NS,
    };
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
        };
        let source = NewSource {
            id: id(source),
            bucket_id: id(3),
            settings,
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

/// Twenty points of each of the two sources, with an idempotency key.
async fn ingest(rooms: &Rooms, key: u8) {
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
    let record = IngestRecord::new(bucket.ordinal, NOW_NS, 2 * POINTS, Some((entry, None)), |out| {
        writer.encode(out)
    });
    let ingest = Ingest {
        record,
        rows: 2 * POINTS,
        sources: vec![0, 1],
        idempotency: Some(([key; 16], [0; 16])),
        now_ns: NOW_NS,
    };
    let stored = rooms.buckets.ingest(&bucket, ingest).await.unwrap();
    assert!(matches!(stored, Ingested::Stored { .. }));
}

/// Five verdicts on the rule.
async fn judge(rooms: &Rooms, round: u8) {
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
            deliveries: Vec::new(),
        };
        let command = Command::VerdictRecorded { verdict };
        rooms.journal.commit(command).await.unwrap();
    }
}

/// A directory of one bucket: two segments, two answers files, a run of the ledger, and a log with as much again as one of them.
fn directory() -> SimDisk {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.storage.data_dir = home.path().join("data");
    std::fs::create_dir(&config.storage.data_dir).unwrap();
    let run = |keys: Vec<u8>, orderly: bool| {
        let system = System::new();
        system.block_on(async {
            let clock = Arc::new(ManualClock::new(NOW_NS));
            let rooms = start(&config, clock).unwrap_or_else(|error| panic!("{error}"));
            if rooms.catalog.read(|catalog| catalog.bucket(id(3)).is_none()) {
                set_up(&rooms).await;
            }
            for key in keys {
                ingest(&rooms, key).await;
                judge(&rooms, key).await;
            }
            if orderly {
                rooms.checkpointer.close().await.unwrap();
            }
        });
        System::current().stop();
        system.run().unwrap();
    };
    run(vec![1], true);
    run(vec![2], true);
    run(vec![3, 4, 5], false);
    let disk = SimDisk::new(1);
    copy(&config.storage.data_dir, Path::new("data"), &disk);
    disk
}

fn copy(from: &Path, to: &Path, disk: &SimDisk) {
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

fn layout() -> Layout {
    Layout {
        data_dir: PathBuf::from("data"),
    }
}

fn run(disk: &SimDisk, repair: bool) -> (bool, String) {
    let mut said = Vec::new();
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let whole = check(&port, &layout(), repair, &mut said).unwrap_or_else(|error| panic!("{error}"));
    (whole, String::from_utf8(said).unwrap())
}

/// Points a server finds; `Err` says why it does not start.
fn points(disk: &SimDisk) -> Result<u64, String> {
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, Arc::clone(&port), &layout()).map_err(|error| error.to_string())?;
    let (state, _) = opened.buckets.first().ok_or("no bucket")?;
    Ok((0..2)
        .map(|source| state.store.stats(source, i64::MIN).unwrap().points)
        .sum())
}

fn fork(disk: &SimDisk) -> SimDisk {
    disk.crash(Crash::KINDS[0])
}

fn with_suffix(disk: &SimDisk, suffix: &str) -> Vec<PathBuf> {
    let ends = |path: &PathBuf| path.to_string_lossy().ends_with(suffix);
    disk.files().into_keys().filter(ends).collect()
}

#[test]
fn a_sound_directory_is_told_in_figures_and_left_as_it_is() {
    let disk = directory();
    let before = disk.files();
    let (whole, said) = run(&disk, false);
    assert!(whole, "{said}");
    assert_eq!(disk.files(), before);
    for expected in [
        "sound",
        "\"cellar\"",
        "2 segments",
        "80 points",
        "200 points, those in the log included",
        "2 answers",
        "ledger: 1 runs with 10 entries",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in: {said}");
    }
    assert!(run(&disk, true).0);
    assert_eq!(disk.files(), before, "there is nothing to repair");
}

/// Every byte of every file: what is damaged is told, and nothing is altered by telling.
#[test]
fn a_flipped_bit_is_told_by_file_and_nothing_is_altered() {
    let disk = directory();
    let mut untold: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("LOCK"))
    {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(150)) {
            let rotten = fork(&disk);
            rotten.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let before = rotten.files();
            let (whole, said) = run(&rotten, false);
            assert_eq!(rotten.files(), before, "{} at {offset}", path.display());
            if whole {
                *untold.entry(path.clone()).or_default() += 1;
            } else {
                assert!(
                    said.contains(&*path.to_string_lossy()),
                    "{} at {offset}: {said}",
                    path.display()
                );
            }
        }
    }
    // Its last frame cannot be told from a torn one: the log was not closed in order.
    let log = with_suffix(&disk, ".log").pop().unwrap();
    assert!(untold.keys().all(|path| *path == log), "{untold:?}");
}

/// A repair leaves a directory on which a server starts, and the points that it says are lost are those that are gone.
#[test]
fn a_repair_of_any_one_file_starts_again_and_says_what_is_lost() {
    let disk = directory();
    let all = points(&fork(&disk)).unwrap();
    assert_eq!(all, 200);
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("LOCK"))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(60)) {
            let rotten = fork(&disk);
            rotten.flip_bit(&path, offset as u64, (offset % 8) as u8);
            if run(&fork(&rotten), false).0 {
                continue;
            }
            let (whole, said) = run(&rotten, true);
            let at = format!("{} at {offset}: {said}", path.display());
            if name == "catalog.snapshot" {
                assert!(!whole && said.contains("cannot be repaired"), "{at}");
                continue;
            }
            assert!(whole, "{at}");
            let left = points(&rotten).unwrap_or_else(|error| panic!("{error}: {at}"));
            assert!(left == all || said.contains("lost"), "{left} points left, {at}");
            assert!(left >= all / 4, "{left} points left, {at}");
            let kept = rotten.files().into_values().any(|kept| {
                let mut damaged = bytes.clone();
                damaged[offset] ^= 1 << (offset % 8);
                kept == damaged
            });
            assert!(kept, "the damaged bytes are kept aside: {at}");
            // What a repaired directory takes from then on is there at the next start.
            assert!(run(&rotten.crash(Crash::KINDS[1]), false).0, "{at}");
        }
    }
}

/// One block is damaged: the others of its segment stay.
#[test]
fn a_damaged_block_costs_its_own_points_only() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    disk.flip_bit(&segment, 60, 3);
    let (whole, said) = run(&disk, false);
    assert!(!whole && said.contains("20 points of source 0"), "{said}");
    assert!(
        points(&fork(&disk)).is_ok(),
        "a server starts on it: only queries of the block fail"
    );
    let (whole, said) = run(&disk, true);
    assert!(
        whole && said.contains("lost") && said.contains("20 points of source 0"),
        "{said}"
    );
    assert_eq!(points(&disk).unwrap(), 180);
}

/// One entry of a history is damaged: the others stay.
#[test]
fn a_damaged_entry_costs_itself_only() {
    let disk = directory();
    let run_file = with_suffix(&disk, ".run").remove(0);
    disk.flip_bit(&run_file, 20, 3);
    let (whole, said) = run(&disk, false);
    assert!(
        !whole && said.contains("1 entries of histories of rules"),
        "{said}"
    );
    let (whole, said) = run(&disk, true);
    assert!(whole && said.contains("lost 1 entries"), "{said}");
    let (whole, said) = run(&disk, false);
    assert!(whole && said.contains("ledger: 1 runs with 9 entries"), "{said}");
    // Of a run whose footer is damaged nothing can be said.
    let run_file = with_suffix(&disk, ".run").remove(0);
    let end = disk.len(&run_file).unwrap();
    disk.flip_bit(&run_file, end - 1, 3);
    assert!(points(&fork(&disk)).unwrap_err().contains("tidewatch check"));
    let (whole, said) = run(&disk, true);
    assert!(whole && said.contains("all entries of a run are lost"), "{said}");
    assert_eq!(points(&disk).unwrap(), 200);
}

/// Records that a manifest covered are cut off the log; the records that get their sequences must not be taken for old.
#[test]
fn what_is_written_behind_a_cut_log_is_there_at_the_next_start() {
    let disk = directory();
    let log = with_suffix(&disk, ".log").pop().unwrap();
    let manifest_covers = |disk: &SimDisk| {
        let dir = crate::bucket::BucketDir::of(Path::new("data"), 1);
        dir.read_manifest(disk).unwrap().unwrap().covered
    };
    // As if the checkpoint of the bucket had been the last thing before the crash, and the log's end then rotted.
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, Arc::clone(&port), &layout()).unwrap_or_else(|error| panic!("{error}"));
    let covered = opened.log.last_sequence();
    drop(opened);
    let dir = crate::bucket::BucketDir::of(Path::new("data"), 1);
    let mut manifest = dir.read_manifest(&disk).unwrap().unwrap();
    manifest.covered = covered;
    dir.write_manifest(&disk, &manifest).unwrap();
    disk.edit(&log, |bytes| bytes.truncate(bytes.len() - 10));
    let (whole, said) = run(&disk, false);
    assert!(!whole && said.contains("manifest"), "{said}");
    assert!(points(&fork(&disk)).is_err());
    let (whole, said) = run(&disk, true);
    assert!(whole, "{said}");
    assert!(manifest_covers(&disk) < covered);
    points(&disk).unwrap();
}

/// What is left of a partial restore was called sound, and its buckets were removed by the next start.
#[test]
fn buckets_without_a_catalog_are_told_and_kept() {
    let disk = directory();
    disk.remove_dir_all(&layout().log_dir()).unwrap();
    for path in [layout().catalog_path(), layout().mark_path()] {
        disk.remove(&path).unwrap();
    }
    let before = disk.files();
    for repair in [false, true] {
        let (whole, said) = run(&disk, repair);
        assert!(
            !whole && said.contains("data/buckets/00000001 holds a bucket"),
            "{said}"
        );
        assert_eq!(disk.files(), before, "there is nothing to repair it from");
    }
}

/// The mark can be told from the log: its loss costs nothing, and was once blamed on the log and not repaired.
#[test]
fn a_missing_mark_is_named_and_made_anew() {
    let disk = directory();
    let whole = points(&fork(&disk)).unwrap();
    disk.remove(&layout().mark_path()).unwrap();
    let (sound, said) = run(&disk, false);
    assert!(!sound && said.contains("data/checkpoint is missing"), "{said}");
    let refused = points(&fork(&disk)).unwrap_err();
    assert!(refused.contains("data/checkpoint is missing"), "{refused}");
    let (sound, said) = run(&disk, true);
    assert!(sound && said.contains("nothing is lost"), "{said}");
    assert_eq!(points(&disk).unwrap(), whole);
}

/// A server whose other buckets were whole did not start for want of 82 bytes, and nothing could be done about it.
#[test]
fn a_manifest_that_is_damaged_or_gone_is_made_anew_and_no_point_is_lost_or_doubled() {
    let disk = directory();
    let whole = points(&fork(&disk)).unwrap();
    let manifest = with_suffix(&disk, "manifest").remove(0);
    let damages: [&dyn Fn(&SimDisk); 3] = [
        &|disk| disk.flip_bit(&manifest, 40, 3),
        &|disk| disk.edit(&manifest, |bytes| bytes.clear()),
        &|disk| disk.remove(&manifest).unwrap(),
    ];
    for damage in damages {
        // Also where a checkpoint was cut short behind its segments: the log has these rows, too.
        for mark_behind in [false, true] {
            let rotten = fork(&disk);
            if mark_behind {
                cut_checkpoint_short(&rotten);
            }
            damage(&rotten);
            let (sound, said) = run(&rotten, false);
            assert!(!sound && said.contains(&*manifest.to_string_lossy()), "{said}");
            let (sound, said) = run(&rotten, true);
            assert!(sound && said.contains("made anew"), "{said}");
            assert_eq!(points(&rotten).unwrap(), whole, "{said}");
            // The checkpoint cut short was copied here, never synced: a crash would take it back.
            if !mark_behind {
                let (sound, said) = run(&rotten.crash(Crash::KINDS[1]), false);
                assert!(sound, "{said}");
            }
        }
    }
}

/// The rooms' next checkpoint, until its first manifest is in force.
fn cut_checkpoint_short(disk: &SimDisk) {
    let home = tempfile::tempdir().unwrap();
    let (data_dir, manifest) = (home.path().join("data"), "data/buckets/00000001/manifest");
    for (path, bytes) in disk.files() {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let mut config = Config::default();
    config.storage.data_dir = data_dir;
    let system = System::new();
    system.block_on(async {
        let clock = Arc::new(ManualClock::new(NOW_NS));
        let rooms = start(&config, clock).unwrap_or_else(|error| panic!("{error}"));
        rooms.checkpointer.close().await.unwrap();
    });
    System::current().stop();
    system.run().unwrap();
    let bucket = Path::new(manifest).parent().unwrap();
    disk.remove_dir_all(bucket).unwrap();
    copy(&home.path().join(bucket), bucket, disk);
}

#[test]
fn a_bucket_whose_directory_is_gone_is_told_and_given_up_by_repair_alone() {
    let disk = directory();
    for dir in ["data/buckets/00000001", "data/buckets"] {
        let rotten = fork(&disk);
        rotten.remove_dir_all(Path::new(dir)).unwrap();
        let (sound, said) = run(&rotten, false);
        assert!(
            !sound && said.contains("data/buckets/00000001/manifest is missing"),
            "{said}"
        );
        let (sound, said) = run(&rotten, true);
        assert!(sound && said.contains("lost"), "{said}");
        // Those of the log are there: how many the last checkpoint left in it depends on when it came.
        let left = points(&rotten).unwrap();
        assert!((120..200).contains(&left), "{left} points left: {said}");
    }
}

#[test]
fn a_directory_without_anything_is_empty_and_not_sound() {
    let disk = SimDisk::new(1);
    disk.create_dir_all(Path::new("data")).unwrap();
    let (_, said) = run(&disk, false);
    assert!(said.contains("empty") && !said.contains("sound"), "{said}");
}

#[test]
fn missing_files_are_told_and_what_can_go_on_goes_on() {
    let disk = directory();
    for path in disk.files().into_keys().filter(|path| !path.ends_with("LOCK")) {
        let rotten = fork(&disk);
        rotten.remove(&path).unwrap();
        let before = rotten.files();
        let (whole, said) = run(&rotten, false);
        assert!(!whole, "without {}: {said}", path.display());
        assert_eq!(rotten.files(), before);
        let (whole, said) = run(&rotten, true);
        if whole {
            points(&rotten).unwrap_or_else(|error| panic!("{error}: {said}"));
            assert!(
                said.contains("lost") || said.contains("forgotten"),
                "without {}: {said}",
                path.display()
            );
        }
    }
}
