//! Directories written by an older program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::SimDisk;
use disk::{Disk, StdDisk};

use super::directory::{damage_byte, fork, layout, run, with_suffix};
use crate::backup::restore_to;
use crate::checkpoint::{BlocksVersion, Damage, Manifest, ManifestVersion, SegmentsVersion, convert};

/// A directory of format 1: segments, answers and a log.
fn directory() -> SimDisk {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/backup-1.tar");
    let (from, disk): (Arc<dyn Disk>, _) = (Arc::new(StdDisk), SimDisk::new(1));
    disk.create_dir_all(&layout().data_dir).unwrap();
    restore_to(&from, &fixture, &disk, &layout(), &()).unwrap_or_else(|error| panic!("{error}"));
    fork(&disk)
}

#[test]
fn a_directory_of_format_1_is_sound_and_reported_as_old() {
    let disk = directory();
    let before = disk.files();
    for repair in [false, true] {
        let (whole, report) = run(&disk, repair);
        assert!(whole && report.contains("sound"), "{report}");
        assert!(
            report.contains("an older program wrote") && report.contains("in all 120 points"),
            "{report}"
        );
        assert_eq!(disk.files(), before);
    }
}

#[test]
fn repair_reports_damage_in_format_1_and_converts_the_rest() {
    let disk = directory();
    let (mut unreported, mut converted) = (Vec::<PathBuf>::new(), 0);
    for (path, bytes) in disk.files() {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(30)) {
            let damaged = fork(&disk);
            damaged.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let before = damaged.files();
            let (whole, report) = run(&damaged, false);
            assert_eq!(damaged.files(), before);
            let at = format!("{} at {offset}: {report}", path.display());
            if whole {
                unreported.push(path.clone());
                continue;
            }
            assert!(report.contains(&*path.to_string_lossy()), "{at}");
            let (whole, report) = run(&damaged, true);
            if whole {
                assert!(
                    report.contains("lost") || report.contains("forgotten"),
                    "{at}: {report}"
                );
                assert!(run(&damaged, false).0, "{at}");
                converted += 1;
            } else {
                assert!(
                    report.contains("nothing of what an older program wrote"),
                    "{at}: {report}"
                );
            }
        }
    }
    // The last frame may be a torn one: the log was not closed in order.
    assert!(
        unreported
            .iter()
            .all(|path| path.extension().is_some_and(|it| it == "log")),
        "{unreported:?}"
    );
    assert!(converted > 30, "{converted}");
}

/// A bucket that a start could not convert stays until a repair.
#[test]
fn repair_salvages_the_sound_part_of_an_unconverted_bucket() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    let end = disk.len(&segment).unwrap();
    disk.flip_bit(&segment, end - 30, 1);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    assert!(convert(&port, &layout().data_dir, Damage::SetApart).unwrap());
    let (whole, report) = run(&disk, false);
    assert!(!whole && report.contains("an older program wrote"), "{report}");
    // The same if only the files show that it was not converted.
    let without = fork(&disk);
    damage_byte(&without, &Manifest::path(&layout().data_dir), 30);
    for disk in [disk, without] {
        let (whole, report) = run(&disk, true);
        assert!(whole && report.contains("lost"), "{report}");
        let kept = disk
            .files()
            .into_keys()
            .any(|path| path.to_string_lossy().contains(".damaged/"));
        assert!(kept, "{report}");
        assert!(run(&disk, false).0);
    }
}

/// A bucket that a start of an older program could not convert reads again: a manifest that names the new segment is of the
/// version that goes with it.
#[test]
fn a_later_conversion_raises_the_version_of_the_manifest() {
    let disk = directory();
    let segment = with_suffix(&disk, ".segment").remove(0);
    let damaged = disk.len(&segment).unwrap() - 30;
    disk.flip_bit(&segment, damaged, 1);
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let data_dir = layout().data_dir;
    assert!(convert(&port, &data_dir, Damage::SetApart).unwrap());
    let read = || Manifest::read(&disk, &data_dir).unwrap().unwrap();
    let older = Manifest {
        blocks: BlocksVersion::FIRST,
        segments_version: SegmentsVersion::FIRST,
        ..read()
    };
    older.write(&disk, &data_dir).unwrap();
    assert_eq!(read().version(), ManifestVersion::Plain);
    disk.flip_bit(&segment, damaged, 1);
    assert!(convert(&port, &data_dir, Damage::SetApart).unwrap());
    assert!(read().segments.len() > older.segments.len());
    assert_eq!(read().version(), ManifestVersion::Digits);
}
