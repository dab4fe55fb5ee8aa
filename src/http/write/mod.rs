//! Writes answers of ingests and queries as JSON, from the service's data directly to bytes, without a tree. The service
//! calls these functions where it produces the data: queries on the threads of the query pool.

mod columns;
mod export;
mod ingest;
mod metadata;
mod rows;

pub use columns::write_columns;
pub use export::{ExportFormat, export_writer};
pub use ingest::{BatchAnswer, PartialBatchAnswer, write_ingest};
pub use metadata::QueryMetadata;
pub use rows::write_rows;

use crate::ingest::json::{write_scalar, write_string};
use crate::service::query::{DimensionValue, GroupValue};

/// A field's name as a JSON member name with a colon.
fn member_name(name: &str) -> Vec<u8> {
    let mut member = Vec::with_capacity(name.len() + 3);
    write_string(name, &mut member);
    member.push(b':');
    member
}

/// Writes a value, or null if there is none.
fn write_value(value: Option<GroupValue<'_>>, out: &mut Vec<u8>) {
    match value {
        Some(GroupValue::Value(value)) => write_scalar(value, out),
        Some(GroupValue::Null) | None => out.extend_from_slice(b"null"),
    }
}

/// Writes the value of a dimension, or null if there is none.
fn write_dimension(value: &DimensionValue, out: &mut Vec<u8>) {
    match value {
        Some(value) => write_string(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes a text that needs no escapes.
fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}
