//! The deletion of rows that a checkpoint covers, while appends go on, and trims that arrive late.

use std::io::Write;
use std::time::Duration;

use log_store::{LogStore, Postgres, Shard};
use tidewatch::journal::{NodeLog, StoredLog, Tail};

use crate::postgres;
use crate::proxy::{Fault, Proxy};
use crate::server::waiting::until;
use crate::sides::{IMPATIENT, OPTIONS, append, store};

const SHARD: Shard = Shard(1);
const LEASE: Duration = Duration::from_secs(3);

#[test]
fn nobody_waits_for_the_deletion_of_rows() {
    let postgres = postgres::shared();
    let database = postgres.database();
    let url = postgres.url(&database, postgres.port);
    let mut direct = store(&url);
    direct.init(2, OPTIONS).unwrap();
    let node = direct.join("here", LEASE).unwrap();
    let epoch = direct.claim(SHARD, node).unwrap().unwrap().epoch;
    let mut log = StoredLog::new(Box::new(Postgres::new(&url, IMPATIENT).unwrap()));
    let (last, bytes) = (0, 0);
    log.attach(SHARD, Tail { epoch, last, bytes });
    let mut append = || {
        let records = &[b"record".to_vec()];
        let group = tidewatch::journal::Group {
            shard: SHARD,
            records,
        };
        log.append(&[group]).pop().unwrap().unwrap();
        log.trim(SHARD, log.sizes(SHARD).durable_sequence, None).unwrap();
        assert_eq!(log.sizes(SHARD).tail_bytes, 0);
    };
    let rows = || postgres.sql(&database, "SELECT count(*) FROM tidewatch.log");
    append();
    until("rows are deleted", || (rows() == "0").then_some(()));
    // Deletions wait, as if they took long.
    let slow = "CREATE TABLE tidewatch.gate (open integer); INSERT INTO tidewatch.gate VALUES (1);
                CREATE FUNCTION tidewatch.wait() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN PERFORM open FROM tidewatch.gate FOR SHARE; RETURN OLD; END $$;
                CREATE TRIGGER wait BEFORE DELETE ON tidewatch.log FOR EACH ROW EXECUTE FUNCTION tidewatch.wait();";
    postgres.sql(&database, slow);
    let mut session = postgres::session(&database);
    let mut statements = session.stdin.take().unwrap();
    writeln!(statements, "BEGIN; UPDATE tidewatch.gate SET open = 2;").unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND";
    let sessions = |condition: &str| postgres.sql(&database, &format!("{waits} {condition}")) == "1";
    until("the gate is closed", || {
        sessions("state = 'idle in transaction' AND query LIKE 'UPDATE%'").then_some(())
    });
    append();
    until("the deletion waits", || {
        sessions("wait_event_type = 'Lock'").then_some(())
    });
    (0..20).for_each(|_| append());
    assert_ne!(rows(), "0");
    drop(statements);
    assert!(session.wait().unwrap().success());
    until("rows are deleted", || {
        append();
        (rows() == "0").then_some(())
    });
}

/// The last owner died after its trim.
#[test]
fn the_next_owner_deletes_what_the_last_one_has_left() {
    let postgres = postgres::shared();
    let database = postgres.database();
    let url = postgres.url(&database, postgres.port);
    let mut direct = store(&url);
    direct.init(2, OPTIONS).unwrap();
    let node = direct.join("here", LEASE).unwrap();
    let epoch = direct.claim(SHARD, node).unwrap().unwrap().epoch;
    (1..=5).for_each(|first| drop(append(&mut direct, SHARD, epoch, first)));
    assert!(direct.trim(SHARD, epoch, 3, None).unwrap());
    let epoch = direct.claim(SHARD, node).unwrap().unwrap().epoch;
    let mut log = StoredLog::new(Box::new(store(&url)));
    let (last, bytes) = (5, 40);
    log.attach(SHARD, Tail { epoch, last, bytes });
    let rows = || {
        postgres.sql(
            &database,
            "SELECT string_agg(first::text, ' ' ORDER BY first) FROM tidewatch.log",
        )
    };
    until("covered rows are deleted", || (rows() == "4 5").then_some(()));
}

/// A trim that was given up arrives after a later one: its root must not replace the newer one.
#[test]
fn a_trim_that_arrives_late_changes_nothing() {
    let postgres = postgres::shared();
    let database = postgres.database();
    let proxy = Proxy::start(postgres.port);
    let mut direct = store(&postgres.url(&database, postgres.port));
    direct.init(2, OPTIONS).unwrap();
    let node = direct.join("here", LEASE).unwrap();
    let epoch = direct.claim(SHARD, node).unwrap().unwrap().epoch;
    let mut through = Postgres::new(&postgres.url(&database, proxy.port), IMPATIENT).unwrap();
    assert!(through.trim(SHARD, epoch, 0, Some("first")).unwrap());
    proxy.fail_with(b"this is late", Fault::Late, 1);
    through.trim(SHARD, epoch, 0, Some("this is late")).unwrap_err();
    assert!(proxy.is_late());
    assert!(direct.trim(SHARD, epoch, 0, Some("newer")).unwrap());
    proxy.deliver();
    drop(through);
    until("the late trim is over", || (proxy.open() == 0).then_some(()));
    let row = direct.shards().unwrap().swap_remove(1);
    assert_eq!(row.root.as_deref(), Some("newer"));
}
