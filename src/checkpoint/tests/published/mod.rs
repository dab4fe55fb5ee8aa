//! Checkpoints published to an object store that fails, while the disk loses power or is lost: every checkpoint that is
//! there restores to exactly what it covered.

mod apart;
mod background;
mod damage;
mod incremental;
mod shared;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use disk::Disk;
use disk::sim::SimDisk;
use objects::ObjectStore;
use objects::sim::SimObjects;

use super::world::{RunningRooms, World, layout};
use crate::clock::{Clock, ManualClock};
use crate::remote::{
    Checkpoint, Epochs, PublishAndWait, Publisher, PublisherOptions, RemoteError, THE_SHARD, checkpoints,
    restore_to,
};

const PERIOD: Duration = Duration::from_secs(300);

fn publisher_options(
    store: Arc<dyn ObjectStore>,
    disk: &SimDisk,
    clock: &Arc<ManualClock>,
) -> PublisherOptions {
    PublisherOptions {
        store,
        disk: Arc::new(disk.clone()),
        layout: layout(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        shard: THE_SHARD,
        epochs: Epochs::Taken,
        taken_over: None,
    }
}

/// Rooms that publish within each checkpoint.
fn start(store: &SimObjects, disk: &SimDisk, world: &World) -> RunningRooms {
    let started = RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock));
    let mut live = started.unwrap_or_else(|error| panic!("{error}"));
    let options = publisher_options(Arc::new(store.clone()), disk, &world.clock);
    let publish = PublishAndWait::new(Publisher::new(options), PERIOD);
    live.on_thread(|task| task.publish_to(Box::new(publish)));
    live
}

fn all_checkpoints(store: &SimObjects) -> Vec<Checkpoint> {
    let read = checkpoints(store, THE_SHARD).unwrap_or_else(|error| panic!("{error}"));
    read.map(|checkpoint| checkpoint.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn try_restore(store: &SimObjects, checkpoint: &Checkpoint) -> Result<SimDisk, (SimDisk, RemoteError)> {
    let disk = SimDisk::new(2);
    disk.create_dir_all(&layout().data_dir).unwrap();
    match restore_to(store, checkpoint, &disk, &layout(), &()) {
        Ok(()) => Ok(disk),
        Err(error) => Err((disk, error)),
    }
}

fn restored(store: &SimObjects, checkpoint: &Checkpoint) -> SimDisk {
    try_restore(store, checkpoint).unwrap_or_else(|(_, error)| panic!("{}: {error}", checkpoint.name))
}
