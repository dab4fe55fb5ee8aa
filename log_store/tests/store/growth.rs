//! The size of the tables while they fill and are emptied, over and over.

use log_store::{LogStore, Shard};

use crate::server::Postgres;
use crate::sides::{OPTIONS, claimed, store};

const SHARD: Shard = Shard(0);

/// Rows of a cycle: small ones, and ones that PostgreSQL stores outside of the table.
const SMALL: u64 = 3_000;
const LARGE: u64 = 300;

/// Cycles after which the size must stay, and all cycles.
const CYCLES: [u64; 2] = [20, 80];

/// The database's own vacuum does not run: what keeps the size is what the store does.
#[test]
fn tables_that_are_emptied_as_fast_as_they_fill_stay_small() {
    let servers = Postgres::start(0, &["fsync=off", "autovacuum=off"]);
    let postgres = &servers[0];
    let database = postgres.database();
    let mut store = store(&postgres.url(&database, postgres.port));
    store.init(1, OPTIONS).unwrap();
    let epoch = claimed(&mut store, SHARD);
    let mut last = 0;
    let mut sizes: Vec<u64> = Vec::new();
    for _ in 0..CYCLES[1] {
        let fill = |rows: u64, bytes: u64, last: u64| {
            let numbers = format!("generate_series({}, {}) AS n", last + 1, last + rows);
            let body = format!("decode(repeat('ab', {bytes}), 'hex')");
            let insert =
                format!("INSERT INTO tidewatch.log SELECT 0, n, n, {epoch}, 0, {body} FROM {numbers}");
            postgres.sql(&database, &insert);
            last + rows
        };
        last = fill(SMALL, 200, last);
        last = fill(LARGE, 8_000, last);
        assert!(store.trim(SHARD, epoch, last, None).unwrap());
        while store.sweep(SHARD).unwrap() {}
        let size = postgres.sql(&database, "SELECT pg_total_relation_size('tidewatch.log')");
        sizes.push(size.parse().unwrap());
    }
    let (early, late) = sizes.split_at(CYCLES[0] as usize);
    let (early, late) = (early.iter().max().unwrap(), late.iter().max().unwrap());
    println!("{early} bytes at most in the first cycles, {late} later");
    assert!(late * 10 <= early * 11, "{early} bytes have grown to {late}");
}
