//! Chapter 3: buckets and data sources.

mod deletion;
mod lifecycle;
mod retention;
mod schema;
mod sources;
mod stats;
