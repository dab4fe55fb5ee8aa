//! The fuzz targets: functions of the input's bytes that panic if a property is violated. They are independent of the
//! fuzzer: `fuzz/binaries` passes them to libFuzzer, `tests/fuzz.rs` runs them on the saved inputs.

mod agent_body;
mod block_columns;
mod bytes;
mod catalog_objects;
mod ingest_body;
mod jwt;
mod log_file;
mod memory;
mod query_body;
mod rows;
mod rows_of;
mod run_file;
mod segment;
mod table_file;
mod webhook_url;

/// A name, which is also that of a binary and of a directory in `fuzz/corpus`, and the function that checks an input.
pub type Target = (&'static str, fn(&[u8]));

pub const ALL: [Target; 12] = [
    ("agent_body", agent_body::check),
    ("block_columns", block_columns::check),
    ("catalog_objects", catalog_objects::check),
    ("ingest_body", ingest_body::check),
    ("jwt", jwt::check),
    ("log_file", log_file::check),
    ("query_body", query_body::check),
    ("rows", rows::check),
    ("run_file", run_file::check),
    ("segment", segment::check),
    ("table_file", table_file::check),
    ("webhook_url", webhook_url::check),
];
