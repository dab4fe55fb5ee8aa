//! The real and the simulated disk: the guarantees that the log relies on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::{Crash, Fault, Operation, SimDisk};
use disk::{Disk, StdDisk, replace_file};
use wal::{Log, LogOptions, SyncPolicy};

/// A directory on the real disk that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("wal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check_disk(disk: &dyn Disk, root: &Path) {
    let dir = root.join("a/b");
    disk.create_dir_all(&dir).expect("create the directories");
    disk.create_dir_all(&dir).expect("a second time");
    let (one, two) = (dir.join("one"), dir.join("two"));
    let mut file = disk.create(&one).expect("create");
    assert_eq!(
        disk.create(&one).map(drop).map_err(|error| error.kind()),
        Err(io::ErrorKind::AlreadyExists)
    );
    file.write_all_at(2, b"cde").expect("write");
    file.write_all_at(0, b"ab").expect("write");
    file.sync_data().expect("sync");
    let mut part = [0; 3];
    file.read_exact_at(1, &mut part).expect("read");
    assert_eq!((&part, file.len().expect("length")), (b"bcd", 5));
    let behind_the_end = file.read_exact_at(3, &mut part).map_err(|error| error.kind());
    assert_eq!(behind_the_end, Err(io::ErrorKind::UnexpectedEof));
    assert!(disk.open_read(&one).expect("open").write_all_at(0, b"x").is_err());
    disk.open(&one).expect("open").truncate(4).expect("truncate");
    disk.rename(&one, &two).expect("rename");
    disk.sync_dir(&dir).expect("sync");
    assert_eq!(
        (disk.exists(&one).expect("look"), disk.exists(&two).expect("look")),
        (false, true)
    );
    assert_eq!(
        (disk.read(&two).expect("read"), disk.len(&two).expect("length")),
        (b"abcd".to_vec(), 4)
    );
    let map = disk.map(&two).expect("map");
    disk.create(&dir.join("empty")).expect("create");
    assert!(
        disk.map(&dir.join("empty"))
            .expect("map of nothing")
            .as_ref()
            .as_ref()
            .is_empty()
    );
    assert_eq!(disk.list(&dir).expect("list"), ["empty", "two"]);
    disk.remove(&two).expect("remove");
    assert_eq!(map.as_ref().as_ref(), b"abcd", "a map outlives the name");
    assert_eq!(
        disk.read(&two).map_err(|error| error.kind()),
        Err(io::ErrorKind::NotFound)
    );
    disk.remove_dir_all(&root.join("a")).expect("remove all");
    assert_eq!(
        disk.list(&dir).map_err(|error| error.kind()),
        Err(io::ErrorKind::NotFound)
    );
}

#[test]
fn the_real_and_the_simulated_disk_behave_identically() {
    let scratch = Scratch::new("disk");
    check_disk(&StdDisk, &scratch.0);
    check_disk(&SimDisk::new(1), Path::new("/root"));
}

#[test]
fn a_log_works_on_the_real_disk() {
    let scratch = Scratch::new("log");
    let options = LogOptions {
        sync: SyncPolicy::Always,
        file_bytes_max: 1_000,
        frame_bytes_max: 1_000,
        room_bytes: 0,
    };
    for round in 0..4_u64 {
        let mut replayed = 0;
        let mut replay = |sequence: u64, payload: &[u8]| {
            replayed += 1;
            assert_eq!(payload, sequence.to_string().as_bytes());
            Ok::<(), io::Error>(())
        };
        let (mut log, _) = Log::open(Arc::new(StdDisk), &scratch.0, options, 0, &mut replay).expect("open");
        assert_eq!(replayed, round * 50);
        for sequence in round * 50 + 1..=round * 50 + 50 {
            assert_eq!(log.append(&[sequence.to_string()]).expect("append"), sequence);
            log.sync().expect("sync");
        }
        if round % 2 == 0 {
            log.close().expect("close");
        }
    }
}

#[test]
fn a_file_is_replaced_atomically() {
    let path = Path::new("/data/manifest");
    let (old, new) = (vec![1; 3_000], vec![2; 4_000]);
    for stop_at in 1..=7 {
        for crash in Crash::KINDS {
            for seed in 0..20 {
                let disk = SimDisk::new(seed);
                disk.put(path, &old);
                disk.put(Path::new("/data/manifest.tmp"), b"left over");
                disk.stop_at(stop_at);
                let replaced = replace_file(&disk, path, &new);
                assert_eq!(replaced.is_ok(), stop_at == 7, "six operations");
                let found = disk.crash(crash).files()[path].clone();
                assert!(
                    found == new || (found == old && replaced.is_err()),
                    "stop {stop_at}, {crash:?}"
                );
            }
        }
    }
}

#[test]
fn a_replacement_on_a_full_disk_leaves_only_the_old_file() {
    let disk = SimDisk::new(1);
    let path = Path::new("/data/manifest");
    replace_file(
        &{
            disk.put(path, b"old");
            disk.clone()
        },
        path,
        b"newer",
    )
    .expect("replace");
    disk.fail(Operation::Write, 1, Fault::Full { bytes: 2 });
    let error = replace_file(&disk, path, b"newest").expect_err("no room");
    assert!(disk::is_full(&error));
    assert_eq!(
        disk.files().into_iter().collect::<Vec<_>>(),
        [(path.to_owned(), b"newer".to_vec())]
    );
}
