//! JSON read and written without a tree: a strict pull scanner (RFC 8259) for the ingest bodies, and the numbers
//! and strings of answers. It knows nothing of points and sources, and never recurses: how deep a body nests is
//! bounded by [`DEPTH_MAX`], not by the stack. Called by `ingest`, and the writing half by whoever answers.

mod number;
mod scan;
mod skip;
mod string;
mod write;

pub use number::Number;
pub use scan::{Kind, Malformed, Scanner};
pub use skip::DEPTH_MAX;
pub use string::Text;
pub use write::{write_number, write_string};

#[cfg(test)]
mod tests;
