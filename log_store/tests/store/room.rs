//! Whether an append would be taken, after one was refused.

use log_store::sim::{Fault, SimStore};
use log_store::{LogStore, Outcome, Shard};

use crate::postgres;
use crate::server::waiting::until;
use crate::sides::{append, claimed, cluster, on_both, store};

const SHARD: Shard = Shard(1);

#[test]
fn a_probe_changes_nothing() {
    on_both(|one, other| {
        let epoch = claimed(one, SHARD);
        assert_eq!(append(one, SHARD, epoch, 1), [Outcome::Durable]);
        let before = (other.shards().unwrap(), other.tails().unwrap());
        assert!(one.probe(SHARD, epoch).unwrap());
        assert!(one.probe(SHARD, epoch).unwrap());
        assert!(!one.probe(SHARD, epoch + 1).unwrap(), "another owner's");
        assert_eq!((other.shards().unwrap(), other.tails().unwrap()), before);
        assert_eq!(append(one, SHARD, epoch, 2), [Outcome::Durable]);
    });
}

#[test]
fn a_full_store_takes_no_probe() {
    let mut store = SimStore::new(2);
    let epoch = claimed(&mut store, SHARD);
    store.set_faults(|| Fault::Full);
    assert!(store.probe(SHARD, epoch).is_err());
    store.set_faults(|| Fault::None);
    assert!(store.probe(SHARD, epoch).unwrap());
}

/// It answers reads all the time.
#[test]
fn a_full_or_read_only_table_takes_no_probe() {
    let postgres = postgres::shared();
    let (database, url) = cluster(2);
    let mut store = store(&url);
    let epoch = claimed(&mut store, SHARD);
    let full = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                AS $$ BEGIN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = '53100'; END $$;
                CREATE TRIGGER refuse BEFORE INSERT ON tidewatch.log EXECUTE FUNCTION refuse();";
    postgres.sql(&database, full);
    assert!(store.probe(SHARD, epoch).is_err());
    assert_eq!(store.shards().unwrap().len(), 2);
    postgres.sql(&database, "DROP TRIGGER refuse ON tidewatch.log");
    assert!(store.probe(SHARD, epoch).unwrap());
    let set = |value: &str| {
        let alter = format!("ALTER DATABASE {database} SET default_transaction_read_only = {value}");
        postgres.sql("postgres", &alter);
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidewatch' AND datname";
        postgres.sql("postgres", &format!("{end} = '{database}'"));
    };
    set("on");
    assert!(store.probe(SHARD, epoch).is_err());
    set("off");
    until("it takes writes again", || store.probe(SHARD, epoch).ok());
    assert!(store.probe(SHARD, epoch).unwrap());
}
