//! Carried records of buckets that were set apart. A repair keeps the records of a damaged file that precede the
//! damage.

use std::io;

use disk::Disk;
use wal::Sequence;

use super::{Report, Say};
use crate::bucket::CarriedFile;
use crate::checkpoint::{DataDir, Manifest, at};

/// Reads a file up to its end or its first damage. Returns its records, and the fault after them.
pub(super) fn read(disk: &dyn Disk, file: &CarriedFile) -> (Vec<(Sequence, Vec<u8>)>, Option<String>) {
    let mut whole = Vec::new();
    let read = file.read(disk, |sequence, record| {
        whole.push((sequence, record.to_vec()));
        Ok(())
    });
    (whole, read.err())
}

/// The last carried record; 0 if there is none.
pub(super) fn last(dir: &DataDir) -> Result<Sequence, String> {
    let files = dir.carried_files()?;
    let last = files
        .iter()
        .filter_map(|file| Some(read(dir.disk(), file).0.last()?.0));
    Ok(last.max().unwrap_or(0))
}

/// Reports on the files that the manifest names.
pub(super) fn survey(dir: &DataDir, manifest: &Manifest, report: &mut Report<'_>) {
    for (bucket, first) in &manifest.carried {
        let file = dir.carried_dir().named(*bucket, *first);
        let (whole, fault) = read(dir.disk(), &file);
        fault.into_iter().for_each(|fault| report.damage(fault));
        report.say(format_args!(
            "bucket {bucket}: it is set apart; {} records of it in {}",
            whole.len(),
            file.path.display()
        ));
    }
}

/// Truncates damaged files at their first damage.
pub(super) fn repair(dir: &DataDir, manifest: &mut Manifest, say: &mut Say<'_>) -> Result<(), String> {
    let mut repaired = manifest.clone();
    repaired.carried.clear();
    let mut empty = Vec::new();
    for (bucket, first) in &manifest.carried {
        let file = dir.carried_dir().named(*bucket, *first);
        let (whole, fault) = read(dir.disk(), &file);
        let Some(fault) = fault else {
            repaired.carried.push((*bucket, *first));
            continue;
        };
        if !dir.exists(&file.path)? {
            say(format!(
                "{} is missing, the points of bucket {bucket} in it are lost",
                file.path.display()
            ));
            continue;
        }
        let aside = dir.keep_aside(&file.path)?;
        let last = whole.last().map(|(sequence, _)| *sequence);
        if last.is_some() {
            // Replaces the damaged file under the same name.
            write(dir, *bucket, &whole).map_err(at(&file.path))?;
            repaired.carried.push((*bucket, *first));
        } else {
            empty.push(file.path.clone());
        }
        say(format!(
            "{fault}; the points of bucket {bucket} in its records after {} are lost; the damaged file is kept as {}",
            last.map_or_else(|| "the beginning".to_owned(), |last| last.to_string()),
            aside.display()
        ));
    }
    if repaired != *manifest {
        dir.write_manifest(&repaired)?;
        *manifest = repaired;
    }
    dir.remove_all(&empty)
}

fn write(dir: &DataDir, bucket: u32, records: &[(Sequence, Vec<u8>)]) -> io::Result<()> {
    let carried = dir.carried_dir();
    let mut writer = carried.writer(dir.disk())?;
    for (sequence, record) in records {
        writer.push(bucket, *sequence, record)?;
    }
    writer.finish()
}
