//! Idempotency keys between memory, ledger and what older programs left.

use std::path::Path;
use std::sync::Arc;

use wal::disk::sim::{Crash, SimDisk};

use super::crash::recover;
use super::model::Row;
use super::seed;
use super::world::{Live, START_NS, World, in_system, ingest};
use crate::bucket::{BucketDir, Ingested};
use crate::catalog::Bucket;
use crate::error::ErrorKind;

const KEY: [u8; 16] = [3; 16];

fn start(disk: &SimDisk, world: &World) -> Live {
    Live::start(Arc::new(disk.clone()), Arc::clone(&world.clock)).unwrap_or_else(|error| panic!("{error}"))
}

fn bucket(live: &Live) -> Arc<Bucket> {
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
        let send = |live: &Live| {
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
            // The one entry's first byte.
            disk.flip_bit(&run, 16, 0);
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

#[test]
fn the_answers_of_an_older_program_go_to_the_ledger_with_the_next_checkpoint() {
    let disk = SimDisk::new(seed());
    let mut world = World::new(seed());
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 6).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
    });
    let dir = BucketDir::of(Path::new("data"), 1);
    let mut manifest = dir.read_manifest(&disk).unwrap().unwrap();
    manifest.answers = vec![manifest.next_file];
    manifest.next_file += 1;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/answers-1.bin");
    disk.put(
        &dir.answers_path(manifest.answers[0]),
        &std::fs::read(file).unwrap(),
    );
    dir.write_manifest(&disk, &manifest).unwrap();
    let is_known = |disk: &SimDisk| {
        let opened = recover(disk);
        let (state, _) = opened
            .buckets
            .iter()
            .find(|(state, _)| state.ordinal == 1)
            .unwrap();
        let found = state.idempotency.get(&[91; 16], START_NS).unwrap();
        let found = found.expect("the key is known");
        assert_eq!(
            (found.body, &*found.answer.body),
            ([!1; 16], &b"{\"number\":1}"[..])
        );
    };
    is_known(&disk.crash(Crash::KINDS[1]));
    in_system(async {
        let mut live = start(&disk, &world);
        live.checkpoint().unwrap();
        live.stop();
    });
    assert_eq!(below(&disk, ".answers").count(), 0);
    is_known(&disk.crash(Crash::KINDS[1]));
}
