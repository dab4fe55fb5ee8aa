//! Which thread decides about an ingest, and what becomes of those that wait when the actor ends.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use actix::Arbiter;
use disk::sim::SimDisk;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::crash::check_image;
use super::hooked_disk::HookedDisk;
use super::seed;
use super::world::{RunningRooms, World, in_system};
use crate::catalog::Bucket;
use crate::checkpoint::Rooms;
use crate::clock::Clock;

const PATIENCE: Duration = Duration::from_secs(60);

fn first_bucket(rooms: &Rooms) -> Arc<Bucket> {
    let bucket = rooms
        .catalog
        .read(|catalog| catalog.bucket_by_ordinal(1).cloned());
    bucket.expect("it is set up")
}

/// The actor's thread was woken twice for each ingest, once only to pass it on to the journal.
#[test]
fn an_ingest_is_in_the_log_before_its_actor_has_time() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    // The actor looks up keys.
    world.keys = false;
    in_system(async {
        let live = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(1).cloned());
        let handle = live.rooms.buckets.handle(&bucket.expect("it is set up")).unwrap();
        let arbiter = handle.with(|_| Arbiter::current()).await.unwrap();
        let (blocked, until_blocked) = mpsc::channel();
        let (free, until_free) = mpsc::channel::<()>();
        arbiter.spawn_fn(move || {
            let _ = blocked.send(());
            // It returns when the other end is dropped.
            let _ = until_free.recv();
        });
        until_blocked.recv().unwrap();
        let before = live.rooms.journal.stats().records;
        {
            let mut ingest = pin!(world.ingest(&live.rooms, 1));
            let logged = poll_fn(|context| {
                assert!(ingest.as_mut().poll(context).is_pending(), "it is not applied");
                context.waker().wake_by_ref();
                match live.rooms.journal.stats().records > before {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            });
            timeout(PATIENCE, logged).await.expect("it is logged");
            drop(free);
            ingest.await.unwrap();
        }
        live.stop();
    });
    check_image(&disk, &world.model.lock(), world.clock.now_ns());
}

#[test]
#[expect(
    clippy::await_holding_lock,
    reason = "the journal's thread must wait until the actor has ended"
)]
fn who_waits_for_an_ingest_in_progress_is_told_when_the_actor_ends() {
    let seed = seed();
    let mut world = World::new(seed);
    // While the gate is closed, the journal's thread is blocked at its disk.
    let gate: Arc<Mutex<()>> = Arc::default();
    let at_gate = Arc::clone(&gate);
    let disk = HookedDisk::new(SimDisk::new(seed), move |_| drop(at_gate.lock()));
    in_system(async {
        let live = RunningRooms::start(Arc::new(disk), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        let bucket = first_bucket(&live.rooms);
        let handle = live.rooms.buckets.handle(&bucket).unwrap();
        let mut send = || {
            let (_, _, ingest) = world
                .new_request(None, Some(bucket.id))
                .expect("the bucket has sources");
            let (buckets, bucket) = (live.rooms.buckets.clone(), Arc::clone(&bucket));
            Box::pin(async move { buckets.ingest(&bucket, ingest).await })
        };
        let closed = gate.lock();
        let mut in_progress = send();
        let pending = poll_fn(|context| Poll::Ready(in_progress.as_mut().poll(context).is_pending()));
        assert!(pending.await);
        let hold = handle.hold(None);
        // It is handled after the hold, which parks the next ingest.
        handle.with(|_| ()).await.unwrap();
        let mut parked = send();
        let pending = poll_fn(|context| Poll::Ready(parked.as_mut().poll(context).is_pending()));
        assert!(pending.await);
        let ended = handle.with(|_| -> () { panic!("as a bug would") }).await;
        assert!(ended.is_err());
        let told = timeout(PATIENCE, hold).await.expect("it does not wait for ever");
        assert!(told.is_err());
        let told = timeout(PATIENCE, parked)
            .await
            .expect("it does not wait for ever");
        assert!(told.is_err());
        drop(closed);
        let told = timeout(PATIENCE, in_progress)
            .await
            .expect("it does not wait for ever");
        assert!(told.is_err(), "nobody has applied it");
        live.stop();
    });
}
