//! The rooms that keep state, running over a disk of the test's; checkpoints run when the test says so.

use std::path::PathBuf;
use std::sync::Arc;

use actix::System;
use wal::disk::Disk;

use crate::bucket::BucketsOptions;
use crate::checkpoint::start::{RoomsOptions, assemble};
use crate::checkpoint::task::Task;
use crate::checkpoint::{CheckpointError, Layout, OpenError, Rooms};
use crate::clock::ManualClock;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::JournalOptions;

/// The data directory on the simulated disk.
pub(super) fn layout() -> Layout {
    Layout {
        data_dir: PathBuf::from("data"),
    }
}

pub(super) fn options() -> RoomsOptions {
    RoomsOptions {
        journal: JournalOptions {
            queue_bytes_max: 1 << 20,
            tail_bytes_max: 1 << 30,
        },
        buckets: BucketsOptions {
            mailbox_bytes_max: 1 << 20,
            memory_bytes_max: 1 << 30,
            threads: 1,
        },
        checkpoint_bytes: 1 << 30,
    }
}

/// Runs a future in an actix system of its own, which ends with it.
pub(super) fn in_system<R>(work: impl Future<Output = R>) -> R {
    let system = System::new();
    let result = system.block_on(work);
    System::current().stop();
    system.run().expect("the system ends");
    result
}

pub(super) fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// Running rooms whose checkpoints the test takes.
pub(super) struct Live {
    pub(super) rooms: Rooms,
    pub(super) task: Task,
}

impl Live {
    pub(super) fn start(disk: Arc<dyn Disk>, clock: Arc<ManualClock>) -> Result<Self, OpenError> {
        let (rooms, _, task) = assemble(disk, None, layout(), options(), clock)?;
        Ok(Live { rooms, task })
    }

    /// A checkpoint, on a thread that may wait.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        self.on_thread(Task::checkpoint)
    }

    pub(super) fn on_thread<R: Send>(&mut self, work: impl FnOnce(&mut Task) -> R + Send) -> R {
        let task = &mut self.task;
        std::thread::scope(|scope| {
            scope
                .spawn(|| work(task))
                .join()
                .expect("a checkpoint does not panic")
        })
    }

    /// Ends the journal's thread; the disk may refuse what it likes.
    pub(super) fn stop(mut self) {
        let _ = self.task.journal.close();
    }
}

/// What a step met.
#[derive(Debug)]
pub(super) enum Failure {
    Service(ServiceError),
    Checkpoint(CheckpointError),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Failure::Service(error)
    }
}
