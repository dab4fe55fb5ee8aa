//! Normal operation of a log: sequences, files, trimming, bounds.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use disk::sim::{Crash, Fault, Operation, SimDisk};
use disk::{Bytes, Disk, DiskFile};
use wal::{Log, LogError, LogOptions, OpenError, SyncPolicy};

use crate::common::{OPTIONS, commit, dir, file, long_log, open, try_open};

#[test]
fn sequences_are_dense_over_files_and_restarts() {
    let disk = SimDisk::new(1);
    let mut next = 1;
    for round in 0..5 {
        let (mut log, recovery, _) = open(&disk);
        assert_eq!(recovery.last_sequence, next - 1);
        for _ in 0..10 {
            assert_eq!(commit(&mut log, &[&[round; 300], b"second"]), next);
            next += 2;
        }
    }
    assert!(disk.files().len() > 2);
    let (_, recovery, records) = open(&disk);
    assert_eq!((recovery.records, recovery.frames), (100, 50));
    assert!(records.iter().map(|(sequence, _)| *sequence).eq(1..=100));
}

#[test]
fn an_appended_group_is_durable_only_after_a_sync() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    assert_eq!(log.append(&[b"one", b"two"]).expect("append"), 1);
    assert_eq!((log.last_sequence(), log.durable_sequence()), (2, 0));
    assert_eq!(open(&disk.crash(Crash::KINDS[1])).2.len(), 0);
    log.sync().expect("sync");
    assert_eq!((log.last_sequence(), log.durable_sequence()), (2, 2));
    assert_eq!(open(&disk.crash(Crash::KINDS[1])).2.len(), 2);
}

/// Two unsynced frames could reach the disk in the wrong order, and a crash would look like bit rot.
#[test]
fn a_second_append_syncs_the_first() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    log.append(&[[1; 2_000]]).expect("append");
    log.append(&[[2; 1_900]]).expect("append");
    assert_eq!(log.durable_sequence(), 1);
    for _ in 0..50 {
        for crash in Crash::KINDS {
            let (_, _, records) = open(&disk.crash(crash));
            assert!(!records.is_empty());
        }
    }
}

#[test]
fn a_sync_without_new_records_does_nothing() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[b"one"]);
    let operations = disk.operations();
    log.sync().expect("sync");
    assert_eq!(log.append(&[[0_u8; 0]; 0]).expect("no records"), 2);
    log.rotate().and_then(|()| log.rotate()).expect("rotate");
    assert_eq!(disk.count(Operation::Create), 2, "an empty file is not rotated");
    assert_eq!(
        disk.operations() - operations,
        6,
        "cut the room, sync, create, write, sync, sync the directory"
    );
}

#[test]
fn an_empty_record_is_stored() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    commit(&mut log, &[b"", b""]);
    assert_eq!(open(&disk).2, [(1, Vec::new()), (2, Vec::new())]);
}

#[test]
fn frame_size_is_bounded_and_a_refused_frame_writes_nothing() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    let most = vec![1; OPTIONS.frame_bytes_max as usize - 36];
    let more = vec![1; most.len() + 1];
    let operations = disk.operations();
    let error = log.append(&[&more]).expect_err("too large");
    assert!(matches!(
        error,
        LogError::FrameTooLarge {
            bytes: 65_537,
            bytes_max: 65_536
        }
    ));
    assert_eq!(disk.operations(), operations);
    commit(&mut log, &[&most]);
    commit(&mut log, &[b"next"]);
    assert_eq!(
        disk.files().keys().collect::<Vec<_>>(),
        [&file(1), &file(2)],
        "a large frame has its own file"
    );
    // Written with a larger bound, read with a smaller one.
    let smaller = LogOptions {
        frame_bytes_max: 100,
        ..OPTIONS
    };
    let (_, _, records) = try_open(Arc::new(disk), smaller, 0).expect("the bound is for writing");
    assert_eq!(records.len(), 2);
}

#[test]
fn trim_drops_only_fully_covered_files() {
    let disk = SimDisk::new(1);
    long_log(&disk, 4);
    let (mut log, _, _) = open(&disk);
    let bytes = log.tail_bytes();
    assert_eq!(log.trim(1).expect("trim"), 0);
    assert_eq!(log.trim(5).expect("trim"), 2);
    assert_eq!(disk.files().into_keys().collect::<Vec<_>>(), [file(5), file(7)]);
    assert_eq!(log.tail_bytes(), bytes / 2);
    let stored: usize = disk.files().values().map(Vec::len).sum();
    assert_eq!(log.tail_bytes(), stored as u64);
    // A large file without needed records: the active file is removed, too, and its successor continues the sequences.
    assert_eq!(log.trim(8).expect("trim"), 2);
    assert_eq!(disk.files().into_keys().collect::<Vec<_>>(), [file(9)]);
    assert_eq!(log.trim(8).expect("nothing left"), 0);
    drop(log);
    let (mut log, ..) = try_open(Arc::new(disk), OPTIONS, 8).expect("open");
    assert_eq!(commit(&mut log, &[b"next"]), 9);
}

#[test]
fn an_error_in_the_replay_fails_the_open_and_alters_nothing() {
    let disk = SimDisk::new(1);
    long_log(&disk, 2);
    disk.edit(&file(3), |bytes| bytes.extend_from_slice(b"torn"));
    let before = disk.files();
    let opened = Log::open(
        Arc::new(disk.clone()),
        dir(),
        OPTIONS,
        1,
        &mut |sequence, _| match sequence {
            3 => Err(io::Error::other("no")),
            _ => Ok(()),
        },
    );
    assert!(matches!(
        opened.map(drop),
        Err(OpenError::Replay { sequence: 3, .. })
    ));
    assert!(disk.files() == before);
}

/// A disk that records the largest read.
struct Watched {
    disk: SimDisk,
    largest_read: Arc<AtomicU64>,
}

struct WatchedFile {
    file: Box<dyn DiskFile>,
    largest_read: Arc<AtomicU64>,
}

impl Watched {
    fn watch(&self, file: io::Result<Box<dyn DiskFile>>) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(WatchedFile {
            file: file?,
            largest_read: self.largest_read.clone(),
        }))
    }
}

impl Disk for Watched {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.watch(self.disk.create(path))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.watch(self.disk.open(path))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.watch(self.disk.open_read(path))
    }
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::Error::other("a log file is never read whole"))
    }
    fn map(&self, _: &Path) -> io::Result<Arc<dyn Bytes>> {
        Err(io::Error::other("a log file is never mapped"))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        self.disk.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
}

impl DiskFile for WatchedFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, bytes)
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.largest_read
            .fetch_max(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

#[test]
fn replay_holds_one_frame_at_a_time() {
    let disk = SimDisk::new(1);
    let options = LogOptions {
        sync: SyncPolicy::Always,
        file_bytes_max: 8 << 20,
        frame_bytes_max: 1 << 20,
        room_bytes: 0,
    };
    let (mut log, ..) = try_open(Arc::new(disk.clone()), options, 0).expect("open");
    for _ in 0..12 {
        commit(&mut log, &[&vec![1; 900_000]]);
    }
    let last = log.tail_bytes();
    drop(log);
    // A torn tail larger than any frame, and a frame with a length beyond the end of the file.
    disk.edit(&file(10), |bytes| bytes.extend_from_slice(&vec![0xF7; 3 << 20]));
    let largest_read = Arc::new(AtomicU64::new(0));
    let watched = Watched {
        disk,
        largest_read: largest_read.clone(),
    };
    let mut records = 0;
    let opened = Log::open(Arc::new(watched), dir(), options, 0, &mut |_, _| {
        records += 1;
        Ok::<(), io::Error>(())
    });
    let (log, recovery) = opened.expect("open");
    assert_eq!((records, log.tail_bytes()), (12, last));
    assert!(recovery.torn_tail.is_some());
    assert!(largest_read.load(Ordering::Relaxed) <= 1 << 20);
}

#[test]
fn a_sync_that_is_not_due_waits_for_an_explicit_one_or_the_next_file() {
    let nothing_unsynced = Crash::KINDS[1];
    let start = Instant::now();
    for (sync, syncs) in [
        (SyncPolicy::Always, 4),
        (SyncPolicy::Interval(Duration::from_secs(1)), 4),
        (SyncPolicy::Interval(Duration::from_secs(2)), 2),
        (SyncPolicy::Never, 1),
    ] {
        let disk = SimDisk::new(1);
        let options = LogOptions { sync, ..OPTIONS };
        let (mut log, ..) = try_open(Arc::new(disk.clone()), options, 0).expect("open");
        for second in 0..4 {
            log.append(&[b"record"]).expect("append");
            let now = start + Duration::from_secs(second);
            log.sync_if_due(now).expect("sync");
        }
        assert_eq!(
            (log.counters().syncs, log.durable_sequence()),
            (syncs, 4),
            "{sync:?}"
        );
        let unsynced = disk.crash(nothing_unsynced);
        assert!(open(&unsynced).2.len() as u64 >= syncs, "{sync:?}");
        // The large record starts a file, and the previous file is synced first.
        log.append(&[[5; 4_000]]).expect("append");
        assert!(open(&disk.crash(nothing_unsynced)).2.len() >= 4, "{sync:?}");
        log.sync().expect("sync");
        assert_eq!(open(&disk.crash(nothing_unsynced)).2.len(), 5, "{sync:?}");
    }
}

#[test]
fn a_delayed_sync_that_fails_poisons_the_log() {
    let disk = SimDisk::new(1);
    let sync = SyncPolicy::Never;
    let (mut log, ..) = try_open(Arc::new(disk.clone()), LogOptions { sync, ..OPTIONS }, 0).expect("open");
    for record in ["synced", "not synced"] {
        log.append(&[record]).expect("append");
        log.sync_if_due(Instant::now()).expect("sync");
    }
    disk.fail(Operation::Sync, 1, Fault::Io);
    assert!(matches!(log.sync(), Err(LogError::Poisoned { .. })));
    assert!(matches!(
        log.append(&[b"no more"]),
        Err(LogError::Poisoned { .. })
    ));
    assert!(
        matches!(log.sync(), Err(LogError::Poisoned { .. })),
        "it is not tried again"
    );
}

/// The owner of a state without its log begins one behind it.
#[test]
fn a_log_begins_at_a_later_record() {
    let disk = SimDisk::new(1);
    wal::begin(&disk, dir(), 42).expect("begun");
    let again = wal::begin(&disk, dir(), 42);
    assert!(matches!(again, Err(LogError::Io { .. })), "{again:?}");
    let disk = disk.crash(Crash::KINDS[1]);
    assert!(wal::check(&disk, dir()).expect("check").damages.is_empty());
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let (mut log, recovery, records) = try_open(Arc::clone(&port), OPTIONS, 41).expect("open");
    assert_eq!((recovery.last_sequence, records.len()), (41, 0));
    assert_eq!(commit(&mut log, &[b"next"]), 42);
    drop(log);
    let (_, recovery, records) = try_open(Arc::clone(&port), OPTIONS, 41).expect("open");
    assert_eq!(
        (recovery.last_sequence, records),
        (42, vec![(42, b"next".to_vec())])
    );
    // An owner that needs more than the log has is refused.
    for from in [40, 43] {
        assert!(try_open(Arc::clone(&port), OPTIONS, from).is_err(), "{from}");
    }
}
