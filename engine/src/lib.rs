//! The time-series engine: a store for each bucket, and segment files that hold blocks of many.
//!
//! Synchronous and free of I/O, clocks and logs: rows come in as bytes of a log record ([`rows`]), segments go out to
//! a writer and come back as mapped bytes, time is an argument. Read [`Store`] first: the store takes rows and hands
//! out [`View`]s, whoever has one chooses [`SeriesSnapshot`]s of it, and [`query`] answers questions to those. On-disk formats are drawn in FORMAT.md.

#![warn(missing_docs)]

pub mod query;
pub mod rows;
pub mod verify;

mod aggregate;
mod bitmap;
mod block;
mod bytes;
mod cache;
mod calendar;
mod checkpoint;
mod choose;
mod codec;
mod column;
mod columns;
mod decimal;
mod entry;
mod error;
mod expired;
mod left;
mod merge;
mod pages;
mod rollup;
mod segment;
mod series;
mod snapshot;
mod step;
mod store;
mod times;
mod zone;

pub use aggregate::Aggregate;
pub use bitmap::Bitmap;
pub use block::{BLOCK_ROWS_MAX, FieldKind, SharedBytes};
pub use cache::Cache;
pub use calendar::Unit;
pub use checkpoint::Checkpoint;
pub use choose::{SegmentUse, choose_merge};
pub use column::{Column, FieldColumn, Texts, Values};
pub use columns::Columns;
pub use error::{DamagedBlock, EngineError};
pub use expired::ExpiredRows;
pub use merge::{Merge, MergeError};
pub use segment::{Lost, LostBlock, PartStats, Salvaged, SegmentFile, SegmentPart, SegmentWriter, salvage};
pub use series::{Seal, Sealed, SeriesStats};
pub use snapshot::{SeriesSnapshot, Snapshot, View};
pub use step::{Length, Step};
pub use store::Store;
pub use zone::{LocalStep, Zone};

#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod snapshot_tests;

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
