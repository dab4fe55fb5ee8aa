//! A database that stops replicating while it is used.

use log_store::{AppendError, InitOptions, LogStore, Outcome, Replication, Shard};

use crate::postgres;
use crate::server::Postgres;
use crate::server::waiting::until;
use crate::sides::{LEASE, OPTIONS, append, store};

const SHARD: Shard = Shard(0);

const BY_STANDBYS: InitOptions = InitOptions {
    replication: Replication::Standbys,
};

#[test]
fn nothing_is_written_while_commits_reach_one_disk_only() {
    let mut servers = Postgres::start(1, &["fsync=off"]);
    // The standby comes first: it answers, and takes no writes.
    servers.reverse();
    let primary = &servers[1];
    let database = primary.database();
    let url = Postgres::url_of_all(&servers, &database);
    let (mut log, mut membership) = (store(&url), store(&url));
    log.init(2, BY_STANDBYS).unwrap();
    let node = membership.join("here", LEASE).unwrap();
    let claimed = membership.claim(SHARD, node).unwrap().unwrap();
    let mut round = {
        let mut beat = 0;
        move || {
            beat += 1;
            membership.round(node, beat, false).unwrap()
        }
    };
    assert_eq!(round().weakness, None);
    assert_eq!(append(&mut log, SHARD, claimed.epoch, 1), [Outcome::Durable]);
    let set = |names: &str| {
        primary.sql(
            "postgres",
            &format!("ALTER SYSTEM SET synchronous_standby_names = {names}"),
        );
        primary.sql("postgres", "SELECT pg_reload_conf()");
    };
    set("''");
    let mut next = 2;
    let records = [b"record".to_vec()];
    let mut try_append = |first| {
        let group = log_store::Group {
            shard: SHARD,
            epoch: claimed.epoch,
            first,
            records: &records,
        };
        log.append(&[group])
    };
    // The sessions learn of it when they get to it.
    let refused = until("appends are refused", || match try_append(next) {
        Ok(outcomes) => {
            assert_eq!(outcomes, [Outcome::Durable]);
            next += 1;
            None
        }
        Err(refused) => Some(refused),
    });
    assert!(matches!(refused, AppendError::Unavailable(_)), "{refused}");
    assert!(
        refused.to_string().contains("synchronous_standby_names"),
        "{refused}"
    );
    let weak = until("a round of membership says so", || round().weakness);
    assert!(weak.contains("synchronous_standby_names = ''"), "{weak}");
    assert!(round().renewed, "reads go on");
    let mut other = store(&url);
    let changes = [
        other.claim(Shard(1), node).map(drop),
        other.trim(SHARD, claimed.epoch, 1, None).map(drop),
        other.probe(SHARD, claimed.epoch).map(drop),
    ];
    for change in changes {
        let refused = change.unwrap_err().to_string();
        assert!(refused.contains("synchronous_standby_names"), "{refused}");
    }
    set("'ANY 1 (*)'");
    let appended = until("appends go on", || try_append(next).ok());
    assert_eq!(appended, [Outcome::Durable]);
    until("a round says so", || round().weakness.is_none().then_some(()));
    assert!(other.claim(Shard(1), node).unwrap().is_some());
}

#[test]
fn a_cluster_is_made_where_commits_reach_two_disks() {
    let postgres = postgres::shared();
    let url = postgres.url(&postgres.database(), postgres.port);
    let refused = store(&url).init(4, BY_STANDBYS).unwrap_err().to_string();
    assert!(refused.contains("synchronous_standby_names"), "{refused}");
    assert!(store(&url).cluster().is_err(), "nothing was made");
    store(&url).init(4, OPTIONS).unwrap();
    assert_eq!(store(&url).cluster().unwrap().shards, 4);
    let refused = store(&url).init(4, BY_STANDBYS).unwrap_err().to_string();
    assert!(refused.contains("storage"), "{refused}");
}
