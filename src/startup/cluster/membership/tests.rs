//! A membership over a store in memory, a round at a time.

use log_store::sim::SimStore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::clock::{ManualClock, SECOND_NS};

const SHARDS: u16 = 4;
const LEASE: Duration = Duration::from_secs(3);

struct Member {
    membership: Membership,
    reports: Reports,
    orders: UnboundedReceiver<Order>,
    clock: Arc<ManualClock>,
}

impl Member {
    fn new(store: &SimStore, address: &str) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let table = ShardTable::new(SHARDS, LEASE, Arc::clone(&clock) as _);
        let (sender, orders) = unbounded_channel();
        let (membership, reports) = Membership::new(
            Box::new(store.clone()),
            address.to_owned(),
            LEASE,
            Arc::new(table),
            sender,
        );
        Member {
            membership,
            reports,
            orders,
            clock,
        }
    }

    /// A round, half a second after the one before. Returns the orders that it has given.
    fn round(&mut self) -> Vec<String> {
        self.clock.advance(SECOND_NS / 2);
        self.membership.round().unwrap();
        self.membership.say_what_is_left();
        self.given()
    }

    /// A round when the next one is due. Returns how long that was.
    fn next_round(&mut self) -> Duration {
        let pause = self.membership.pause(Duration::ZERO);
        self.clock.advance(pause.as_nanos() as i64);
        self.membership.round().unwrap();
        pause
    }

    /// Renews without looking.
    fn renew(&mut self, store: &mut SimStore) {
        let joined = self.membership.joined.as_mut().unwrap();
        joined.beat += 1;
        assert!(store.renew(joined.id, joined.beat, false).unwrap());
    }

    /// Takes what was reported.
    fn listen(&mut self) -> Vec<String> {
        self.membership.listen(Instant::now());
        self.given()
    }

    fn given(&mut self) -> Vec<String> {
        let order = |order| match order {
            Order::Open(shard, claimed, _) => format!("open {shard} at {}", claimed.epoch),
            Order::HandOver(shard, epoch) => format!("hand over {shard} at {epoch}"),
            Order::Drop(shard, epoch) => format!("drop {shard} at {epoch}"),
            Order::Tell(address) => format!("tell {address}"),
        };
        std::iter::from_fn(|| self.orders.try_recv().ok())
            .map(order)
            .collect()
    }

    fn owns(&self) -> Vec<u16> {
        self.membership.open.keys().map(|shard| shard.0).collect()
    }
}

#[test]
fn the_first_node_claims_everything_and_holds_its_lease() {
    let mut member = Member::new(&SimStore::new(SHARDS), "a:1");
    assert!(!member.membership.table.holds_lease());
    let opened: Vec<String> = (0..SHARDS).map(|shard| format!("open {shard} at 1")).collect();
    assert_eq!(member.round(), opened);
    assert!(member.membership.table.holds_lease());
    assert_eq!(member.round(), Vec::<String>::new(), "nothing is claimed twice");
}

#[test]
fn a_shard_that_does_not_open_is_released_and_left_to_others_for_a_while() {
    let store = SimStore::new(SHARDS);
    let mut member = Member::new(&store, "a:1");
    member.round();
    member.reports.send(Report::NotOpened(Shard(2), 1));
    assert_eq!(member.listen(), Vec::<String>::new());
    assert_eq!(member.owns(), [0, 1, 3]);
    for _ in 0..60 {
        assert_eq!(member.round(), Vec::<String>::new());
    }
    let row = store.clone().shards().unwrap().swap_remove(2);
    assert_eq!(row.node, None);
    let later: Vec<String> = (0..80).flat_map(|_| member.round()).collect();
    assert_eq!(later, [format!("open 2 at {}", row.epoch + 1)]);
}

#[test]
fn a_shard_whose_log_is_broken_is_dropped_and_claimed_again() {
    let mut member = Member::new(&SimStore::new(SHARDS), "a:1");
    member.round();
    member.reports.send(Report::Broken(Shard(1), 1));
    assert_eq!(member.listen(), ["drop 1 at 1"]);
    assert_eq!(member.round(), ["open 1 at 2"]);
    member.reports.send(Report::Broken(Shard(1), 1));
    assert_eq!(
        member.listen(),
        Vec::<String>::new(),
        "that was the opening before"
    );
}

#[test]
fn a_node_that_was_removed_drops_everything_and_joins_as_another_one() {
    let mut store = SimStore::new(SHARDS);
    let mut member = Member::new(&store, "a:1");
    member.round();
    let node = store.nodes().unwrap().swap_remove(0);
    assert!(store.remove(node.id, node.beat).unwrap());
    let dropped: Vec<String> = (0..SHARDS).map(|shard| format!("drop {shard} at 1")).collect();
    assert_eq!(member.round(), dropped);
    assert!(
        !member.membership.table.holds_lease(),
        "what it had is not answered any more"
    );
    let opened: Vec<String> = (0..SHARDS).map(|shard| format!("open {shard} at 2")).collect();
    assert_eq!(member.round(), opened);
    assert_ne!(store.nodes().unwrap()[0].id, node.id);
}

#[test]
fn a_node_that_leaves_hands_everything_over_and_goes_on_seeing_the_others() {
    let store = SimStore::new(SHARDS);
    let mut member = Member::new(&store, "a:1");
    member.round();
    let (done, mut left) = oneshot::channel();
    member.reports.send(Report::Leave(done));
    member.listen();
    let orders = member.round();
    for shard in 0..SHARDS {
        assert!(orders.contains(&format!("hand over {shard} at 1")), "{orders:?}");
        assert!(left.try_recv().is_err());
        member.reports.send(Report::Closed(Shard(shard), 1));
        member.listen();
    }
    member.round();
    assert_eq!(left.try_recv(), Ok(()));
    let mut other = Member::new(&store, "b:1");
    // A node that has just come waits for its turn after the one that should have a shard, which is leaving.
    let mut opened = Vec::new();
    for _ in 0..20 {
        opened.extend(other.round());
        assert_eq!(member.round(), Vec::<String>::new());
    }
    assert_eq!(opened.len(), usize::from(SHARDS), "{opened:?}");
    let location = member.membership.table.look(Shard(0));
    let is_there = matches!(location, Some(crate::service::Location::At(owner)) if &*owner.address == "b:1");
    assert!(is_there, "it passes requests on");
}

#[test]
fn a_node_that_could_not_renew_answers_nothing_until_it_does() {
    let mut member = Member::new(&SimStore::new(SHARDS), "a:1");
    member.round();
    member.clock.advance(LEASE.as_nanos() as i64);
    assert!(!member.membership.table.holds_lease());
    assert_eq!(member.round(), Vec::<String>::new());
    assert!(member.membership.table.holds_lease());
    assert_eq!(member.owns().len(), usize::from(SHARDS));
}

/// The shards that the node at this address should have.
fn shards_of(store: &mut SimStore, address: &str) -> Vec<u16> {
    let nodes = store.nodes().unwrap();
    let has = |shard: &u16| heir(Shard(*shard), nodes.iter()).unwrap().address == address;
    (0..SHARDS).filter(has).collect()
}

#[test]
fn a_node_that_does_not_renew_is_removed_when_its_lease_ends_and_its_heirs_are_told() {
    // The second one lets the first one pass.
    for (watching, other, patience) in [("c:1", "b:1", Duration::ZERO), ("b:1", "c:1", LEASE / 10)] {
        let mut store = SimStore::new(SHARDS);
        let mut silent = Member::new(&store, "a:1");
        silent.round();
        assert_eq!(silent.owns().len(), usize::from(SHARDS));
        let [mut watching, mut other] = [watching, other].map(|address| Member::new(&store, address));
        other.round();
        watching.round();
        let mut took = Duration::ZERO;
        while store.nodes().unwrap().len() == 3 {
            other.renew(&mut store);
            took += watching.next_round();
        }
        assert_eq!(took, LEASE + patience);
        assert_eq!(watching.given(), [format!("tell {}", other.membership.address)]);
        assert_eq!(watching.next_round(), ROUND_PAUSE);
        other.round();
        for member in [&watching, &other] {
            let own = shards_of(&mut store, &member.membership.address);
            assert!(!own.is_empty());
            assert_eq!(member.owns(), own);
        }
    }
}

#[test]
fn nodes_that_are_dead_themselves_are_not_told() {
    let mut store = SimStore::new(SHARDS);
    let mut silent = Member::new(&store, "a:1");
    silent.round();
    let [mut dead, mut watching, mut other] =
        ["b:1", "c:1", "d:1"].map(|address| Member::new(&store, address));
    dead.round();
    other.round();
    assert!(!shards_of(&mut store, "b:1").is_empty());
    watching.round();
    while store.nodes().unwrap().len() > 2 {
        other.renew(&mut store);
        watching.next_round();
        let given = watching.given();
        let told: Vec<&String> = given.iter().filter(|order| order.starts_with("tell")).collect();
        assert!(told.iter().all(|order| *order == "tell d:1"), "{told:?}");
    }
    assert_eq!(watching.next_round(), ROUND_PAUSE);
    other.round();
    assert_eq!(watching.owns(), shards_of(&mut store, "c:1"));
    assert_eq!(other.owns(), shards_of(&mut store, "d:1"));
    assert_eq!(watching.owns().len() + other.owns().len(), usize::from(SHARDS));
}

#[test]
fn the_next_round_begins_a_period_after_the_last_one_unless_something_is_due_before() {
    let mut member = Member::new(&SimStore::new(SHARDS), "a:1");
    member.round();
    let period = Lease::new(LEASE).period();
    let mut pause = |looks_in, took| {
        member.membership.looks_in = looks_in;
        member.membership.pause(took)
    };
    assert_eq!(pause(None, Duration::ZERO), period);
    assert_eq!(pause(None, period / 2), period / 2);
    assert_eq!(pause(None, period * 2), Duration::ZERO);
    assert_eq!(pause(Some(period / 3), period / 2), period / 3);
    assert_eq!(pause(Some(period), period / 2), period / 2);
    assert_eq!(pause(Some(Duration::ZERO), period / 2), ROUND_PAUSE);
}
