//! Names and values of the dimensions of a source, with the series that have them.

use std::collections::BTreeMap;

use engine::SeriesRef;
use roaring::RoaringBitmap;

use super::entries::{self, EVERYWHERE, Posting};
use super::index::SeriesIndex;
use crate::catalog::SeriesEntry;
use crate::ledger::LedgerError;

/// The values of a dimension in order of their bytes, each with the series that have it.
pub type Values = BTreeMap<Box<str>, RoaringBitmap>;

/// A dimension with its number of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimensionValues {
    pub name: Box<str>,
    pub values: u64,
}

/// Up to this many series, their labels are read one by one.
pub(super) const SINGLE_SERIES_MAX: u64 = 64;

impl SeriesIndex {
    /// The names that series among these have, in order of their bytes, with their numbers of values.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn names(&self, source: u32, among: &RoaringBitmap) -> Result<Vec<DimensionValues>, LedgerError> {
        let mut names: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for name in self.all_names(source, among)? {
            let values = self.values(source, &name, "", among)?.len() as u64;
            names.insert(name, values);
        }
        let names = names.into_iter();
        Ok(names
            .map(|(name, values)| DimensionValues { name, values })
            .collect())
    }

    /// The names that series among these have, in order of their bytes.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn all_names(&self, source: u32, among: &RoaringBitmap) -> Result<Vec<Box<str>>, LedgerError> {
        let mut names: BTreeMap<Box<str>, ()> = BTreeMap::new();
        let recent = self.recent(source);
        self.for_each_posting(SeriesEntry::Name, source, EVERYWHERE, |posting| {
            if !posting.series.is_disjoint(among) {
                names.insert(posting.name, ());
            }
        })?;
        for it in recent.iter().flat_map(|some| some.iter()) {
            if among.contains(it.series.ordinal) {
                for (name, _) in it
                    .labels
                    .iter()
                    .filter(|(name, _)| !names.contains_key(*name))
                    .collect::<Vec<_>>()
                {
                    names.insert(name.into(), ());
                }
            }
        }
        Ok(names.into_keys().collect())
    }

    /// The values of a dimension that begin with `prefix`, with the series among these that have them.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn values(
        &self,
        source: u32,
        name: &str,
        prefix: &str,
        among: &RoaringBitmap,
    ) -> Result<Values, LedgerError> {
        let mut values = Values::new();
        if among.len() <= SINGLE_SERIES_MAX {
            for ordinal in among {
                let labels = self.labels(SeriesRef { ordinal, source })?;
                let value = labels.as_ref().and_then(|labels| labels.get(name));
                if let Some(value) = value.filter(|value| value.starts_with(prefix)) {
                    values.entry(value.into()).or_default().insert(ordinal);
                }
            }
            return Ok(values);
        }
        let recent = self.recent(source);
        let range = entries::of_values(name, prefix);
        self.for_each_posting(
            SeriesEntry::Value,
            source,
            range,
            |Posting {
                 name: of,
                 value,
                 series,
             }| {
                if *of == *name && value.starts_with(prefix) {
                    let series = series & among;
                    if !series.is_empty() {
                        *values.entry(value).or_default() |= series;
                    }
                }
            },
        )?;
        for it in recent.iter().flat_map(|some| some.iter()) {
            let value = it.labels.get(name).filter(|value| value.starts_with(prefix));
            if let Some(value) = value.filter(|_| among.contains(it.series.ordinal)) {
                values.entry(value.into()).or_default().insert(it.series.ordinal);
            }
        }
        Ok(values)
    }
}
