//! The series of a bucket: sources that are split by dimensions have one series for each combination of values.
//!
//! A series is known to the engine by its ordinal. This module keeps which labels (dimensions with their values) belong
//! to which ordinal, and finds series by their labels. Series since the last checkpoint are in memory; a checkpoint
//! writes them to the ledger's stream `Series`, as entries that are looked up there, so that a restart reads only which
//! series belong to which source. The entries are described in FORMAT.md of the ledger, "Series".
//!
//! - `labels`: labels and their encoding. `matcher`: conditions on labels.
//! - `index`: the index of a bucket. `entries`: its entries in the ledger. `postings`: what those of names and values have.
//!   `values`: names and values with the series that have them. `chunks`: sets of series as the entries divide them.
//!   `forgotten`: series without points leave the index.

mod chunks;
mod entries;
mod forgotten;
mod index;
mod labels;
mod matcher;
mod order;
mod postings;
mod values;

#[cfg(test)]
mod tests;

pub use entries::new_entries;
pub use forgotten::{ForgettingBudget, IndexReader, StoreCounts};
pub use index::{NewSeries, SeriesIndex, Unsaved};
pub use labels::{Labels, LabelsWriter, digest_of};
pub use matcher::{Matcher, Pattern};
pub use order::places_in_order;
pub use values::{DimensionValues, Values};

pub use crate::ledger::Digest;
