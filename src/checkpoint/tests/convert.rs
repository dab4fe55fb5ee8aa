//! Data of older programs is converted at a start, despite interruptions and damage.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use parking_lot::Mutex;

use super::hooked_disk::HookedDisk;
use super::seed;
use super::world::{RunningRooms, in_system, layout};
use crate::bucket::Digest;
use crate::catalog::Command;
use crate::checkpoint::format_1::{Damage, convert};
use crate::checkpoint::open;
use crate::clock::ManualClock;
use crate::ledger::{Answered, NewEntry};

/// UTC nanoseconds of a moment at which the keys are still valid.
const NOW_NS: i64 = 1_795_313_400_000_000_000;

/// A directory of format 1, in a backup's archive: three buckets, a deleted bucket, a deleted source, segments and
/// answers of three checkpoints, and a point only in the log.
fn directory() -> SimDisk {
    let disk = SimDisk::new(seed());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1.tar.zst");
    let decoder = zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut archive = tar::Archive::new(decoder);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if path.starts_with("data") {
            disk.put(&path, &bytes);
        }
    }
    disk.crash(Crash::KINDS[0])
}

/// Number of points by bucket and source, and the answers to keys.
#[derive(Debug, PartialEq)]
struct Content {
    points: BTreeMap<(u32, u32), u64>,
    answers: BTreeMap<(u32, Digest), Answered>,
}

/// Converts and opens the directory; returns its content.
fn convert_and_open(disk: &dyn Fn() -> Arc<dyn Disk>, keys: &[(u32, Digest)]) -> Result<Content, String> {
    let disk = disk();
    convert(&disk, &layout().data_dir, Damage::SetApart)?;
    let opened = open(&disk, &layout()).map_err(|error| error.to_string())?;
    let mut found = Content {
        points: BTreeMap::new(),
        answers: BTreeMap::new(),
    };
    if let Some(fault) = opened.set_apart.values().next() {
        return Err(fault.to_string());
    }
    for state in &opened.buckets {
        for source in 0..4 {
            let stats = state
                .store
                .stats(source, i64::MIN)
                .map_err(|error| error.to_string())?;
            found.points.insert((state.ordinal, source), stats.points);
        }
        for (bucket, key) in keys.iter().filter(|(bucket, _)| *bucket == state.ordinal) {
            let answer = state
                .idempotency
                .get(key, NOW_NS)
                .map_err(|error| error.to_string())?;
            let answer = answer.ok_or("a key is forgotten")?;
            found.answers.insert((*bucket, *key), answer);
        }
    }
    Ok(found)
}

fn content_of(disk: &SimDisk, keys: &[(u32, Digest)]) -> Result<Content, String> {
    convert_and_open(&|| Arc::new(disk.clone()), keys)
}

/// The keys in the answers files of a directory.
fn keys(disk: &SimDisk) -> Vec<(u32, Digest)> {
    let mut keys = Vec::new();
    for (path, bytes) in disk.files() {
        if path.extension().is_some_and(|it| it == "answers") {
            let bucket = path.parent().and_then(Path::file_name).and_then(|it| it.to_str());
            let bucket = bucket.and_then(|it| it.parse().ok()).unwrap();
            let count = u64::from_le_bytes(*bytes[8..].first_chunk().unwrap()) as usize;
            // Entries of 54 bytes after a header of 28, each of which begins with its key.
            let entries = bytes[28..].chunks_exact(54).take(count);
            keys.extend(entries.map(|entry| (bucket, *entry.first_chunk().unwrap())));
        }
    }
    keys
}

fn old_files(disk: &SimDisk) -> Vec<PathBuf> {
    let old = ["data/buckets", "data/catalog.snapshot", "data/checkpoint"];
    let files = disk.files().into_keys();
    files
        .filter(|path| old.iter().any(|it| path.starts_with(it)))
        .collect()
}

#[test]
fn a_directory_of_format_1_is_converted_completely() {
    let disk = directory();
    let keys = keys(&disk);
    assert!(keys.len() >= 20, "{}", keys.len());
    let found = content_of(&disk, &keys).unwrap();
    let points = |bucket: u32| {
        (0..3)
            .map(|source| found.points[&(bucket, source)])
            .collect::<Vec<_>>()
    };
    assert_eq!(points(1), [1_201, 1_200, 1_200]);
    assert_eq!(points(2), [1_200, 1_200, 0]);
    assert_eq!(points(4), [0, 0, 0]);
    assert!(!found.points.contains_key(&(3, 0)), "it was deleted");
    assert_eq!(old_files(&disk), [] as [PathBuf; 0]);
    assert_eq!(content_of(&disk.crash(Crash::KINDS[1]), &keys).unwrap(), found);
    let mut payloads = found.answers.iter();
    assert!(
        payloads
            .all(|((bucket, key), _)| NewEntry::answer(*bucket, key, Arc::default()).answered_key() == *key)
    );
}

#[test]
fn an_interrupted_conversion_starts_over() {
    let disk = directory();
    let keys = keys(&disk);
    let whole = content_of(&disk.crash(Crash::KINDS[0]), &keys).unwrap();
    let images: Arc<Mutex<Vec<(String, SimDisk)>>> = Arc::default();
    let taken = Arc::clone(&images);
    let hooked_disk = HookedDisk::new(disk, move |disk| {
        let mut taken = taken.lock();
        let operation = taken.len() / Crash::KINDS.len();
        taken.extend(
            Crash::KINDS.map(|crash| (format!("operation {operation}, {crash:?}"), disk.crash(crash))),
        );
    });
    let hooked_disk: Arc<dyn Disk> = Arc::new(hooked_disk);
    assert!(convert(&hooked_disk, &layout().data_dir, Damage::SetApart).unwrap());
    let images = std::mem::take(&mut *images.lock());
    assert!(images.len() > 40, "{}", images.len());
    for (name, image) in images {
        let found = catch_unwind(AssertUnwindSafe(|| content_of(&image, &keys)));
        assert_eq!(
            found.unwrap_or_else(|_| panic!("{name}")).unwrap(),
            whole,
            "{name}"
        );
    }
}

/// A damaged bucket is set apart until its file is restored; the others are available.
#[test]
fn damage_in_a_directory_of_format_1_loses_nothing() {
    let original = directory();
    let keys = keys(&original);
    let whole = content_of(&original.crash(Crash::KINDS[0]), &keys).unwrap();
    let (mut apart, mut refused) = (0, 0);
    for (path, bytes) in original.files() {
        if path.starts_with("data/log") {
            continue;
        }
        for offset in (0..bytes.len() as u64).step_by(bytes.len().div_ceil(40)) {
            let at = format!("{} at {offset}", path.display());
            let disk = original.crash(Crash::KINDS[0]);
            disk.flip_bit(&path, offset, 3);
            let port: Arc<dyn Disk> = Arc::new(disk.clone());
            match convert(&port, &layout().data_dir, Damage::SetApart) {
                Err(message) => {
                    assert!(message.contains(&*path.to_string_lossy()), "{at}: {message}");
                    refused += 1;
                }
                Ok(_) => {
                    let opened = open(&port, &layout());
                    let opened = opened.unwrap_or_else(|error| panic!("{at}: {error}"));
                    assert!(opened.set_apart.len() <= 1, "{at}");
                    apart += opened.set_apart.len();
                    if opened.set_apart.is_empty() {
                        // A block is read only when it is queried.
                        assert!(at.contains(".segment"), "{at}");
                        continue;
                    }
                }
            }
            disk.flip_bit(&path, offset, 3);
            assert_eq!(content_of(&disk, &keys).unwrap(), whole, "{at}, repaired");
            assert_eq!(old_files(&disk), [] as [PathBuf; 0], "{at}");
        }
    }
    assert!(apart > 0 && refused > 0, "{apart} set apart, {refused} refused");
}

#[test]
fn a_missing_bucket_is_set_apart_at_every_start() {
    let disk = directory();
    let kept: Vec<(PathBuf, Vec<u8>)> = disk
        .files()
        .into_iter()
        .filter(|(path, _)| path.starts_with("data/buckets/00000002"))
        .collect();
    let keys = keys(&disk);
    let whole = content_of(&disk.crash(Crash::KINDS[0]), &keys).unwrap();
    disk.remove_dir_all(Path::new("data/buckets/00000002")).unwrap();
    for _ in 0..3 {
        content_of(&disk, &keys).unwrap_err();
        let port: Arc<dyn Disk> = Arc::new(disk.clone());
        let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(opened.set_apart.keys().collect::<Vec<_>>(), [&2]);
    }
    disk.create_dir_all(Path::new("data/buckets/00000002")).unwrap();
    kept.iter().for_each(|(path, bytes)| disk.put(path, bytes));
    assert_eq!(content_of(&disk, &keys).unwrap(), whole, "restored");
}

#[test]
fn sound_blocks_of_a_damaged_bucket_are_salvaged_and_files_kept() {
    let disk = directory();
    let keys = keys(&disk);
    let segment = Path::new("data/buckets/00000001/000000000003.segment");
    let end = disk.files()[segment].len() as u64;
    disk.flip_bit(segment, end - 30, 1);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut messages = Vec::new();
    let mut say = |what: String| messages.push(what);
    assert!(convert(&port, &layout().data_dir, Damage::Salvage(&mut say)).unwrap());
    assert!(
        messages.len() == 1 && messages[0].contains("000000000003.segment"),
        "{messages:?}"
    );
    let found = content_of(&disk, &keys).unwrap();
    let points: u64 = (0..3).map(|source| found.points[&(1, source)]).sum();
    assert!(points > 1_000 && points < 3_601, "{points}");
    let aside = Path::new("data/buckets/00000001.damaged/000000000003.segment");
    assert!(disk.files().contains_key(aside));
}

/// Regression: starting before the repair lost the records of the log: they were carried, and then treated as
/// converted.
#[test]
fn carried_records_of_a_damaged_bucket_survive_a_repair() {
    let disk = directory();
    let keys = keys(&disk);
    let whole = content_of(&disk.crash(Crash::KINDS[0]), &keys).unwrap();
    let manifest = Path::new("data/buckets/00000001/manifest");
    disk.flip_bit(manifest, 30, 1);
    in_system(async {
        let clock = Arc::new(ManualClock::new(NOW_NS));
        let port: Arc<dyn Disk> = Arc::new(disk.clone());
        convert(&port, &layout().data_dir, Damage::SetApart).unwrap();
        let mut live = RunningRooms::start(port, clock).unwrap_or_else(|error| panic!("{error}"));
        live.on_thread(|task| task.checkpoint()).unwrap();
        live.stop();
    });
    let carried = disk
        .files()
        .into_keys()
        .filter(|path| path.starts_with("data/carried"));
    assert_eq!(carried.count(), 1, "the point that only the log had");
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    assert!(convert(&port, &layout().data_dir, Damage::Salvage(&mut |_| {})).unwrap());
    let found = content_of(&disk, &keys).unwrap();
    let lost = whole.points[&(1, 0)] - found.points[&(1, 0)];
    // The newest segment and the carried records; the others may contain the same rows.
    assert!(
        found.points[&(1, 0)] % 100 == 1,
        "{:?}, {lost} lost",
        found.points
    );
    assert_eq!(found.points[&(2, 0)], whole.points[&(2, 0)]);
}

/// Regression: after a kill between writing the manifest and renaming a damaged directory, the next start removed it.
#[test]
fn an_interrupted_repair_keeps_the_damaged_files() {
    let disk = directory();
    let segment = Path::new("data/buckets/00000001/000000000003.segment");
    let end = disk.files()[segment].len() as u64;
    disk.flip_bit(segment, end - 30, 1);
    let kept = disk.files()[segment].clone();
    let images: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let taken = Arc::clone(&images);
    let hooked_disk: Arc<dyn Disk> = Arc::new(HookedDisk::new(disk, move |disk| {
        taken.lock().push(disk.crash(Crash::KINDS[1]))
    }));
    assert!(convert(&hooked_disk, &layout().data_dir, Damage::Salvage(&mut |_| {})).unwrap());
    for (operation, image) in std::mem::take(&mut *images.lock()).into_iter().enumerate() {
        let port: Arc<dyn Disk> = Arc::new(image.clone());
        convert(&port, &layout().data_dir, Damage::SetApart)
            .unwrap_or_else(|error| panic!("{operation}: {error}"));
        let files = image.files();
        assert!(
            files.values().any(|bytes| *bytes == kept),
            "operation {operation}: {:?}",
            files.keys()
        );
    }
}

/// Regression: a bucket deleted only in the log was treated as lost.
#[test]
fn a_bucket_deleted_by_the_log_is_not_reported_missing() {
    let disk = directory();
    let log = disk
        .files()
        .into_keys()
        .find(|path| path.starts_with("data/log"))
        .unwrap();
    let port: Arc<dyn Disk> = Arc::new(disk.crash(Crash::KINDS[0]));
    let bucket_id = in_system(async {
        // The id of the second bucket.
        convert(&port, &layout().data_dir, Damage::SetApart).unwrap();
        let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
        opened
            .catalog
            .bucket_by_ordinal(2)
            .map(|bucket| bucket.id)
            .unwrap()
    });
    assert!(disk.exists(&log).unwrap());
    let log_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let covered = 63;
    let opened = wal::Log::open(
        log_disk,
        &layout().log_dir(),
        wal::LogOptions::default(),
        covered,
        &mut |_, _| Ok::<_, std::io::Error>(()),
    );
    let (mut log, _) = opened.unwrap_or_else(|_| panic!("the log opens"));
    // A record of kind 1.
    let mut record = vec![1];
    record.extend(Command::BucketDeleted { bucket_id }.encode().unwrap());
    log.append(&[record]).unwrap();
    log.close().unwrap();
    disk.remove_dir_all(Path::new("data/buckets/00000002")).unwrap();
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    convert(&port, &layout().data_dir, Damage::SetApart).unwrap();
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    assert!(opened.set_apart.is_empty());
    assert!(opened.manifest.unconverted.is_empty());
}
