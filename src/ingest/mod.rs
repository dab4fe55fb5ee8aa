//! The way in, from bytes to columns: the bodies of `POST /api/data` and `POST /api/data/batch` are scanned once,
//! straight into the columns of an [`engine::rows::RowsWriter`], with no JSON tree and no string per point.
//!
//! This room decides what of a body is a point and what is a fault, by the body's shape and the schemas it is
//! shown. It never looks anything up itself, knows no clock, no caller and no log, and changes nothing: what it
//! needs to know of a data source it asks through [`SourceLookup`]. Called by `service::data`; `timestamp` and
//! `json` also by the query, which reads the same timestamps and writes the same numbers.
//!
//! - [`point`], [`batch`]: the two bodies. `entries`: what stands in a batch.
//! - `members`: the members a point has in both, and their faults.
//! - `columns`: measurements straight to columns, as long as nothing is unusual. `values`: with care, and their faults.
//! - `sources`: which data source an entry means, remembered within a request.
//! - `extend`: fields that `schemaMode: extend` has yet to add.
//! - [`json`]: the scanner and the writer. [`timestamp`]: ISO 8601.

pub mod batch;
mod columns;
mod entries;
mod extend;
pub mod json;
mod members;
pub mod point;
mod sources;
pub mod timestamp;
mod values;

pub use batch::{Batch, BatchOutcome, parse_batch};
pub use extend::NewField;
pub use json::Malformed;
pub use point::{Point, PointBody, PointOutcome, parse_point};
pub use sources::{SourceLookup, SourceView};

use crate::error::{Detail, ServiceError};

/// A body that is refused whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFault {
    /// It is not JSON.
    Malformed(Malformed),
    /// All faults of its shape.
    Faults(Vec<Detail>),
}

impl From<Malformed> for BodyFault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<BodyFault> for ServiceError {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Malformed(malformed) => Self::validation(malformed.to_string()),
            BodyFault::Faults(details) => Self::faults(details),
        }
    }
}

/// Buffers that outlive a request, so that the next one allocates nothing. Holds nothing of a request between
/// requests.
#[derive(Debug, Default)]
pub struct Scratch {
    seen: Vec<sources::Seen>,
    /// For each field of each source seen, the field that came at this place in the entry before.
    orders: Vec<u16>,
    by_id: sources::Places,
    text: String,
}

impl Scratch {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    fn clear(&mut self) {
        self.seen.clear();
        self.orders.clear();
        self.by_id.clear();
    }
}

#[cfg(test)]
mod tests;
