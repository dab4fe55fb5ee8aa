//! Data sources, to which points belong.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::names;
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

names!(SourceStatus: Active => "active", Inactive => "inactive");

/// A data source. There may be 110,000 of them, so texts are boxed, and types and schemas are shared. On disk the schema
/// is an index into the schemas that are written with the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source<S = Arc<Schema>> {
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
    pub schema: S,
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

impl<S> Source<S> {
    pub(super) fn with_schema<T>(self, schema: T) -> Source<T> {
        Source {
            id: self.id,
            ordinal: self.ordinal,
            bucket_id: self.bucket_id,
            name: self.name,
            kind: self.kind,
            description: self.description,
            schema,
            schema_mode: self.schema_mode,
            downsampling: self.downsampling,
            status: self.status,
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.updated_at_ns,
        }
    }
}
