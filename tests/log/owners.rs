//! Who may write: the same of the log store in memory and the one in PostgreSQL.

use log_store::sim::SimStore;
use log_store::{LogStore, Outcome, Shard, StoreError};
use std::time::Duration;

use crate::postgres;
use crate::sides::{self, OPTIONS, store};

const LEASE: Duration = Duration::from_secs(3);

/// Runs a test over two ways to one store, as two nodes have them.
fn on_both(test: impl Fn(&mut dyn LogStore, &mut dyn LogStore)) {
    let simulated = SimStore::new(4);
    test(&mut simulated.clone(), &mut simulated.clone());
    let postgres = postgres::shared();
    let url = postgres.url(&postgres.database(), postgres.port);
    store(&url).init(4, OPTIONS).unwrap();
    test(&mut store(&url), &mut store(&url));
}

fn append(store: &mut dyn LogStore, shard: Shard, epoch: u64, first: u64) -> Outcome {
    sides::append(store, shard, epoch, first)[0]
}

const SHARD: Shard = Shard(3);

#[test]
fn a_shard_has_one_owner() {
    on_both(|one, other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        let of_a = one.claim(SHARD, a).unwrap().unwrap();
        assert_eq!(other.claim(SHARD, b).unwrap(), None, "a lives");
        assert_eq!(append(one, SHARD, of_a.epoch, 1), Outcome::Durable);
        assert_eq!(append(other, SHARD, of_a.epoch + 1, 2), Outcome::Lost);
        // An owner that claims again, after its own restart of the shard, has a new epoch.
        let again = one.claim(SHARD, a).unwrap().unwrap();
        assert!(again.epoch > of_a.epoch);
        assert_eq!(append(one, SHARD, of_a.epoch, 2), Outcome::Lost);
        assert_eq!(append(one, SHARD, again.epoch, 2), Outcome::Durable);
        let row = &one.shards().unwrap()[3];
        assert_eq!((row.shard, row.epoch, row.node), (SHARD, again.epoch, Some(a)));
        assert_eq!(one.shards().unwrap().len(), 4);
    });
}

#[test]
fn a_removed_node_owns_nothing_and_never_returns() {
    on_both(|one, other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        let of_a = one.claim(SHARD, a).unwrap().unwrap();
        assert!(one.renew(a, 1, false).unwrap());
        assert!(!other.remove(a, 0).unwrap(), "it has renewed since");
        assert!(other.remove(a, 1).unwrap());
        assert!(!other.remove(a, 1).unwrap());
        assert!(!one.renew(a, 2, false).unwrap());
        assert_eq!(one.claim(Shard(0), a).unwrap(), None);
        // Until somebody claims the shard, its last owner may finish what it has begun.
        assert_eq!(append(one, SHARD, of_a.epoch, 1), Outcome::Durable);
        let of_b = other.claim(SHARD, b).unwrap().unwrap();
        assert_eq!(append(one, SHARD, of_a.epoch, 2), Outcome::Lost);
        assert!(!one.trim(SHARD, of_a.epoch, 1, None).unwrap());
        assert!(!one.release(SHARD, of_a.epoch).unwrap());
        let mut read = 0;
        let replayed = other.replay(SHARD, of_b.epoch, of_b.covered, &mut |_, _| {
            read += 1;
            Ok(())
        });
        assert_eq!((replayed.unwrap().last, read), (1, 1));
        assert_eq!(append(other, SHARD, of_b.epoch, 2), Outcome::Durable);
    });
}

#[test]
fn a_released_shard_is_anybodys() {
    on_both(|one, other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        let of_a = one.claim(SHARD, a).unwrap().unwrap();
        assert_eq!(append(one, SHARD, of_a.epoch, 1), Outcome::Durable);
        assert!(one.trim(SHARD, of_a.epoch, 1, None).unwrap());
        assert!(one.release(SHARD, of_a.epoch).unwrap());
        assert_eq!(
            append(one, SHARD, of_a.epoch, 2),
            Outcome::Lost,
            "nothing is written after the release"
        );
        let of_b = other.claim(SHARD, b).unwrap().unwrap();
        assert_eq!(of_b.covered, 1, "where the log begins is handed over");
        assert!(of_b.epoch > of_a.epoch);
    });
}

#[test]
fn nodes_are_listed_with_their_beats() {
    on_both(|one, other| {
        let (a, b) = (one.join("a:1", LEASE).unwrap(), other.join("b:2", LEASE).unwrap());
        one.renew(a, 7, true).unwrap();
        let mut nodes = other.nodes().unwrap();
        nodes.sort_by(|one, other| one.address.cmp(&other.address));
        let listed: Vec<_> = nodes
            .iter()
            .map(|node| (node.id, node.address.as_str(), node.beat, node.leaving))
            .collect();
        assert_eq!(listed, [(a, "a:1", 7, true), (b, "b:2", 0, false)]);
    });
}

#[test]
fn only_one_of_two_claims_at_once_succeeds() {
    on_both_threads(|mut one, mut other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        for shard in (0..4).map(Shard) {
            let (first, second) = std::thread::scope(|scope| {
                let first = scope.spawn(|| one.claim(shard, a).unwrap());
                let second = scope.spawn(|| other.claim(shard, b).unwrap());
                (first.join().unwrap(), second.join().unwrap())
            });
            assert_eq!(
                first.is_some(),
                second.is_none(),
                "{shard}: {first:?} and {second:?}"
            );
        }
    });
}

/// As `on_both`, for stores that threads own.
fn on_both_threads(test: impl Fn(Box<dyn LogStore>, Box<dyn LogStore>)) {
    let simulated = SimStore::new(4);
    test(Box::new(simulated.clone()), Box::new(simulated));
    let postgres = postgres::shared();
    let url = postgres.url(&postgres.database(), postgres.port);
    store(&url).init(4, OPTIONS).unwrap();
    test(Box::new(store(&url)), Box::new(store(&url)));
}

#[test]
fn a_database_without_tables_says_what_to_do() {
    let postgres = postgres::shared();
    let url = postgres.url(&postgres.database(), postgres.port);
    let error = store(&url).shards().unwrap_err();
    assert!(matches!(error, StoreError::Tables(_)), "{error}");
    assert!(error.to_string().contains("tidewatch cluster init"), "{error}");
    store(&url).init(4, OPTIONS).unwrap();
    store(&url).init(4, OPTIONS).unwrap();
    let made = store(&url).cluster().unwrap();
    assert_eq!(made.shards, 4);
    let error = store(&url).init(5, OPTIONS).unwrap_err();
    assert!(error.to_string().contains("4 shards"), "{error}");
    assert_eq!(store(&url).cluster().unwrap(), made);
    let other = postgres.url(&postgres.database(), postgres.port);
    store(&other).init(4, OPTIONS).unwrap();
    assert_ne!(store(&other).cluster().unwrap().identity, made.identity);
}

#[test]
fn a_database_that_is_not_there_is_unavailable() {
    let error = store("postgres://tidewatch@127.0.0.1:1/none")
        .shards()
        .unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}
