//! The time-series engine: one store per bucket, and segment files that contain blocks of many buckets.
//!
//! The engine is synchronous and uses no I/O, clock or log: rows arrive as the bytes of a log record ([`rows`]),
//! segments are written to a writer and read from mapped bytes, and the time is an argument. Start with [`Store`]: it
//! takes rows and returns [`View`]s, from which a caller selects [`SeriesSnapshot`]s; [`query`] runs queries on those.
//! FORMAT.md describes the on-disk formats.

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
mod content;
mod decimal;
mod deletion;
mod ends;
mod entry;
mod error;
mod expired;
mod head;
mod left;
mod local_step;
mod members;
mod merge;
mod pages;
mod rollup;
mod row_buffer;
mod segment;
mod series;
mod snapshot;
mod step;
mod store;
mod times;
mod value;
mod zone;

pub use aggregate::Aggregate;
pub use bitmap::Bitmap;
pub use block::{BLOCK_ROWS_MAX, BLOCK_VERSION, FieldKind};
pub use cache::Cache;
pub use calendar::Unit;
pub use checkpoint::Checkpoint;
pub use choose::{SegmentUse, choose_merge};
pub use column::{Column, FieldColumn, Texts, Values};
pub use columns::Columns;
pub use content::{Content, SharedBytes};
pub use deletion::{Deleted, Deletion, PointFilter, RowFilters};
pub use ends::source_of_ends;
pub use error::{DamagedBlock, EngineError};
pub use expired::ExpiredRows;
pub use local_step::{Earlier, LocalStep};
pub use members::{SERIES_ORDINALS_FROM, SeriesRef};
pub use merge::{Merge, MergeError};
pub use segment::{
    DeadRanges, FooterStart, Lost, LostBlock, SEGMENT_VERSION, Salvaged, SegmentFile, SegmentPart,
    SegmentRow, SegmentWriter, footer_start, salvage,
};
pub use series::{Seal, Sealed, SeriesStats};
pub use snapshot::{SeriesSnapshot, SourceStats, View};
pub use step::{Length, Step};
pub use store::Store;
pub use zone::Zone;

#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod ends_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod snapshot_tests;

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
