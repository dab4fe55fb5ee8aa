//! A log of one file of arbitrary bytes, or of a valid file with changes whose checksums were corrected: it is checked,
//! opened and repaired without a panic, and opens after the repair.
//!
//! The first byte of an input has options: bit 0 corrects the checksums, bits 1 and 2 choose the sequence from which
//! the owner of the log reads, bit 3 puts a valid file before this one.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::SimDisk;
use wal::{Log, LogOptions, OpenError, Recovery, SyncPolicy, check as check_log, flip_of_file, repair};

use super::bytes::{number_at, set_u32};

const OPTIONS: LogOptions = LogOptions {
    sync: SyncPolicy::Always,
    file_bytes_max: 4 << 10,
    frame_bytes_max: 64 << 10,
    room_bytes: 700,
};
const FILE_HEADER_BYTES: usize = 64;
const FRAME_HEADER_BYTES: usize = 32;

type Records = Vec<(u64, Vec<u8>)>;

pub fn check(data: &[u8]) {
    let Some((flags, file)) = data.split_first() else {
        return;
    };
    let mut file = file.to_vec();
    let disk = SimDisk::new(1);
    let mut first_sequence = 1;
    if flags & 8 != 0 {
        first_sequence = write_first_file(&disk);
    }
    if flags & 1 != 0 {
        correct_checksums(&mut file, first_sequence);
    }
    let path = path(first_sequence);
    if let Some(flip) = flip_of_file(path.file_name().unwrap(), &file) {
        let mut turned = file.clone();
        flip.turn(&mut turned);
        let next = flip_of_file(path.file_name().unwrap(), &turned);
        assert!(next.is_none_or(|next| next.offset > flip.offset));
    }
    let from = [0, 1, 3, 1 << 40][usize::from(flags >> 1 & 3)];
    disk.put(&path, &file);
    let Ok(report) = check_log(&disk, dir()) else {
        return;
    };
    let before = disk.files();
    let opened = open(&disk, from);
    if let Ok((.., records)) = &opened {
        assert!(report.is_sound(), "{:?}", report.damages);
        assert!(records.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
        assert!(records.first().is_none_or(|(first, _)| *first > from));
    } else {
        assert!(disk.files() == before, "a log that is refused is left as it is");
        repair(&disk, dir(), from).unwrap();
        open(&disk, from).unwrap();
    }
    drop(opened);
    check_append(&disk, from);
}

/// An opened log accepts a record, and still has it and all earlier ones when reopened.
fn check_append(disk: &SimDisk, from: u64) {
    let (mut log, _, before) = open(disk, from).unwrap();
    let sequence = log.append(&[b"goes on"]).unwrap();
    log.sync().unwrap();
    drop(log);
    let (_, recovery, after) = open(disk, from).unwrap();
    assert!(recovery.torn_tail.is_none());
    assert_eq!(after.last(), Some(&(sequence, b"goes on".to_vec())));
    assert_eq!(after[..after.len() - 1], before);
    assert!(check_log(disk, dir()).unwrap().is_sound());
}

/// Writes a valid first file of two records; returns the first sequence of the following file.
fn write_first_file(disk: &SimDisk) -> u64 {
    let (mut log, ..) = open(disk, 0).unwrap();
    log.append(&[b"one", b"two"]).unwrap();
    log.sync().unwrap();
    log.rotate().unwrap();
    log.last_sequence() + 1
}

fn open(disk: &SimDisk, from: u64) -> Result<(Log, Recovery, Records), wal::LogError> {
    let mut records = Records::new();
    let mut replay = |sequence: u64, payload: &[u8]| {
        records.push((sequence, payload.to_vec()));
        Ok::<(), Infallible>(())
    };
    match Log::open(Arc::new(disk.clone()), dir(), OPTIONS, from, &mut replay) {
        Ok((log, recovery)) => Ok((log, recovery, records)),
        Err(OpenError::Log(error)) => Err(error),
        Err(OpenError::Replay { source, .. }) => match source {},
    }
}

fn dir() -> &'static Path {
    Path::new("/data/log")
}

fn path(first_sequence: u64) -> PathBuf {
    dir().join(format!("{first_sequence:020}.log"))
}

/// Corrects the checksums of header and frames for the present content (wal/FORMAT.md).
fn correct_checksums(file: &mut [u8], first_sequence: u64) {
    let Some(header) = file.get_mut(..FILE_HEADER_BYTES) else {
        return;
    };
    let checksum = crc32fast::hash(&header[..60]);
    set_u32(header, 60, checksum);
    let mut at = FILE_HEADER_BYTES;
    while let Some(frame) = file.get_mut(at..).filter(|rest| rest.len() >= FRAME_HEADER_BYTES) {
        let payload = FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + number_at::<4>(frame, 8) as usize;
        let Some(content) = frame.get(payload.clone()) else {
            return;
        };
        let checksum = crc32fast::hash(content);
        set_u32(frame, 24, checksum);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&first_sequence.to_le_bytes());
        hasher.update(&(at as u64).to_le_bytes());
        hasher.update(&frame[..28]);
        set_u32(frame, 28, hasher.finalize());
        at += payload.end;
    }
}
