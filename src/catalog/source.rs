//! Data sources, to which points belong.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::schema::{Schema, SchemaMode};
use crate::ids::ObjectId;

/// Whether a source accepts data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// Accepts data.
    Active,
    /// Refuses data; existing data stays readable.
    Inactive,
}

impl SourceStatus {
    pub const ALL: [Self; 2] = [Self::Active, Self::Inactive];

    /// The status' name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
        }
    }
}

/// A data source. There may be 110,000 of them, so texts are boxed, and types and schemas are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Identifies the source to clients.
    pub id: ObjectId,
    /// Identifies the source to the engine: within its bucket, from 0, never reused.
    pub ordinal: u32,
    pub bucket_id: ObjectId,
    /// Unique within the bucket.
    pub name: Box<str>,
    /// The API's `type`, an open set.
    pub kind: Arc<str>,
    pub description: Option<Box<str>>,
    /// Shared with all sources that declare the same fields.
    pub schema: Arc<Schema>,
    /// How undeclared fields are handled.
    pub schema_mode: SchemaMode,
    /// Whether large raw queries are aggregated automatically.
    pub downsampling: bool,
    /// Whether the source accepts data.
    pub status: SourceStatus,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}
