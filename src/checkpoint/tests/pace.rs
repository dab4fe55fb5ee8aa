//! The number of checkpoints: as many as the log needs, regardless of writes during a checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use disk::sim::SimDisk;
use wal::SyncPolicy;

use super::hooked_disk::HookedDisk;
use super::live::{home, in_system};
use super::world::{ORGANIZATION, World, id};
use crate::catalog::Command;
use crate::checkpoint::Rooms;
use crate::checkpoint::start::start_local;
use crate::clock::Clock;

/// A load of commands; the checkpointer waits for one between any two of its steps.
#[derive(Default)]
struct Load {
    commits: AtomicU64,
    /// Whether a checkpoint waits for a command.
    is_waited_for: AtomicBool,
    is_over: AtomicBool,
}

impl Load {
    fn wait_for_one(&self) {
        if thread::current().name() != Some("checkpoint") {
            return;
        }
        self.is_waited_for.store(true, Ordering::Release);
        let before = self.commits.load(Ordering::Acquire);
        while self.commits.load(Ordering::Acquire) == before && !self.is_over.load(Ordering::Acquire) {
            thread::yield_now();
        }
    }

    /// Commits `log_bytes` of log in commands of this size, at the pace of the checkpoints that become due.
    async fn commit(&self, rooms: &Rooms, log_bytes: usize, command_bytes: usize, checkpoint_bytes: u64) {
        for _ in 0..log_bytes / command_bytes {
            let command = Command::OrganizationRenamed {
                organization_id: id(ORGANIZATION),
                name: "x".repeat(command_bytes).into(),
                at_ns: 0,
            };
            rooms.journal.commit(command).await.unwrap();
            self.commits.fetch_add(1, Ordering::Release);
            while rooms.journal.stats().tail_bytes > checkpoint_bytes
                && !self.is_waited_for.swap(false, Ordering::AcqRel)
            {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Runs `work` with the rooms; returns the number of checkpoints, including the last one when they close.
fn count(checkpoint_bytes: u64, work: impl AsyncFnOnce(&Rooms, &Load)) -> u64 {
    let mut world = World::new(1);
    let load = Arc::new(Load::default());
    let at_disk = Arc::clone(&load);
    let disk = Arc::new(HookedDisk::new(SimDisk::new(1), move |_| at_disk.wait_for_one()));
    in_system(async {
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let mut home = home(disk, clock);
        home.options.checkpoint_bytes = checkpoint_bytes;
        let rooms = start_local(home, SyncPolicy::Always).await;
        let rooms = rooms.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&rooms).await.unwrap();
        work(&rooms, &load).await;
        load.is_over.store(true, Ordering::Release);
        rooms.checkpointer.close().await.unwrap();
        rooms.checkpointer.stats().checkpoints
    })
}

#[test]
fn checkpoints_are_proportional_to_the_log() {
    const CHECKPOINT_BYTES: usize = 16 << 20;
    const VOLUME: usize = 8 * CHECKPOINT_BYTES;
    let checkpoints = count(CHECKPOINT_BYTES as u64, async |rooms, load| {
        load.commit(rooms, VOLUME, 64 << 10, CHECKPOINT_BYTES as u64)
            .await;
    });
    // A checkpoint leaves up to one log file, a quarter, and the commands during it; and one is taken at the end.
    assert!((4..=13).contains(&checkpoints), "{checkpoints} checkpoints");
}

#[test]
fn orders_during_a_checkpoint_start_no_other() {
    let checkpoints = count(1 << 30, async |rooms, load| {
        rooms.checkpointer.order();
        while !load.is_waited_for.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            rooms.checkpointer.order();
        }
    });
    assert_eq!(checkpoints, 2, "the one that was ordered, and one at the close");
}
