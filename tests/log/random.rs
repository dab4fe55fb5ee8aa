//! Random traces: appends, faults, trims, ends of the process at any time, against a model.

use fastrand::Rng;
use tidewatch::journal::{Group, JournalError};
use wal::Sequence;

use crate::sides::{Fault, Local, Opened, Side, Simulated, Stored};

/// What must be found.
#[derive(Default)]
struct Model {
    /// All records that were acknowledged, and those found again after an unknown outcome.
    known: Vec<Vec<u8>>,
    /// The group whose outcome is unknown; it follows the known ones.
    unknown: Vec<Vec<u8>>,
    covered: Sequence,
}

impl Model {
    /// Compares what was found after `covered`, and learns what became of the unknown group.
    fn check(&mut self, opened: &Opened) {
        let covered = self.covered as usize;
        let found: Vec<&Vec<u8>> = opened.records.iter().map(|(_, record)| record).collect();
        let sequences = opened.records.iter().map(|(sequence, _)| *sequence);
        assert!(
            sequences.eq(self.covered + 1..=self.covered + found.len() as u64),
            "no gap"
        );
        let known = self.known.len() - covered;
        assert!(
            found.len() >= known,
            "{} of {known} acknowledged records",
            found.len()
        );
        assert!(self.known[covered..].iter().eq(found[..known].iter().copied()));
        let more = &found[known..];
        assert!(
            more.is_empty() || more.iter().copied().eq(&self.unknown),
            "a group is whole or absent: {} of {} records",
            more.len(),
            self.unknown.len()
        );
        self.known.extend(more.iter().map(|record| (*record).clone()));
        self.unknown.clear();
    }
}

fn run(side: &mut dyn Side, rng: &mut Rng, steps: u32) {
    let shard = side.shard();
    let mut model = Model::default();
    let mut opened = side.open(0).unwrap();
    for _ in 0..steps {
        match rng.u8(0..20) {
            0 => {
                opened = side.open(model.covered).unwrap();
                model.check(&opened);
            }
            1 => {
                let covered = rng.u64(model.covered..=model.known.len() as u64);
                if opened.log.trim(shard, covered, None).is_ok() {
                    model.covered = covered;
                }
            }
            step => {
                let fault = match step {
                    2 => Some(Fault::Refused),
                    3 => Some(Fault::Unknown),
                    _ => None,
                };
                fault.into_iter().for_each(|fault| side.fail_next(fault));
                let count = rng.usize(1..9);
                let record = |_| (0..rng.usize(0..60)).map(|_| rng.u8(..)).collect();
                let records: Vec<Vec<u8>> = (0..count).map(record).collect();
                let group = Group {
                    shard,
                    records: &records,
                };
                match opened.log.append(&[group]).pop().unwrap() {
                    Ok(first) => {
                        assert_eq!(first, model.known.len() as u64 + 1);
                        model.known.extend(records);
                    }
                    // The first of them may be there; those after it are not.
                    Err(JournalError::Poisoned(_)) if model.unknown.is_empty() => model.unknown = records,
                    Err(_) => {}
                }
                if fault.is_some() {
                    side.mend();
                }
            }
        }
    }
    opened = side.open(model.covered).unwrap();
    model.check(&opened);
}

/// Runs a number of seeds, or the one given.
fn rounds<S: Side>(side: impl Fn(u64) -> S, rounds: u64, steps: u32) {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|value| value.parse::<u64>().unwrap())
    };
    let seeds = match number("LOG_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LOG_ROUNDS").unwrap_or(rounds),
    };
    for seed in seeds {
        println!("LOG_SEED={seed}");
        run(&mut side(seed), &mut Rng::with_seed(seed), steps);
    }
}

#[test]
fn local() {
    rounds(Local::new, 200, 200);
}

#[test]
fn simulated() {
    rounds(Simulated::new, 200, 200);
}

/// An unknown outcome takes as long as the store's time-outs, so there are few.
#[test]
fn postgres() {
    rounds(Stored::new, 2, 50);
}
