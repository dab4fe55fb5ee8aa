//! A disk that fills up, fails a sync, or rots.

use wal::disk::sim::{Crash, Fault, Operation, SimDisk};

use super::world::{Ledger, block_on, foundation, reopen, start};

async fn found(disk: &SimDisk) -> crate::checkpoint::start::Rooms {
    let rooms = start(disk).unwrap();
    for command in foundation() {
        rooms.journal.commit(command).await.unwrap();
    }
    rooms
}

#[test]
fn a_full_disk_acknowledges_nothing_false_and_goes_on_when_there_is_room() {
    for spare in (0..4_000).step_by(97) {
        println!("spare {spare}");
        let disk = SimDisk::new(spare);
        let mut ledger = Ledger::default();
        block_on(async {
            let rooms = found(&disk).await;
            disk.set_budget_bytes(Some(disk.used_bytes() + spare));
            let mut refused = 0;
            for round in 0..12 {
                refused += u32::from(ledger.ingest(&rooms, 5).await.is_err());
                if round % 4 == 3 {
                    let _ = rooms.checkpointer.checkpoint().await;
                }
            }
            assert!(refused > 0 || spare > 500, "a disk without room refuses");
            disk.set_budget_bytes(None);
            ledger.ingest(&rooms, 5).await.unwrap();
            rooms.checkpointer.checkpoint().await.unwrap();
            ledger.ingest(&rooms, 5).await.unwrap();
            disk.stop_at(0);
            let _ = rooms.checkpointer.close().await;
        });
        let disk = disk.crash(Crash::KINDS[1]);
        ledger.check(&reopen(&disk).unwrap());
        ledger.check(&reopen(&disk).unwrap());
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_acknowledged_that_could_be_lost() {
    for nth in 0..40 {
        println!("sync {nth} fails");
        let disk = SimDisk::new(nth);
        let mut ledger = Ledger::default();
        block_on(async {
            let rooms = found(&disk).await;
            disk.fail(Operation::Sync, nth, Fault::Io);
            for round in 0..12 {
                let _ = ledger.ingest(&rooms, 3).await;
                if round % 4 == 3 {
                    let _ = rooms.checkpointer.checkpoint().await;
                }
            }
            if rooms.journal.readiness().is_err() {
                assert!(
                    ledger.ingest(&rooms, 1).await.is_err(),
                    "a poisoned log takes nothing"
                );
            }
            disk.stop_at(0);
            let _ = rooms.checkpointer.close().await;
        });
        let disk = disk.crash(Crash::KINDS[1]);
        ledger.check(&reopen(&disk).unwrap());
    }
}

#[test]
fn damage_in_the_small_files_is_refused_by_name() {
    let disk = SimDisk::new(9);
    let mut ledger = Ledger::default();
    block_on(async {
        let rooms = found(&disk).await;
        for _ in 0..6 {
            ledger.ingest(&rooms, 5).await.unwrap();
        }
        rooms.checkpointer.close().await.unwrap();
    });
    let files = disk.files();
    let small = files.iter().filter(|(path, _)| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["manifest", "catalog.snapshot", "checkpoint"].contains(&&*name) || name.ends_with(".answers")
    });
    let mut tried = 0;
    for (path, bytes) in small {
        for offset in (0..bytes.len() as u64).step_by(7) {
            let damaged = disk.crash(Crash::KINDS[0]);
            damaged.flip_bit(path, offset, 3);
            let Err(error) = reopen(&damaged) else {
                panic!("{} damaged at {offset} was taken", path.display())
            };
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(error.to_string().contains(&*name), "{error} does not name {name}");
            tried += 1;
        }
    }
    assert!(tried > 50, "the files were there: {tried}");
    ledger.check(&reopen(&disk).unwrap());
}
