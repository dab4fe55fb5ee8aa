//! The run files of the ledger, including those of the catalog: every entry is read. A repair rewrites a damaged run
//! with its readable entries. If the catalog does not load without the rest, nothing is changed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use disk::Disk;

use super::Report;
use super::aside::{disk_error, exists, keep_aside, remove_all};
use crate::catalog::{Catalog, CatalogLoader, ObjectKey, Stream};
use crate::checkpoint::{Layout, Manifest, OpenError};
use crate::ledger::{LedgerDir, LedgerError, LedgerFiles, Run, RunReport, salvage, verify, without_header};
use crate::sealed_file;

pub(super) const fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::History => "histories of rules",
        Stream::Deliveries => "deliveries",
        Stream::Triggers => "counts of triggers",
        Stream::Answers => "answers to idempotency keys",
        Stream::Catalog => "the catalog",
        Stream::Events => "what events said",
    }
}

/// Reports on all runs and on the catalog. Returns the catalog if it loads.
pub(super) fn survey(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    manifest: &Manifest,
    report: &mut Report<'_>,
) -> Result<Option<Catalog>, String> {
    let (dir, before) = (LedgerDir::of(&layout.data_dir), report.damages);
    survey_runs(&**disk, &dir, &manifest.runs, report)?;
    if report.damages > before {
        // The damage of its runs has been reported already.
        return Ok(load(disk, layout, &manifest.runs).ok());
    }
    match load(disk, layout, &manifest.runs) {
        Ok(catalog) => {
            let (organizations, buckets) = (catalog.organizations().len(), catalog.buckets().count());
            report.say(format_args!(
                "catalog: {organizations} organizations, {buckets} buckets, as of record {}",
                manifest.catalog_covered
            ));
            Ok(Some(catalog))
        }
        Err(error) => {
            report.damage(error);
            Ok(None)
        }
    }
}

/// Reports on runs.
pub(super) fn survey_runs(
    disk: &dyn Disk,
    dir: &LedgerDir,
    runs: &[u64],
    report: &mut Report<'_>,
) -> Result<(), String> {
    let mut entries = 0;
    for id in runs {
        let run = match dir.open(disk, *id) {
            Ok(run) => run,
            Err(error) => {
                report.damage(error);
                continue;
            }
        };
        let found = verify(&run).map_err(|error| error.to_string())?;
        entries += found.sound;
        for (error, lost) in &found.damages {
            report.damage(format_args!("{error}; {lost} entries of {}", name(run.stream())));
        }
    }
    report.say(format_args!("ledger: {} runs with {entries} entries", runs.len()));
    Ok(())
}

/// Loads the catalog from these runs.
pub(super) fn load(disk: &Arc<dyn Disk>, layout: &Layout, runs: &[u64]) -> Result<Catalog, String> {
    let read = || -> Result<Catalog, OpenError> {
        let ledger = LedgerFiles::open(Arc::clone(disk), &layout.data_dir, runs)?;
        let mut loader = CatalogLoader::new();
        ledger.for_each(Stream::Catalog, |owner, place, id, content| {
            let key = ObjectKey { owner, place, id };
            loader.push(&key, content).map_err(OpenError::Catalog)
        })?;
        loader.finish().map_err(OpenError::Catalog)
    };
    read().map_err(|error| error.to_string())
}

/// The replacements of damaged runs.
#[derive(Default)]
struct Mended {
    runs: Vec<u64>,
    damaged: Vec<PathBuf>,
    written: Vec<PathBuf>,
    messages: Vec<String>,
    /// Why the rest would be useless: a run of the catalog is lost as a whole, so it is unknown what is missing.
    hopeless: Option<String>,
}

/// Replaces damaged runs by their readable entries. Returns whether the catalog loads; if not, nothing was changed.
pub(super) fn repair(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    manifest: &mut Manifest,
    say: &mut dyn FnMut(String),
) -> Result<bool, String> {
    let mut mended = Mended::default();
    let dir = LedgerDir::of(&layout.data_dir);
    let listing = dir.list(&**disk).map_err(|error| error.to_string())?;
    let mut next_id = listing.runs.into_iter().max().unwrap_or(0) + 1;
    for id in &manifest.runs {
        mended.add(&**disk, &dir, *id, &mut next_id)?;
    }
    let loads = match mended.hopeless.take() {
        Some(error) => Err(error),
        None => load(disk, layout, &mended.runs).and_then(|catalog| knows_all(&catalog, manifest)),
    };
    if let Err(error) = loads {
        remove_all(&**disk, &mended.written)?;
        say(format!(
            "nothing in segments and ledger, because the catalog cannot be repaired: {error}; restore a backup, or see --adopt"
        ));
        return Ok(false);
    }
    if mended.messages.is_empty() {
        return Ok(true);
    }
    // First keep a copy: the next start removes files that the manifest does not name.
    for path in &mended.damaged {
        let aside = keep_aside(&**disk, path)?;
        mended
            .messages
            .push(format!("a damaged file is kept as {}", aside.display()));
    }
    manifest.runs = mended.runs;
    let written = manifest.write(&**disk, &layout.data_dir);
    written.map_err(|error| error.to_string())?;
    mended.messages.into_iter().for_each(say);
    remove_all(&**disk, &mended.damaged)?;
    Ok(true)
}

/// Checks that the catalog knows all buckets that have points. Otherwise it would assign their ordinals again, and the
/// points would belong to other buckets.
fn knows_all(catalog: &Catalog, manifest: &Manifest) -> Result<(), String> {
    let last = catalog.last_bucket_ordinal();
    let unknown = manifest.buckets.keys().chain(&manifest.unconverted);
    let unknown = unknown.copied().find(|ordinal| *ordinal > last);
    unknown.map_or(Ok(()), |ordinal| {
        Err(format!(
            "the rest of it does not know bucket {ordinal}, which has points"
        ))
    })
}

impl Mended {
    fn add(&mut self, disk: &dyn Disk, dir: &LedgerDir, id: u64, next_id: &mut u64) -> Result<(), String> {
        match dir.open(disk, id) {
            Ok(run) => self.add_opened(disk, dir, &run, next_id),
            Err(error) => self.add_unopened(disk, dir, id, &error, next_id),
        }
    }

    fn add_opened(
        &mut self,
        disk: &dyn Disk,
        dir: &LedgerDir,
        run: &Run,
        next_id: &mut u64,
    ) -> Result<(), String> {
        let found = verify(run).map_err(|error| error.to_string())?;
        if found.damages.is_empty() {
            self.runs.push(run.id());
            return Ok(());
        }
        self.messages.extend(described(run.stream(), &found));
        self.damaged.push(dir.run_path(run.id()));
        if found.sound > 0 {
            self.write(disk, dir.run_path(*next_id), |out| salvage(run, out))?;
            self.runs.push(*next_id);
            *next_id += 1;
        }
        Ok(())
    }

    fn add_unopened(
        &mut self,
        disk: &dyn Disk,
        dir: &LedgerDir,
        id: u64,
        error: &LedgerError,
        next_id: &mut u64,
    ) -> Result<(), String> {
        let path = dir.run_path(id);
        if !exists(disk, &path)? {
            // It is unknown which stream it belonged to; if it was part of the catalog, the catalog may not load
            // without it.
            self.messages
                .push(format!("ledger: {error}; all its entries are lost"));
            return Ok(());
        }
        if matches!(error, LedgerError::Io(..)) {
            // A disk error may be temporary.
            return Err(error.to_string());
        }
        let bytes = disk.map(&path).map_err(|error| disk_error(&path, &error))?;
        match without_header(id, &path, (*bytes).as_ref()) {
            (_, Some(mended)) => {
                self.write(disk, dir.run_path(*next_id), |out| out.write_all(&mended))?;
                self.messages
                    .push(format!("ledger: {error}; nothing of it is lost"));
                // Its entries may be damaged, too.
                let run = dir.open(disk, *next_id).map_err(|error| error.to_string())?;
                *next_id += 1;
                self.add_opened(disk, dir, &run, next_id)?;
            }
            (Some(Stream::Catalog) | None, None) => self.hopeless = Some(error.to_string()),
            (Some(stream), None) => {
                self.messages.push(format!(
                    "ledger: all entries of a run of {} are lost: {error}",
                    name(stream)
                ));
            }
        }
        self.damaged.push(path);
        Ok(())
    }

    fn write(
        &mut self,
        disk: &dyn Disk,
        path: PathBuf,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), String> {
        let written: io::Result<_> = sealed_file::write(disk, &path, write);
        written.map(drop).map_err(|error| disk_error(&path, &error))?;
        self.written.push(path);
        Ok(())
    }
}

/// Describes the lost entries of a run, for the operator.
fn described(stream: Stream, found: &RunReport) -> Vec<String> {
    let lost = found.damages.iter().map(|(error, lost)| match stream {
        Stream::Catalog => format!(
            "ledger: lost {lost} entries of the catalog, whose objects are gone or as they were before: {error}"
        ),
        Stream::Answers => format!(
            "ledger: lost {lost} entries of {}, requests that use these keys again are stored again: {error}",
            name(stream)
        ),
        _ => format!("ledger: lost {lost} entries of {}: {error}", name(stream)),
    });
    let mut lost: Vec<String> = lost.collect();
    if stream == Stream::Catalog {
        let objects = found.lost.iter().map(|place| ObjectKey {
            owner: place.owner,
            place: place.at_ns,
            id: place.id,
        });
        lost.extend(objects.map(|object| format!("ledger: lost of the catalog: {object}")));
    }
    lost
}
