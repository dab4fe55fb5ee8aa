//! Power cuts: at every disk operation of a trace, in every way a disk may lose what was not synced.

use wal::disk::sim::{Crash, SimDisk};

use super::world::{Ledger, block_on, foundation, reopen, start};

/// Works until done or until the disk fails; answers what was promised by then.
fn work(disk: &SimDisk) -> Ledger {
    block_on(async {
        let mut ledger = Ledger::default();
        let Ok(rooms) = start(disk) else { return ledger };
        for command in foundation() {
            if rooms.journal.commit(command).await.is_err() {
                break;
            }
        }
        for round in 0..7u64 {
            for rows in [1, 5, 2] {
                // Refused ones are in the ledger as tried.
                let _ = ledger.ingest(&rooms, rows).await;
            }
            if round == 3 {
                let _ = ledger.delete_source(&rooms, 1, 1).await;
            }
            // More than four segments in a bucket, so that some merge.
            let _ = rooms.checkpointer.checkpoint().await;
        }
        let _ = ledger.ingest(&rooms, 3).await;
        // The power is off: closing writes nothing.
        disk.stop_at(0);
        let _ = rooms.checkpointer.close().await;
        ledger
    })
}

#[test]
fn nothing_acknowledged_is_lost_at_any_power_cut() {
    let whole = SimDisk::new(1);
    let ledger = work(&whole);
    assert_eq!(
        ledger.acknowledged(),
        22,
        "on a sound disk everything is acknowledged"
    );
    let operations = whole.operations();
    for stop in 0..operations {
        let disk = SimDisk::new(stop);
        disk.stop_at(stop);
        let ledger = work(&disk);
        for crash in Crash::KINDS {
            println!("operation {stop} of {operations}, {crash:?}");
            let found = disk.crash(crash);
            match reopen(&found) {
                Ok(opened) => ledger.check(&opened),
                Err(error) => panic!("refused after a legal crash: {error}"),
            }
            // Life goes on, and the next cut takes nothing either.
            let mut ledger = ledger.clone();
            block_on(async {
                let rooms = start(&found).unwrap();
                for command in foundation() {
                    // Those that were there already change nothing.
                    let known = rooms
                        .catalog
                        .read(|catalog| catalog.buckets().count() == 2 && catalog.organizations().len() == 1);
                    if !known {
                        rooms.journal.commit(command).await.unwrap();
                    }
                }
                ledger.ingest(&rooms, 4).await.unwrap();
                found.stop_at(0);
                let _ = rooms.checkpointer.close().await;
            });
            let found = found.crash(Crash::KINDS[1]);
            ledger.check(&reopen(&found).unwrap());
            ledger.check(&reopen(&found).unwrap());
        }
    }
}
