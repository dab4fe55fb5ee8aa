//! Rounds of membership.

use std::io::Write;
use std::time::Duration;

use fastrand::Rng;
use log_store::{LogStore, NodeId, Postgres, Shard, Timeouts};

use crate::postgres;
use crate::server::waiting::until;
use crate::sides::{LEASE, append, claimed, cluster, on_both, store};

#[test]
fn a_round_renews_and_shows_everybody() {
    on_both(|one, other| {
        let a = one.join("a:1", LEASE).unwrap();
        let round = one.round(a, 1, false).unwrap();
        assert!(round.renewed);
        assert_eq!((round.nodes[0].id, round.nodes[0].beat), (a, 1));
        assert_eq!(
            (round.nodes[0].address.as_str(), round.nodes[0].lease),
            ("a:1", LEASE)
        );
        assert_eq!((round.shards.len(), round.weakness), (4, None));
        assert!(!one.round(a, 1, false).unwrap().renewed, "the beat must grow");
        let b = other.join("b:2", LEASE * 2).unwrap();
        other.round(b, 7, true).unwrap();
        let claimed = one.claim(Shard(2), a).unwrap().unwrap();
        assert!(other.trim(Shard(2), claimed.epoch, 5, Some("root")).unwrap());
        let round = one.round(a, 2, false).unwrap();
        let seen = round.nodes.iter().find(|node| node.id == b).unwrap();
        assert_eq!((seen.beat, seen.leaving, seen.lease), (7, true, LEASE * 2));
        let row = &round.shards[2];
        assert_eq!((row.epoch, row.node, row.covered), (claimed.epoch, Some(a), 5));
        assert_eq!(row.root.as_deref(), Some("root"));
        assert!(other.remove(a, 2).unwrap());
        let round = one.round(a, 3, false).unwrap();
        assert!(!round.renewed);
        assert_eq!(round.nodes.len(), 1);
    });
}

/// What a store remembers between rounds is never shown when it has changed.
#[test]
fn rounds_show_what_the_tables_hold() {
    let seed = std::env::var("STORE_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("STORE_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let (database, url) = cluster(4);
    let (mut watcher, mut other) = (store(&url), store(&url));
    let me = watcher.join("watcher", LEASE).unwrap();
    let mut nodes: Vec<(NodeId, u64)> = Vec::new();
    for beat in 1..=300 {
        let shard = Shard(rng.u16(0..4));
        let row = other.shards().unwrap().swap_remove(usize::from(shard.0));
        match rng.u8(0..7) {
            0 => nodes.push((other.join(&format!("node {beat}"), LEASE).unwrap(), 0)),
            1 if !nodes.is_empty() => {
                let (node, beat) = nodes.swap_remove(rng.usize(..nodes.len()));
                assert!(other.remove(node, beat).unwrap());
            }
            2 if !nodes.is_empty() => {
                let index = rng.usize(..nodes.len());
                let (node, beat) = &mut nodes[index];
                *beat += rng.u64(1..5);
                assert!(other.renew(*node, *beat, rng.bool()).unwrap());
            }
            3 if !nodes.is_empty() => drop(other.claim(shard, rng.choice(&nodes).unwrap().0).unwrap()),
            4 => assert!(other.release(shard, row.epoch).unwrap()),
            5 => {
                let root = format!("root {beat}");
                let root = rng.bool().then_some(root.as_str());
                assert!(
                    other
                        .trim(shard, row.epoch, row.covered + rng.u64(0..3), root)
                        .unwrap()
                );
            }
            6 if rng.u8(0..5) == 0 => {
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE application_name = 'tidewatch' AND datname = current_database()";
                postgres::shared().sql(&database, end);
                // The first call may find the end only when it has sent something.
                let _ = other.shards();
                let _ = watcher.nodes();
            }
            _ => {}
        }
        let mut round = watcher.round(me, beat, false).unwrap();
        assert!(round.renewed);
        round.nodes.sort_by_key(|node| node.id);
        assert_eq!(round.nodes, other.nodes().unwrap(), "round {beat}");
        assert_eq!(round.shards, other.shards().unwrap(), "round {beat}");
    }
}

/// A lease must not run out because an append takes long.
#[test]
fn rounds_do_not_wait_for_an_append() {
    let (database, url) = cluster(2);
    let mut log = store(&url);
    let epoch = claimed(&mut log, Shard(0));
    let mut membership = Postgres::new(&url, Timeouts::of_membership(LEASE)).unwrap();
    let me = membership.join("here", LEASE).unwrap();
    let mut session = postgres::session(&database);
    let mut statements = session.stdin.take().unwrap();
    writeln!(statements, "BEGIN; SELECT * FROM tidewatch.shard FOR UPDATE;").unwrap();
    let sessions = |condition: &str| {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND";
        postgres::shared().sql(&database, &format!("{count} {condition}")) == "1"
    };
    until("the shards are locked", || {
        sessions("state = 'idle in transaction' AND query LIKE 'SELECT%'").then_some(())
    });
    std::thread::scope(|scope| {
        let appended = scope.spawn(|| append(&mut log, Shard(0), epoch, 1));
        until("the append waits", || {
            sessions("wait_event_type = 'Lock'").then_some(())
        });
        for beat in 1..=5 {
            assert!(membership.round(me, beat, false).unwrap().renewed);
        }
        assert!(!appended.is_finished());
        drop(statements);
        assert_eq!(appended.join().unwrap(), [log_store::Outcome::Durable]);
    });
    assert!(session.wait().unwrap().success());
}

#[test]
fn rounds_are_given_up_within_a_lease() {
    let timeouts = Timeouts::of_membership(Duration::from_secs(3));
    assert!(timeouts.attempt * 2 < Duration::from_secs(3));
}
