//! What is stored elsewhere: its root, its rows, and who waits for their deletion.

use std::time::Duration;

use log_store::{Group, LogStore, Outcome, ROOT_BYTES_MAX, Sequence, Shard};

use crate::postgres;
use crate::sides::{OPTIONS, append, on_both, store};

const SHARD: Shard = Shard(1);
const LEASE: Duration = Duration::from_secs(3);

/// The sequences that are read after `from`.
fn read(store: &mut dyn LogStore, epoch: u64, from: Sequence) -> Vec<Sequence> {
    let mut found = Vec::new();
    let mut each = |sequence, _: &[u8]| {
        found.push(sequence);
        Ok(())
    };
    store.replay(SHARD, epoch, from, &mut each).unwrap();
    found
}

#[test]
fn the_root_is_handed_over_with_what_it_covers() {
    on_both(|one, other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        let of_a = one.claim(SHARD, a).unwrap().unwrap();
        assert_eq!((of_a.covered, of_a.root), (0, None));
        (1..=9).for_each(|first| assert_eq!(append(one, SHARD, of_a.epoch, first), [Outcome::Durable]));
        let mut trim = |covered, root| {
            assert!(one.trim(SHARD, of_a.epoch, covered, root).unwrap());
            let row = one.shards().unwrap().swap_remove(1);
            (row.covered, row.root)
        };
        let is = |covered, root: &str| (covered, Some(root.to_owned()));
        assert_eq!(trim(2, None), (2, None));
        assert_eq!(trim(3, Some("three")), is(3, "three"));
        assert_eq!(
            trim(5, None),
            is(5, "three"),
            "without a root, the last one stays"
        );
        assert_eq!(trim(5, Some("five")), is(5, "five"));
        assert_eq!(
            trim(4, Some("four")),
            is(5, "five"),
            "what is older changes nothing"
        );
        let too_long = "r".repeat(ROOT_BYTES_MAX + 1);
        let refused = one.trim(SHARD, of_a.epoch, 6, Some(&too_long)).unwrap_err();
        assert!(refused.to_string().contains("1024"), "{refused}");
        assert!(one.release(SHARD, of_a.epoch).unwrap());
        assert!(!one.trim(SHARD, of_a.epoch, 9, Some("nine")).unwrap());
        let of_b = other.claim(SHARD, b).unwrap().unwrap();
        assert_eq!((of_b.covered, of_b.root), is(5, "five"));
    });
}

/// The owner dies between the trim and the deletion of the rows.
#[test]
fn rows_that_a_dead_owner_has_left_are_not_read_and_can_be_deleted() {
    on_both(|one, other| {
        let (a, b) = (one.join("a", LEASE).unwrap(), other.join("b", LEASE).unwrap());
        let of_a = one.claim(SHARD, a).unwrap().unwrap();
        (1..=9).for_each(|first| assert_eq!(append(one, SHARD, of_a.epoch, first), [Outcome::Durable]));
        assert!(one.trim(SHARD, of_a.epoch, 6, Some("six")).unwrap());
        assert!(other.remove(a, 0).unwrap());
        let of_b = other.claim(SHARD, b).unwrap().unwrap();
        assert_eq!(of_b.covered, 6);
        assert_eq!(read(other, of_b.epoch, 6), [7, 8, 9]);
        assert!(other.sweep(SHARD).unwrap(), "there was something");
        while other.sweep(SHARD).unwrap() {}
        assert_eq!(read(other, of_b.epoch, 6), [7, 8, 9]);
        assert_eq!(append(other, SHARD, of_b.epoch, 10), [Outcome::Durable]);
        // A row that is covered in part is needed.
        let records = [b"record 11".to_vec(), b"record 12".to_vec()];
        let group = Group {
            shard: SHARD,
            epoch: of_b.epoch,
            first: 11,
            records: &records,
        };
        assert_eq!(other.append(&[group]).unwrap(), [Outcome::Durable]);
        assert!(other.trim(SHARD, of_b.epoch, 11, None).unwrap());
        while other.sweep(SHARD).unwrap() {}
        assert_eq!(read(other, of_b.epoch, 11), [12]);
        // A sweep of one that knows nothing of the new owner harms nobody.
        assert!(!one.sweep(SHARD).unwrap());
        assert_eq!(read(other, of_b.epoch, 11), [12]);
    });
}

#[test]
fn tails_are_what_the_next_owner_has_to_read() {
    on_both(|one, _| {
        let node = one.join("a", LEASE).unwrap();
        let epoch = one.claim(SHARD, node).unwrap().unwrap().epoch;
        let records = [vec![7; 96], vec![7; 196]];
        for first in [1, 3, 5] {
            let group = Group {
                shard: SHARD,
                epoch,
                first,
                records: &records,
            };
            assert_eq!(one.append(&[group]).unwrap(), [Outcome::Durable]);
        }
        let mut tail = |covered| {
            assert!(one.trim(SHARD, epoch, covered, None).unwrap());
            let tails = one.tails().unwrap();
            assert_eq!(tails.len(), 4);
            assert_eq!((tails[0].groups, tails[0].bytes, tails[0].last), (0, 0, 0));
            let tail = tails[1];
            assert_eq!(tail.shard, SHARD);
            (tail.groups, tail.bytes, tail.last)
        };
        assert_eq!(tail(0), (3, 900, 6));
        // Rows that are not deleted yet do not count; the one that is covered in part does.
        assert_eq!(tail(3), (2, 600, 6));
        assert_eq!(tail(6), (0, 0, 6));
    });
}

#[test]
fn a_batch_of_deletions_is_bounded() {
    let postgres = postgres::shared();
    let database = postgres.database();
    let mut store = store(&postgres.url(&database, postgres.port));
    store.init(2, OPTIONS).unwrap();
    let rows = |condition: &str| -> u64 {
        let select = format!("SELECT count(*) FROM tidewatch.log WHERE {condition}");
        postgres.sql(&database, &select).parse().unwrap()
    };
    let small = "SELECT 1, n, n, 1, 0, 'x' FROM generate_series(1, 2500) AS n";
    postgres.sql(&database, &format!("INSERT INTO tidewatch.log {small}"));
    let large = "SELECT 0, n, n, 1, 0, decode(repeat('00', 3 << 20), 'hex') FROM generate_series(1, 3) AS n";
    postgres.sql(&database, &format!("INSERT INTO tidewatch.log {large}"));
    postgres.sql(
        &database,
        "UPDATE tidewatch.shard SET covered = 2400 WHERE id = 1",
    );
    postgres.sql(&database, "UPDATE tidewatch.shard SET covered = 3 WHERE id = 0");
    let mut left = Vec::new();
    while store.sweep(Shard(1)).unwrap() {
        left.push(rows("shard = 1"));
    }
    assert_eq!(left, [1_500, 500, 100]);
    assert!(store.sweep(Shard(0)).unwrap());
    assert_eq!(rows("shard = 0"), 1);
}
