//! What a request leaves behind that is given up while its record is on its way to the log.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use disk::sim::SimDisk;
use parking_lot::Mutex;

use super::hooked_disk::HookedDisk;
use super::seed;
use super::world::{RunningRooms, World, in_system};

/// Polls a future a few times, while other tasks go on; returns its result if it is ready.
async fn poll_a_while<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    let mut polls = 0;
    poll_fn(|context| {
        if let Poll::Ready(result) = std::pin::Pin::new(&mut *future).poll(context) {
            return Poll::Ready(Some(result));
        }
        polls += 1;
        context.waker().wake_by_ref();
        if polls == 1_000 {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Regression: the right to compare rows with those that are there ended with the request that had it. The next request
/// did not see rows whose record was still on its way, and stored them again. A source that was split in another way did
/// not wait for such rows, either.
#[test]
#[expect(
    clippy::await_holding_lock,
    reason = "the journal's thread must wait until the request is dropped"
)]
fn nobody_compares_or_splits_points_before_rows_on_their_way_can_be_seen() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    // While the gate is closed, the journal's thread is blocked at its disk.
    let gate: Arc<Mutex<()>> = Arc::default();
    let for_tap = Arc::clone(&gate);
    let hooked_disk = HookedDisk::new(disk, move |_| drop(for_tap.lock()));
    in_system(async {
        let live = RunningRooms::start(Arc::new(hooked_disk), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        let buckets = &live.rooms.buckets;
        let (index, bucket_id, mut ingest) = world.new_request(None, None).unwrap();
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket(bucket_id).cloned());
        let bucket = bucket.unwrap();
        let handle = buckets.handle(&bucket).unwrap();
        let (source, rows) = (ingest.sources[0], ingest.rows);
        ingest.alone = Some(Arc::new(handle.compare_alone().await));
        let mut compared = Box::pin(handle.compare_alone());
        let mut hold = Box::pin(buckets.hold_source(&bucket, source));
        {
            let closed = gate.lock();
            let mut given_up = Box::pin(buckets.ingest(&bucket, ingest));
            assert!(poll_a_while(&mut given_up).await.is_none());
            drop(given_up);
            assert!(
                poll_a_while(&mut compared).await.is_none(),
                "its rows cannot be seen yet"
            );
            assert!(
                poll_a_while(&mut hold).await.is_none(),
                "its rows have no series yet"
            );
            drop(closed);
        }
        drop(compared.await);
        let view = buckets.view(&bucket).unwrap();
        let seen = |source: &u32| {
            view.series(*source)
                .map_or(0, |series| series.stats(i64::MIN).unwrap().points)
        };
        let all: Vec<u32> = world.model.lock().requests[index]
            .rows
            .iter()
            .map(|row| row.source)
            .collect();
        let all: std::collections::BTreeSet<u32> = all.into_iter().collect();
        assert_eq!(all.iter().map(seen).sum::<u64>(), u64::from(rows));
        // New points of the source wait until the hold is dropped, and are parsed again then.
        let hold = hold.await.unwrap();
        let (_, _, parked) = world.new_request(None, Some(bucket_id)).unwrap();
        let parked = crate::bucket::Ingest {
            sources: vec![source],
            ..parked
        };
        let mut parked = Box::pin(buckets.ingest(&bucket, parked));
        assert!(poll_a_while(&mut parked).await.is_none());
        drop(hold);
        let answer = parked.await.unwrap();
        assert!(
            matches!(answer, crate::bucket::Ingested::SourceGone),
            "{answer:?}"
        );
        live.stop();
    });
}
