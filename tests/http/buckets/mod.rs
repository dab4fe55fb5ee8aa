//! Chapter 3: buckets and data sources.

mod deletion;
mod lifecycle;
mod schema;
mod sources;
mod stats;
