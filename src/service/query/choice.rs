//! Decides the form of an answer: points, or groups by a requested or chosen step, in a time zone.

use std::borrow::Cow;

use engine::query::{Downsampling, Expected, choose_unit, finest_step};
use engine::{Earlier, LocalStep, SeriesStats, Step as TimeStep, Zone};

use super::plan::{FoundSeries, Plan};
use super::{Aggregation, Aggregations, Compare, step_name, zones};
use crate::catalog::FieldType;
use crate::clock::DAY_NS;
use crate::error::ServiceError;
use crate::query_pool::{Stop, Turn};

/// Upper bound of a step: a leap year plus a change of the zone's offset.
const STEP_NS_MAX: i64 = 368 * DAY_NS;

/// Maximum number of sources whose points are counted in a short turn.
const SHORT_COUNTS_MAX: u64 = 64;

/// How rows are grouped, and whether that was requested or chosen by downsampling.
pub(super) struct Grouping {
    pub(super) aggregations: Aggregations,
    /// `None`: the range is a single step.
    step: Option<TimeStep>,
    /// Name of the step in the API.
    pub(super) step_name: Cow<'static, str>,
    /// The time zone of the steps; `None` for UTC.
    zone: Option<Zone>,
    pub(super) chosen: Option<Downsampling>,
    /// Whether booleans are aggregated to the share of time in which they are true.
    pub(super) shares: bool,
}

impl Grouping {
    /// The step in its time zone. `first_ns`: where the step of the whole range begins, if it is that.
    pub(super) fn local_step(&self, first_ns: i64) -> LocalStep<'_> {
        let step = self.step.unwrap_or(TimeStep::From(first_ns));
        step.by(self.zone.as_ref())
    }

    /// By how much earlier the steps are that are compared.
    pub(super) fn earlier(&self, compare: Compare) -> Earlier<'_> {
        compare.earlier(self.zone.as_ref())
    }

    /// Whether the range is a single step.
    pub(super) fn is_whole(&self) -> bool {
        self.step.is_none()
    }
}

impl Plan {
    /// The time zone of the steps, for the time range that has points.
    fn zone(&self, reached: &FoundSeries, stop: &Stop) -> Result<Option<Zone>, ServiceError> {
        let Some(timezone) = &self.input.timezone else {
            return Ok(None);
        };
        let mut bounds = None;
        for it in &reached.series {
            let stats = it
                .series
                .stats_within((self.cutoff_ns, i64::MAX), &|| stop.now(), &mut Err)?;
            let (first, last) = stats.bounds_ns.unwrap_or(self.range_ns);
            let (least, greatest) = bounds.unwrap_or((first, last));
            bounds = Some((first.min(least), last.max(greatest)));
        }
        let (mut first, mut last) = bounds.unwrap_or((0, 0));
        (first, last) = (first.max(self.range_ns.0), last.min(self.range_ns.1));
        if let (Some(_), Some(start_ns), Some(end_ns)) =
            (self.input.fill, self.input.start_ns, self.input.end_ns)
        {
            (first, last) = (first.min(start_ns), last.max(end_ns));
        }
        let earlier_ns = self.input.compare.map_or(0, Compare::ns);
        let within = (
            first.saturating_sub(earlier_ns).saturating_sub(STEP_NS_MAX),
            last.saturating_add(STEP_NS_MAX),
        );
        Ok(Some(zones::offsets_within(timezone, within)))
    }

    /// How the rows of the answer are grouped; `None` for an answer of points.
    pub(super) fn grouping(
        &self,
        reached: &FoundSeries,
        stop: &Stop,
    ) -> Result<Option<Grouping>, ServiceError> {
        if let Some(requested) = self.requested_grouping(reached, stop)? {
            return Ok(Some(requested));
        }
        let zone = self.zone(reached, stop)?;
        let chosen = match self.input.max_points {
            Some(points_max) => self.fitting(reached, points_max, zone.as_ref(), stop)?,
            None => self.downsampling(reached, stop)?,
        };
        Ok(chosen.map(|chosen| Grouping {
            aggregations: Aggregations::One(Aggregation::Avg),
            step: Some(chosen.step),
            step_name: step_name(chosen.step),
            zone,
            chosen: Some(chosen),
            shares: self.input.max_points.is_some(),
        }))
    }

    /// The grouping that the query asks for. It does not depend on the groups of the series.
    pub(super) fn requested_grouping(
        &self,
        reached: &FoundSeries,
        stop: &Stop,
    ) -> Result<Option<Grouping>, ServiceError> {
        let Some((aggregations, group_by)) = &self.input.grouping else {
            return Ok(None);
        };
        Ok(Some(Grouping {
            aggregations: aggregations.clone(),
            step: group_by.step(),
            step_name: Cow::Owned(group_by.as_str().to_owned()),
            zone: self.zone(reached, stop)?,
            chosen: None,
            shares: false,
        }))
    }

    /// Whether choosing a step alone exceeds a turn: for each source, blocks at the ends of the range are read.
    pub(super) fn counts_many(&self, reached: &FoundSeries, turn: Turn) -> bool {
        let max = turn.max(SHORT_COUNTS_MAX);
        self.input.max_points.is_some() && reached.series.len() as u64 > max
    }

    /// Whether, and to which step, to downsample a query with a maximum number of points per source.
    fn fitting(
        &self,
        reached: &FoundSeries,
        points_max: u64,
        zone: Option<&Zone>,
        stop: &Stop,
    ) -> Result<Option<Downsampling>, ServiceError> {
        let has_any = self.has_field(FieldType::Number) || self.has_field(FieldType::Boolean);
        if self.input.cursor.is_some() || !has_any {
            return Ok(None);
        }
        let mut held = stop.budget().hold();
        let mut found: Vec<SeriesStats> = Vec::new();
        held.reserve(&mut found, reached.groups.len())?;
        found.resize_with(reached.groups.len(), SeriesStats::default);
        for it in &reached.series {
            let stats = it.series.stats_within(self.range_ns, &|| stop.now(), &mut Err)?;
            found[it.group as usize].join(stats);
        }
        Ok(finest_step(&found, points_max, zone))
    }

    /// Whether, and to which unit, to downsample a query without grouping.
    fn downsampling(&self, reached: &FoundSeries, stop: &Stop) -> Result<Option<Downsampling>, ServiceError> {
        let wanted = self.input.downsampling
            && self.input.cursor.is_none()
            && self.sources.all_downsampling()
            && self.has_field(FieldType::Number);
        if !wanted {
            return Ok(None);
        }
        let mut held = stop.budget().hold();
        let mut stats: Vec<SeriesStats> = Vec::new();
        held.reserve(&mut stats, reached.groups.len())?;
        stats.resize_with(reached.groups.len(), SeriesStats::default);
        for it in &reached.series {
            let of_it = it
                .series
                .stats_within((self.cutoff_ns, i64::MAX), &|| stop.now(), &mut Err)?;
            stats[it.group as usize].join(of_it);
        }
        held.grow(stats.len() * size_of::<Expected>())?;
        let expected = stats
            .into_iter()
            .filter_map(|stats| Expected::of(stats, self.range_ns));
        Ok(choose_unit(&expected.collect::<Vec<_>>()))
    }
}
