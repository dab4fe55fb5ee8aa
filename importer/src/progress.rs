//! What is noted beside a file that is being imported: `FILE.tidewatch-import`.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::Counts;

const EXTENSION: &str = ".tidewatch-import";

/// How far an import has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The beginning of the idempotency keys.
    pub id: String,
    /// Where it goes to, with all parameters.
    pub target: String,
    /// Size and time of the file: another file begins anew.
    pub size: u64,
    modified_ns: u128,
    /// Bytes, lines and rows that are acknowledged.
    pub bytes: u64,
    /// The same in lines.
    pub lines: u64,
    /// The same in rows.
    pub rows: u64,
    /// What became of them.
    pub counts: Counts,
}

impl Progress {
    /// What is noted of this file and target, or the beginning.
    ///
    /// # Errors
    /// The note cannot be read.
    pub fn of(file: &Path, metadata: &Metadata, target: &str) -> io::Result<Self> {
        let modified = metadata
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let beginning = Progress {
            id: random_id()?,
            target: target.to_owned(),
            size: metadata.len(),
            modified_ns: modified.unwrap_or_default().as_nanos(),
            bytes: 0,
            lines: 0,
            rows: 0,
            counts: Counts::default(),
        };
        let noted = match fs::read(beside(file)) {
            Ok(noted) => serde_json::from_slice::<Progress>(&noted).ok(),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_of_this = |noted: &Progress| {
            (&noted.target, noted.size, noted.modified_ns)
                == (&beginning.target, beginning.size, beginning.modified_ns)
        };
        Ok(noted.filter(is_of_this).unwrap_or(beginning))
    }

    /// Notes it, durably and at once.
    ///
    /// # Errors
    /// The directory of the file cannot be written.
    pub fn note(&self, file: &Path) -> io::Result<()> {
        let path = beside(file);
        let new = path.with_extension("tidewatch-import-new");
        let mut out = File::create(&new)?;
        out.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        out.sync_all()?;
        fs::rename(new, path)
    }

    /// Removes the note of a file that is imported.
    ///
    /// # Errors
    /// The directory of the file cannot be written.
    pub fn forget(file: &Path) -> io::Result<()> {
        match fs::remove_file(beside(file)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(EXTENSION);
    path.into()
}

fn random_id() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_of_the_same_file_and_target() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv");
        fs::write(&file, "time,a\n").unwrap();
        let of = |target| Progress::of(&file, &fs::metadata(&file).unwrap(), target).unwrap();
        let mut progress = of("one");
        progress.bytes = 7;
        progress.note(&file).unwrap();
        assert_eq!(of("one"), progress);
        assert_eq!(of("other").bytes, 0);
        fs::write(&file, "time,a\n1,2\n").unwrap();
        let anew = of("one");
        assert_eq!(anew.bytes, 0);
        assert_ne!(anew.id, progress.id);
        Progress::forget(&file).unwrap();
        Progress::forget(&file).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
