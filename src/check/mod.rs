//! `tidewatch check`: reads a data directory to the last byte and says what it finds. With `--repair` it cuts what is
//! damaged so that the server starts again, keeps what it cuts aside, and says what is lost. The directory is locked
//! as a server locks it.

mod buckets;

use std::process::ExitCode;

use wal::disk::{Disk, StdDisk};

use crate::checkpoint::Layout;
use crate::config::Config;
use crate::startup::DirectoryLock;

/// What was found so far.
struct Findings {
    damages: u64,
    repaired: u64,
}

impl Findings {
    fn damage(&mut self, what: impl std::fmt::Display) {
        self.damages += 1;
        println!("DAMAGED  {what}");
    }

    fn repaired(&mut self, what: impl std::fmt::Display) {
        self.repaired += 1;
        println!("repaired {what}");
    }
}

/// Reports what a data directory holds; the exit code says whether a server would start on it.
///
/// # Errors
/// What keeps it from being read: it does not exist, a server holds it, the disk fails.
pub fn run(config: &Config, repair: bool) -> Result<ExitCode, String> {
    let data_dir = &config.storage.data_dir;
    if !data_dir.is_dir() {
        return Err(format!(
            "{} is no directory; name one with --data-dir",
            data_dir.display()
        ));
    }
    let _lock = DirectoryLock::take(data_dir).map_err(|error| error.to_string())?;
    let disk = StdDisk;
    let layout = Layout {
        data_dir: data_dir.clone(),
    };
    let mut findings = Findings {
        damages: 0,
        repaired: 0,
    };

    let mark = match layout.read_mark(&disk) {
        Ok(mark) => mark,
        Err(error) => {
            findings.damage(error);
            0
        }
    };
    println!("checkpoint: everything up to record {mark} is in segments and snapshot");
    let catalog = match layout.read_catalog(&disk) {
        Ok((catalog, covered)) => {
            let (organizations, buckets) = (catalog.organizations().len(), catalog.buckets().count());
            println!("catalog: {organizations} organizations, {buckets} buckets, as of record {covered}");
            Some(catalog)
        }
        Err(error) => {
            findings.damage(error);
            None
        }
    };
    check_log(&disk, &layout, mark, repair, &mut findings)?;
    buckets::check(&disk, &layout, catalog.as_ref(), repair, &mut findings)?;

    let left = findings.damages - findings.repaired;
    match (findings.damages, left) {
        (0, _) => println!("sound: nothing is damaged"),
        (damages, 0) => println!("repaired: {damages} damages; a server starts on what is left"),
        (_, left) if repair => println!("damaged: {left} damages cannot be repaired; restore a backup"),
        (_, left) => println!("damaged: {left} damages; --repair cuts what is damaged and says what is lost"),
    }
    Ok(if left == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check_log(
    disk: &dyn Disk,
    layout: &Layout,
    mark: wal::Sequence,
    repair: bool,
    findings: &mut Findings,
) -> Result<(), String> {
    let dir = layout.log_dir();
    if !disk
        .exists(&dir)
        .map_err(|error| format!("{}: {error}", dir.display()))?
    {
        if mark > 0 {
            findings.damage(format!(
                "{} is missing, although {mark} records were written to it",
                dir.display()
            ));
        }
        return Ok(());
    }
    let report = wal::check(disk, &dir).map_err(|error| error.to_string())?;
    let first = report.first_sequence.unwrap_or(0);
    println!(
        "log: {} files, {} bytes, {} frames, {} records ({first} to {})",
        report.files.len(),
        report.bytes,
        report.frames,
        report.records,
        report.last_sequence
    );
    if let Some(tail) = &report.torn_tail {
        let path = tail.path.display();
        println!(
            "log: {path} ends in {} bytes of a frame that was never acknowledged, from offset {}; the start cuts them",
            tail.bytes, tail.offset
        );
    }
    report.damages.iter().for_each(|damage| findings.damage(damage));
    let begins_late = first > mark + 1;
    let ends_early = report.last_sequence < mark;
    if begins_late || ends_early {
        findings.damage(format!(
            "the log holds records {first} to {}, and {mark} was the last one checkpointed: files are missing",
            report.last_sequence
        ));
    }
    if repair && (!report.is_sound() || ends_early) && !begins_late {
        let done = wal::repair(disk, &dir, mark).map_err(|error| error.to_string())?;
        let lost = done
            .lost_from
            .map_or_else(String::new, |from| format!("; lost: all records from {from} on"));
        let aside: Vec<String> = done
            .kept_aside
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        // One cut mends all that was found.
        findings.repaired = findings.damages;
        println!(
            "repaired the log: it ends at record {}{lost}; cut parts are kept as {}",
            done.last_sequence,
            aside.join(", ")
        );
    }
    Ok(())
}
