//! The database's primary dies while a node appends, and a standby is promoted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use log_store::{InitOptions, LogStore, Outcome, Postgres as Store, Replication, Shard, Timeouts};
use rustix::process::{Pid, Signal, kill_process};

use crate::server::Postgres;
use crate::server::waiting::until;
use crate::sides::append;

const SHARD: Shard = Shard(0);
/// Records to acknowledge before the primary dies, and after.
const RECORDS: u64 = 300;

/// A failover takes a while, and nothing is given up.
const TIMEOUTS: Timeouts = Timeouts {
    attempt: Duration::from_secs(2),
    append: Duration::from_secs(60),
};

const LEASE: Duration = Duration::from_secs(3);

#[test]
fn a_promoted_standby_has_what_was_acknowledged_and_appends_go_on() {
    let servers = Postgres::start(2, &["fsync=off"]);
    let database = servers[0].database();
    let url = Postgres::url_of_all(&servers, &database);
    let mut store = Store::new(&url, TIMEOUTS).unwrap();
    let replication = Replication::Standbys;
    store.init(1, InitOptions { replication }).unwrap();
    let node = store.join("here", LEASE).unwrap();
    let epoch = store.claim(SHARD, node).unwrap().unwrap().epoch;
    let (acknowledged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for first in 1.. {
                let outcome = append(&mut store, SHARD, epoch, first);
                assert_eq!(outcome, [Outcome::Durable], "{first}");
                acknowledged.store(first, Ordering::SeqCst);
                if done.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        let reaches = |records: u64| move |seen: u64| (seen >= records).then_some(seen);
        let seen = || acknowledged.load(Ordering::SeqCst);
        let before = until("records are acknowledged", || reaches(RECORDS)(seen()));
        kill(&servers[0]);
        // The standby that has received more: the other one may lack what was acknowledged.
        let received = |server: &Postgres| -> u64 {
            let lsn = "SELECT (pg_last_wal_receive_lsn() - '0/0'::pg_lsn)::bigint";
            server.sql("postgres", lsn).parse().unwrap()
        };
        let next = servers[1..].iter().max_by_key(|server| received(server)).unwrap();
        promote(next);
        until(
            "appends go on by themselves",
            || reaches(before + RECORDS)(seen()),
        );
        done.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    let mut reader = Store::new(&url, TIMEOUTS).unwrap();
    let mut expected = 1;
    let mut each = |sequence, record: &[u8]| {
        assert_eq!(sequence, expected, "each record once, in order");
        assert_eq!(record, format!("record {sequence}").as_bytes());
        expected += 1;
        Ok(())
    };
    let replayed = reader.replay(SHARD, epoch, 0, &mut each).unwrap();
    assert_eq!(replayed.last, acknowledged.load(Ordering::SeqCst));
}

/// Ends a server as a loss of power would, for those who are connected to it.
fn kill(server: &Postgres) {
    let file = server.sql("postgres", "SELECT pg_read_file('postmaster.pid')");
    let pid = file
        .lines()
        .next()
        .and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
    kill_process(pid.unwrap(), Signal::KILL).unwrap();
}

/// Makes a standby the primary.
fn promote(server: &Postgres) {
    assert_eq!(server.sql("postgres", "SELECT pg_promote()"), "t");
}
