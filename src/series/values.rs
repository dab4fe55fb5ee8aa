//! Names and values of the dimensions of a source, with the series that have them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine::{SERIES_ORDINALS_FROM, SeriesRef};
use roaring::RoaringBitmap;

use super::chunks::Chunks;
use super::entries::{self, EVERYWHERE};
use super::index::SeriesIndex;
use super::order::in_order;
use super::postings::PostedSeries;
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

/// The dimension with most values is found again when a bucket has got more than this part of its series since.
const FULLEST_KEPT_SHARE: u32 = 8;
/// Number of sources for which it is kept.
const FULLEST_MAX: usize = 1_024;

impl SeriesIndex {
    /// The dimension of a source with most values, among all series in the index. It is found again only after
    /// the bucket has got more series.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn fullest(&self, source: u32) -> Result<Option<DimensionValues>, LedgerError> {
        let next_ordinal = {
            let state = self.state.read();
            let next_ordinal = state.unsaved.next_ordinal;
            match state.fullest.get(&source) {
                Some((at, found))
                    if (next_ordinal - at).saturating_mul(FULLEST_KEPT_SHARE)
                        <= at - SERIES_ORDINALS_FROM =>
                {
                    return Ok(found.clone());
                }
                _ => next_ordinal,
            }
        };
        let all = self.all_of(source)?;
        // Of several, the first.
        let names = self.names(source, &all)?.into_iter().rev();
        let found = names.max_by_key(|it| it.values);
        let fullest = &mut self.state.write().fullest;
        if fullest.len() >= FULLEST_MAX {
            fullest.clear();
        }
        if found.is_some() {
            fullest.insert(source, (next_ordinal, found.clone()));
        }
        Ok(found)
    }

    /// The names that series among these have, in order of their bytes, with their numbers of values.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn names(&self, source: u32, among: &RoaringBitmap) -> Result<Vec<DimensionValues>, LedgerError> {
        let names = self.all_names(source, among)?.into_iter();
        names.map(|name| self.dimension(source, &name, among)).collect()
    }

    /// A dimension with the number of values that series among these have.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn dimension(
        &self,
        source: u32,
        name: &str,
        among: &RoaringBitmap,
    ) -> Result<DimensionValues, LedgerError> {
        let values = self.count_values(source, name, "", among)?.len() as u64;
        let name = name.into();
        Ok(DimensionValues { name, values })
    }

    /// The names that series among these have, in order of their bytes.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn all_names(&self, source: u32, among: &RoaringBitmap) -> Result<Vec<Box<str>>, LedgerError> {
        let mut names: BTreeMap<Box<str>, ()> = BTreeMap::new();
        let recent = self.recent(source);
        self.for_each_posting(SeriesEntry::Name, source, EVERYWHERE, |posting| {
            if posting.series.any_among(among) {
                names.insert(posting.name.into(), ());
            }
            Ok::<_, LedgerError>(true)
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
        self.for_each_value(source, name, prefix, among, |value, series, among| {
            if series.any_among(among) {
                series.add_among(among, values.entry(value.into()).or_default());
            }
            Ok::<_, LedgerError>(())
        })?;
        Ok(values)
    }

    /// The same in order of their bytes, with the numbers of series that have them.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn count_values(
        &self,
        source: u32,
        name: &str,
        prefix: &str,
        among: &RoaringBitmap,
    ) -> Result<Vec<(Box<str>, u64)>, LedgerError> {
        let mut counted: Vec<(Box<str>, u64)> = Vec::new();
        self.for_each_value(source, name, prefix, among, |value, series, among| {
            let having = series.count_among(among);
            match counted.last_mut() {
                Some((last, count)) if **last == *value => *count += having,
                _ if having > 0 => counted.push((value.into(), having)),
                _ => {}
            }
            Ok::<_, LedgerError>(())
        })?;
        // They come in order of their first bytes only.
        Ok(in_order(counted))
    }

    /// Passes each of these series that has the dimension to `each`, with its value.
    ///
    /// # Errors
    /// The ledger cannot be read, or an error of `each`.
    pub fn for_each_series<E: From<LedgerError>>(
        &self,
        source: u32,
        name: &str,
        among: &RoaringBitmap,
        mut each: impl FnMut(&str, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        self.for_each_value(source, name, "", among, |value, series, among| {
            series.try_for_each_among(among, |ordinal| each(value, ordinal))
        })
    }

    /// Passes the values of a dimension that begin with `prefix` to `each`: the value, series that have it, and among
    /// which of them they are looked for. A value may come several times, each time with other series.
    fn for_each_value<E: From<LedgerError>>(
        &self,
        source: u32,
        name: &str,
        prefix: &str,
        among: &RoaringBitmap,
        mut each: impl FnMut(&str, &PostedSeries, &RoaringBitmap) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut few = Values::new();
        if among.len() <= SINGLE_SERIES_MAX {
            for ordinal in among {
                let labels = self.labels(SeriesRef { ordinal, source })?;
                let value = labels.as_ref().and_then(|labels| labels.get(name));
                if let Some(value) = value.filter(|value| value.starts_with(prefix)) {
                    few.entry(value.into()).or_default().insert(ordinal);
                }
            }
            return few
                .into_iter()
                .try_for_each(|(value, series)| each(&value, &PostedSeries::Any(series), among));
        }
        // Recent series first: one that a checkpoint moves meanwhile is then found at least once. In the ledger, it is
        // not looked for again.
        let mut recent = RoaringBitmap::new();
        for it in self.recent(source).iter().flat_map(|some| some.iter()) {
            recent.insert(it.series.ordinal);
            let value = it.labels.get(name).filter(|value| value.starts_with(prefix));
            if let Some(value) = value {
                few.entry(value.into()).or_default().insert(it.series.ordinal);
            }
        }
        few.into_iter()
            .try_for_each(|(value, series)| each(&value, &PostedSeries::Any(series), among))?;
        let saved = match recent.is_empty() {
            true => Cow::Borrowed(among),
            false => Cow::Owned(among - recent),
        };
        let mut saved = Chunks::of(&saved);
        let range = entries::of_values(name, prefix);
        self.for_each_posting(SeriesEntry::Value, source, range, |posting| {
            if *posting.name == *name && posting.value.starts_with(prefix) {
                each(
                    posting.value,
                    &posting.series,
                    saved.around(posting.series.ends()),
                )?;
            }
            Ok(true)
        })
    }
}
