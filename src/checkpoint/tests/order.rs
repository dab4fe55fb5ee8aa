//! One test for each ordering bug that has occurred, or easily could.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use disk::Disk;
use disk::sim::{Crash, Fault, Keep, Operation, SimDisk};
use parking_lot::Mutex;
use wal::{LogOptions, SyncPolicy};

use super::crash::{check_image, recover};
use super::hooked_disk::HookedDisk;
use super::model::Existence;
use super::seed;
use super::world::{RunningRooms, World, home, in_system, layout};
use crate::catalog::Command;
use crate::checkpoint::start::start_local;
use crate::checkpoint::{Manifest, open};
use crate::clock::{Clock, DAY_NS};

const NOTHING_UNSYNCED: Crash = Crash::KINDS[1];

fn start(disk: &SimDisk, world: &World) -> RunningRooms {
    RunningRooms::start(Arc::new(disk.clone()), Arc::clone(&world.clock))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn files_below(disk: &SimDisk, dir: &str, suffix: &str) -> Vec<PathBuf> {
    let below = |path: &PathBuf| path.starts_with(dir) && path.to_string_lossy().ends_with(suffix);
    disk.files().into_keys().filter(below).collect()
}

/// Regression: the saved catalog covered records whose sync had failed; their sequences were reused, and
/// the commands with the reused sequences were skipped at the next start.
#[test]
fn a_catalog_saved_after_a_failed_sync_does_not_cover_lost_records() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        disk.fail(Operation::Sync, 1, Fault::Io);
        world.create_bucket(&live.rooms).await.unwrap_err();
        live.checkpoint().unwrap_err();
        live.stop();
    });
    let image = disk.crash(NOTHING_UNSYNCED);
    world.model.lock().settle(&recover(&image), world.clock.now_ns());
    in_system(async {
        let live = start(&image, &world);
        for _ in 0..2 {
            world.create_bucket(&live.rooms).await.unwrap();
        }
        live.stop();
    });
    check_image(
        &image.crash(NOTHING_UNSYNCED),
        &world.model.lock(),
        world.clock.now_ns(),
    );
}

/// Regression: rows deleted or expired before a checkpoint left no trace of their sequences.
#[test]
fn ids_of_points_deleted_before_a_checkpoint_are_not_reused() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 6).await.unwrap();
        for _ in 0..4 {
            world.delete_source(&live.rooms).await.unwrap();
        }
        live.checkpoint().unwrap();
        live.stop();
    });
    assert_eq!(
        files_below(&disk, "data/segments", ".segment"),
        [] as [PathBuf; 0]
    );
    check_image(
        &disk.crash(NOTHING_UNSYNCED),
        &world.model.lock(),
        world.clock.now_ns(),
    );
}

#[test]
fn a_segment_is_removed_with_the_last_bucket_that_uses_it() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 6).await.unwrap();
        live.checkpoint().unwrap();
        world.ingest(&live.rooms, 6).await.unwrap();
        for deleted in 1..=2 {
            world.delete_bucket(&live.rooms).await.unwrap();
            let gone: Vec<u32> = (1..=2).filter(|it| !live.task.exists(*it)).collect();
            assert_eq!(gone.len(), deleted);
            live.on_thread(|task| gone.iter().try_for_each(|it| task.remove_bucket(*it)))
                .unwrap();
            let segments = files_below(&disk, "data/segments", ".segment").len();
            assert_eq!(segments, usize::from(deleted < 2), "{deleted} deleted");
        }
        live.stop();
    });
    check_image(&disk, &world.model.lock(), world.clock.now_ns());
}

/// A new record with a sequence that a manifest covers would be skipped at the next start.
#[test]
fn a_log_that_ends_before_the_covered_sequence_is_refused() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 4).await.unwrap();
        live.on_thread(|task| task.checkpoint_files()).unwrap();
        live.stop();
    });
    let log = files_below(&disk, "data/log", ".log").pop().unwrap();
    // Removes the last two frames: the end marker, and a group of ingests.
    disk.edit(&log, |bytes| bytes.truncate(bytes.len() - 32 - 40));
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let message = open(&port, &layout()).err().expect("it is refused").to_string();
    assert!(message.contains("the log ends"), "{message}");
}

/// Regression: merging one damaged segment stopped all checkpoints, and eventually all writes.
#[test]
fn a_damaged_segment_stops_only_its_merges() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 8).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
        let damaged = files_below(&disk, "data/segments", ".segment");
        damaged.iter().for_each(|segment| disk.flip_bit(segment, 40, 0));
        let mut live = start(&disk, &world);
        let started_at = live.task.journal.dispatched().unwrap();
        for _ in 0..8 {
            world.ingest(&live.rooms, 8).await.unwrap();
            live.checkpoint().unwrap();
        }
        assert_eq!(live.task.unmergeable.len(), damaged.len());
        assert!(live.task.manifest.covered > started_at);
        live.stop();
    });
}

/// Regression: each attempt on a full disk left a segment, and the log had to start a file before it could drop one.
#[test]
fn checkpoints_on_a_full_disk_leave_no_files_and_still_trim_the_log() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.ingest(&live.rooms, 8).await.unwrap();
        for nth in 1..4 {
            let before = disk.files().len();
            disk.fail(Operation::Write, nth, Fault::Full { bytes: 1 });
            live.checkpoint().unwrap_err();
            let after = disk.files();
            let strays: Vec<_> = after
                .keys()
                .filter(|path| path.to_string_lossy().ends_with(".tmp"))
                .collect();
            assert!(strays.is_empty(), "{strays:?}");
            assert!(after.len() <= before, "try {nth}: {:?}", after.keys());
        }
        live.checkpoint().unwrap();
        let named = files_below(&disk, "data/segments", ".segment").len();
        assert_eq!(named, live.task.manifest.segments.len());
        world.check_live(&live).await;
        live.stop();
    });
    check_image(
        &disk.crash(NOTHING_UNSYNCED),
        &world.model.lock(),
        world.clock.now_ns(),
    );
}

/// A manifest whose last sync failed may be the current one. Regression: another failed attempt removed the runs that
/// it names.
#[test]
fn a_run_named_by_an_unconfirmed_manifest_is_kept_until_the_next() {
    let seed = seed();
    let mut doubtful = 0;
    for nth in 1..12 {
        let disk = SimDisk::new(seed);
        let mut world = World::new(seed);
        in_system(async {
            let mut live = start(&disk, &world);
            world.set_up(&live.rooms).await.unwrap();
            for _ in 0..2 {
                world.entries(&live.rooms).await.unwrap();
                live.checkpoint().unwrap();
            }
            world.entries(&live.rooms).await.unwrap();
            disk.fail(Operation::Sync, nth, Fault::Io);
            let failed = live.checkpoint().is_err();
            let on_disk = Manifest::read(&disk, &layout().data_dir).unwrap().unwrap();
            doubtful += u32::from(failed && on_disk != live.task.manifest);
            for write in 1..4 {
                disk.fail(Operation::Write, write, Fault::Full { bytes: 1 });
                // If the log has failed, the checkpoint reports that first.
                let _ = live.checkpoint();
                for crash in Crash::KINDS {
                    check_image(&disk.crash(crash), &world.model.lock(), world.clock.now_ns());
                }
            }
            world.check_live(&live).await;
            live.stop();
        });
    }
    assert!(doubtful > 0, "a manifest was in doubt");
}

/// A manifest of a merge whose last sync failed may be the current one, which names only the merged segment.
/// Regression: a checkpoint without changes wrote no manifest, and removed that segment.
#[test]
fn a_segment_named_by_an_unconfirmed_manifest_is_kept_until_the_next() {
    let seed = seed();
    let mut doubtful = 0;
    for nth in 1..5 {
        let disk = SimDisk::new(seed);
        let mut world = World::new(seed);
        in_system(async {
            let mut live = start(&disk, &world);
            world.set_up(&live.rooms).await.unwrap();
            let mut begun = None;
            for _ in 0..40 {
                world.ingest(&live.rooms, 8).await.unwrap();
                begun = live.on_thread(|task| {
                    task.checkpoint().unwrap();
                    task.begin_merge()
                });
                if begun.is_some() {
                    break;
                }
            }
            let job = begun.expect("segments are merged in time");
            let merged = live.on_thread(|_| job.run(&AtomicBool::new(false)));
            disk.fail(Operation::Sync, nth, Fault::Io);
            live.on_thread(|task| task.finish_merge(merged));
            doubtful += u32::from(live.task.manifest_in_doubt);
            for _ in 0..2 {
                // If no sync of the merge failed, the one of the checkpoint does.
                let _ = live.on_thread(|task| task.checkpoint());
                for crash in Crash::KINDS {
                    check_image(&disk.crash(crash), &world.model.lock(), world.clock.now_ns());
                }
            }
            world.check_live(&live).await;
            live.stop();
        });
    }
    assert!(doubtful > 0, "a manifest was in doubt");
}

/// Like segments: an unreadable run is not merged, and the log is trimmed.
#[test]
fn a_damaged_run_stops_only_its_merges() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    in_system(async {
        let mut live = start(&disk, &world);
        world.set_up(&live.rooms).await.unwrap();
        world.entries(&live.rooms).await.unwrap();
        live.checkpoint().unwrap();
        live.stop();
        let mut damaged = files_below(&disk, "data/ledger", ".run");
        // Damage to answers or to the catalog would be detected at the start.
        damaged.retain(|run| disk.files()[run][8] <= 3);
        // One run for each stream with entries; triggers have none.
        assert!(damaged.len() >= 2, "{damaged:?}");
        for run in &damaged {
            // The entries end at the table of blocks, whose offset is the footer's sixth number.
            let content = &disk.files()[run];
            let (_, footer) = content.split_last_chunk::<56>().unwrap();
            let entries_end = u64::from_le_bytes(footer[40..48].try_into().unwrap());
            disk.flip_bit(run, entries_end - 8, 0);
        }
        let mut live = start(&disk, &world);
        let started_at = live.task.journal.dispatched().unwrap();
        for _ in 0..4 {
            world.verdict(&live.rooms).await.unwrap();
            live.checkpoint().unwrap();
        }
        let kept = files_below(&disk, "data/ledger", ".run");
        assert!(damaged.iter().all(|run| kept.contains(run)), "{kept:?}");
        assert!(kept.len() >= damaged.len() + 4, "{kept:?}");
        assert!(live.task.manifest.covered > started_at);
        live.stop();
    });
}

/// Regression: a client that disconnected while its bucket was deleted left the actor and the directory behind.
#[test]
#[expect(
    clippy::await_holding_lock,
    reason = "the journal's thread must wait until the request is dropped"
)]
fn a_bucket_is_deleted_even_when_the_request_was_dropped() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    // While the gate is closed, the journal's thread is blocked at its disk.
    let gate: Arc<(Mutex<()>, AtomicU64)> = Arc::default();
    let for_tap = Arc::clone(&gate);
    let hooked_disk = HookedDisk::new(disk, move |_| {
        for_tap.1.fetch_add(1, Ordering::SeqCst);
        drop(for_tap.0.lock());
    });
    in_system(async {
        let live = RunningRooms::start(Arc::new(hooked_disk), Arc::clone(&world.clock))
            .unwrap_or_else(|error| panic!("{error}"));
        world.set_up(&live.rooms).await.unwrap();
        let bucket = live
            .rooms
            .catalog
            .read(|catalog| catalog.bucket_by_ordinal(1).cloned())
            .unwrap();
        let handle = live.rooms.buckets.handle(&bucket).unwrap();
        let command = Command::BucketDeleted { bucket_id: bucket.id };
        {
            let held = gate.0.lock();
            let before = gate.1.load(Ordering::SeqCst);
            let mut deletion = Box::pin(live.rooms.buckets.delete(&bucket, None, &[], command));
            poll_fn(|context| {
                assert!(deletion.as_mut().poll(context).is_pending());
                context.waker().wake_by_ref();
                if gate.1.load(Ordering::SeqCst) > before {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            drop(deletion);
            drop(held);
        }
        world.model.lock().buckets[0].existence = Existence::Deleted;
        // Processed after the deletion, first by the journal and then by the actor.
        world.create_bucket(&live.rooms).await.unwrap();
        handle.with(|_| ()).await.unwrap();
        assert!(live.rooms.buckets.running().is_empty());
        live.stop();
    });
}

/// Regression: with delayed syncs, a checkpoint covered records not yet in the log, and a new log file was torn.
#[test]
fn a_relaxed_log_loses_only_its_last_unsynced_records() {
    let seed = seed();
    for sync in [
        SyncPolicy::Never,
        SyncPolicy::Interval(Duration::from_secs(3_600)),
    ] {
        let disk = SimDisk::new(seed);
        let mut world = World::new(seed);
        in_system(async {
            let options = LogOptions {
                sync,
                ..LogOptions::default()
            };
            let started = RunningRooms::start_with(Arc::new(disk.clone()), options, Arc::clone(&world.clock));
            let mut live = started.unwrap_or_else(|error| panic!("{error}"));
            world.set_up(&live.rooms).await.unwrap();
            for round in 0..4 {
                world.ingest(&live.rooms, 5).await.unwrap();
                if round % 2 == 0 {
                    live.checkpoint().unwrap();
                } else {
                    live.on_thread(|task| task.checkpoint_files()).unwrap();
                }
                check_image(
                    &disk.crash(NOTHING_UNSYNCED),
                    &world.model.lock(),
                    world.clock.now_ns(),
                );
                let covered = world.model.lock().clone();
                world.ingest(&live.rooms, 5).await.unwrap();
                // Of several unsynced frames, a disk that reorders writes may keep any subset: that looks like damage
                // and is refused.
                for crash in Crash::KINDS
                    .into_iter()
                    .filter(|crash| crash.keep != Keep::RandomSubset)
                {
                    let image = disk.crash(crash);
                    covered.check_at_least(&recover(&image), world.clock.now_ns());
                }
            }
            live.stop();
        });
    }
}

/// The rooms as the server runs them, with the checkpointer's thread.
#[test]
fn the_checkpointer_s_thread_closes_everything_in_order() {
    let seed = seed();
    let disk = SimDisk::new(seed);
    let mut world = World::new(seed);
    for _ in 0..3 {
        in_system(async {
            let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
            let rooms = start_local(home(Arc::new(disk.clone()), clock), SyncPolicy::Always).await;
            let rooms = rooms.unwrap_or_else(|error| panic!("{error}"));
            let checkpointer = rooms.checkpointer.clone();
            if rooms.catalog.read(|catalog| catalog.organizations().len()) == 0 {
                world.set_up(&rooms).await.unwrap();
            }
            world.ingest(&rooms, 5).await.unwrap();
            checkpointer.order();
            world.ingest(&rooms, 5).await.unwrap();
            checkpointer.close().await.unwrap();
            let stats = checkpointer.stats();
            assert!(stats.checkpoints >= 1 && stats.failures == 0, "{stats:?}");
        });
        check_image(
            &disk.crash(NOTHING_UNSYNCED),
            &world.model.lock(),
            world.clock.now_ns(),
        );
        world.clock.advance(DAY_NS / 2);
    }
    let port: Arc<dyn Disk> = Arc::new(disk.clone());
    let opened = open(&port, &layout()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        opened.recovered.points, 0,
        "the last checkpoint left nothing to replay"
    );
    assert!(disk.exists(Path::new("data/manifest")).unwrap());
}
