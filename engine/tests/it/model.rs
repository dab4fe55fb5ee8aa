//! Random operations on the stores of several buckets, which share segment files, and on their models; every query must
//! have equal answers. A failing run prints its seed: `TIDEWATCH_SEED=… cargo test -p engine` repeats it.

mod bucket;
mod counts;
mod queries;
mod statistics;

use std::collections::BTreeMap;

use engine::{Checkpoint, MergeError};
use fastrand::Rng;

use crate::files::Files;
use bucket::Bucket;

const SECOND: i64 = 1_000_000_000;
const FIELDS: u16 = 5;
const BUCKETS: u32 = 3;

/// Counts of operations: each must occur for the test to be meaningful.
#[derive(Debug, Default)]
struct OperationCounts {
    checkpoints_of_several: u32,
    merges_of_several: u32,
    merges_of_all: u32,
    expired_rows_merged: u32,
    files_removed: usize,
    cells_shared: usize,
}

struct World {
    rng: Rng,
    /// Ascending by ordinal.
    buckets: Vec<Bucket>,
    next_bucket: u32,
    files: Files,
}

impl World {
    fn new(seed: u64) -> Self {
        let buckets = (1..=BUCKETS).map(|ordinal| Bucket::new(ordinal, seed ^ u64::from(ordinal) << 32));
        World {
            rng: Rng::with_seed(seed),
            buckets: buckets.collect(),
            next_bucket: BUCKETS + 1,
            files: Files::default(),
        }
    }

    fn random_bucket(&mut self) -> &mut Bucket {
        let index = self.rng.usize(0..self.buckets.len());
        &mut self.buckets[index]
    }

    /// Writes one file for all buckets with unsaved rows.
    fn checkpoint(&mut self, fail: bool, done: &mut OperationCounts) {
        let begun = self.buckets.iter_mut().map(|bucket| {
            let covered = bucket.log.len();
            bucket.store.begin_checkpoint().map(|begun| (begun, covered))
        });
        let begun: Vec<Option<(Checkpoint, usize)>> = begun.collect();
        if begun.iter().all(Option::is_none) {
            return;
        }
        // Points arrive while the checkpoint is written.
        for bucket in &mut self.buckets {
            if bucket.rng.u8(0..3) == 0 {
                bucket.ingest();
            }
        }
        if fail {
            return;
        }
        let file = self.files.write(|segment| {
            for (bucket, begun) in self.buckets.iter().zip(&begun) {
                segment.begin_bucket(bucket.ordinal);
                if let Some((checkpoint, _)) = begun {
                    checkpoint.write(segment)?;
                }
            }
            std::io::Result::Ok(())
        });
        done.checkpoints_of_several += u32::from(file.parts().count() > 1);
        for (bucket, begun) in self.buckets.iter_mut().zip(begun) {
            let part = file.part(bucket.ordinal).unwrap();
            let Some((checkpoint, covered)) = begun else {
                assert!(part.is_none(), "nothing was begun");
                continue;
            };
            bucket.store.finish_checkpoint(checkpoint, part, bucket.cutoff_ns);
            bucket.log.drain(..covered);
        }
        self.remove_unused(done);
    }

    fn live_rows(&mut self) -> BTreeMap<u64, u64> {
        let mut live_rows = BTreeMap::new();
        for bucket in &mut self.buckets {
            for (id, rows) in bucket.store.live_segments() {
                *live_rows.entry(id).or_default() += rows;
            }
        }
        live_rows
    }

    /// Removes files that no store uses.
    fn remove_unused(&mut self, done: &mut OperationCounts) {
        let live_rows = self.live_rows();
        done.files_removed += self.files.remove_unused(&live_rows);
        for file in self.files.open_all() {
            let rows: u64 = file.parts().map(|part| part.rows).sum();
            assert!((1..=rows).contains(&live_rows[&file.id()]), "rows in use");
        }
    }

    /// Merges the files that are due, or all files.
    fn merge(&mut self, all: bool, done: &mut OperationCounts) {
        self.remove_unused(done);
        let chosen = if all {
            self.files.all()
        } else {
            let live_rows = self.live_rows();
            self.files.choose_merge(&live_rows).unwrap_or_default()
        };
        let begun = self.buckets.iter().map(|bucket| {
            let merge = bucket.store.begin_merge(&chosen)?;
            // Retention may change during the merge, which uses the expired rows of its beginning.
            Some((
                merge,
                bucket.cutoff_ns,
                bucket.expired_rows(),
                bucket.gone.clone(),
            ))
        });
        let begun: Vec<_> = begun.collect();
        if begun.iter().all(Option::is_none) {
            return;
        }
        if !all && self.rng.u8(0..3) == 0 {
            self.checkpoint(false, done);
        }
        match self.rng.u8(0..8) {
            0 => self.random_bucket().remove_source(),
            1 => self.random_bucket().expire(),
            2 => self.random_bucket().shrink_and_grow(),
            _ => {}
        }
        let file = self.files.write(|segment| {
            for (bucket, begun) in self.buckets.iter().zip(&begun) {
                segment.begin_bucket(bucket.ordinal);
                if let Some((merge, cutoff_ns, expired, _)) = begun {
                    merge.write(segment, *cutoff_ns, expired)?;
                }
            }
            Ok::<(), MergeError>(())
        });
        done.merges_of_several += u32::from(file.parts().count() > 1);
        done.merges_of_all += u32::from(all);
        for (bucket, begun) in self.buckets.iter_mut().zip(begun) {
            let Some((merge, _, expired, gone)) = begun else {
                continue;
            };
            let part = file.part(bucket.ordinal).unwrap();
            if let Some(part) = &part {
                let blocks = part.verify().unwrap();
                assert!(blocks.iter().all(|block| block.fault.is_none()), "{blocks:?}");
                let left = part.whole_sequences().unwrap();
                assert!(
                    left.iter()
                        .flat_map(|(_, rows)| rows)
                        .all(|row| !gone.contains(row)),
                    "expired rows are left"
                );
                done.expired_rows_merged += u32::from(!expired.is_empty());
            }
            bucket.store.finish_merge(merge, part, bucket.cutoff_ns);
        }
        self.remove_unused(done);
        if all {
            assert!(self.files.all().iter().all(|id| !chosen.contains(id)));
        }
    }

    fn restart(&mut self, done: &mut OperationCounts) {
        let files = self.files.open_all();
        for bucket in &mut self.buckets {
            let ordinal = bucket.ordinal;
            bucket.restart(files.iter().filter_map(|file| file.part(ordinal).unwrap()));
        }
        self.remove_unused(done);
    }

    /// Deletes a bucket and creates another. Rows of the deleted bucket stay unused in the files: ordinals are not
    /// reused.
    fn replace_bucket(&mut self, done: &mut OperationCounts) {
        self.buckets.remove(self.rng.usize(0..self.buckets.len()));
        let seed = self.rng.u64(..);
        self.buckets.push(Bucket::new(self.next_bucket, seed));
        self.next_bucket += 1;
        self.remove_unused(done);
    }
}

#[test]
fn stores_agree_with_their_models() {
    let fixed = std::env::var("TIDEWATCH_SEED")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap());
    let rounds = if fixed.is_some() { 1 } else { 24 };
    let mut done = OperationCounts::default();
    for round in 0..rounds {
        let seed = fixed.unwrap_or(0x71de_0000 + round);
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..240 {
            match world.rng.u8(0..27) {
                0..=9 => world.random_bucket().ingest(),
                10 => world.checkpoint(false, &mut done),
                11 => {
                    let fail = world.rng.bool();
                    world.checkpoint(fail, &mut done);
                }
                12 => {
                    let all = world.rng.u8(0..4) == 0;
                    world.merge(all, &mut done);
                }
                13 => world.restart(&mut done),
                14 if world.rng.u8(0..4) == 0 => {
                    world.random_bucket().remove_source();
                    world.remove_unused(&mut done);
                }
                14 if world.rng.u8(0..8) == 0 => world.replace_bucket(&mut done),
                15 if world.rng.u8(0..4) == 0 => {
                    world.random_bucket().expire();
                    world.remove_unused(&mut done);
                }
                15 if world.rng.u8(0..3) == 0 => world.random_bucket().shrink_and_grow(),
                16 => world.random_bucket().check_stats(),
                24 | 25 => world.random_bucket().check_counts(),
                17..=19 => world.random_bucket().check_groups(),
                20 => world.random_bucket().check_statistics(),
                _ => world.random_bucket().check_rows(),
            }
        }
        world.buckets.iter_mut().for_each(Bucket::check_stats);
        world.merge(true, &mut done);
        world.buckets.iter_mut().for_each(Bucket::check_rows);
        done.cells_shared += world
            .buckets
            .iter()
            .map(|bucket| bucket.cells_shared)
            .sum::<usize>();
    }
    println!("{done:?}");
    if fixed.is_none() {
        let OperationCounts {
            checkpoints_of_several,
            merges_of_several,
            merges_of_all,
            expired_rows_merged,
            files_removed,
            cells_shared,
        } = done;
        let fewest = [
            checkpoints_of_several,
            merges_of_several,
            merges_of_all,
            expired_rows_merged,
        ];
        assert!(fewest.iter().all(|count| *count > 10), "{fewest:?}");
        assert!(files_removed > 10, "{files_removed}");
        assert!(cells_shared > 100, "{cells_shared}");
    }
}
