//! Sends files of rows to the service.
//!
//! CSV and NDJSON go in parts of a few megabytes that end with a row, each under an idempotency key. What was acknowledged
//! is noted beside the file ([`Progress`]), so that an import that was interrupted goes on behind it, and the part that was
//! on its way is stored once. A Parquet file is one request: sent again under the same key, the server stores each of its
//! batches once.
//!
//! - `parts`: where a file is cut. `progress`: what is noted. `send`: requests, with retries. `file`: a whole file.

#![warn(missing_docs)]

mod file;
mod parts;
mod progress;
mod send;

use std::path::PathBuf;

pub use file::import_file;
pub use progress::Progress;
pub use send::Target;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// A JSON object on each line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// As the service names it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Ndjson => "ndjson",
            Format::Parquet => "parquet",
        }
    }

    /// The format of a name, or of the extension of a file.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "csv" => Format::Csv,
            "ndjson" | "jsonl" => Format::Ndjson,
            "parquet" => Format::Parquet,
            _ => return None,
        })
    }
}

/// Why a file is not imported, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file, or what is noted beside it, cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Its format is not known.
    #[error("{}: its extension is none of csv, ndjson, jsonl, parquet; give --format", .0.display())]
    Format(PathBuf),
    /// A row is too large for a part.
    #[error("{}: the row at byte {at} is longer than {max} bytes", path.display(), max = parts::ROW_BYTES_MAX)]
    Row {
        /// The file.
        path: PathBuf,
        /// Where the row begins.
        at: u64,
    },
    /// The address or the key is not valid.
    #[error("{0}")]
    Target(String),
    /// The service refuses the file or the key.
    #[error("the service refuses it: {0}")]
    Refused(String),
    /// The service does not answer.
    #[error("the service does not answer: {0}; the same command goes on where this one ended")]
    Unreachable(String),
}

/// What became of the rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Rows that are stored.
    pub inserted: u64,
    /// Rows that were there already.
    pub duplicates: u64,
    /// Rows that are refused.
    pub failed: u64,
}

/// Told of what happens, to show it.
pub trait Watcher {
    /// So many bytes of the file, of this size, are imported.
    fn at(&mut self, bytes: u64, size: u64);
    /// A row is refused.
    fn refused(&mut self, row: &str);
    /// Something that the user should know, such as a retry.
    fn note(&mut self, text: &str);
}
