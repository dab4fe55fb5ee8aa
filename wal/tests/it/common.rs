//! Opens a log on a simulated disk and reads its records.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use disk::sim::SimDisk;
use wal::{Log, LogError, LogOptions, OpenError, Recovery, Sequence, SyncPolicy};

pub type Records = Vec<(Sequence, Vec<u8>)>;

pub const OPTIONS: LogOptions = LogOptions {
    sync: SyncPolicy::Always,
    file_bytes_max: 4 << 10,
    frame_bytes_max: 64 << 10,
    // A few frames, and not a multiple of a sector.
    room_bytes: 700,
};

pub fn dir() -> &'static Path {
    Path::new("/data/log")
}

pub fn file(first_sequence: Sequence) -> PathBuf {
    dir().join(format!("{first_sequence:020}.log"))
}

pub fn try_open(
    disk: Arc<dyn Disk>,
    options: LogOptions,
    from: Sequence,
) -> Result<(Log, Recovery, Records), LogError> {
    let mut records = Records::new();
    let mut replay = |sequence: Sequence, payload: &[u8]| {
        records.push((sequence, payload.to_vec()));
        Ok::<(), Infallible>(())
    };
    match Log::open(disk, dir(), options, from, &mut replay) {
        Ok((log, recovery)) => Ok((log, recovery, records)),
        Err(OpenError::Log(error)) => Err(error),
        Err(OpenError::Replay { source, .. }) => match source {},
    }
}

pub fn open(disk: &SimDisk) -> (Log, Recovery, Records) {
    try_open(Arc::new(disk.clone()), OPTIONS, 0).expect("a sound log opens")
}

/// Appends one group and syncs it.
pub fn commit(log: &mut Log, records: &[&[u8]]) -> Sequence {
    let first = log.append(records).expect("append");
    log.sync().expect("sync");
    first
}

/// A log of one file with a few small frames; returns the end offset of the header and of each frame.
pub fn small_log(disk: &SimDisk) -> Vec<u64> {
    let (mut log, _, _) = open(disk);
    let mut ends = vec![log.tail_bytes()];
    for group in [&[&b"a"[..], b"bc"][..], &[b""], &[b"def", b"g", b"hi"]] {
        commit(&mut log, group);
        ends.push(log.tail_bytes());
    }
    ends
}

/// An untrimmed log of several files with two records each.
pub fn long_log(disk: &SimDisk, files: u64) -> Records {
    let (mut log, _, _) = open(disk);
    let mut records = Records::new();
    for number in 0..files {
        let (one, two) = (vec![number as u8; 100], vec![!number as u8; 700]);
        commit(&mut log, &[&one]);
        commit(&mut log, &[&two]);
        records.extend([(number * 2 + 1, one), (number * 2 + 2, two)]);
        if number + 1 < files {
            log.rotate().expect("rotate");
        }
    }
    records
}

/// SplitMix64, so that a seed determines the whole run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
