//! The log store in PostgreSQL when a connection breaks: an append whose answer was lost is found or written, once.

use std::io::Write;
use std::time::Duration;

use log_store::{Epoch, Group, LogStore, Outcome, Postgres, Sequence, Shard, Timeouts};

use crate::postgres;
use crate::proxy::{Fault, Proxy};
use crate::server::waiting::until;
use crate::sides::{IMPATIENT, OPTIONS, append, store};

const SHARD: Shard = Shard(0);

/// Silence is noticed soon, and nothing is given up.
const TIMEOUTS: Timeouts = Timeouts {
    attempt: Duration::from_millis(1_500),
    append: Duration::from_secs(30),
};

const LEASE: Duration = Duration::from_secs(3);

struct World {
    database: String,
    proxy: Proxy,
    /// Through the proxy.
    store: Postgres,
    /// Past the proxy.
    direct: Postgres,
    epoch: Epoch,
}

impl World {
    fn new() -> Self {
        let postgres = postgres::shared();
        let database = postgres.database();
        let proxy = Proxy::start(postgres.port);
        let mut direct = store(&postgres.url(&database, postgres.port));
        direct.init(2, OPTIONS).unwrap();
        let node = direct.join("here", LEASE).unwrap();
        let epoch = direct.claim(SHARD, node).unwrap().unwrap().epoch;
        direct.claim(Shard(1), node).unwrap().unwrap();
        let mut world = World {
            store: Postgres::new(&postgres.url(&database, proxy.port), TIMEOUTS).unwrap(),
            database,
            proxy,
            direct,
            epoch,
        };
        // The connection is open from here on.
        assert_eq!(world.append(1), [Outcome::Durable]);
        world
    }

    fn append(&mut self, first: Sequence) -> Vec<Outcome> {
        append(&mut self.store, SHARD, self.epoch, first)
    }

    fn found(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let mut each = |_, record: &[u8]| {
            found.push(String::from_utf8(record.to_vec()).unwrap());
            Ok(())
        };
        let epoch = self
            .sql("SELECT epoch FROM tidewatch.shard WHERE id = 0")
            .parse()
            .unwrap();
        self.direct.replay(SHARD, epoch, 0, &mut each).unwrap();
        found
    }

    fn sql(&self, statements: &str) -> String {
        postgres::shared().sql(&self.database, statements)
    }
}

#[test]
fn a_lost_request_is_sent_again() {
    let mut world = World::new();
    world.proxy.fail(Fault::LoseRequests, 1);
    assert_eq!(world.append(2), [Outcome::Durable]);
    assert_eq!(world.found(), ["record 1", "record 2"]);
}

#[test]
fn a_commit_whose_answer_was_lost_is_found() {
    let mut world = World::new();
    for (number, fault) in [(2, Fault::LoseAnswers), (3, Fault::Silence)] {
        world.proxy.fail(fault, 1);
        assert_eq!(world.append(number), [Outcome::Durable], "{fault:?}");
    }
    assert_eq!(world.found(), ["record 1", "record 2", "record 3"]);
    // The transactions that found it have written, so that their commits reached the second disk.
    assert_eq!(world.sql("SELECT settled FROM tidewatch.shard WHERE id = 0"), "2");
}

#[test]
fn a_commit_still_under_way_is_waited_for() {
    let mut world = World::new();
    // A transaction holds the key of the row, as an insert whose client has given up would.
    let mut session = postgres::session(&world.database);
    let mut statements = session.stdin.take().unwrap();
    writeln!(
        statements,
        "BEGIN; INSERT INTO tidewatch.log VALUES (0, 2, 2, 1, 0, '');"
    )
    .unwrap();
    let active = |condition: &str| {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND";
        // On a slow machine the append may wait twice: once more when it is in doubt.
        postgres::shared().sql(&world.database, &format!("{others} {condition}")) != "0"
    };
    until("the row is under way", || {
        active("state = 'idle in transaction'").then_some(())
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("the append waits", || {
                active("wait_event_type = 'Lock'").then_some(())
            });
            statements.write_all(b"ROLLBACK;").unwrap();
            drop(statements);
        });
        assert_eq!(
            append(&mut world.store, SHARD, world.epoch, 2),
            [Outcome::Durable]
        );
    });
    assert!(session.wait().unwrap().success());
    assert_eq!(world.found(), ["record 1", "record 2"]);
}

#[test]
fn what_another_owner_has_written_is_not_taken_for_ours() {
    let mut world = World::new();
    // Somebody writes under our epoch: a bug, or a forged node.
    world.sql("INSERT INTO tidewatch.log VALUES (0, 2, 2, 1, 0, '')");
    assert_eq!(world.append(2), [Outcome::Lost]);
    world.proxy.fail(Fault::LoseRequests, 1);
    assert_eq!(world.append(2), [Outcome::Lost], "while settling, too");
}

#[test]
fn an_epoch_that_changes_while_an_append_is_in_doubt_loses_it() {
    let mut world = World::new();
    world.sql("UPDATE tidewatch.shard SET epoch = epoch + 1");
    assert_eq!(world.append(2), [Outcome::Lost]);
    world.proxy.fail(Fault::LoseRequests, 1);
    assert_eq!(world.append(2), [Outcome::Lost], "while settling, too");
    assert_eq!(world.found(), ["record 1"]);
}

#[test]
fn one_lost_shard_does_not_hold_up_the_others() {
    let mut world = World::new();
    let records = [b"x".to_vec()];
    let group = |shard, epoch, first| Group {
        shard: Shard(shard),
        epoch,
        first,
        records: &records,
    };
    let groups = [group(0, world.epoch + 1, 2), group(1, 1, 1), group(9, 1, 1)];
    let outcomes = [Outcome::Lost, Outcome::Durable, Outcome::Lost];
    assert_eq!(world.store.append(&groups).unwrap(), outcomes);
    world.proxy.fail(Fault::LoseAnswers, 1);
    let groups = [group(0, world.epoch + 1, 2), group(1, 1, 2), group(9, 1, 1)];
    assert_eq!(world.store.append(&groups).unwrap(), outcomes);
}

/// Regression: the transaction of a refused claim kept its lock until its connection was used again.
#[test]
fn a_refused_claim_holds_nothing() {
    let mut world = World::new();
    let postgres = postgres::shared();
    let mut other = store(&postgres.url(&world.database, postgres.port));
    let node = other.join("there", LEASE).unwrap();
    assert_eq!(other.claim(SHARD, node).unwrap(), None);
    assert_eq!(world.append(2), [Outcome::Durable]);
    let settled = world.sql("SELECT settled FROM tidewatch.shard WHERE id = 0");
    assert_eq!(settled, "0", "the append did not have to wait");
}

/// Regression: an attempt that was given up kept its session and what it had locked.
#[test]
fn an_attempt_that_is_given_up_ends_its_session() {
    let mut world = World::new();
    world.proxy.fail(Fault::Silence, 3);
    assert_eq!(world.append(2), [Outcome::Durable]);
    until("only the sessions in use are left", || {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                        application_name = 'tidewatch'";
        (world.sql(sessions) == "2").then_some(())
    });
}

#[test]
fn a_connection_that_ended_while_idle_leaves_no_doubt() {
    let mut world = World::new();
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    world.sql(others);
    until("the connection has ended", || {
        (world.proxy.open() == 0).then_some(())
    });
    assert_eq!(world.append(2), [Outcome::Durable]);
    assert_eq!(world.sql("SELECT settled FROM tidewatch.shard WHERE id = 0"), "0");
}

/// PostgreSQL reports success when it stops waiting for a standby. The record is on one disk, so it is settled first:
/// that transaction waits for the standby again.
#[test]
fn a_commit_that_did_not_reach_the_standby_is_not_acknowledged() {
    let mut world = World::new();
    let notices = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql
                   AS $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
                   CREATE TRIGGER warn AFTER INSERT ON tidewatch.log EXECUTE FUNCTION warn();";
    world.sql(notices);
    let postgres = postgres::shared();
    world.store = Postgres::new(&postgres.url(&world.database, postgres.port), IMPATIENT).unwrap();
    let records = [b"record 2".to_vec()];
    let group = Group {
        shard: SHARD,
        epoch: world.epoch,
        first: 2,
        records: &records,
    };
    let unknown = world.store.append(&[group]).unwrap_err();
    assert!(matches!(unknown, log_store::AppendError::Unknown(_)), "{unknown}");
    world.sql("DROP TRIGGER warn ON tidewatch.log");
    assert_eq!(
        world.append(2),
        [Outcome::Lost],
        "a new append is not a repetition"
    );
    assert_eq!(world.found(), ["record 1", "record 2"]);
}
