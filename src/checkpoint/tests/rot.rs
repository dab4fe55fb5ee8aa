//! Flipped bits and missing files: the start is refused and names the file, or nothing is lost. A block is read only
//! when it is queried; then the query fails and never returns other rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};

use super::crash::recover;
use super::entries::Listed;
use super::model::Model;
use super::world::{RunningRooms, World, in_system, layout};
use super::{all_rows, exhaustive, seed};
use crate::bucket::Digest;
use crate::checkpoint::{Manifest, Opened, open};
use crate::clock::{Clock, ManualClock};
use crate::ledger::Answered;

/// Flips in one file, unless all are requested.
const FLIPS: usize = 400;

/// A directory with every kind of file, whose log was closed in order.
fn directory(seed: u64) -> (SimDisk, Model, i64) {
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let mut live = started.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.expect("the disk is whole");
        for round in 0..3 {
            world.ingest(&live.rooms, 3).await.expect("the disk is whole");
            if round < 2 {
                // Merged runs, and no changes of the ledger in the last checkpoint.
                world.entries(&live.rooms).await.expect("the disk is whole");
            }
            live.checkpoint().expect("the disk is whole");
        }
        world.ingest(&live.rooms, 2).await.expect("the disk is whole");
        world.create_bucket(&live.rooms).await.expect("the disk is whole");
        live.task.journal.close().expect("the disk is whole");
    });
    let model = world.model.lock().clone();
    (disk, model, world.clock.now_ns())
}

fn copy(disk: &SimDisk) -> SimDisk {
    disk.crash(Crash::KINDS[0])
}

fn try_open(disk: &SimDisk) -> Result<Opened, String> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&disk, &layout()).map_err(|error| error.to_string())?;
    // A bucket that does not open is set apart; it has not silently lost rows.
    match opened.set_apart.values().next() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(opened),
    }
}

/// All rows of all sources, all lists of the ledger and all answers to keys, or `None` if a part is unreadable.
fn read_all(opened: &Opened, model: &Model, now_ns: i64) -> Option<(Rows, Vec<Listed>, Answers)> {
    let lists = model
        .entries
        .listed(&opened.catalog, opened.ledger.ledger(), now_ns);
    Some((read_rows(opened)?, lists?, read_answers(opened, model, now_ns)?))
}

/// The buckets' answers to all keys.
fn read_answers(opened: &Opened, model: &Model, now_ns: i64) -> Option<Answers> {
    let mut answers = Answers::new();
    for state in &opened.buckets {
        let requests = model.requests.iter();
        for request in requests.filter(|request| request.bucket == state.ordinal) {
            if let Some(key) = request.key {
                let found = state.idempotency.get(&key, now_ns).ok()?;
                answers.insert((state.ordinal, key), found);
            }
        }
    }
    Some(answers)
}

type Answers = BTreeMap<(u32, Digest), Option<Answered>>;

type Rows = BTreeMap<(u32, u32), Vec<(i64, u64, String)>>;

/// All rows of all sources, or `None` if a block is unreadable.
fn read_rows(opened: &Opened) -> Option<Rows> {
    let mut all = Rows::new();
    for state in &opened.buckets {
        for source in 0..4 {
            let Some(series) = &state.store.view().series(source) else {
                continue;
            };
            let page = all_rows(series, (i64::MIN, i64::MAX)).ok()?;
            let row = |(run, row): &(u32, u32)| {
                let (columns, row) = (&page.runs[*run as usize].columns, *row as usize);
                let (timestamp_ns, sequence) = columns.key(row);
                let values: Vec<String> = columns
                    .fields
                    .iter()
                    .filter(|field| field.column.has(row))
                    .map(|field| match &field.column.values {
                        engine::Values::Numbers { values, .. } => values[row].to_string(),
                        engine::Values::Booleans(values) => values[row].to_string(),
                        engine::Values::Texts(texts) => texts.get(row).to_string(),
                    })
                    .collect();
                (timestamp_ns, sequence, values.join(","))
            };
            all.insert((state.ordinal, source), page.rows.iter().map(row).collect());
        }
    }
    Some(all)
}

#[test]
fn a_flipped_bit_is_refused_or_harmless_and_never_alters_rows() {
    let seed = seed();
    let (disk, model, now_ns) = directory(seed);
    let whole = read_all(&recover(&copy(&disk)), &model, now_ns).expect("it is whole");
    let (mut refused, mut unread, mut harmless) = (0, 0, Vec::new());
    for (path, bytes) in disk.files() {
        let step = if exhaustive() {
            1
        } else {
            bytes.len().div_ceil(FLIPS)
        };
        for offset in (0..bytes.len()).step_by(step) {
            let damaged = copy(&disk);
            damaged.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let at = format!("{} at {offset}", path.display());
            match try_open(&damaged) {
                Err(message) => {
                    assert!(message.contains(&*path.to_string_lossy()), "{at}: {message}");
                    refused += 1;
                }
                Ok(opened) => match read_all(&opened, &model, now_ns) {
                    None => unread += 1,
                    Some(found) => {
                        assert!(found == whole, "{at}");
                        // A scan reads no rollups; a grouped query fails if they are unreadable.
                        if !at.contains(".segment") {
                            model.check(&opened, now_ns);
                        }
                        harmless.push(at);
                    }
                },
            }
        }
    }
    println!("{refused} refused, {unread} unread, harmless: {harmless:?}");
    assert!(refused > 0 && unread > 0);
    // A scan reads no rollups, an entry that is pending again is not read from its run, and the end marker of the log
    // has no records.
    let log = layout().log_dir();
    let is_unread = |at: &String| at.contains(".segment") || at.contains(".run");
    let in_log = harmless
        .iter()
        .filter(|at| at.starts_with(&*log.to_string_lossy()))
        .count();
    assert!(in_log <= 64, "{harmless:?}");
    assert!(
        harmless
            .iter()
            .all(|at| is_unread(at) || at.starts_with(&*log.to_string_lossy())),
        "{harmless:?}"
    );
}

#[test]
fn a_missing_file_is_refused_by_name_and_nothing_is_removed() {
    let (disk, _, _) = directory(seed());
    for path in disk.files().into_keys() {
        if path == Manifest::path(&layout().data_dir) {
            // The log is complete and not trimmed, so that the manifest is not needed.
            continue;
        }
        let damaged = copy(&disk);
        damaged.remove(&path).unwrap();
        let before = damaged.files();
        let message = try_open(&damaged)
            .err()
            .unwrap_or_else(|| panic!("without {}", path.display()));
        let named = message.contains(&*path.to_string_lossy());
        // If the log or its end is missing, the message says so.
        assert!(named || message.contains("log"), "{}: {message}", path.display());
        assert_eq!(damaged.files(), before, "{}", path.display());
    }
}

#[test]
fn a_missing_log_is_refused_when_the_mark_says_it_existed() {
    let (disk, _, _) = directory(seed());
    disk.remove_dir_all(&layout().log_dir()).unwrap();
    let message = try_open(&disk).err().expect("it is refused");
    assert!(message.contains("log"), "{message}");
}

/// Regression: buckets missing in the catalog were treated as deleted and removed: a missing mount lost every point.
#[test]
fn a_manifest_missing_with_its_log_is_refused_and_nothing_removed() {
    let (disk, ..) = directory(seed());
    disk.remove_dir_all(&layout().log_dir()).unwrap();
    disk.remove(&Manifest::path(&layout().data_dir)).unwrap();
    let before = disk.files();
    for emptied in [false, true] {
        if emptied {
            disk.create_dir_all(&layout().log_dir()).unwrap();
        }
        let message = try_open(&disk).err().expect("it is refused");
        assert!(message.contains("data/manifest is missing"), "{message}");
        assert_eq!(disk.files(), before);
    }
}

/// A whole directory is missing, as if a volume were not mounted.
#[test]
fn missing_segments_and_runs_are_refused_by_name() {
    let (disk, ..) = directory(seed());
    for dir in ["data/segments", "data/ledger"] {
        let damaged = copy(&disk);
        damaged.remove_dir_all(Path::new(dir)).unwrap();
        let before = damaged.files();
        let message = try_open(&damaged)
            .err()
            .unwrap_or_else(|| panic!("without {dir}"));
        assert!(message.contains(dir), "{message}");
        assert_eq!(damaged.files(), before);
    }
}

#[test]
fn unknown_files_are_kept() {
    let (disk, model, now_ns) = directory(seed());
    let strange: Vec<PathBuf> = [
        "data/notes",
        "data/segments/notes",
        "data/carried/notes",
        "data/ledger/notes",
    ]
    .into_iter()
    .map(PathBuf::from)
    .collect();
    strange.iter().for_each(|path| disk.put(path, b"mine"));
    let leftovers = [
        "data/segments/000000099999.segment",
        "data/ledger/000000099999.run",
    ]
    .map(Path::new);
    leftovers.iter().for_each(|path| disk.put(path, b"a leftover"));
    model.check(&recover(&disk), now_ns);
    in_system(async {
        let clock = Arc::new(ManualClock::new(now_ns));
        let started = RunningRooms::start(Arc::new(disk.clone()), clock);
        started.unwrap_or_else(|error| panic!("{error}")).stop();
    });
    let files = disk.files();
    assert!(
        strange.iter().all(|path| files.contains_key(path)),
        "{:?}",
        files.keys()
    );
    assert!(leftovers.iter().all(|path| !files.contains_key(*path)));
}
