//! Parses points: the bodies of `POST /api/data` and `POST /api/data/batch` are scanned once, directly into the columns
//! of an [`engine::rows::RowsWriter`], without a JSON tree and without a string per point.
//!
//! This module decides which parts of a body are points and which are faults, by the body's shape and the schemas. It
//! never looks anything up itself, knows no clock, caller or log, and changes nothing: its caller passes it a
//! [`SourceLookup`]. Called by `service::data`. The query also uses `timestamp` and `json`, because it parses the same
//! timestamps and writes the same numbers.
//!
//! - [`point`], [`batch`]: the two bodies. `entries`: the entries of a batch.
//! - `members`: the members that points have in both, and their faults.
//! - `columns`: the fast path for values. `values`: the slow path, and the faults of values.
//! - `sources`: the data source of an entry, cached from request to request.
//! - `series`: the series that a point belongs to. `digests`, `keys`: what is known of them from earlier requests.
//! - `extend`: fields to be added with `schemaMode: extend`.
//! - [`json`]: scanner and writer. [`timestamp`]: ISO 8601.

pub mod batch;
mod columns;
mod digests;
mod entries;
mod extend;
pub mod json;
mod keys;
mod members;
mod metadata;
pub mod point;
mod series;
mod sources;
pub mod timestamp;
mod values;

pub use batch::{Batch, parse_batch};
pub use extend::{NewField, name_fault as field_name_fault};
pub use json::Malformed;
pub use keys::KnownSeries;
pub use metadata::{MetadataValue, MetadataWriter};
pub use point::{PointBody, parse_point};
pub use series::{FindSeries, RequestSeries, SeriesOfRequest, SeriesRoom, no_series};
pub use sources::{SourceLookup, SourceView};

use crate::catalog::SourcesVersion;
use crate::error::ServiceError;

impl From<Malformed> for ServiceError {
    fn from(malformed: Malformed) -> Self {
        Self::validation(malformed.to_string())
    }
}

/// Buffers reused between requests to avoid allocations. Between requests they hold sources of one version, what
/// metadata and keys of agents mean, and no points.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The version of the caller's sources. Batches of the same version and bucket share the sources that were found;
    /// with `None`, each batch looks up its own.
    pub version: Option<SourcesVersion>,
    sources: sources::SeenSources,
    /// The series of the rows.
    pub series: SeriesOfRequest,
    text: String,
}

#[cfg(test)]
mod tests;
