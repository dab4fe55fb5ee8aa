//! A node's journal with many shards in a log store.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use log_store::sim::{Fault, SimStore, Written};
use log_store::{LogStore, NodeId, Shard};

use super::{PATIENCE, command, hold, large_options};
use crate::catalog::{Catalog, CatalogHandle};
use crate::journal::{
    Group, Journal, JournalError, JournalHandle, JournalOptions, JournalWriter, LogSizes, NodeLog, ShardLog,
    StoredLog, StoredShard, Tail,
};

const LEASE: Duration = Duration::from_secs(3);

type Outcome = (usize, Result<(), JournalError>);

struct Node {
    store: SimStore,
    id: NodeId,
    journal: Arc<Journal>,
    shards: Vec<(JournalWriter, JournalHandle)>,
    outcome_sender: Sender<Outcome>,
    outcomes: Receiver<Outcome>,
}

impl Node {
    /// A node that owns these shards.
    fn new(shards: u16, options: JournalOptions) -> Self {
        let mut store = SimStore::new(shards);
        let id = store.join("here", LEASE).unwrap();
        let journal = Journal::start(StoredLog::new(Box::new(store.clone()))).unwrap();
        let (outcome_sender, outcomes) = channel();
        let mut node = Node {
            store,
            id,
            journal,
            shards: Vec::new(),
            outcome_sender,
            outcomes,
        };
        for shard in (0..shards).map(Shard) {
            let opened = node.open(shard, options);
            node.shards.push(opened);
        }
        node
    }

    fn open(&mut self, shard: Shard, options: JournalOptions) -> (JournalWriter, JournalHandle) {
        let claimed = self.store.claim(shard, self.id).unwrap().unwrap();
        let mut log = StoredShard::new(Box::new(self.store.clone()), shard, claimed);
        let replayed = log.replay(0, &mut |_, _| Ok(())).unwrap();
        let catalog = CatalogHandle::new(Catalog::default());
        self.journal
            .open(shard, replayed.tail(), catalog, options, |_| ())
    }

    fn hold(&self) -> Sender<()> {
        hold(&self.shards[0].1)
    }

    fn submit(&self, shard: usize) {
        let sender = self.outcome_sender.clone();
        let then = move |outcome| sender.send((shard, outcome)).unwrap();
        self.shards[shard].1.submit_command(command(), then);
    }

    fn next_outcome(&self) -> Outcome {
        let outcome = self.outcomes.recv_timeout(PATIENCE);
        outcome.expect("every request gets its outcome")
    }

    /// Submits a record and waits for its outcome.
    fn commit(&self, shard: usize) -> Result<(), JournalError> {
        self.submit(shard);
        self.next_outcome().1
    }
}

#[test]
fn groups_of_all_shards_share_a_commit() {
    let node = Node::new(64, large_options());
    let held = node.hold();
    for round in 0..3 {
        for shard in 0..64 {
            node.submit(shard);
        }
        assert_eq!(node.shards[round].1.stats().waiting_records, round as u64 + 1);
    }
    drop(held);
    for _ in 0..3 * 64 {
        node.next_outcome().1.unwrap();
    }
    assert_eq!(node.store.commits(), 1);
    for (writer, handle) in &node.shards {
        assert_eq!(writer.dispatched().unwrap(), 3);
        assert_eq!(handle.stats().records, 3);
    }
}

/// A shard with more than a commit's worth of records does not keep another one waiting for all of them.
#[test]
fn a_busy_shard_does_not_starve_another() {
    let options = JournalOptions {
        queue_bytes_max: 64 << 20,
        ..large_options()
    };
    let node = Node::new(2, options);
    let held = node.hold();
    for _ in 0..40 {
        let sender = node.outcome_sender.clone();
        let then = move |outcome: Result<_, _>| sender.send((0, outcome.map(drop))).unwrap();
        let handle = &node.shards[0].1;
        handle
            .queue
            .push(handle.opening, vec![0; 300 << 10], Box::new(then));
    }
    node.submit(1);
    drop(held);
    let place = (0..41).position(|_| node.next_outcome().0 == 1).unwrap();
    assert!(
        place < 7,
        "it was in the second commit at the latest: {place} records before it"
    );
}

#[test]
fn a_lost_shard_fails_alone() {
    let mut node = Node::new(3, large_options());
    // Another node takes shard 1 over, as it does when this one has been frozen.
    let mut store = node.store.clone();
    store.remove(node.id, 0).unwrap();
    let other = store.join("there", LEASE).unwrap();
    store.claim(Shard(1), other).unwrap().unwrap();
    let held = node.hold();
    (0..3).for_each(|shard| node.submit(shard));
    drop(held);
    for _ in 0..3 {
        let (shard, outcome) = node.next_outcome();
        assert_eq!(
            matches!(outcome, Err(JournalError::Lost)),
            shard == 1,
            "{shard}: {outcome:?}"
        );
    }
    let why = node.shards[1].1.readiness().unwrap_err();
    assert!(why.contains("another node"), "{why}");
    assert!(matches!(node.commit(1), Err(JournalError::Lost)));
    assert!(node.shards[1].0.flush().is_err());
    node.commit(0).unwrap();
    node.shards[0].1.readiness().unwrap();
    // The end of one shard leaves the others open.
    node.shards[0].0.close().unwrap();
    assert!(matches!(node.commit(0), Err(JournalError::Closed)));
    node.commit(2).unwrap();
}

#[test]
fn a_shard_that_panics_fails_alone_and_can_be_opened_again() {
    let mut node = Node::new(2, large_options());
    let held = node.hold();
    node.shards[0]
        .1
        .submit_command(command(), |_| panic!("as the test wants it"));
    node.submit(0);
    drop(held);
    node.next_outcome().1.expect("it is durable");
    // The outcomes of a group are told before the journal has noticed the panic.
    node.commit(1).unwrap();
    assert!(matches!(node.commit(0), Err(JournalError::Panicked)));
    assert!(matches!(
        node.shards[0].0.dispatched(),
        Err(JournalError::Panicked)
    ));
    node.commit(1).unwrap();
    node.shards[0] = node.open(Shard(0), large_options());
    node.commit(0).unwrap();
    assert_eq!(
        node.shards[0].0.dispatched().unwrap(),
        3,
        "the records were durable"
    );
}

#[test]
fn an_unknown_outcome_fails_every_shard_of_the_commit_until_it_is_opened_again() {
    let mut node = Node::new(3, large_options());
    node.store.set_faults(|| Fault::Unknown(Written::Late));
    let held = node.hold();
    [0, 1].into_iter().for_each(|shard| node.submit(shard));
    drop(held);
    for _ in 0..2 {
        let (_, outcome) = node.next_outcome();
        assert!(matches!(outcome, Err(JournalError::Poisoned(_))), "{outcome:?}");
    }
    node.store.set_faults(|| Fault::None);
    assert!(matches!(node.commit(0), Err(JournalError::Poisoned(_))));
    node.commit(2).unwrap();
    node.shards[0] = node.open(Shard(0), large_options());
    node.commit(0).unwrap();
    assert_eq!(
        node.shards[0].0.dispatched().unwrap(),
        2,
        "what was under way has arrived"
    );
}

#[test]
fn a_database_that_is_away_for_a_moment_refuses_and_recovers() {
    let node = Node::new(1, large_options());
    node.store.set_faults(|| Fault::Unavailable);
    assert!(matches!(node.commit(0), Err(JournalError::Unavailable(_))));
    node.store.set_faults(|| Fault::None);
    // Asking whether the shard is ready makes the journal look whether the database answers.
    let why = node.shards[0].1.readiness().unwrap_err();
    assert!(why.contains("not available"), "{why}");
    node.shards[0].0.dispatched().unwrap();
    node.shards[0].1.readiness().unwrap();
    node.commit(0).unwrap();
}

#[test]
fn a_trim_names_the_root_and_shortens_the_tail() {
    let mut node = Node::new(2, large_options());
    (0..3).for_each(|_| node.commit(1).unwrap());
    let writer = &node.shards[1].0;
    // A record is acknowledged before its group is counted.
    assert_eq!(writer.dispatched().unwrap(), 3);
    let before = writer.tail_bytes();
    writer.trim_to_root(2, "root".to_owned()).unwrap();
    assert_eq!(writer.tail_bytes() * 3, before);
    writer.trim(3).unwrap();
    assert_eq!(writer.tail_bytes(), 0);
    let rows = node.store.shards().unwrap();
    assert_eq!((rows[0].covered, rows[0].root.as_deref()), (0, None));
    assert_eq!((rows[1].covered, rows[1].root.as_deref()), (3, Some("root")));
    node.store.release(Shard(1), rows[1].epoch).unwrap();
    let lost = node.shards[1].0.trim_to_root(3, "later".to_owned());
    assert!(matches!(lost, Err(JournalError::Lost)), "{lost:?}");
}

#[test]
fn what_waits_is_refused_when_the_shard_is_opened_again() {
    let mut node = Node::new(1, large_options());
    let held = node.hold();
    node.submit(0);
    node.shards[0] = node.open(Shard(0), large_options());
    assert!(matches!(node.next_outcome(), (0, Err(JournalError::Closed))));
    drop(held);
    node.commit(0).unwrap();
    assert_eq!(node.shards[0].0.dispatched().unwrap(), 1);
}

/// What still refers to a shard as it was opened before reaches neither its log nor its queue.
#[test]
fn a_former_opening_of_a_shard_finds_nothing() {
    let mut node = Node::new(1, large_options());
    node.commit(0).unwrap();
    let reopened = node.open(Shard(0), large_options());
    let (mut writer, handle) = std::mem::replace(&mut node.shards[0], reopened);
    let (sender, outcome) = channel();
    handle.submit_command(command(), move |outcome| sender.send(outcome).unwrap());
    let refused = outcome.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(refused, Err(JournalError::Closed)), "{refused:?}");
    assert!(writer.dispatched().is_err() && writer.freeze_catalog().is_err());
    assert!(writer.flush().is_err() && writer.trim(1).is_err());
    assert!(handle.readiness().is_err());
    handle.directory_is_gone();
    writer.close().unwrap();
    node.commit(0).unwrap();
    assert_eq!(node.shards[0].0.dispatched().unwrap(), 2);
}

/// A shard with a large record gets its turn between two that are always busy.
#[test]
fn a_large_record_is_not_passed_over_forever() {
    let options = JournalOptions {
        queue_bytes_max: 64 << 20,
        ..large_options()
    };
    let node = Node::new(3, options);
    let held = node.hold();
    let push = |shard: usize, bytes: usize| {
        let sender = node.outcome_sender.clone();
        let then = move |outcome: Result<_, _>| sender.send((shard, outcome.map(drop))).unwrap();
        let handle = &node.shards[shard].1;
        handle.queue.push(handle.opening, vec![0; bytes], Box::new(then));
    };
    for round in 0..20 {
        push(0, 300 << 10);
        if round == 0 {
            push(1, 2 << 20);
        }
        push(2, 300 << 10);
    }
    drop(held);
    let place = (0..41).position(|_| node.next_outcome().0 == 1).unwrap();
    assert!(place < 12, "{place} records before it");
}

/// A log that panics ends the journal: nothing is accepted that nobody would write.
#[test]
fn a_shard_opened_after_the_log_has_panicked_refuses() {
    struct Panics;
    impl NodeLog for Panics {
        fn attach(&mut self, _: Shard, _: Tail) {}
        fn append(&mut self, _: &[Group<'_>]) -> Vec<Result<u64, JournalError>> {
            panic!("as the test wants it")
        }
        fn flush(&mut self, _: Shard) -> Result<(), JournalError> {
            Ok(())
        }
        fn trim(&mut self, _: Shard, _: u64, _: Option<&str>) -> Result<(), JournalError> {
            Ok(())
        }
        fn has_room(&mut self, _: Shard) -> bool {
            true
        }
        fn sizes(&self, _: Shard) -> LogSizes {
            LogSizes::default()
        }
        fn close(&mut self, _: Shard) -> Result<(), JournalError> {
            Ok(())
        }
    }
    let journal = Journal::start(Panics).unwrap();
    let tail = Tail {
        epoch: 1,
        last: 0,
        bytes: 0,
    };
    let open = |shard| {
        let catalog = CatalogHandle::new(Catalog::default());
        journal.open(Shard(shard), tail, catalog, large_options(), |_| ())
    };
    let submit = |handle: &JournalHandle| {
        let (sender, outcome) = channel();
        handle.submit_command(command(), move |outcome| sender.send(outcome).unwrap());
        outcome.recv_timeout(PATIENCE).expect("an outcome")
    };
    let (_first, handle) = open(0);
    assert!(matches!(submit(&handle), Err(JournalError::Panicked)));
    // The thread ends after it has failed those who wait.
    while handle.readiness().is_ok() {
        std::thread::yield_now();
    }
    let (second, handle) = open(1);
    assert!(matches!(submit(&handle), Err(JournalError::Panicked)));
    assert!(handle.readiness().is_err() && second.dispatched().is_err());
}
