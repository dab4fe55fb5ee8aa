//! What each fuzz target checks, as a function of the input's bytes that panics where its property does not hold. Free of
//! any fuzzer: `fuzz/binaries` gives these functions to libFuzzer, `tests/fuzz.rs` the inputs that are kept.

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
mod webhook_url;

/// A name, which is that of a binary and of a directory in `fuzz/corpus`, and what checks an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by name.
pub const ALL: [Target; 10] = [
    ("block_columns", block_columns::check),
    ("catalog_objects", catalog_objects::check),
    ("ingest_body", ingest_body::check),
    ("jwt", jwt::check),
    ("log_file", log_file::check),
    ("query_body", query_body::check),
    ("rows", rows::check),
    ("run_file", run_file::check),
    ("segment", segment::check),
    ("webhook_url", webhook_url::check),
];
