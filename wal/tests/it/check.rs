//! The report on a log: it reads everything, alters nothing, and continues after damage.

use disk::Disk;
use disk::sim::SimDisk;
use wal::DamageKind;
use wal::check;

use crate::common::{dir, file, long_log};

#[test]
fn a_sound_log_is_reported_file_by_file() {
    let disk = SimDisk::new(1);
    assert!(
        check(&disk, dir())
            .expect("a log that was never opened")
            .files
            .is_empty()
    );
    long_log(&disk, 3);
    disk.put(&dir().join("notes.txt"), b"");
    disk.edit(&file(5), |bytes| bytes.extend_from_slice(b"torn"));
    let (before, operations) = (disk.files(), disk.operations());
    let report = check(&disk, dir()).expect("readable");
    assert!(report.is_sound());
    assert_eq!((report.files.len(), report.frames, report.records), (3, 6, 6));
    assert_eq!((report.first_sequence, report.last_sequence), (Some(1), 6));
    assert_eq!(
        report.torn_tail.map(|tail| (tail.path, tail.bytes)),
        Some((file(5), 4))
    );
    assert_eq!(report.ignored, ["notes.txt"]);
    assert!((disk.files(), disk.operations()) == (before, operations));
}

#[test]
fn every_damage_is_listed_with_file_and_offset() {
    let disk = SimDisk::new(1);
    long_log(&disk, 4);
    disk.flip_bit(&file(1), 70, 0);
    disk.flip_bit(&file(5), 10, 0);
    disk.remove(&file(3)).expect("remove");
    let before = disk.files();
    let report = check(&disk, dir()).expect("readable");
    let found: Vec<_> = report
        .damages
        .iter()
        .map(|damage| (&damage.path, damage.offset, damage.sequence))
        .collect();
    assert_eq!(found, [(&file(1), 64, 1), (&file(5), 0, 3), (&file(5), 0, 3)]);
    assert!(matches!(
        report.damages[0].kind,
        DamageKind::Frame {
            next: Some((200, 2)),
            ..
        }
    ));
    assert!(matches!(report.damages[1].kind, DamageKind::Header(_)));
    assert_eq!(report.damages[2].kind, DamageKind::MissingFile { found: 5 });
    assert_eq!((report.records, report.last_sequence), (5, 8));
    assert!(disk.files() == before);
    let words = report.damages[0].to_string();
    assert!(
        words.contains("00000000000000000001.log is damaged at offset 64"),
        "{words}"
    );
}
