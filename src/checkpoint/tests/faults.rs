//! A disk that stops, fills up, or fails to sync, at every such operation of a trace.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::sim::{Crash, Fault, Operation, SimDisk};

use super::crash::{check_image, go_on};
use super::world::{Failure, Live, World, in_system};
use super::{exhaustive, seed};
use crate::clock::Clock;

const STEPS: usize = 60;
/// Runs of one kind of fault, unless all are asked for.
const RUNS: u64 = 60;

/// A trace over a disk with faults.
struct Run {
    disk: SimDisk,
    world: World,
    failures: usize,
    /// The log took no writes any more at the end.
    log_failed: bool,
    /// Acknowledged after the log had failed.
    false_acknowledgements: usize,
}

/// Not only for want of room.
fn log_failed(live: &Live) -> bool {
    let not_ready = live.rooms.journal.readiness().err();
    not_ready.is_some_and(|why| !why.contains("the disk is full"))
}

fn acknowledged(world: &World) -> usize {
    world
        .model
        .lock()
        .requests
        .iter()
        .filter(|request| request.acknowledged.is_some())
        .count()
}

/// Runs the trace of a seed; `prepare` is given the disk when the rooms have started, `between` before each step.
fn run(seed: u64, prepare: impl Fn(&SimDisk), mut between: impl FnMut(usize, &SimDisk, bool)) -> Run {
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    let (mut failures, mut failed_at) = (0, None);
    let log_failed = in_system(async {
        let started = Live::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let mut live = started.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.expect("the disk is whole");
        prepare(&disk);
        for step in 0..STEPS {
            between(step, &disk, failures > 0);
            if let Err(failure) = world.step(&mut live).await {
                failures += 1;
                match &failure {
                    Failure::Service(error) => {
                        assert_eq!(error.kind, crate::error::ErrorKind::Unavailable, "{failure:?}");
                    }
                    Failure::Checkpoint(error) => println!("step {step}: {error}"),
                }
            }
            if failed_at.is_none() && log_failed(&live) {
                failed_at = Some(acknowledged(&world));
            }
        }
        for (_, handle) in live.rooms.buckets.running() {
            // Behind the message that answered the last request.
            handle.with(|_| ()).await.expect("the actor answers");
            assert_eq!(handle.mailbox_bytes(), 0, "nothing is under way");
        }
        let log_failed = log_failed(&live);
        if !log_failed {
            disk.set_budget_bytes(None);
            world.check_live(&live).await;
        }
        live.stop();
        log_failed
    });
    let false_acknowledgements = failed_at.map_or(0, |before| acknowledged(&world) - before);
    Run {
        disk,
        world,
        failures,
        log_failed,
        false_acknowledgements,
    }
}

impl Run {
    /// After any fault of the disk and a crash, acknowledged data is present and the server continues.
    fn check(&self, seed: u64) {
        assert_eq!(self.false_acknowledgements, 0);
        let now_ns = self.world.clock.now_ns();
        let model = self.world.model.lock().clone();
        for crash in Crash::KINDS {
            check_image(&self.disk.crash(crash), &model, now_ns);
        }
        let crash = Crash::KINDS[self.failures % Crash::KINDS.len()];
        go_on(&self.disk.crash(crash), model, now_ns, seed);
    }
}

/// The operations of a sort that a run without faults does, and those to fail.
fn chosen(seed: u64, count: impl Fn(&SimDisk) -> u64) -> Vec<u64> {
    let before = Cell::new(0);
    let whole = run(seed, |disk| before.set(count(disk)), |_, _, _| {});
    assert_eq!(whole.failures, 0);
    let total = count(&whole.disk) - before.get();
    let runs = if exhaustive() { total } else { RUNS.min(total) };
    println!("seed {seed}: {runs} of {total}");
    // Spread evenly, not in step with the length of a checkpoint.
    (0..runs).map(|index| 1 + index * total / runs).collect()
}

fn in_context<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|panic| {
        println!("at {what}");
        resume_unwind(panic)
    })
}

#[test]
fn after_the_disk_stops_nothing_is_acknowledged() {
    let seed = seed();
    for operation in chosen(seed, SimDisk::operations) {
        in_context(&format!("operation {operation}"), || {
            let stop = |disk: &SimDisk| disk.stop_at(disk.operations() + operation);
            run(seed, stop, |_, _, _| {}).check(seed);
        });
    }
}

#[test]
fn a_full_disk_refuses_writes_until_space_is_freed() {
    let seed = seed();
    for operation in [Operation::Write, Operation::Create] {
        for nth in chosen(seed, |disk| disk.count(operation)) {
            in_context(&format!("{operation:?} {nth}"), || {
                let full = |disk: &SimDisk| {
                    disk.fail(
                        operation,
                        nth,
                        Fault::Full {
                            bytes: nth * 37 % 600,
                        },
                    )
                };
                let run = run(seed, full, |_, _, _| {});
                assert!(!run.log_failed, "the log continues");
                run.check(seed);
            });
        }
    }
}

/// Regression: the server reported ready while it refused every write.
#[test]
fn a_full_disk_is_not_ready_until_space_is_freed() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let started = Live::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
        let live = started.unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.expect("the disk is whole");
        live.rooms.journal.readiness().expect("it is ready");
        disk.set_budget_bytes(Some(disk.used_bytes()));
        // The log has room of its own for a while.
        let mut taken = 0;
        while world.create_bucket(&live.rooms).await.is_ok() {
            taken += 1;
            assert!(taken < 100_000, "the disk is never full");
        }
        for _ in 0..2 {
            world
                .create_bucket(&live.rooms)
                .await
                .expect_err("the disk is full");
            let why = live.rooms.journal.readiness().expect_err("it is not ready");
            assert_eq!(
                why, "the log takes no writes: the disk is full",
                "nothing of the system"
            );
        }
        disk.set_budget_bytes(None);
        // Without any write, the server notices by itself.
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Err(why) = live.rooms.journal.readiness() {
            assert!(Instant::now() < deadline, "{why}");
            std::thread::yield_now();
        }
        world.create_bucket(&live.rooms).await.expect("there is room");
        live.stop();
    });
}

#[test]
fn a_disk_with_little_room_left_loses_nothing() {
    let seed = seed();
    let mut refused = 0;
    for room in 0..if exhaustive() { 400 } else { 40 } {
        in_context(&format!("room {room}"), || {
            let mut lifted = false;
            let run = run(
                seed,
                |_| {},
                |step, disk, failed| {
                    if step == 10 {
                        disk.set_budget_bytes(Some(disk.used_bytes() + room * 97));
                    }
                    if failed && step > 40 && !lifted {
                        lifted = true;
                        disk.set_budget_bytes(None);
                    }
                },
            );
            refused += run.failures;
            assert!(!run.log_failed, "the log continues");
            run.check(seed);
        });
    }
    assert!(refused > 0, "the disk was full at times");
}

#[test]
fn a_failed_sync_ends_the_log_or_retries_the_checkpoint() {
    let seed = seed();
    let (mut ended, mut tried_again) = (0, 0);
    for nth in chosen(seed, |disk| disk.count(Operation::Sync)) {
        in_context(&format!("sync {nth}"), || {
            let run = run(
                seed,
                |disk| disk.fail(Operation::Sync, nth, Fault::Io),
                |_, _, _| {},
            );
            // A failed merge or removal is only logged.
            match run.failures {
                0 => assert!(!run.log_failed),
                _ if run.log_failed => ended += 1,
                _ => tried_again += 1,
            }
            run.check(seed);
        });
    }
    assert!(
        ended > 0 && tried_again > 0,
        "{ended} ended the log, {tried_again} were tried again"
    );
}
