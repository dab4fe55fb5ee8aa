//! A node's journal with many shards in a log store.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use log_store::sim::{Fault, SimStore, Written};
use log_store::{LogStore, NodeId, Shard};

use super::{PATIENCE, command, large_options};
use crate::catalog::{Catalog, CatalogHandle};
use crate::journal::{
    Journal, JournalError, JournalHandle, JournalOptions, JournalWriter, NodeLog, ShardLog, StoredLog,
    StoredShard,
};

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
        let id = store.join("here").unwrap();
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

    /// Blocks the journal's thread between two commits until the returned sender is dropped.
    fn hold(&self) -> Sender<()> {
        let (go_on, held) = channel::<()>();
        let (here, reached) = channel();
        let control = move |_: &mut dyn NodeLog| {
            here.send(()).unwrap();
            // Fails when the test drops the sender.
            let _ = held.recv();
        };
        self.shards[0]
            .1
            .queue
            .control(Shard(0), Box::new(control))
            .unwrap();
        reached.recv_timeout(PATIENCE).unwrap();
        go_on
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
        let queue = &node.shards[0].1.queue;
        queue.push(Shard(0), vec![0; 300 << 10], Box::new(then));
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
    let other = store.join("there").unwrap();
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
