//! The ledger's run files: every entry is read. Of a damaged one, a repair writes again what reads.

use std::io;

use wal::disk::Disk;

use super::Report;
use super::repair::{keep_aside, said};
use crate::catalog::{Catalog, Stream};
use crate::checkpoint::{Layout, Snapshot};
use crate::ledger::{LedgerDir, LedgerError, salvage, verify};
use crate::sealed_file;

const fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::History => "histories of rules",
        Stream::Deliveries => "deliveries",
        Stream::Triggers => "counts of triggers",
        Stream::Answers => "answers to idempotency keys",
        Stream::Catalog => "the catalog",
    }
}

/// Reports on all of them. Which ones count, only the snapshot says.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    catalog: &Catalog,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let dir = LedgerDir::of(&layout.data_dir);
    let named = catalog.ledger().runs();
    let mut entries = 0;
    for id in named {
        let run = match dir.open(disk, *id) {
            Ok(run) => run,
            Err(error) => {
                report.damage(format_args!("{error}; all its entries are lost"));
                continue;
            }
        };
        let found = verify(&run).map_err(|error| error.to_string())?;
        entries += found.sound;
        for (error, lost) in &found.damages {
            report.damage(format_args!("{error}; {lost} entries of {}", name(run.stream())));
        }
    }
    report.say(format_args!(
        "ledger: {} runs with {entries} entries",
        named.len()
    ));
    let listing = dir.list(disk).map_err(|error| error.to_string())?;
    for id in listing.runs.iter().filter(|id| !named.contains(id)) {
        report.say(format_args!(
            "ledger: {} is a leftover of a crash",
            dir.run_path(*id).display()
        ));
    }
    for name in listing.others {
        report.say(format_args!(
            "ledger: {} is left alone",
            dir.path().join(name).display()
        ));
    }
    Ok(())
}

/// Puts what reads of damaged runs in their place.
pub(super) fn repair(disk: &dyn Disk, layout: &Layout, say: &mut dyn FnMut(String)) -> Result<(), String> {
    let dir = LedgerDir::of(&layout.data_dir);
    let Ok(Snapshot {
        catalog,
        covered,
        manifests,
    }) = layout.read_catalog(disk)
    else {
        return Ok(());
    };
    let listing = dir.list(disk).map_err(|error| error.to_string())?;
    let mut next_id = listing.runs.into_iter().max().unwrap_or(0) + 1;
    let (mut runs, mut damaged, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for id in catalog.ledger().runs() {
        let path = dir.run_path(*id);
        let run = match dir.open(disk, *id) {
            Ok(run) => run,
            Err(error) => {
                if disk.exists(&path).map_err(|error| said(&path, &error))? {
                    if matches!(error, LedgerError::Io(..)) {
                        // The disk may be better tomorrow.
                        return Err(error.to_string());
                    }
                    damaged.push(path);
                }
                told.push(format!("ledger: all entries of a run are lost: {error}"));
                continue;
            }
        };
        let found = verify(&run).map_err(|error| error.to_string())?;
        if found.damages.is_empty() {
            runs.push(*id);
            continue;
        }
        let lost = |(error, lost): &(LedgerError, u64)| {
            format!("ledger: lost {lost} entries of {}: {error}", name(run.stream()))
        };
        told.extend(found.damages.iter().map(lost));
        damaged.push(path);
        if found.sound > 0 {
            let path = dir.run_path(next_id);
            let written: io::Result<_> = sealed_file::write(disk, &path, |out| salvage(&run, out));
            written.map_err(|error| said(&path, &error))?;
            runs.push(next_id);
            next_id += 1;
        }
    }
    if told.is_empty() {
        return Ok(());
    }
    // Kept under another name first: what the snapshot does not name is removed at the next start.
    damaged
        .iter()
        .try_for_each(|path| keep_aside(disk, path).map(drop))?;
    let mut repaired = catalog.freeze();
    repaired.set_ledger_runs(runs);
    layout
        .write_catalog(disk, &repaired, covered, &manifests)
        .map_err(|error| error.to_string())?;
    for path in &damaged {
        disk.remove(path).map_err(|error| said(path, &error))?;
    }
    told.into_iter().for_each(say);
    Ok(())
}
