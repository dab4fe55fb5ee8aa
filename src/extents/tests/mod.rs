//! The cache over a simulated object store: whatever is evicted, damaged or refused, a reader gets the object's bytes or
//! an error. `TIDEWATCH_SEED=…` repeats a run.

mod gate;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use disk::Disk;
use disk::sim::SimDisk;
use engine::{Content, EngineError};
use fastrand::Rng;
use objects::sim::{Fault, SimObjects};
use objects::{Bytes, Existing, ObjectStore};

use super::slots::{Extent, Slots};
use super::*;
use crate::checkpoint::tests::seed;
use crate::clock::{Clock, ManualClock, SECOND_NS};
use gate::Gate;

const EXTENT: usize = EXTENT_BYTES as usize;
const PATH: &str = "data/extents";
/// Time for what happens on other threads.
const WITHIN: Duration = Duration::from_secs(60);
/// Bytes of a file that are always here.
const TAIL: usize = 1_000;

struct World {
    objects: SimObjects,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    cache: ExtentCache,
}

impl World {
    fn new(slots: u64) -> Self {
        let objects = SimObjects::default();
        Self::over(objects.clone(), Arc::new(objects), slots)
    }

    fn over(objects: SimObjects, store: Arc<dyn ObjectStore>, slots: u64) -> Self {
        let (disk, clock) = (SimDisk::new(1), Arc::new(ManualClock::new(0)));
        disk.create_dir_all(Path::new("data")).unwrap();
        let options = CacheOptions {
            store,
            disk: Arc::new(disk.clone()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            bytes_max: slots * EXTENT_BYTES,
        };
        let cache = ExtentCache::create(Path::new(PATH), options).unwrap();
        World {
            objects,
            disk,
            clock,
            cache,
        }
    }

    /// Stores an object of random bytes, and opens it.
    fn file(&self, name: &str, len: usize) -> (Vec<u8>, RemoteFile) {
        let mut bytes = vec![0; len];
        Rng::with_seed(len as u64).fill(&mut bytes);
        let content = Bytes::from(bytes.clone());
        self.objects.put(name, content, Existing::Refuse).unwrap();
        let tail = Arc::new(bytes[len - TAIL..].to_vec());
        let file = RemoteFile::new(&self.cache, name.to_owned(), len as u64, tail);
        (bytes, file)
    }

    fn stats(&self) -> ExtentStats {
        self.cache.figures().read()
    }

    fn gets(&self) -> u64 {
        self.objects.counts().gets
    }
}

fn random_range(rng: &mut Rng, len: usize) -> Range<usize> {
    let start = rng.usize(..len);
    let most = if rng.u32(..8) == 0 { 3 * EXTENT } else { 40_000 };
    start..(start + rng.usize(..most)).min(len)
}

fn is_unavailable(error: &EngineError) -> bool {
    matches!(error, EngineError::Unavailable(_))
}

#[test]
fn many_readers_of_a_small_cache_get_the_objects_bytes() {
    let first = seed();
    println!("seed {first}");
    let world = World::new(5);
    let files = [3 * EXTENT + 7_000, 9 * EXTENT, 12 * EXTENT + 1]
        .map(|len| world.file(&format!("object-{len}"), len));
    thread::scope(|scope| {
        for reader in 0..6 {
            let (world, files) = (&world, &files);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(first + reader);
                for _ in 0..400 {
                    let (bytes, file) = &files[rng.usize(..files.len())];
                    let range = random_range(&mut rng, bytes.len());
                    assert_eq!(*file.read(range.clone()).unwrap(), bytes[range]);
                    assert!(world.stats().held_bytes <= 5 * EXTENT_BYTES, "the bound holds");
                }
            });
        }
    });
    let stats = world.stats();
    assert!(stats.misses > 100, "the cache is too small for all: {stats:?}");
    assert!(
        stats.loaded_bytes > 50 * EXTENT_BYTES,
        "evicted extents are loaded again"
    );
    until_kept(&world, 5);
    // How often readers find what others have loaded depends on how they are scheduled; alone, one finds its own, as soon as
    // the thread that has downloaded it has written it.
    until("what was read is found again", || {
        assert_eq!(*files[0].1.read(0..100).unwrap(), files[0].0[..100]);
        world.stats().hits > stats.hits
    });
    until_kept(&world, 5);
    drop(files);
    assert_eq!(world.stats().held_bytes, 0, "closed files leave");
}

#[test]
fn an_object_store_that_fails_is_an_error_of_that_read_only() {
    let first = seed();
    println!("seed {first}");
    let world = World::new(4);
    let (bytes, file) = world.file("object", 10 * EXTENT);
    world.objects.fail_at_random(first, 4);
    let mut rng = Rng::with_seed(first);
    let (mut failed, mut succeeded) = (0, 0);
    // How many reads make a request depends on when the cache has kept what earlier ones got.
    for _ in 0..100_000 {
        if failed >= 10 && succeeded >= 100 {
            break;
        }
        let range = random_range(&mut rng, bytes.len());
        match file.read(range.clone()) {
            Ok(read) => {
                assert_eq!(*read, bytes[range]);
                succeeded += 1;
            }
            Err(error) => {
                assert!(is_unavailable(&error), "{error:?}");
                assert!(
                    error.to_string().contains("object"),
                    "it names the object: {error}"
                );
                failed += 1;
                world.clock.advance(2 * SECOND_NS);
            }
        }
    }
    assert!(
        failed >= 10 && succeeded >= 100,
        "{failed} reads failed, {succeeded} succeeded"
    );
    world.objects.set_faults(|| Fault::None);
    assert_eq!(*file.read(0..bytes.len()).unwrap(), bytes, "and it recovers");
}

#[test]
fn no_request_is_made_right_after_one_that_failed() {
    let world = World::new(4);
    let (bytes, file) = world.file("object", 4 * EXTENT);
    world.objects.set_faults(|| Fault::Unavailable);
    assert!(is_unavailable(&file.read(0..5).unwrap_err()));
    world.objects.set_faults(|| Fault::None);
    let before = world.gets();
    assert!(is_unavailable(&file.read(0..5).unwrap_err()));
    assert_eq!(world.gets(), before, "it fails without waiting");
    assert_eq!(
        *file.read(bytes.len() - 5..bytes.len()).unwrap(),
        bytes[bytes.len() - 5..]
    );
    world.clock.advance(2 * SECOND_NS);
    assert_eq!(*file.read(0..5).unwrap(), bytes[..5]);
}

#[test]
fn a_missing_object_does_not_stop_reads_of_others() {
    let world = World::new(4);
    let (_, gone) = world.file("gone", 2 * EXTENT);
    let (bytes, file) = world.file("object", 3 * EXTENT);
    world.objects.damage("gone", None);
    let error = gone.read(0..5).unwrap_err();
    assert!(
        is_unavailable(&error) && error.to_string().contains("gone"),
        "{error}"
    );
    assert_eq!(*file.read(0..5).unwrap(), bytes[..5]);
}

#[test]
fn what_is_read_again_comes_from_the_object() {
    let world = World::new(4);
    let (bytes, file) = world.file("object", 3 * EXTENT);
    let range = EXTENT - 10..EXTENT + 10;
    assert_eq!(*file.read(range.clone()).unwrap(), bytes[range.clone()]);
    until_kept(&world, 2);
    // The local disk turns everything it holds into something else.
    let len = Disk::len(&world.disk, Path::new(PATH)).unwrap() as usize;
    let mut cached = world.disk.open(Path::new(PATH)).unwrap();
    cached.write_all_at(0, &vec![0xa5; len]).unwrap();
    assert_eq!(
        *file.read(range.clone()).unwrap(),
        [0xa5; 20],
        "the test damages what is read"
    );
    let again = file.read_again(range.clone()).unwrap();
    assert_eq!(again.as_deref(), Some(&bytes[range.clone()]));
    until_kept(&world, 2);
    assert_eq!(
        *file.read(range.clone()).unwrap(),
        bytes[range],
        "the cache is corrected"
    );
}

/// What is read in order is downloaded in few requests, what is read here and there in small ones.
#[test]
fn a_reader_that_goes_on_gets_more_at_a_time() {
    let world = World::new(64);
    let (bytes, file) = world.file("object", 40 * EXTENT);
    for start in (0..bytes.len() - TAIL).step_by(30_000) {
        let range = start..(start + 30_000).min(bytes.len());
        assert_eq!(*file.read(range.clone()).unwrap(), bytes[range]);
    }
    let requests = world.stats().requests;
    assert!(requests <= 8, "{requests} requests for 40 extents");
    let (bytes, file) = world.file("other", 40 * EXTENT + 1);
    let before = world.stats().loaded_bytes;
    for index in [30, 5, 20] {
        let start = index * EXTENT;
        assert_eq!(file.read(start..start + 9).unwrap()[..], bytes[start..start + 9]);
    }
    assert_eq!(world.stats().loaded_bytes - before, 3 * EXTENT_BYTES);
}

#[test]
fn readers_of_an_extent_share_its_request() {
    let objects = SimObjects::default();
    let gate = Arc::new(Gate::over(objects.clone()));
    let world = World::over(objects, Arc::clone(&gate) as Arc<dyn ObjectStore>, 4);
    let (bytes, file) = world.file("object", 2 * EXTENT);
    thread::scope(|scope| {
        for reader in 0..8 {
            let (bytes, file) = (&bytes, &file);
            scope.spawn(move || {
                assert_eq!(*file.read(reader..reader + 9).unwrap(), bytes[reader..reader + 9])
            });
        }
        // All of them wait for the one request.
        while world.stats().misses < 8 {
            thread::yield_now();
        }
        gate.open();
    });
    assert_eq!(world.stats().requests, 1);
}

#[test]
fn a_cache_without_room_passes_everything_on() {
    let world = World::new(0);
    let (bytes, file) = world.file("object", 3 * EXTENT);
    for _ in 0..2 {
        assert_eq!(*file.read(0..bytes.len()).unwrap(), bytes);
    }
    assert_eq!((world.stats().held_bytes, world.stats().hits), (0, 0));
}

#[test]
fn a_full_disk_costs_the_cache_only() {
    let world = World::new(8);
    let (bytes, file) = world.file("object", 3 * EXTENT);
    world.disk.set_budget_bytes(Some(0));
    for _ in 0..2 {
        assert_eq!(*file.read(0..bytes.len()).unwrap(), bytes);
    }
    assert_eq!(world.stats().held_bytes, 0);
}

#[test]
fn a_range_beyond_the_file_is_an_error() {
    let world = World::new(4);
    let (bytes, file) = world.file("object", 2 * EXTENT);
    let len = bytes.len();
    for range in [len - 5..len + 1, 0..len + 1] {
        let error = file.read(range).unwrap_err();
        assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
    }
    assert_eq!(world.gets(), 0);
    assert!(file.read(0..0).unwrap().is_empty());
}

/// The least recently used extent gives way, and never one that a reader holds.
#[test]
fn an_extent_that_is_held_does_not_give_way() {
    let extent = |index| Extent { file: 1, index };
    let mut slots = Slots::new(3);
    for index in 0..3 {
        let slot = slots.take().unwrap();
        slots.fill(slot, extent(index));
    }
    let held = slots.hold(extent(0)).unwrap();
    slots.hold(extent(1)).unwrap();
    slots.put_down(extent(1));
    let slot = slots.take().unwrap();
    assert!(!slots.contains(extent(2)), "the least recently used one");
    slots.fill(slot, extent(3));
    slots.forget(extent(0));
    slots.forget_file(1);
    assert_eq!(
        (slots.len(), slots.hold(extent(0))),
        (1, Some(held)),
        "two readers hold it"
    );
    slots.put_down(extent(0));
    assert_eq!((slots.take().is_some(), slots.take().is_some()), (true, true));
    assert_eq!(slots.take(), None, "the last slot is held");
    slots.put_down(extent(0));
    assert_eq!(slots.take(), Some(held));
}

/// Waits until the downloads that readers have received are in the cache.
fn until_kept(world: &World, extents: u64) {
    until("what was downloaded is kept", || {
        world.stats().held_bytes >= extents * EXTENT_BYTES
    });
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + WITHIN;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        thread::yield_now();
    }
}
