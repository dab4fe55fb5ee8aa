//! Rules of the project that no compiler checks: allowed imports, length of files, forbidden content. Sources are read
//! as text; a message names the file and the rule.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/layering.rs"]
mod layering;
#[path = "tidy/map.rs"]
mod map;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/style.rs"]
mod style;
