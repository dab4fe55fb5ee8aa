//! Backups of both versions, and their contents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::{Crash, SimDisk};
use disk::{Disk, StdDisk};

use super::{BackupError, OnDamage, Target, back_up, collect, restore, restore_to, verify_on, write};
use crate::checkpoint::{Damage, Layout, convert, open};
use crate::clock::ManualClock;
use crate::progress::tests::Heard;

fn layout() -> Layout {
    Layout::of(Path::new("data"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn restored(name: &str) -> SimDisk {
    let (from, disk): (Arc<dyn Disk>, _) = (Arc::new(StdDisk), SimDisk::new(1));
    disk.create_dir_all(&layout().data_dir).unwrap();
    restore_to(&from, &fixture(name), &disk, &layout(), &()).unwrap_or_else(|error| panic!("{error}"));
    // A power cut immediately after the restore.
    disk.crash(Crash::KINDS[1])
}

/// Number of points after a start.
fn points(disk: &SimDisk) -> u64 {
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    convert(&port, &layout().data_dir, Damage::SetApart).unwrap();
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    assert!(opened.set_apart.is_empty());
    let mut points = 0;
    for state in &opened.buckets {
        let bucket = opened.catalog.bucket_by_ordinal(state.ordinal).unwrap();
        for source in opened.catalog.sources_of(bucket.id) {
            points += state
                .store
                .stats(source.ordinal, i64::MIN)
                .map_or(0, |stats| stats.points);
        }
    }
    points
}

/// The backup of version 1 is of a server of that version with one account, killed after checkpoints. That of version 2
/// is of the same directory converted by a start; `TIDEWATCH_WRITE_FIXTURES=1` writes it, once, while the version is
/// the current one.
#[test]
fn backups_of_all_versions_are_restored() {
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        let home = tempfile::tempdir().unwrap();
        let data_dir = home.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        restore(&fixture("backup-1.tar"), &data_dir, &()).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(StdDisk);
        assert!(convert(&disk, &data_dir, Damage::SetApart).unwrap());
        std::fs::remove_file(fixture("backup-2.tar")).unwrap_or_default();
        let clock = ManualClock::new(1_795_313_400_000_000_000);
        back_up(&data_dir, &fixture("backup-2.tar"), OnDamage::Refuse, &clock, &()).unwrap();
    }
    for (name, file) in [
        ("backup-1.tar", "data/catalog.snapshot"),
        ("backup-2.tar", "data/manifest"),
    ] {
        let disk = restored(name);
        assert!(disk.exists(Path::new(file)).unwrap(), "{name}");
        assert_eq!(points(&disk), 120, "{name}");
    }
}

#[test]
fn a_directory_of_format_1_is_backed_up_after_conversion() {
    let disk = restored("backup-1.tar");
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let refused = collect(&port, &layout(), OnDamage::Refuse, || ()).err();
    assert!(matches!(refused, Some(BackupError::Format1(_))), "{refused:?}");
    assert!(refused.unwrap().to_string().contains("start a server"));
    assert_eq!(points(&disk), 120);
    collect(&port, &layout(), OnDamage::Refuse, || ()).unwrap_or_else(|error| panic!("{error}"));
}

/// The content of a damaged directory of a bucket exists nowhere else.
#[test]
fn a_backup_includes_a_bucket_that_could_not_be_converted() {
    let disk = restored("backup-1.tar");
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|it| it == "segment");
    let files = disk.files();
    let segment = files.keys().find(is_segment).unwrap();
    disk.flip_bit(segment, files[segment].len() as u64 - 30, 1);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    assert!(convert(&port, &layout().data_dir, Damage::SetApart).unwrap());
    let collected =
        collect(&port, &layout(), OnDamage::Refuse, || ()).unwrap_or_else(|error| panic!("{error}"));
    let target = Target::begin(&port, Path::new("kept.tar"), 0).unwrap();
    let [written, verified, restored] = [const { Heard::new() }; 3];
    write(&collected, &layout(), target, 0, &written).unwrap();
    verify_on(&port, Path::new("kept.tar"), &verified).unwrap();
    let again = SimDisk::new(2);
    again.create_dir_all(&layout().data_dir).unwrap();
    restore_to(&port, Path::new("kept.tar"), &again, &layout(), &restored).unwrap();
    for progress in [written, verified, restored] {
        progress.assert_all();
    }
    for (path, bytes) in disk
        .files()
        .into_iter()
        .filter(|(path, _)| path.starts_with("data/buckets"))
    {
        assert_eq!(again.files().get(&path), Some(&bytes), "{}", path.display());
    }
    assert!(again.exists(segment).unwrap());
}
