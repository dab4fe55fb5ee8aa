//! Idempotency keys between memory and ledger.

use std::sync::Arc;

use disk::sim::SimDisk;

use super::model::Row;
use super::seed;
use super::world::{RunningRooms, START_NS, World, in_system, ingest};
use crate::bucket::Ingested;
use crate::catalog::Bucket;
use crate::error::ErrorKind;

const KEY: [u8; 16] = [3; 16];

fn start(disk: &SimDisk, world: &World) -> RunningRooms {
    RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn bucket(live: &RunningRooms) -> Arc<Bucket> {
    let find = |catalog: &crate::catalog::Catalog| catalog.bucket_by_ordinal(1).cloned();
    live.rooms.catalog.read(find).unwrap()
}

fn rows() -> Vec<Row> {
    vec![Row {
        source: 0,
        timestamp_ns: START_NS,
        value: 3,
    }]
}

fn below<'a>(disk: &SimDisk, suffix: &'a str) -> impl Iterator<Item = std::path::PathBuf> + 'a {
    let paths = disk.files().into_keys();
    paths.filter(move |path| path.to_string_lossy().ends_with(suffix))
}

#[test]
fn a_request_whose_key_cannot_be_looked_up_is_not_stored_again() {
    let disk = SimDisk::new(seed());
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        let bucket = bucket(&live);
        let send = |live: &RunningRooms| {
            let (buckets, bucket) = (live.rooms.buckets.clone(), Arc::clone(&bucket));
            async move {
                buckets
                    .ingest(&bucket, ingest(1, &rows(), Some(KEY), START_NS))
                    .await
            }
        };
        assert!(matches!(send(&live).await.unwrap(), Ingested::Stored { .. }));
        live.checkpoint().unwrap();
        assert!(matches!(send(&live).await.unwrap(), Ingested::Replayed(_)));
        live.stop();
        for run in below(&disk, ".run") {
            // The first byte of the only entry of the answers stream.
            if disk.files()[&run][8] == 4 {
                disk.flip_bit(&run, 16, 0);
            }
        }
        let mut live = start(&disk, &world);
        let refused = send(&live).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Internal);
        assert!(refused.cause().unwrap().to_string().contains(".run"));
        assert!(live.rooms.buckets.answered(&bucket, KEY).await.is_err());
        live.checkpoint().unwrap();
        let points = live.rooms.buckets.point_count(&bucket, &[0]).await.unwrap();
        assert_eq!(points, 1);
        live.stop();
    });
}
