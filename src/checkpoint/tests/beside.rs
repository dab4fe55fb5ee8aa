//! Merges concurrent with checkpoints, on the threads of the server.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use disk::sim::{Crash, SimDisk};
use parking_lot::{Condvar, Mutex};
use wal::SyncPolicy;

use super::crash::check_image;
use super::hooked_disk::HookedDisk;
use super::live::{rooms_of, store_in};
use super::seed;
use super::world::{RunningRooms, World, home, in_system};
use crate::checkpoint::merging::{MERGE_PAUSE_NS, Merged};
use crate::checkpoint::start::start_local;
use crate::checkpoint::{CheckpointError, Checkpointer};
use crate::clock::{Clock, DAY_NS};

const PATIENCE: Duration = Duration::from_secs(60);

/// Stops the merging thread at the disk until the gate is opened.
#[derive(Default)]
struct Gate {
    /// Whether the gate is open, and whether a thread waits at it.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Gate {
    fn wait_if_closed(&self) {
        if thread::current().name() != Some("merge") {
            return;
        }
        let mut state = self.state.lock();
        state.1 = true;
        while !state.0 {
            self.changed.wait(&mut state);
        }
    }

    fn is_waited_at(&self) -> bool {
        self.state.lock().1
    }

    fn open(&self) {
        self.state.lock().0 = true;
        self.changed.notify_all();
    }
}

async fn checkpoint(checkpointer: &Checkpointer) {
    let (before, began) = (checkpointer.stats().checkpoints, Instant::now());
    checkpointer.order();
    while checkpointer.stats().checkpoints == before {
        assert!(began.elapsed() < PATIENCE, "a merge keeps the checkpoint waiting");
        tokio::task::yield_now().await;
    }
}

/// Regression: merges ran between two checkpoints. During a large one, the log and the rows in memory grew until the
/// server refused points for as long as the merge lasted.
#[test]
fn checkpoints_continue_during_a_merge_and_a_stop_does_not_wait() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    // Merges of the ledger are counted by the same metric.
    world.keys = false;
    let gate = Arc::new(Gate::default());
    let hooked_disk = {
        let gate = Arc::clone(&gate);
        HookedDisk::new(disk.clone(), move |_| gate.wait_if_closed())
    };
    in_system(async {
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let rooms = start_local(home(Arc::new(hooked_disk), clock), SyncPolicy::Always).await;
        let rooms = rooms.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&rooms).await.unwrap();
        for _ in 0..40 {
            world.ingest(&rooms, 8).await.unwrap();
            checkpoint(&rooms.checkpointer).await;
            if gate.is_waited_at() {
                break;
            }
        }
        assert!(gate.is_waited_at(), "segments are merged in time");
        for _ in 0..4 {
            world.ingest(&rooms, 8).await.unwrap();
            checkpoint(&rooms.checkpointer).await;
        }
        let mut closed = pin!(rooms.checkpointer.close());
        poll_fn(|context| Poll::Ready(closed.as_mut().poll(context).is_ready())).await;
        // Runs after the order to close: the merge has been cancelled.
        checkpoint(&rooms.checkpointer).await;
        gate.open();
        closed.await.unwrap();
        let stats = rooms.checkpointer.stats();
        assert_eq!((stats.failures, stats.merges), (0, 0), "the merge was given up");
    });
    let now_ns = world.clock.now_ns();
    check_image(&disk.crash(Crash::KINDS[1]), &world.model.lock(), now_ns);
}

/// Regression: a merge that did not fit on the disk was restarted at once, endlessly: it filled the disk each time,
/// and the log had no space left.
#[test]
fn a_merge_refused_by_the_disk_is_postponed() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        let mut begun = None;
        for _ in 0..40 {
            world.ingest(&live.rooms, 8).await.unwrap();
            begun = live.on_thread(|task| {
                task.checkpoint().unwrap();
                task.begin_merge()
            });
            if begun.is_some() {
                break;
            }
        }
        let job = begun.expect("segments are merged in time");
        let refused = Err(CheckpointError::Io(io::Error::from(io::ErrorKind::StorageFull)));
        let begun = live.on_thread(move |task| {
            task.finish_merge(Merged {
                job,
                written: refused,
            });
            let at_once = task.begin_merge().is_some();
            task.checkpoint().unwrap();
            (at_once, task.begin_merge().is_some())
        });
        assert_eq!(
            begun,
            (false, false),
            "not at once, not behind the next checkpoint"
        );
        // Regression: the pause used the wall clock, so that setting it back prevented merges for that long.
        world.clock.step(-400 * DAY_NS);
        world.clock.advance(MERGE_PAUSE_NS);
        let begun = live.on_thread(|task| {
            task.checkpoint().unwrap();
            task.begin_merge().is_some()
        });
        assert!(begun, "the disk may have room by now");
        live.stop();
    });
}

/// Regression: a frequently restarted server takes checkpoints only when it stops, and never merged afterwards: files
/// accumulated with the restarts until no more could be mapped.
#[test]
fn segments_left_by_restarts_are_merged_at_the_next_start() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        for start in 0..5 {
            let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
            let mut live = started.unwrap_or_else(|error| panic!("{error}"));
            if start == 0 {
                world.set_up(&live.rooms).await.unwrap();
            }
            let merge = live.on_thread(|task| task.begin_merge().is_some());
            assert_eq!(merge, start == 4, "at start {start}");
            store_in(&rooms_of(&live), 1, world.clock.now_ns(), 0, 10).await;
            live.on_thread(|task| task.checkpoint()).unwrap();
            live.stop();
        }
    });
}
