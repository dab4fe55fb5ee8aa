//! Requests that wait for the journal when something panics or refuses.

mod shards;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use disk::sim::SimDisk;
use wal::LogOptions;

use super::{
    Journal, JournalError, JournalHandle, JournalOptions, JournalWriter, LocalShard, NodeLog, ShardLog,
    THE_SHARD,
};
use crate::catalog::{Bytes, Catalog, CatalogHandle, Command};

const PATIENCE: Duration = Duration::from_secs(20);

/// The outcome of a request.
type Outcome = (u8, Result<(), JournalError>);

struct World {
    writer: JournalWriter,
    journal: JournalHandle,
    outcome_sender: Sender<Outcome>,
    outcomes: Receiver<Outcome>,
}

impl World {
    fn new(options: JournalOptions, progress: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let disk = Arc::new(SimDisk::new(1));
        let mut log = LocalShard::new(disk, Path::new("log").to_owned(), LogOptions::default());
        let replayed = log.replay(0, &mut |_, _| Ok(())).unwrap();
        let journal = Journal::start(log.into_log().unwrap()).unwrap();
        let catalog = CatalogHandle::new(Catalog::default());
        let (writer, journal) = journal.open(THE_SHARD, replayed.tail(), catalog, options, progress);
        let (outcome_sender, outcomes) = channel();
        World {
            writer,
            journal,
            outcome_sender,
            outcomes,
        }
    }

    fn with_room() -> Self {
        Self::new(large_options(), |_| ())
    }

    fn hold(&self) -> Sender<()> {
        hold(&self.journal)
    }

    fn submit(&self, number: u8) {
        let outcome_sender = self.outcome_sender.clone();
        let then = move |outcome| outcome_sender.send((number, outcome)).unwrap();
        self.journal.submit_command(command(), then);
    }

    fn next_outcome(&self) -> Outcome {
        self.outcomes
            .recv_timeout(PATIENCE)
            .expect("every waiting request gets its outcome")
    }

    /// Asserts that every request is refused immediately.
    fn assert_ended(&self) {
        self.submit(0);
        assert!(matches!(self.next_outcome(), (0, Err(JournalError::Panicked))));
        let why = self.journal.readiness().unwrap_err();
        assert!(why.contains("panicked"), "{why}");
        assert!(matches!(self.writer.dispatched(), Err(JournalError::Panicked)));
        assert!(self.writer.freeze_catalog().is_err());
    }
}

/// Blocks the journal's thread between two groups until the returned sender is dropped.
fn hold(journal: &JournalHandle) -> Sender<()> {
    let (go_on, held) = channel::<()>();
    let (here, reached) = channel();
    let control = move |_: &mut dyn NodeLog| {
        here.send(()).unwrap();
        // Fails when the test drops the sender.
        let _ = held.recv();
    };
    journal.queue.control(journal.opening, Box::new(control)).unwrap();
    reached.recv_timeout(PATIENCE).unwrap();
    go_on
}

fn large_options() -> JournalOptions {
    JournalOptions {
        queue_bytes_max: 1 << 20,
        tail_bytes_max: 1 << 30,
    }
}

fn command() -> Command {
    Command::ServerSecretSet {
        secret: Bytes([1; 32]),
    }
}

#[test]
fn a_panicking_completion_ends_the_journal_but_fails_no_other() {
    let world = World::with_room();
    let held = world.hold();
    world.submit(1);
    let panics = |_| panic!("as the test wants it");
    world.journal.submit_command(command(), panics);
    world.submit(2);
    drop(held);
    for number in [1, 2] {
        let (outcomes, outcome) = world.next_outcome();
        assert_eq!(outcomes, number);
        outcome.expect("it is durable");
    }
    world.assert_ended();
}

#[test]
fn a_panicking_control_fails_the_requests_queued_after_it() {
    let world = World::with_room();
    let held = world.hold();
    world.submit(1);
    let panics = |_: &mut dyn NodeLog| panic!("as the test wants it");
    world
        .journal
        .queue
        .control(world.journal.opening, Box::new(panics))
        .unwrap();
    let (sender, answer) = channel::<()>();
    let sends = move |_: &mut dyn NodeLog| sender.send(()).unwrap();
    world
        .journal
        .queue
        .control(world.journal.opening, Box::new(sends))
        .unwrap();
    drop(held);
    assert!(matches!(world.next_outcome(), (1, Err(JournalError::Panicked))));
    let answered = answer.recv_timeout(PATIENCE);
    assert_eq!(
        answered,
        Err(RecvTimeoutError::Disconnected),
        "the asker is not left to wait"
    );
    world.assert_ended();
}

#[test]
fn a_thread_that_ends_between_two_groups_fails_the_queue() {
    let world = World::new(large_options(), |_| panic!("as the test wants it"));
    world.submit(1);
    let (_, outcome) = world.next_outcome();
    outcome.expect("it was durable before");
    world.assert_ended();
}

#[test]
fn a_journal_that_refuses_is_not_ready_and_gives_the_reason() {
    let mut options = large_options();
    options.tail_bytes_max = 0;
    let world = World::new(options, |_| ());
    let why = world.journal.readiness().unwrap_err();
    assert!(why.contains("waits for a checkpoint"), "{why}");

    options = large_options();
    options.queue_bytes_max = 10;
    let mut world = World::new(options, |_| ());
    world.journal.readiness().unwrap();
    let held = world.hold();
    world.submit(1);
    world.submit(2);
    assert!(matches!(world.next_outcome(), (2, Err(JournalError::Saturated))));
    let why = world.journal.readiness().unwrap_err();
    assert!(why.contains("too many bytes"), "{why}");
    drop(held);
    assert!(matches!(world.next_outcome(), (1, Ok(()))));
    world.journal.readiness().unwrap();
    world.writer.close().unwrap();
    let why = world.journal.readiness().unwrap_err();
    assert!(why.contains("stopping"), "{why}");
}
