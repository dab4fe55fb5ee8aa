//! A shard that comes from a server on one machine.

use log_store::{Directory, Import, LogStore, Outcome, Shard, StoreError};

use crate::sides::{append, claimed, cluster, store};

const SHARD: Shard = Shard(2);

fn addresses(names: &[&str]) -> Vec<(String, String)> {
    let address = |name: &&str| (format!("{name}@example.com"), "organization".to_owned());
    names.iter().map(address).collect()
}

fn import<'a>(addresses: &'a [(String, String)], credentials: &'a [[u8; 32]]) -> Import<'a> {
    Import {
        shard: SHARD,
        root: "9-1",
        covered: 500,
        addresses,
        credentials,
    }
}

#[test]
fn an_imported_shard_is_found_by_its_next_owner_and_lost_by_the_one_before() {
    let (_, url) = cluster(4);
    let mut owner = store(&url);
    let epoch = claimed(&mut owner, SHARD);
    assert_eq!(append(&mut owner, SHARD, epoch, 1), [Outcome::Durable]);
    let mut store = store(&url);
    assert_eq!(store.empty_shard().unwrap(), Some(Shard(0)));
    let reserved = store.reserve_epoch(SHARD).unwrap();
    assert!(reserved > epoch);
    assert_eq!(append(&mut owner, SHARD, epoch, 2), [Outcome::Lost]);
    // It is claimed again before the upload is done, and written to.
    let between = claimed(&mut owner, SHARD);
    assert!(between > reserved, "nobody else has the reserved one");
    assert_eq!(append(&mut owner, SHARD, between, 2), [Outcome::Durable]);
    let (named, keys) = (addresses(&["ada", "grace"]), [[1; 32], [2; 32]]);
    store.import(&import(&named, &keys)).unwrap();
    assert_eq!(append(&mut owner, SHARD, between, 3), [Outcome::Lost]);
    let node = store.join("there", crate::sides::LEASE).unwrap();
    let claimed = store.claim(SHARD, node).unwrap().unwrap();
    assert_eq!((claimed.root.as_deref(), claimed.covered), (Some("9-1"), 500));
    let replayed = store
        .replay(SHARD, claimed.epoch, 500, &mut |_, _| Ok(()))
        .unwrap();
    assert_eq!(
        (replayed.records, replayed.last),
        (0, 500),
        "what it was before is gone"
    );
    assert_eq!(append(&mut store, SHARD, claimed.epoch, 501), [Outcome::Durable]);
    assert_eq!(store.find("ada@example.com").unwrap().unwrap().shard, SHARD);
    assert_eq!(store.find_credential(&[2; 32]).unwrap(), Some(SHARD));
}

#[test]
fn an_import_that_is_refused_changes_nothing() {
    let (_, url) = cluster(4);
    let mut store = store(&url);
    store.take("ada@example.com", Shard(1), "organization").unwrap();
    store.take("eve@example.com", Shard(3), "organization").unwrap();
    let before = store.shards().unwrap();
    let refused = |import: &Import<'_>| match crate::sides::store(&url).import(import) {
        Err(StoreError::Tables(text)) => text,
        other => panic!("{other:?}"),
    };
    let (taken, free) = (addresses(&["grace", "ada"]), addresses(&["grace"]));
    let keys = [[3; 32]];
    assert!(refused(&import(&taken, &keys)).contains("ada@example.com"));
    for (shard, reason) in [(Shard(3), "1 accounts"), (Shard(4), "no shard 4")] {
        let import = Import {
            shard,
            ..import(&free, &keys)
        };
        assert!(refused(&import).contains(reason));
    }
    assert_eq!(store.shards().unwrap(), before);
    assert_eq!(store.find("grace@example.com").unwrap(), None);
    assert_eq!(store.find_credential(&[3; 32]).unwrap(), None);
}
