//! Making the tables.

use log_store::{LogStore, SHARDS_MAX, Shard, StoreError};

use crate::postgres;
use crate::sides::{OPTIONS, append, claimed, cluster, store};

fn refused(url: &str, shards: u16) -> String {
    let refused = store(url).init(shards, OPTIONS).unwrap_err();
    assert!(matches!(refused, StoreError::Tables(_)), "{refused}");
    refused.to_string()
}

#[test]
fn making_the_tables_again_changes_nothing() {
    let (_, url) = cluster(4);
    let epoch = claimed(&mut store(&url), Shard(3));
    append(&mut store(&url), Shard(3), epoch, 1);
    store(&url).init(4, OPTIONS).unwrap();
    assert_eq!(store(&url).shards().unwrap()[3].epoch, epoch);
    assert_eq!(store(&url).tails().unwrap()[3].groups, 1);
    assert!(refused(&url, 5).contains("4 shards"));
    assert_eq!(store(&url).shards().unwrap().len(), 4);
}

#[test]
fn tables_that_exist_in_part_are_completed() {
    let (database, url) = cluster(4);
    let epoch = claimed(&mut store(&url), Shard(2));
    let lose = "DROP TABLE tidewatch.directory, tidewatch.log; DELETE FROM tidewatch.shard WHERE id = 1";
    postgres::shared().sql(&database, lose);
    store(&url).init(4, OPTIONS).unwrap();
    let shards = store(&url).shards().unwrap();
    assert_eq!(shards.len(), 4);
    assert_eq!((shards[1].epoch, shards[2].epoch), (0, epoch));
    append(&mut store(&url), Shard(2), epoch, 1);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let postgres = postgres::shared();
    let (database, url) = cluster(4);
    postgres.sql(
        &database,
        "INSERT INTO tidewatch.shard SELECT 9, 0, NULL, 0, NULL, 0, 0, 0, 0",
    );
    assert!(refused(&url, 4).contains("1 shards that"));
    postgres.sql(&database, "UPDATE tidewatch.cluster SET format = 2");
    assert!(refused(&url, 4).contains("format 2"));
    let error = store(&url).cluster().unwrap_err().to_string();
    assert!(error.contains("format 2"), "{error}");
    let empty = postgres.url(&postgres.database(), postgres.port);
    for shards in [0, SHARDS_MAX + 1] {
        assert!(refused(&empty, shards).contains("1 to 4096"));
    }
}
