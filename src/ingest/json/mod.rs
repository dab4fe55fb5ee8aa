//! Reads and writes JSON without a tree: a strict pull scanner (RFC 8259) for the ingest bodies, and writers for
//! numbers and strings of answers. Knows nothing about points and sources. Never recurses: the nesting of a body is
//! limited by [`DEPTH_MAX`], not by the stack. The scanner is used by `ingest`, the writers by everything that produces
//! answers.
//!
//! Hand-written because a visitor on `sonic-rs` that writes the same columns takes 1.8 times as long
//! (`benches/parse.rs`).

mod number;
mod scan;
mod skip;
mod string;
mod write;

pub use number::Number;
pub use scan::{Kind, Malformed, Scanner};
pub use skip::DEPTH_MAX;
pub use string::Text;
pub use write::{write_number, write_scalar, write_string};

#[cfg(test)]
mod tests;
