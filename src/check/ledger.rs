//! The run files of the ledger, including those of the catalog: every entry is read. A repair rewrites a damaged run
//! with its readable entries. If the catalog does not load without the rest, nothing is changed.

use std::io::{self, Write};
use std::path::PathBuf;

use disk::Disk;
use wal::Sequence;

use super::repair::replace;
use super::{Report, Say};
use crate::catalog::{Catalog, ObjectKey, Stream};
use crate::checkpoint::{DataDir, Manifest, at, load_catalog, message};
use crate::ledger::{LedgerError, LedgerFiles, Run, RunReport, salvage, verify, without_header};
use crate::sealed_file::{self, SealedDir, SealedFiles};

const fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::History => "histories of rules",
        Stream::Deliveries => "deliveries",
        Stream::Triggers => "counts of triggers",
        Stream::Answers => "answers to idempotency keys",
        Stream::Catalog => "the catalog",
        Stream::Events => "what events said",
        Stream::Audit => "audits",
        Stream::Series => "series",
    }
}

/// Reports on all runs and on the catalog. Returns the catalog if it loads.
pub(super) fn survey(dir: &DataDir, manifest: &Manifest, report: &mut Report<'_>) -> Option<Catalog> {
    let before = report.damages;
    survey_runs(dir, &manifest.runs, report);
    let loaded = load(dir, &manifest.runs);
    if report.damages > before {
        // The damage of its runs has been reported already.
        return loaded.ok();
    }
    let catalog = report.sound(loaded)?;
    say_catalog(&catalog, manifest.catalog_covered, report);
    Some(catalog)
}

/// Reports on a catalog that loads.
pub(super) fn say_catalog(catalog: &Catalog, covered: Sequence, report: &mut Report<'_>) {
    let (organizations, buckets) = (catalog.organizations().len(), catalog.buckets().count());
    report.say(format_args!(
        "catalog: {organizations} organizations, {buckets} buckets, as of record {covered}"
    ));
}

/// Reports on runs.
pub(super) fn survey_runs(dir: &DataDir, runs: &[u64], report: &mut Report<'_>) {
    let mut entries = 0;
    for id in runs {
        if let Some((sound, damages)) = report.sound(read_run(dir.disk(), &dir.layout.runs_dir(), *id)) {
            entries += sound;
            damages.iter().for_each(|damage| report.damage(damage));
        }
    }
    report.say(format_args!("ledger: {} runs with {entries} entries", runs.len()));
}

/// Reads a run completely. Returns the number of readable entries, and messages about damage.
pub(super) fn read_run(disk: &dyn Disk, dir: &SealedDir, id: u64) -> Result<(u64, Vec<String>), LedgerError> {
    let run = Run::open_file(disk, dir, id)?;
    let found = verify(&run, |_| ())?;
    let damages = found.damages.iter();
    let damages = damages.map(|(error, lost)| format!("{error}; {lost} entries of {}", name(run.stream)));
    Ok((found.sound, damages.collect()))
}

/// Loads the catalog from these runs.
pub(super) fn load(dir: &DataDir, runs: &[u64]) -> Result<Catalog, String> {
    let ledger = LedgerFiles::open(dir.disk.clone(), dir.path(), runs).map_err(message)?;
    load_catalog(&ledger).map_err(message)
}

/// The replacements of damaged runs.
struct Replacements<'a> {
    dir: &'a DataDir,
    files: SealedFiles,
    /// The runs that are left, with the replacements.
    runs: Vec<u64>,
    damaged: Vec<PathBuf>,
    written: Vec<PathBuf>,
    messages: Vec<String>,
    /// Why the rest would be useless: a run of the catalog is lost as a whole, so it is unknown what is missing.
    hopeless: Option<String>,
}

/// Replaces damaged runs by their readable entries. Returns whether the catalog loads; if not, nothing was changed.
pub(super) fn repair(dir: &DataDir, manifest: &mut Manifest, say: &mut Say<'_>) -> Result<bool, String> {
    let mut replacements = Replacements {
        dir,
        files: dir.files(dir.layout.runs_dir(), 1)?,
        runs: Vec::new(),
        damaged: Vec::new(),
        written: Vec::new(),
        messages: Vec::new(),
        hopeless: None,
    };
    for id in &manifest.runs {
        match Run::open_file(dir.disk(), &replacements.files.dir, *id) {
            Ok(run) => replacements.add_opened(&run)?,
            Err(error) => replacements.add_unopened(*id, &error)?,
        }
    }
    let loads = match replacements.hopeless.take() {
        Some(error) => Err(error),
        None => load(dir, &replacements.runs).and_then(|catalog| knows_all(&catalog, manifest)),
    };
    if let Err(error) = loads {
        dir.remove_all(&replacements.written)?;
        say(format!(
            "nothing in segments and ledger, because the catalog cannot be repaired: {error}; restore a backup, or see --adopt"
        ));
        return Ok(false);
    }
    if replacements.messages.is_empty() {
        return Ok(true);
    }
    manifest.runs = replacements.runs;
    replace(dir, manifest, &replacements.damaged, replacements.messages, say)?;
    Ok(true)
}

/// Checks that the catalog knows all buckets that have points. Otherwise it would assign their ordinals again, and the
/// points would belong to other buckets.
fn knows_all(catalog: &Catalog, manifest: &Manifest) -> Result<(), String> {
    let last = catalog.last_bucket_ordinal();
    let mut ordinals = manifest.buckets.keys().chain(&manifest.unconverted);
    match ordinals.find(|ordinal| **ordinal > last) {
        None => Ok(()),
        Some(ordinal) => Err(format!(
            "the rest of it does not know bucket {ordinal}, which has points"
        )),
    }
}

impl Replacements<'_> {
    fn add_opened(&mut self, run: &Run) -> Result<(), String> {
        let found = verify(run, |_| ()).map_err(message)?;
        if found.damages.is_empty() {
            self.runs.push(run.id);
            return Ok(());
        }
        self.messages.extend(described(run.stream, &found));
        self.damaged.push(self.files.dir.file_path(run.id));
        if found.sound > 0 {
            let new = self.write(|out| salvage(run, out))?;
            self.runs.push(new);
        }
        Ok(())
    }

    fn add_unopened(&mut self, id: u64, error: &LedgerError) -> Result<(), String> {
        let path = self.files.dir.file_path(id);
        if !self.dir.exists(&path)? {
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
        let bytes = self.dir.map(&path)?;
        match without_header(id, &path, (*bytes).as_ref()) {
            (_, Some(mended)) => {
                let new = self.write(|out| out.write_all(&mended))?;
                self.messages
                    .push(format!("ledger: {error}; nothing of it is lost"));
                // Its entries may be damaged, too.
                let run = Run::open_file(self.dir.disk(), &self.files.dir, new);
                self.add_opened(&run.map_err(message)?)?;
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

    /// Writes a new run. Returns its number.
    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u64, String> {
        let id = self.files.take_id();
        let path = self.files.dir.file_path(id);
        sealed_file::write(self.dir.disk(), &path, write).map_err(at::<io::Error>(&path))?;
        self.written.push(path);
        Ok(id)
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
        Stream::Series => format!(
            "ledger: lost {lost} entries of {}, some of which are found by their points, but not by their labels: {error}",
            name(stream)
        ),
        _ => format!("ledger: lost {lost} entries of {}: {error}", name(stream)),
    });
    let mut lost: Vec<String> = lost.collect();
    if stream == Stream::Catalog {
        let objects = found.lost.iter().map(|key| ObjectKey {
            owner: key.owner,
            place: key.at_ns,
            id: key.id,
        });
        lost.extend(objects.map(|object| format!("ledger: lost of the catalog: {object}")));
    }
    lost
}
