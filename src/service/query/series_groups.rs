//! Groups of series: the points of a group are together in a row of an answer.

use std::sync::Arc;

use engine::query::Held;

use super::plan::{Plan, QuerySources, ReachedSeries};
use crate::bucket::IndexedView;
use crate::catalog::Source;
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// The value of a dimension; `None` for a series without it.
pub type DimensionValue = Option<Arc<str>>;

/// A group of series.
#[derive(Clone, Debug)]
pub(super) struct SeriesGroup {
    /// Their source; `None` if sources are merged.
    pub(super) source_id: Option<ObjectId>,
    /// The values of the dimensions by which series are grouped.
    pub(super) dimensions: Box<[DimensionValue]>,
    /// Index of the schema; 0 if sources are merged.
    pub(super) schema: usize,
    /// Number of series.
    pub(super) series: usize,
}

impl SeriesGroup {
    /// A group without series, of a source with its schema.
    pub(super) fn new(source: Option<(ObjectId, usize)>, dimensions: Box<[DimensionValue]>) -> Self {
        SeriesGroup {
            source_id: source.map(|(id, _)| id),
            dimensions,
            schema: source.map_or(0, |(_, schema)| schema),
            series: 0,
        }
    }

    /// What groups are ordered by, and what is unique.
    pub(super) fn key(&self) -> (Option<ObjectId>, &[DimensionValue]) {
        (self.source_id, &self.dimensions)
    }
}

impl Plan {
    /// Whether the points of all sources are together.
    pub(super) fn is_merged(&self) -> bool {
        // It applies only to requested groups.
        self.input.merge_sources && self.input.grouping.is_some()
    }

    /// Assigns series, which are sorted by source and ordinal, to groups. Afterwards they are sorted by their groups,
    /// which are in the order of rows at the same time.
    pub(super) fn groups_of(
        &self,
        series: &mut [ReachedSeries],
        indexed: &IndexedView,
        held: &mut Held<'_>,
    ) -> Result<Vec<SeriesGroup>, ServiceError> {
        if !self.input.group_by_dimensions.is_empty() {
            return self.group_by_dimensions(series, indexed, held);
        }
        let mut groups: Vec<SeriesGroup> = Vec::new();
        for it in series {
            let source = (!self.is_merged()).then_some((it.source.id, it.schema));
            let last = groups.last().map(|group| group.source_id);
            if last != Some(source.map(|(id, _)| id)) {
                held.reserve(&mut groups, 1)?;
                groups.push(SeriesGroup::new(source, Box::default()));
            }
            it.group = groups.len() as u32 - 1;
            if let Some(group) = groups.last_mut() {
                group.series += 1;
            }
        }
        Ok(groups)
    }

    /// The groups that a table has rows of: those reached or, if steps without points are rows too and nothing was
    /// chosen, those of all selected sources.
    pub(super) fn row_groups(
        &self,
        reached: &[SeriesGroup],
        held: &mut Held<'_>,
    ) -> Result<Vec<SeriesGroup>, ServiceError> {
        let mut groups = Vec::new();
        let has_all = self.input.fill.is_some() && self.input.group_by_dimensions.is_empty();
        if !has_all || (self.input.top.is_some() && !self.is_merged()) {
            held.reserve(&mut groups, reached.len())?;
            groups.extend(reached.iter().cloned());
            return Ok(groups);
        }
        if self.is_merged() {
            groups.push(SeriesGroup::new(None, Box::default()));
            return Ok(groups);
        }
        let mut add = |source: &Arc<Source>| {
            held.reserve(&mut groups, 1)?;
            let source = (source.id, self.place(source)?);
            groups.push(SeriesGroup::new(Some(source), Box::default()));
            Ok::<_, ServiceError>(())
        };
        match &self.sources {
            QuerySources::All(pages) => pages.iter().try_for_each(&mut add)?,
            QuerySources::Named(sources) => sources.iter().try_for_each(&mut add)?,
        }
        groups.sort_unstable_by_key(|group| group.source_id);
        Ok(groups)
    }
}
