//! Faults of the object store, an S3 server: it refuses, is slow, or is full. Acknowledgements go on until the log is as long
//! as it may be; then they are refused, until checkpoints succeed again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::link::Mode;
use crate::load::{Call, Load};
use crate::round::{run_rounds, wait_for_more};
use crate::turn::in_own_world;
use crate::waiting::until_within;
use crate::world::{Objects, Plan, S3_URL, World};

/// What a store without room answers to a PUT.
const FULL: Mode = Mode::Answer(
    b"PUT ",
    b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
);
/// Slow, but not so slow that requests fail.
const SLOW: Mode = Mode::Delay(Duration::from_millis(400));
/// Bytes in each point, so that the log soon is as long as it may be.
const BALLAST: usize = 2_000;
/// Time for that on two busy cores, and for its end.
const WITHIN: Duration = Duration::from_secs(60);

fn plan() -> Plan {
    Plan {
        has_s3: true,
        settings: vec![("wal.tail_bytes_max", "1048576".to_owned())],
        ..Plan::default()
    }
}

fn set(world: &World, mode: Mode) {
    for node in &world.nodes {
        node.to_objects.as_ref().unwrap().set(mode);
    }
}

/// The number of objects in the store.
fn objects(world: &World) -> usize {
    let Objects::S3(server) = &world.objects else {
        panic!("these tests use an S3 server")
    };
    let own = format!("{S3_URL}/{}", world.sql("SELECT identity FROM cluster"));
    server.open(&own).list("shards").unwrap().len()
}

/// Requests that were refused because the log is full.
fn refused(load: &Load, since: u64) -> usize {
    let calls = load.calls.lock().unwrap();
    let is_refusal = |call: &&Call| {
        let is_full = call.text.contains("the log is waiting for a checkpoint");
        call.span.began >= since && call.status == Some(503) && is_full
    };
    calls.iter().filter(is_refusal).count()
}

/// Breaks the store until the log is full, and mends it.
fn fill_the_log(world: &World, load: &Load, mode: Mode) -> String {
    load.ballast.store(BALLAST, Ordering::SeqCst);
    let since = load.now();
    set(world, mode);
    wait_for_more(load, "acknowledgements go on without the object store");
    until_within(WITHIN, "the log is full, and points are refused", || {
        (refused(load, since) > 0).then_some(())
    });
    let full = load.now();
    load.ballast.store(0, Ordering::SeqCst);
    let before = objects(world);
    set(world, Mode::Pass);
    until_within(WITHIN, "checkpoints succeed again", || {
        (objects(world) > before).then_some(())
    });
    let mended = load.now();
    until_within(WITHIN, "no point is refused any more", || {
        let since = load.now();
        wait_for_more(load, "points are accepted again");
        (refused(load, since) == 0).then_some(())
    });
    format!(
        "the log was full after {:.1} s, checkpoints succeeded {:.1} s after the store did",
        (full - since) as f64 / 1e6,
        (mended - full) as f64 / 1e6
    )
}

#[test]
fn the_object_store_refuses_is_full_and_is_slow() {
    in_own_world(&plan(), |world| {
        run_rounds("object store refuses", world, 1, |world, load, _| {
            fill_the_log(world, load, Mode::Cut)
        });
        run_rounds("object store full", world, 1, |world, load, _| {
            fill_the_log(world, load, FULL)
        });
        run_rounds("object store slow", world, 1, |world, load, _| {
            let (since, before) = (load.now(), objects(world));
            set(world, SLOW);
            until_within(WITHIN, "checkpoints go on", || {
                (objects(world) > before).then_some(())
            });
            wait_for_more(load, "the load goes on");
            let refused = refused(load, since);
            set(world, Mode::Pass);
            assert_eq!(refused, 0, "a slow store is no reason to refuse points");
            format!("{SLOW:?} on each part")
        });
    });
}
