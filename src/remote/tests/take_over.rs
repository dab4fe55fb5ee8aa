//! A shard that was taken over answers as one whose files were copied, costs what its footers cost, and is published
//! again without what the object store has. `TIDEWATCH_SEED=…` repeats a run.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use disk::Disk;
use disk::sim::SimDisk;
use engine::query::{GroupQuery, Page, ScanQuery, Selection, group, scan};
use engine::rows::RowsWriter;
use engine::{Cache, EngineError, SegmentFile, SegmentWriter, SeriesSnapshot, Store, Unit};
use fastrand::Rng;
use objects::Bytes;
use objects::sim::{Fault, SimObjects};

use super::super::{Epochs, Published, Publisher, PublisherOptions, TakenOver, fetch, take_over};
use crate::checkpoint::tests::seed;
use crate::checkpoint::{Layout, Manifest, shared, write_segment};
use crate::clock::{Clock, ManualClock, SECOND_NS};
use crate::extents::{CacheOptions, EXTENT_BYTES, ExtentCache, ExtentStats};

const SHARD: u16 = 3;
const BUCKET: u32 = 5;
const SOURCES: u32 = 3;
/// Rows of a source in a segment.
const ROWS: i64 = 20_000;

/// A directory with segments, its object store, and a node that takes the shard over.
struct World {
    objects: SimObjects,
    clock: Arc<ManualClock>,
    manifest: Manifest,
    disk: SimDisk,
    cache: ExtentCache,
}

fn layout() -> Layout {
    Layout::of(Path::new("data"))
}

fn new_disk() -> SimDisk {
    let disk = SimDisk::new(7);
    disk.create_dir_all(Path::new("data")).unwrap();
    disk
}

/// Writes a segment with the rows that come after those of the segment before.
fn write(disk: &SimDisk, id: u64) {
    let mut rng = Rng::with_seed(id);
    let mut rows = RowsWriter::new();
    for source in 0..SOURCES {
        for row in 0..ROWS {
            rows.begin(source);
            rows.number(0, rng.f64() * 100.0, 9);
            rows.boolean(1, rng.bool());
            rows.commit(((id as i64) * ROWS + row) * SECOND_NS);
        }
    }
    let mut record = Vec::new();
    rows.encode(&mut record);
    let mut store = Store::new();
    store.apply(&record, id * 1_000_000, &[]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    let dir = layout().segments_dir();
    let written = write_segment(disk, &dir, id, |out: &mut dyn Write| {
        let mut segment = SegmentWriter::new(out)?;
        segment.begin_bucket(BUCKET);
        checkpoint.write(&mut segment)?;
        segment.finish()
    });
    written.unwrap();
}

fn publisher(world: &World, disk: &SimDisk, epoch: u64, taken_over: Option<super::super::Root>) -> Publisher {
    Publisher::new(PublisherOptions {
        store: Arc::new(world.objects.clone()),
        disk: Arc::new(disk.clone()),
        layout: layout(),
        clock: Arc::clone(&world.clock) as Arc<dyn Clock>,
        shard: SHARD,
        epochs: Epochs::Given(epoch),
        taken_over,
    })
}

fn publish(publisher: &mut Publisher, manifest: &Manifest) -> Published {
    let offer = publisher.offer(manifest).unwrap();
    publisher.publish(&offer, &|| true).unwrap()
}

impl World {
    /// Segments of one node, published.
    fn new(segments: u64, slots: u64) -> (World, String) {
        let (objects, clock, disk) = (SimObjects::default(), Arc::new(ManualClock::new(0)), new_disk());
        (1..=segments).for_each(|id| write(&disk, id));
        let options = CacheOptions {
            store: Arc::new(objects.clone()),
            disk: Arc::new(new_disk()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            bytes_max: slots * EXTENT_BYTES,
        };
        let world = World {
            cache: ExtentCache::create(Path::new("data/extents"), options).unwrap(),
            manifest: Manifest {
                segments: (1..=segments).collect(),
                ..Manifest::default()
            },
            objects,
            clock,
            disk,
        };
        let published = publish(&mut publisher(&world, &world.disk, 1, None), &world.manifest);
        (world, published.root.to_string())
    }

    fn take_over(&self, root: &str) -> (SimDisk, TakenOver) {
        let disk = new_disk();
        let taken = take_over(&self.objects, SHARD, root, &disk, &layout(), &self.cache);
        (disk, taken.unwrap_or_else(|error| panic!("{error}")))
    }

    fn stats(&self) -> ExtentStats {
        self.cache.figures().read()
    }
}

fn store_of(files: impl Iterator<Item = Arc<SegmentFile>>) -> Store {
    // Too small to keep anything, so that queries read blocks.
    let mut store = Store::with_cache(Cache::new(0));
    files.for_each(|file| store.add_segment(file.part(BUCKET).unwrap().unwrap()));
    store
}

fn copied(world: &World, root: &str) -> Store {
    let disk = new_disk();
    fetch(&world.objects, SHARD, root, &disk, &layout()).unwrap();
    let open = |id: &u64| {
        let path = layout().segments_dir().file_path(*id);
        SegmentFile::open(*id, shared(disk.map(&path).unwrap())).unwrap()
    };
    store_of(world.manifest.segments.iter().map(open))
}

fn opened(taken: &TakenOver) -> Store {
    let open = |(id, held): (&u64, &crate::checkpoint::SegmentElsewhere)| {
        SegmentFile::open(*id, Arc::clone(&held.content)).unwrap()
    };
    store_of(taken.segments.iter().map(open))
}

/// A raw or a grouped query of a random range, as text.
fn query(series: &SeriesSnapshot, rng: &mut Rng, segments: u64) -> Result<String, EngineError> {
    let all = (segments as i64 + 1) * ROWS;
    let start = rng.i64(0..all);
    let range_ns = (start * SECOND_NS, (start + rng.i64(0..all / 2)) * SECOND_NS);
    if rng.bool() {
        let step = rng.choice([Unit::Minute, Unit::Hour, Unit::Day]).unwrap();
        let grouped = GroupQuery {
            range_ns,
            step: step.into(),
            fields: &[0, 1],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        return Ok(format!("{:?}", group(series, &grouped)?));
    }
    let selection = [Selection::new(series, None)];
    let page: Page = scan(
        &selection,
        &ScanQuery {
            range_ns,
            descending: rng.bool(),
            after: None,
            skip: rng.u64(..30_000),
            limit: rng.usize(1..3_000),
            metadata: None,
            stop: &|| false,
        },
    )?;
    let row = |(run, row): &(u32, u32)| {
        let columns = &page.runs[*run as usize].columns;
        let row = *row as usize;
        (columns.timestamps_ns[row], columns.sequences[row])
    };
    let rows: Vec<_> = page.rows.iter().map(row).collect();
    let values = page.runs.iter().map(|run| &run.columns);
    Ok(format!("{rows:?} {:?}", values.collect::<Vec<_>>()))
}

#[test]
fn queries_answer_as_on_full_copies() {
    const SEGMENTS: u64 = 4;
    let first = seed();
    let (world, root) = World::new(SEGMENTS, 3);
    let (full, taken) = (copied(&world, &root), world.take_over(&root).1);
    let store = opened(&taken);
    thread::scope(|scope| {
        for reader in 0..4 {
            let (full, view) = (full.view(), store.view());
            scope.spawn(move || {
                let mut rng = Rng::with_seed(first + reader);
                for _ in 0..40 {
                    let (source, seed) = (rng.u32(..SOURCES), rng.u64(..));
                    let answer = |view: &engine::View| {
                        let series = view.series(source).unwrap();
                        query(&series, &mut Rng::with_seed(seed), SEGMENTS).unwrap()
                    };
                    assert_eq!(answer(&view), answer(&full), "seed {seed} source {source}");
                }
            });
        }
    });
    let stats = world.stats();
    assert!(stats.held_bytes <= 3 * EXTENT_BYTES, "{stats:?}");
    assert!(
        stats.requests > 20,
        "extents were evicted and read again: {stats:?}"
    );
}

#[test]
fn an_object_store_that_fails_costs_single_queries() {
    const SEGMENTS: u64 = 2;
    let first = seed();
    let (world, root) = World::new(SEGMENTS, 1);
    let (full, taken) = (copied(&world, &root), world.take_over(&root).1);
    let store = opened(&taken);
    world.objects.fail_at_random(first, 3);
    let mut rng = Rng::with_seed(first);
    let (mut failed, mut answered) = (0, 0);
    for _ in 0..150 {
        let (source, seed) = (rng.u32(..SOURCES), rng.u64(..));
        let answer = |store: &Store| {
            let series = store.view().series(source).unwrap();
            query(&series, &mut Rng::with_seed(seed), SEGMENTS)
        };
        match answer(&store) {
            Ok(text) => {
                assert_eq!(Ok(text), answer(&full), "seed {seed}");
                answered += 1;
            }
            Err(EngineError::Unavailable(_)) => {
                failed += 1;
                world.clock.advance(2 * SECOND_NS);
            }
            Err(error) => panic!("never damage: {error:?}"),
        }
    }
    assert!(failed > 5 && answered > 5, "{failed} failed, {answered} answered");
}

/// Bytes, requests and segments of a take-over, and the bytes of the sealed data.
fn cost(segments: u64) -> (u64, u64, u64) {
    let (world, root) = World::new(segments, 3);
    let (_, taken) = world.take_over(&root);
    let store = opened(&taken);
    assert_eq!(store.segment_bytes() > 0, segments > 0);
    let stats = world.stats();
    assert_eq!(stats.requests, 0, "no block is read before a query needs it");
    (
        stats.take_over_bytes,
        stats.take_over_requests,
        taken.root.bytes(),
    )
}

#[test]
fn a_take_over_reads_footers_and_no_blocks() {
    let ((bytes, requests, sealed), (tenfold, tenfold_requests, tenfold_sealed)) = (cost(1), cost(10));
    println!(
        "{bytes} B in {requests} requests of {sealed} B; {tenfold} B in {tenfold_requests} of {tenfold_sealed} B"
    );
    assert!(tenfold_sealed >= 10 * sealed - 1_000);
    // The root, and the end of each segment.
    assert_eq!((requests, tenfold_requests), (2, 11));
    assert!(tenfold <= 11 * (64 << 10) + 20_000, "{tenfold} bytes");
}

/// A footer that is longer than what is read at first.
#[test]
fn a_long_footer_is_copied_whole() {
    let (mut world, _) = World::new(1, 3);
    let record = |sources: u32| {
        let mut rows = RowsWriter::new();
        for source in 0..sources {
            rows.begin(source);
            rows.number(0, f64::from(source), 0);
            rows.commit(SECOND_NS);
        }
        let mut record = Vec::new();
        rows.encode(&mut record);
        record
    };
    let (few, many) = (record(1), record(15_000));
    let written = write_segment(&world.disk, &layout().segments_dir(), 2, |out: &mut dyn Write| {
        let mut segment = SegmentWriter::new(out)?;
        for bucket in [BUCKET, 7].into_iter().chain(1_000..3_000) {
            let mut store = Store::new();
            let rows = if bucket == 7 { &many } else { &few };
            store.apply(rows, 1, &[]).map_err(std::io::Error::other)?;
            segment.begin_bucket(bucket);
            if let Some(checkpoint) = store.begin_checkpoint() {
                checkpoint.write(&mut segment)?;
            }
        }
        segment.finish()
    });
    assert!(written.unwrap().footer_bytes() > 300_000);
    world.manifest.segments.push(2);
    let published = publish(&mut publisher(&world, &world.disk, 2, None), &world.manifest);
    let (_, taken) = world.take_over(&published.root.to_string());
    let file = SegmentFile::open(2, Arc::clone(&taken.segments[&2].content)).unwrap();
    assert_eq!(file.parts().count(), 2_002);
    assert!(file.parts().all(|part| file.part(part.bucket).is_ok()));
    assert!(
        world
            .disk
            .files()
            .keys()
            .all(|path| !path.to_string_lossy().contains("footer"))
    );
    assert_eq!(world.stats().requests, 0);
}

#[test]
fn what_the_object_store_has_is_not_uploaded_again() {
    let (mut world, root) = World::new(3, 3);
    let (disk, taken) = world.take_over(&root);
    assert!(
        layout().segments_dir().list(&disk).unwrap().ids.is_empty(),
        "no segment is here"
    );
    let mut publisher = publisher(&world, &disk, 2, Some(taken.root));
    write(&disk, 4);
    world.manifest.segments.push(4);
    world.manifest.next_segment = 5;
    let published = publish(&mut publisher, &world.manifest);
    assert_eq!(published.uploads, 1, "only the new one");
    // Somebody else takes over what was published, all of it.
    let root = published.root.to_string();
    let full = copied(&world, &root);
    let series = |store: &Store| store.view().series(0).unwrap();
    let (_, taken) = world.take_over(&root);
    let mut rng = Rng::with_seed(1);
    for _ in 0..10 {
        let seed = rng.u64(..);
        let answer = |store: &Store| query(&series(store), &mut Rng::with_seed(seed), 4).unwrap();
        assert_eq!(answer(&opened(&taken)), answer(&full));
    }
}

#[test]
fn a_damaged_block_is_damage_and_says_where() {
    let (world, root) = World::new(1, 3);
    let (_, taken) = world.take_over(&root);
    let name = &taken.segments[&1].name;
    let mut bytes = world.objects.objects()[name].to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    world.objects.damage(name, Some(Bytes::from(bytes)));
    let store = opened(&taken);
    let damaged = (0..SOURCES).filter_map(|source| {
        let series = store.view().series(source)?;
        let all = ScanQuery {
            range_ns: (i64::MIN, i64::MAX),
            descending: false,
            after: None,
            skip: 0,
            limit: ROWS as usize,
            metadata: None,
            stop: &|| false,
        };
        let selection = [Selection::new(&series, None)];
        scan(&selection, &all).err()
    });
    let damaged: Vec<EngineError> = damaged.collect();
    assert!(
        matches!(&damaged[..], [EngineError::Damaged(block)] if block.segment == 1 && block.bucket == Some(BUCKET)),
        "{damaged:?}"
    );
}

#[test]
fn a_damaged_footer_is_found_at_the_take_over() {
    let (world, root) = World::new(1, 3);
    let objects = world.objects.objects();
    let name = objects.keys().find(|name| name.ends_with(".segment")).unwrap();
    let mut bytes = objects[name].to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    world.objects.damage(name, Some(Bytes::from(bytes)));
    let failed = take_over(&world.objects, SHARD, &root, &new_disk(), &layout(), &world.cache);
    let message = failed.err().unwrap().to_string();
    assert!(message.contains(name.as_str()), "{message}");
    world.objects.damage(name, None);
    let failed = take_over(&world.objects, SHARD, &root, &new_disk(), &layout(), &world.cache);
    assert!(failed.err().unwrap().to_string().contains(name.as_str()));
    world.objects.set_faults(|| Fault::Unavailable);
    assert!(take_over(&world.objects, SHARD, &root, &new_disk(), &layout(), &world.cache).is_err());
}
