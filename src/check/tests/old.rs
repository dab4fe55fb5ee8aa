//! Directories written by an older program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::SimDisk;
use disk::{Disk, StdDisk};

use super::directory::{fork, layout, rot, run, with_suffix};
use crate::backup::restore_to;
use crate::checkpoint::{Damage, Manifest, convert};

/// A directory of format 1: segments, answers and a log.
fn directory() -> SimDisk {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/backup-1.tar");
    let (from, disk): (Arc<dyn Disk>, _) = (Arc::new(StdDisk), SimDisk::new(1));
    disk.create_dir_all(&layout().data_dir).unwrap();
    restore_to(&from, &fixture, &disk, &layout()).unwrap_or_else(|error| panic!("{error}"));
    fork(&disk)
}

#[test]
fn a_directory_of_format_1_is_sound_and_reported_as_old() {
    let disk = directory();
    let before = disk.files();
    for repair in [false, true] {
        let (whole, said) = run(&disk, repair);
        assert!(whole && said.contains("sound"), "{said}");
        assert!(
            said.contains("an older program wrote") && said.contains("in all 120 points"),
            "{said}"
        );
        assert_eq!(disk.files(), before);
    }
}

#[test]
fn repair_reports_damage_in_format_1_and_converts_the_rest() {
    let disk = directory();
    let (mut untold, mut converted) = (Vec::<PathBuf>::new(), 0);
    for (path, bytes) in disk.files() {
        for offset in (0..bytes.len()).step_by(bytes.len().div_ceil(30)) {
            let rotten = fork(&disk);
            rotten.flip_bit(&path, offset as u64, (offset % 8) as u8);
            let before = rotten.files();
            let (whole, said) = run(&rotten, false);
            assert_eq!(rotten.files(), before);
            let at = format!("{} at {offset}: {said}", path.display());
            if whole {
                untold.push(path.clone());
                continue;
            }
            assert!(said.contains(&*path.to_string_lossy()), "{at}");
            let (whole, said) = run(&rotten, true);
            if whole {
                assert!(
                    said.contains("lost") || said.contains("forgotten"),
                    "{at}: {said}"
                );
                assert!(run(&rotten, false).0, "{at}");
                converted += 1;
            } else {
                assert!(
                    said.contains("nothing of what an older program wrote"),
                    "{at}: {said}"
                );
            }
        }
    }
    // The last frame may be a torn one: the log was not closed in order.
    assert!(
        untold
            .iter()
            .all(|path| path.extension().is_some_and(|it| it == "log")),
        "{untold:?}"
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
    let (whole, said) = run(&disk, false);
    assert!(!whole && said.contains("an older program wrote"), "{said}");
    // The same if only the files show that it was not converted.
    let without = fork(&disk);
    rot(&without, &Manifest::path(&layout().data_dir), 30);
    for disk in [disk, without] {
        let (whole, said) = run(&disk, true);
        assert!(whole && said.contains("lost"), "{said}");
        let kept = disk
            .files()
            .into_keys()
            .any(|path| path.to_string_lossy().contains(".damaged/"));
        assert!(kept, "{said}");
        assert!(run(&disk, false).0);
    }
}
