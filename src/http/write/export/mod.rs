//! Writes exports: CSV, NDJSON, Parquet and Arrow.

mod binary;
mod csv;
mod ndjson;
mod table;

use crate::catalog::names;
use crate::service::query::NewWriter;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// RFC 4180, with a header line.
    Csv,
    /// A JSON object on each line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
}

names!(ExportFormat: Csv => "csv", Ndjson => "ndjson", Parquet => "parquet", Arrow => "arrow");

impl ExportFormat {
    /// The media types, in the order of [`ExportFormat::ALL`].
    pub const MEDIA_TYPES: &'static [&'static str] = &[
        "text/csv; charset=utf-8",
        "application/x-ndjson",
        "application/vnd.apache.parquet",
        "application/vnd.apache.arrow.stream",
    ];

    /// The media type of the file.
    pub fn media_type(self) -> &'static str {
        Self::MEDIA_TYPES[self as usize]
    }

    /// The extension of the file's name.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::Arrow => "arrows",
            other => other.name(),
        }
    }
}

/// Makes the writer of an export.
pub fn export_writer(format: ExportFormat) -> NewWriter {
    Box::new(move |shape| {
        Ok(match format {
            ExportFormat::Csv => Box::new(csv::CsvWriter::new(&shape)),
            ExportFormat::Ndjson => Box::new(ndjson::NdjsonWriter),
            ExportFormat::Parquet => Box::new(binary::BinaryWriter::new(columnar::Format::Parquet, &shape)?),
            ExportFormat::Arrow => Box::new(binary::BinaryWriter::new(columnar::Format::Arrow, &shape)?),
        })
    })
}
