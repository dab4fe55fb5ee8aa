//! File names in the ledger's directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use disk::{Disk, list_existing};

use super::error::LedgerError;
use super::run::Run;

const RUN_SUFFIX: &str = ".run";

/// The directory of the run files.
#[derive(Clone, Debug)]
pub struct LedgerDir(PathBuf);

/// Contents of the directory, by kind of name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Ids of run files.
    pub runs: Vec<u64>,
    /// Names that are not those of run files.
    pub others: Vec<OsString>,
}

impl LedgerDir {
    /// The ledger's directory within a data directory.
    pub fn of(data_dir: &Path) -> Self {
        Self(data_dir.join("ledger"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn run_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{RUN_SUFFIX}"))
    }

    /// Opens a run: reads its footer and tables.
    ///
    /// # Errors
    /// I/O errors, or damage.
    pub fn open(&self, disk: &dyn Disk, id: u64) -> Result<Run, LedgerError> {
        let path = self.run_path(id);
        let bytes = disk
            .map(&path)
            .map_err(|error| LedgerError::Io(path.clone(), error))?;
        Run::open(id, &path, bytes)
    }

    /// Lists the directory; empty if it does not exist.
    ///
    /// # Errors
    /// I/O errors.
    pub fn list(&self, disk: &dyn Disk) -> Result<Listing, LedgerError> {
        let mut listing = Listing::default();
        let names = list_existing(disk, &self.0);
        let names = names.map_err(|error| LedgerError::Io(self.0.clone(), error))?;
        for name in names {
            let id = name.to_str().and_then(|name| name.strip_suffix(RUN_SUFFIX));
            match id.and_then(|id| id.parse::<u64>().ok()) {
                Some(id) => listing.runs.push(id),
                None => listing.others.push(name),
            }
        }
        Ok(listing)
    }
}
