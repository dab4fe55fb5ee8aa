//! Tests of the engine's public API: random operations against a naive model, damage, and old formats.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod damage;
mod entries;
mod files;
mod fixtures;
mod in_parts;
mod model;
mod naive;
mod packed;
mod sums;
mod together;
