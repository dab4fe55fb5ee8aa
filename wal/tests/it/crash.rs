//! Power cuts: afterwards, the log contains all acknowledged records, and otherwise only complete groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use disk::sim::{Crash, SimDisk};
use wal::{Log, LogError, Sequence};

use crate::common::{OPTIONS, Random, open, try_open};

/// The expected content of a log, maintained by the writer.
#[derive(Clone, Default)]
struct Model {
    written: BTreeMap<Sequence, Vec<u8>>,
    /// Last sequence of each started group.
    group_ends: BTreeSet<Sequence>,
    acknowledged: Sequence,
    /// The sequence up to which the writer has the records elsewhere.
    covered: Sequence,
}

impl Model {
    fn append(&mut self, log: &mut Log, random: &mut Random) -> Result<(), LogError> {
        let records: Vec<Vec<u8>> = (0..=random.below(4))
            .map(|_| {
                let byte = random.next() as u8;
                let bytes = if random.below(4) == 0 {
                    random.below(1_500)
                } else {
                    random.below(60)
                };
                vec![byte; bytes as usize]
            })
            .collect();
        let first = log.last_sequence() + 1;
        self.written.extend((first..).zip(records.iter().cloned()));
        self.group_ends.insert(first + records.len() as u64 - 1);
        assert_eq!(log.append(&records)?, first);
        Ok(())
    }

    fn sync(&mut self, log: &mut Log) -> Result<(), LogError> {
        log.sync()?;
        self.acknowledged = log.last_sequence();
        assert_eq!(log.durable_sequence(), self.acknowledged);
        Ok(())
    }

    /// Appends, syncs, rotates, trims and reopens until all steps are done or the power is cut.
    fn run(&mut self, disk: &SimDisk, random: &mut Random, steps: u64) -> Result<(), LogError> {
        let reopen = |covered| try_open(Arc::new(disk.clone()), OPTIONS, covered).map(|(log, _, _)| log);
        let mut log = reopen(self.covered)?;
        for _ in 0..steps {
            match random.below(100) {
                0..70 => {
                    self.append(&mut log, random)?;
                    if random.below(5) > 0 {
                        self.sync(&mut log)?;
                    }
                }
                70..80 => self.sync(&mut log)?,
                80..86 => log.rotate()?,
                86..95 => {
                    let open = self.acknowledged - self.covered;
                    self.covered += random.below(open + 1).max(open * random.below(2));
                    log.trim(self.covered)?;
                }
                95..98 => {
                    let last = log.last_sequence();
                    log.close()?;
                    self.acknowledged = last;
                    log = reopen(self.covered)?;
                }
                _ => log = reopen(self.covered)?,
            }
        }
        Ok(())
    }

    /// Opens the log after a crash and compares it with the written records.
    fn verify(&mut self, disk: &SimDisk, context: &str) -> Log {
        let opened = try_open(Arc::new(disk.clone()), OPTIONS, self.covered);
        let (log, recovery, records) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
        let last = log.last_sequence();
        assert!(
            last >= self.acknowledged,
            "{context}: {last} of {} acknowledged",
            self.acknowledged
        );
        assert!(
            last == 0 || self.group_ends.contains(&last),
            "{context}: ends within a group at {last}"
        );
        let expected = self
            .written
            .iter()
            .filter(|(sequence, _)| (self.covered + 1..=last).contains(*sequence));
        assert!(
            records
                .iter()
                .map(|(sequence, payload)| (sequence, payload))
                .eq(expected),
            "{context}: records"
        );
        assert_eq!(
            (recovery.last_sequence, recovery.records),
            (last, last - self.covered),
            "{context}"
        );
        self.acknowledged = last;
        self.written.retain(|sequence, _| *sequence <= last);
        self.group_ends.retain(|end| *end <= last);
        log
    }

    /// A crash, further writes, another crash, and opening twice: no acknowledged record may be lost.
    fn check_crash(mut self, disk: &SimDisk, crash: Crash, random: &mut Random, context: &str) {
        let found = disk.crash(crash);
        let mut log = self.verify(&found, context);
        for _ in 0..2 {
            let appended = self.append(&mut log, random).and_then(|()| self.sync(&mut log));
            appended.unwrap_or_else(|error| panic!("{context}, append: {error}"));
        }
        self.append(&mut log, random)
            .unwrap_or_else(|error| panic!("{context}, append: {error}"));
        drop(log);
        let again = found.crash(crash);
        drop(self.verify(&again, &format!("{context}, second crash")));
        let torn =
            try_open(Arc::new(again), OPTIONS, self.covered).map(|(_, recovery, _)| recovery.torn_tail);
        assert!(
            matches!(torn, Ok(None)),
            "{context}: a second opening finds a torn tail again"
        );
    }
}

#[test]
fn every_crash_point_of_a_trace_keeps_acknowledged_records() {
    const SEED: u64 = 0x71DE;
    let whole = SimDisk::new(SEED);
    Model::default()
        .run(&whole, &mut Random(SEED), 200)
        .expect("a healthy disk");
    let operations = whole.operations();
    assert!(operations > 400, "the trace has only {operations} operations");
    for stop_at in 1..=operations + 1 {
        let disk = SimDisk::new(SEED);
        disk.stop_at(stop_at);
        let mut model = Model::default();
        let mut random = Random(SEED);
        let ended = model.run(&disk, &mut random, 200);
        assert_eq!(ended.is_err(), stop_at <= operations);
        for crash in Crash::KINDS {
            for sample in 0..2 {
                let context =
                    format!("seed {SEED:#x}, power off at operation {stop_at}, {crash:?}, {sample}");
                model.clone().check_crash(&disk, crash, &mut random, &context);
            }
        }
    }
}

/// `WAL_SEEDS=100000 cargo test -p wal random_traces_survive_crashes` runs more of them; a failing seed is printed.
#[test]
fn random_traces_survive_crashes() {
    let seeds = std::env::var("WAL_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(2_000_u64);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let disk = SimDisk::new(seed);
        disk.stop_at(1 + random.below(120));
        let mut model = Model::default();
        let _power_went = model.run(&disk, &mut random, 40);
        let crash = Crash::KINDS[random.below(Crash::KINDS.len() as u64) as usize];
        model.check_crash(&disk, crash, &mut random, &format!("seed {seed}, {crash:?}"));
    }
}

#[test]
fn a_crash_while_opening_after_a_crash_loses_nothing() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let disk = SimDisk::new(seed);
        disk.stop_at(20 + random.below(60));
        let mut model = Model::default();
        let _power_went = model.run(&disk, &mut random, 40);
        for crash in Crash::KINDS {
            let found = disk.crash(crash);
            for stop_at in 1..8 {
                let halfway = found.crash(Crash::KINDS[0]);
                halfway.stop_at(stop_at);
                let _power_went = try_open(Arc::new(halfway.clone()), OPTIONS, model.covered);
                let context = format!("seed {seed}, {crash:?}, opening stopped at {stop_at}");
                model.clone().check_crash(&halfway, crash, &mut random, &context);
            }
        }
    }
}

#[test]
fn a_torn_tail_that_was_cut_stays_cut() {
    let disk = SimDisk::new(1);
    let (mut log, _, _) = open(&disk);
    log.append(&[b"acknowledged"])
        .and_then(|_| log.sync())
        .expect("commit");
    log.append(&[[7; 2_000]]).expect("append");
    let torn = disk.crash(Crash::KINDS[0]);
    let path = crate::common::file(1);
    torn.edit(&path, |bytes| bytes.truncate(bytes.len() - 1));
    let (_, recovery, records) = open(&torn);
    assert_eq!(
        recovery.torn_tail.map(|tail| tail.bytes),
        Some(32 + 4 + 2_000 - 1)
    );
    assert_eq!(records, [(1, b"acknowledged".to_vec())]);
    for crash in Crash::KINDS {
        let (_, recovery, _) = open(&torn.crash(crash));
        assert_eq!(recovery.torn_tail, None, "{crash:?}");
    }
}

/// The closing mark asserts that all earlier frames are complete, so it must not reach the disk before them.
#[test]
fn a_crash_while_closing_is_not_damage() {
    for steps in 1..=3 {
        let disk = SimDisk::new(steps);
        let (mut log, _, _) = open(&disk);
        log.append(&[[1; 3_000]]).expect("append");
        disk.stop_at(disk.operations() + steps);
        assert!(log.close().is_err(), "three operations");
        for crash in Crash::KINDS {
            for _ in 0..20 {
                let (_, _, records) = open(&disk.crash(crash));
                assert!(
                    records.len() <= 1 && (steps < 2 || records.len() == 1),
                    "step {steps}, {crash:?}"
                );
            }
        }
    }
}
