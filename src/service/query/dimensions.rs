//! Dimensions in queries: which series match the conditions on them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{SeriesSnapshot, View};

use super::QueryInput;
use super::immediate::IMMEDIATE_SERIES_MAX;
use super::plan::{Plan, QuerySources};
use crate::bucket::IndexedView;
use crate::catalog::{Dimensions, Source};
use crate::error::{Detail, ServiceError, shown_names};
use crate::query_pool::took_too_long;
use crate::series::Matcher;

/// Number of series that are selected and grouped in a short turn.
const SHORT_SERIES_MAX: u64 = 1 << 12;
/// What it costs to look up the series of a source that have a value, in series that are selected otherwise.
const LOOKUP_SERIES: usize = 64;
/// Names of dimensions after which a message looks for no more.
const NAMES_MAX: usize = 64;

/// A condition on a dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct DimensionFilter {
    /// Name of the dimension.
    pub name: Box<str>,
    /// Which values match.
    pub matcher: Matcher,
}

/// The series of a source that match all conditions. `stop` is asked with their number.
pub(super) fn matching_series<'v>(
    filters: &[DimensionFilter],
    source: &Source,
    indexed: &'v IndexedView,
    stop: &dyn Fn(usize) -> bool,
) -> Result<Box<dyn Iterator<Item = SeriesSnapshot> + 'v>, ServiceError> {
    let view = &indexed.view;
    if filters.is_empty() || (source.dimensions.is_none() && absent_matches(filters)) {
        return Ok(Box::new(view.source(source.ordinal)));
    }
    let members = view
        .members(source.ordinal)
        .filter(|_| source.dimensions.is_some());
    let Some(members) = members else {
        return Ok(Box::new(std::iter::empty()));
    };
    let mut found = Cow::Borrowed(&**members);
    for DimensionFilter { name, matcher } in filters {
        found = Cow::Owned(indexed.index.select(source.ordinal, name, matcher, &found)?);
    }
    if stop(found.len() as usize) {
        return Err(took_too_long());
    }
    let found = found.into_owned().into_iter();
    Ok(Box::new(found.filter_map(|ordinal| view.series(ordinal))))
}

/// Whether a series without any dimension matches.
pub(super) fn absent_matches(filters: &[DimensionFilter]) -> bool {
    filters.iter().all(|filter| filter.matcher.passes(None))
}

/// Whether a source has a dimension of this name: one that it lists or, if all are dimensions, one that its points have;
/// any name while it has no points.
///
/// # Errors
/// The index or a block cannot be read.
pub(in crate::service) fn has_dimension(
    source: &Source,
    name: &str,
    indexed: &IndexedView,
    cutoff_ns: i64,
) -> Result<bool, ServiceError> {
    match source.dimensions.as_deref() {
        None => Ok(false),
        Some(dimensions @ Dimensions::Named(_)) => Ok(dimensions.has(name)),
        Some(Dimensions::All) => {
            let Some(members) = indexed.view.members(source.ordinal) else {
                return Ok(true);
            };
            let view = &indexed.view;
            let is_visible = |ordinal| view.is_visible(ordinal, cutoff_ns, &|| false, &mut Err);
            if (indexed.index).any_having(source.ordinal, name, |ordinal| {
                Ok::<_, ServiceError>(members.contains(ordinal) && is_visible(ordinal)?)
            })? {
                return Ok(true);
            }
            for ordinal in &**members {
                if is_visible(ordinal)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// The names of the dimensions of some sources, for a message.
///
/// # Errors
/// The index cannot be read.
pub(in crate::service) fn available_dimensions<'s>(
    sources: impl IntoIterator<Item = &'s Arc<Source>>,
    indexed: &IndexedView,
    cutoff_ns: i64,
) -> Result<String, ServiceError> {
    let mut names: BTreeSet<Box<str>> = BTreeSet::new();
    let mut are_all = true;
    for source in sources {
        if names.len() >= NAMES_MAX {
            are_all = false;
            break;
        }
        match source.dimensions.as_deref() {
            None => {}
            Some(Dimensions::Named(listed)) => names.extend(listed.iter().cloned()),
            Some(Dimensions::All) => {
                let visible = indexed
                    .view
                    .visible(source.ordinal, cutoff_ns, &|| false, &mut Err)?;
                names.extend(indexed.index.all_names(source.ordinal, &visible)?);
            }
        }
    }
    let shown = shown_names(names.iter().map(|name| &**name));
    Ok(match are_all {
        true => shown,
        false => format!("{shown}, and others"),
    })
}

/// Whether an immediate turn may select the series: they are few, or are looked up by their values. Those of all sources
/// without conditions are counted when they are found. A series that is found by a value shows that the dimension exists;
/// for all else, that has to be made sure of.
pub(super) fn looks_at_few(sources: &QuerySources, input: &QueryInput, indexed: &IndexedView) -> bool {
    let looked_up = input.dimensions.iter().map(|filter| filter.matcher.looked_up());
    let Some(values) = looked_up.sum::<Option<usize>>() else {
        return false;
    };
    if !input.group_by_dimensions.is_empty() {
        return false;
    }
    let selects_all = input.dimensions.is_empty();
    let looked_at = |source: u32| {
        let members = indexed.view.members(source).map_or(0, |members| members.len());
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        if selects_all {
            return members;
        }
        members.min(values.saturating_mul(LOOKUP_SERIES + indexed.index.recent_len(source)))
    };
    let mut left = IMMEDIATE_SERIES_MAX;
    let mut is_within = |source: u32| {
        // A source costs something, however few series it has.
        let cost = looked_at(source).saturating_add(1);
        left.checked_sub(cost).map(|less| left = less).is_some()
    };
    match sources {
        QuerySources::All(_) if selects_all => true,
        QuerySources::All(_) => indexed.view.split_sources().all(&mut is_within),
        QuerySources::Named(sources) => sources.iter().all(|source| is_within(source.ordinal)),
    }
}

impl Plan {
    /// Whether selecting and grouping the series alone exceeds a short turn.
    pub(super) fn selects_many(&self, view: &View) -> bool {
        let uses_dimensions =
            !(self.input.dimensions.is_empty() && self.input.group_by_dimensions.is_empty());
        let members = |source: u32| view.members(source).map_or(0, |members| members.len());
        let series: u64 = match &self.sources {
            QuerySources::All(_) if !uses_dimensions => 0,
            QuerySources::All(_) => view.split_sources().map(members).sum(),
            QuerySources::Named(sources) => sources.iter().map(|source| members(source.ordinal)).sum(),
        };
        let max = if uses_dimensions {
            SHORT_SERIES_MAX
        } else {
            8 * SHORT_SERIES_MAX
        };
        series > max
    }

    /// Finds names of dimensions that no selected source has.
    pub(super) fn dimension_faults(&self, indexed: &IndexedView) -> Result<Vec<Detail>, ServiceError> {
        let input = &self.input;
        let filters = input.dimensions.iter().map(|filter| {
            let path = ["filters", "dimensions", &filter.name].map(str::to_owned);
            (&*filter.name, path.to_vec())
        });
        let groups = input.group_by_dimensions.iter().enumerate().map(|(index, name)| {
            let path = ["groupByDimensions".to_owned(), index.to_string()];
            (&**name, path.to_vec())
        });
        let mut faults = Vec::new();
        for (name, path) in filters.chain(groups) {
            if !self.has_dimension(name, indexed)? {
                let available = match &self.sources {
                    QuerySources::All(pages) => available_dimensions(pages.iter(), indexed, self.cutoff_ns)?,
                    QuerySources::Named(sources) => available_dimensions(sources, indexed, self.cutoff_ns)?,
                };
                let message =
                    format!("no selected data source has a dimension {name:?}; available: {available}");
                faults.push(Detail { path, message });
            }
        }
        Ok(faults)
    }

    fn has_dimension(&self, name: &str, indexed: &IndexedView) -> Result<bool, ServiceError> {
        let has = |source: &Source| has_dimension(source, name, indexed, self.cutoff_ns);
        match &self.sources {
            QuerySources::Named(sources) => {
                for source in sources {
                    if has(source)? {
                        return Ok(true);
                    }
                }
            }
            QuerySources::All(pages) => {
                // Usually one of those with series has it.
                for source in indexed
                    .view
                    .split_sources()
                    .filter_map(|ordinal| pages.get(ordinal))
                {
                    if has(source)? {
                        return Ok(true);
                    }
                }
                for source in pages.iter().filter(|source| source.dimensions.is_some()) {
                    if has(source)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}
