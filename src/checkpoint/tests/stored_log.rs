//! The rooms over a log store that fails, and is taken over by other nodes, while the disk loses power: what was
//! acknowledged is found by the next owner exactly once, and a former owner acknowledges nothing.

use std::sync::Arc;
use std::time::Duration;

use disk::Disk;
use disk::sim::{Crash, SimDisk};
use engine::Cache;
use fastrand::Rng;
use log_store::sim::SimStore;
use log_store::{LogStore, NodeId};

use super::seed;
use super::world::{Failure, RunningRooms, World, home, in_system, layout};
use crate::checkpoint::HeldElsewhere;
use crate::checkpoint::open::open_with;
use crate::checkpoint::start::assemble;
use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::journal::{Journal, StoredLog, StoredShard, THE_SHARD};

const LEASE: Duration = Duration::from_secs(3);

const SHARDS: u16 = 3;
/// Owners of a trace, one after the other, and their steps.
const OWNERS: u32 = 8;
const STEPS: u32 = 40;
/// One append of this many fails.
const FAULT_ONE_IN: u32 = 40;

/// A node's connection to the log store, and its disk.
struct Node {
    store: SimStore,
    id: NodeId,
    disk: SimDisk,
}

impl Node {
    /// The next owner, on a copy of the former one's disk as a power cut would leave it.
    fn after(before: &Node, crash: Crash) -> Node {
        let mut store = before.store.clone();
        assert!(store.remove(before.id, 0).unwrap());
        Node {
            id: store.join("here", LEASE).unwrap(),
            store,
            disk: before.disk.crash(crash),
        }
    }

    /// Claims the shard, checks what it finds against the model, and starts the rooms.
    fn start(&mut self, world: &World) -> RunningRooms {
        let claimed = self.store.claim(THE_SHARD, self.id).unwrap().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let mut log = StoredShard::new(Box::new(self.store.clone()), THE_SHARD, claimed);
        let opened = open_with(
            &disk,
            &layout(),
            &mut log,
            Cache::new(1 << 20),
            &HeldElsewhere::new(),
        );
        let opened = opened.unwrap_or_else(|error| panic!("{error}"));
        let now_ns = world.clock.now_ns();
        world.model.lock().check(&opened, now_ns);
        world.model.lock().settle(&opened, now_ns);
        let journal = Journal::start(StoredLog::new(Box::new(self.store.clone()))).expect("a thread starts");
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let (rooms, _, task) = assemble(opened, &journal, THE_SHARD, home(disk, clock));
        RunningRooms::of(rooms, task)
    }
}

fn acknowledged(world: &World) -> usize {
    let model = world.model.lock();
    let requests = model.requests.iter();
    requests.filter(|request| request.acknowledged.is_some()).count()
}

/// Runs steps until the log fails for good; returns how many failed.
async fn run(world: &mut World, live: &mut RunningRooms) -> u32 {
    let mut failures = 0;
    for _ in 0..STEPS {
        match world.step(live).await {
            Ok(()) => {}
            Err(Failure::Service(error)) => {
                assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
                failures += 1;
            }
            Err(Failure::Checkpoint(_)) => failures += 1,
        }
    }
    failures
}

/// A trace over several owners. Returns the number of failed steps.
fn trace(seed: u64) -> u32 {
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let mut store = SimStore::new(SHARDS);
    let mut node = Node {
        id: store.join("here", LEASE).unwrap(),
        store: store.clone(),
        disk: SimDisk::new(seed),
    };
    let mut world = World::new(seed);
    in_system(async {
        let mut live = node.start(&world);
        world.set_up(&live.rooms).await.expect("nothing fails yet");
        let mut failures = 0;
        for _ in 0..OWNERS {
            store.fail_at_random(rng.u64(..), FAULT_ONE_IN);
            failures += run(&mut world, &mut live).await;
            store.set_faults(|| log_store::sim::Fault::None);
            // The owner is frozen, and another one takes over. When it wakes up, it finds that it may not write.
            let crash = rng.choice(Crash::KINDS).expect("there are several");
            let mut next = Node::after(&node, crash);
            let claimed = next.store.claim(THE_SHARD, next.id).unwrap();
            assert!(claimed.is_some());
            let before = acknowledged(&world);
            for _ in 0..4 {
                // Nothing is sent if no source is left.
                let _ = world.ingest(&live.rooms, 1).await;
            }
            let _ = live.checkpoint();
            assert_eq!(
                acknowledged(&world),
                before,
                "a former owner acknowledges nothing"
            );
            live.stop();
            live = next.start(&world);
            node = next;
        }
        world.check_live(&live).await;
        live.stop();
        failures
    })
}

#[test]
fn what_was_acknowledged_is_found_by_the_next_owner() {
    let first = seed();
    let failures: u32 = (first..first + 30).map(trace).sum();
    assert!(failures > 0, "the traces meet faults");
}

/// The check notices what it should: an owner that acknowledges before the log store has committed loses points.
#[test]
fn an_acknowledgement_before_the_commit_is_caught() {
    let store = SimStore::new(1);
    store.set_faults({
        let mut appends = 0;
        move || {
            appends += 1;
            match appends > 30 {
                true => log_store::sim::Fault::Forgotten,
                false => log_store::sim::Fault::None,
            }
        }
    });
    let mut joined = store.clone();
    let mut node = Node {
        id: joined.join("here", LEASE).unwrap(),
        store,
        disk: SimDisk::new(1),
    };
    let mut world = World::new(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        in_system(async {
            let live = node.start(&world);
            world.set_up(&live.rooms).await.expect("nothing fails");
            for _ in 0..STEPS {
                world
                    .ingest(&live.rooms, 1)
                    .await
                    .expect("everything is acknowledged");
            }
            live.stop();
            Node::after(&node, Crash::KINDS[0]).start(&world).stop();
        });
    }));
    assert!(caught.is_err(), "lost points are noticed");
}
