//! Copying a log that is being written.

use std::convert::Infallible;
use std::path::Path;

use disk::Disk;
use disk::sim::SimDisk;
use wal::{LogError, OpenError, Sequence};

use crate::common::{commit, dir, file, open, small_log};

#[test]
fn whole_bytes_end_with_the_last_complete_frame() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    let bytes = disk.files()[&file(1)].clone();
    for length in 0..=bytes.len() {
        // A reader's view of the file while the frame after `whole` is written into its room.
        let mut seen = bytes[..length].to_vec();
        seen.resize(bytes.len() + 700, 0);
        disk.edit(&file(1), |bytes| *bytes = seen.clone());
        // An empty record consists of zeros, too.
        let is_whole = |end: &&u64| seen[..**end as usize] == bytes[..**end as usize];
        let whole = ends.iter().rev().find(is_whole);
        let found = wal::whole_bytes(&disk, &file(1)).expect("the disk is whole");
        assert_eq!(found, Some(whole.copied().unwrap_or(0)), "{length} bytes written");
    }
}

/// Regression: a copy of such a file ended before the damage and silently lacked the acknowledged records after it.
#[test]
fn a_damaged_frame_before_a_complete_one_is_damage_not_the_end() {
    let disk = SimDisk::new(1);
    let ends = small_log(&disk);
    for (index, end) in ends.iter().enumerate().skip(1) {
        disk.flip_bit(&file(1), end - 1, 3);
        let found = wal::whole_bytes(&disk, &file(1));
        match index + 1 == ends.len() {
            true => assert_eq!(
                found.expect("it may never have been whole"),
                Some(ends[index - 1])
            ),
            false => {
                let Err(LogError::Damaged(damage)) = found else {
                    panic!("damage at {}: {found:?}", ends[index - 1]);
                };
                assert_eq!((damage.path, damage.offset), (file(1), ends[index - 1]));
            }
        }
        disk.flip_bit(&file(1), end - 1, 3);
    }
}

/// Regression: such a file was taken for one that is being created, and a backup silently lacked its records.
#[test]
fn a_damaged_header_before_frames_is_damage_not_a_file_in_creation() {
    let disk = SimDisk::new(1);
    small_log(&disk);
    let header = disk.files()[&file(1)].len().min(60);
    for offset in 0..header as u64 {
        disk.flip_bit(&file(1), offset, 5);
        let found = wal::whole_bytes(&disk, &file(1));
        let Err(LogError::Damaged(damage)) = found else {
            panic!("byte {offset}: {found:?}");
        };
        assert_eq!((damage.path, damage.offset), (file(1), 0));
        disk.flip_bit(&file(1), offset, 5);
    }
    disk.edit(&file(1), |bytes| {
        bytes.truncate(64);
        bytes[12] ^= 1;
    });
    let found = wal::whole_bytes(&disk, &file(1)).expect("it may be in creation");
    assert_eq!(found, Some(0));
}

#[test]
fn only_the_files_of_a_log_are_listed_oldest_first() {
    let disk = SimDisk::new(1);
    assert_eq!(wal::files(&disk, dir()).expect("no log yet"), [] as [&Path; 0]);
    let (mut log, _, _) = open(&disk);
    for _ in 0..40 {
        commit(&mut log, &[&[7; 300]]);
    }
    disk.put(&dir().join("00000000000000000001.log.cut"), b"kept");
    let files = wal::files(&disk, dir()).expect("the disk is whole");
    assert!(files.len() > 2 && files[0] == file(1) && files.is_sorted());
    let ours = disk.list(dir()).expect("the disk is whole").len() - 1;
    assert_eq!(files.len(), ours);
    assert_eq!(
        wal::whole_bytes(&disk, &file(5_000)).expect("the disk is whole"),
        None
    );
}

fn records(disk: &SimDisk, range: (Sequence, Sequence)) -> Result<Vec<(Sequence, Vec<u8>)>, String> {
    let mut found = Vec::new();
    let mut each = |sequence: Sequence, record: &[u8]| {
        found.push((sequence, record.to_vec()));
        Ok::<(), Infallible>(())
    };
    wal::records(disk, dir(), range, &mut each).map_err(|error| match error {
        OpenError::Log(error) => error.to_string(),
        OpenError::Replay { source, .. } => match source {},
    })?;
    Ok(found)
}

#[test]
fn records_are_read_while_the_log_is_written() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    for group in 0..60u8 {
        commit(&mut log, &[&[group; 150], &[group], &[]]);
        let last = log.last_sequence();
        let all = records(&disk, (0, last)).unwrap();
        assert_eq!(all.len() as u64, last);
        assert!(all.iter().map(|(sequence, _)| *sequence).eq(1..=last));
        assert_eq!(all[all.len() - 2].1, [group]);
        let part = records(&disk, (last / 2, last - 1)).unwrap();
        assert_eq!(part, all[(last / 2) as usize..(last - 1) as usize]);
    }
    assert!(wal::files(&disk, dir()).unwrap().len() > 2);
    records(&disk, (0, log.last_sequence() + 1)).unwrap_err();
    log.trim(100).unwrap();
    records(&disk, (0, 110)).unwrap_err();
    assert_eq!(
        records(&disk, (100, 110)).unwrap().len(),
        10,
        "what was dropped is not needed"
    );
}
