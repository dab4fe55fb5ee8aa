//! Publishing on a thread of its own: nothing local waits for the object store.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use disk::sim::SimDisk;
use objects::sim::{Fault, SimObjects};
use objects::{Bytes, Existing, Listed, ObjectError, ObjectStore};
use parking_lot::Mutex;

use super::super::crash::check_image;
use super::super::world::{RunningRooms, World, in_system};
use super::{PERIOD, all_checkpoints, publisher_options, restored};
use crate::clock::Clock;
use crate::remote::Publishing;

/// More than a test takes.
const LONG: Duration = Duration::from_secs(60);

/// A store that says when a put begins, and waits to be told to go on.
struct Gate {
    store: SimObjects,
    begun: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl ObjectStore for Gate {
    fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), ObjectError> {
        // Both ends are open for as long as the test waits for anything.
        let _ = self.begun.send(());
        let _ = self.go_on.lock().recv();
        self.store.put(name, bytes, existing)
    }
    fn get(&self, name: &str, bytes_max: u64) -> Result<Bytes, ObjectError> {
        self.store.get(name, bytes_max)
    }
    fn get_range(&self, name: &str, range: std::ops::Range<u64>) -> Result<Bytes, ObjectError> {
        self.store.get_range(name, range)
    }
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, ObjectError> {
        self.store.list(prefix)
    }
    fn delete(&self, names: &[String]) -> Result<(), ObjectError> {
        self.store.delete(names)
    }
}

fn start(store: Arc<dyn ObjectStore>, disk: &SimDisk, world: &World) -> (RunningRooms, Publishing) {
    let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
    let mut live = started.unwrap_or_else(|error| panic!("{error}"));
    let options = publisher_options(store, disk, &world.clock);
    let (publishing, publish) = Publishing::start(options, PERIOD).unwrap();
    live.on_thread(|task| task.publish_to(publish));
    (live, publishing)
}

/// Checkpoints and merges go on while an upload hangs. The newest manifest is published afterwards, although the files
/// of the first one have been removed from the disk.
#[test]
fn a_hanging_upload_delays_nothing_and_the_newest_checkpoint_follows() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    let (begun, begins) = sync_channel(1_000);
    let (opens, go_on) = sync_channel(1_000);
    let gate = Gate {
        store: store.clone(),
        begun,
        go_on: Mutex::new(go_on),
    };
    let mut world = World::new(7);
    in_system(async {
        let (mut live, publishing) = start(Arc::new(gate), &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 4).await.unwrap();
        live.checkpoint().unwrap();
        begins.recv_timeout(LONG).expect("the first upload begins");
        let first = live.task.manifest.segments.clone();
        for _ in 0..12 {
            world.ingest(&live.rooms, 4).await.unwrap();
            live.checkpoint().unwrap();
        }
        assert!(live.task.merges > 0);
        assert!(
            first
                .iter()
                .any(|segment| !live.task.manifest.segments.contains(segment)),
            "a file of the first checkpoint is gone"
        );
        drop(opens);
        assert!(publishing.stop(LONG), "everything is published");
        let manifest = live.task.manifest.clone();
        live.stop();
        let found = all_checkpoints(&store);
        assert_eq!(found.len(), 2, "those in between were overtaken");
        assert_eq!(found[0].root.manifest, manifest);
        check_image(
            &restored(&store, &found[0]),
            &world.model.lock(),
            world.clock.now_ns(),
        );
        super::super::crash::recover(&restored(&store, &found[1]));
    });
}

/// An outage changes nothing for the rooms, and a stop does not wait for its end.
#[test]
fn an_outage_is_not_noticed_locally() {
    let (store, disk) = (SimObjects::default(), SimDisk::new(1));
    store.set_faults(|| Fault::Unavailable);
    let mut world = World::new(7);
    in_system(async {
        let (mut live, publishing) = start(Arc::new(store.clone()), &disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        for _ in 0..5 {
            world.ingest(&live.rooms, 4).await.unwrap();
            live.checkpoint().unwrap();
        }
        assert!(!publishing.stop(LONG), "the last checkpoint is not published");
        let figures = live.task.publish.as_ref().unwrap().figures();
        assert!(figures.failures.load(std::sync::atomic::Ordering::Relaxed) > 0);
        live.stop();
        assert!(store.objects().is_empty());
        check_image(&disk, &world.model.lock(), world.clock.now_ns());
        // The store is back after a restart: the checkpoint in force is published without another one.
        store.set_faults(|| Fault::None);
        let (live, publishing) = start(Arc::new(store.clone()), &disk, &world);
        assert!(publishing.stop(LONG));
        live.stop();
        let newest = &all_checkpoints(&store)[0];
        check_image(
            &restored(&store, newest),
            &world.model.lock(),
            world.clock.now_ns(),
        );
    });
}
