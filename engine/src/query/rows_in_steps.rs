//! Statistics of one series, computed from its rows in order of time. A value holds until the next one of its field,
//! across steps, and the last one until the end of its step or of the range; growth belongs to the step of the later
//! value.

use std::ops::Range;

use super::budget::{Budget, Held};
use super::cell::Content;
use super::group::{GroupQuery, Grouping};
use super::open_step::{OpenStep, Part, Previous};
use super::ordered::{Batch, BatchRun, in_order, single};
use super::reader::Run;
use super::statistics::{Needs, Parts, Statistics};
use crate::EngineError;
use crate::column::Column;
use crate::snapshot::SeriesSnapshot;

/// A field of a source, and what is computed of it.
#[derive(Debug, Clone, Copy)]
pub struct NeededField {
    /// Ordinal of the field in the schema of its source.
    pub field: u16,
    /// Its number in the cells.
    pub number: u32,
    /// Its statistics.
    pub needs: Needs,
}

/// How the statistics of a query are completed.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    /// The quantiles to compute of values, between 0 and 1.
    pub quantiles: &'a [f64],
    /// Whether the cells have values of several series, so that they must be kept until all are added.
    pub is_merged: bool,
    /// The last value of a field holds at most until then.
    pub holds_until_ns: i64,
}

/// A field, its current step, and its previous value.
struct Walked<'b> {
    field: NeededField,
    previous: Option<Previous>,
    /// End of the step of the previous value.
    reached_ns: i64,
    step: Option<OpenStep>,
    /// The memory of the open step's statistics.
    held: Held<'b>,
}

impl<C: Content + From<Statistics>> Grouping<'_, C> {
    /// Adds statistics of a source's fields to the cells with the number `source`. The fields of `query` are those of
    /// `fields`, in the same order.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
    /// [`EngineError::OverBudget`].
    pub fn add_rows(
        &mut self,
        source: u32,
        series: &SeriesSnapshot,
        query: &GroupQuery<'_>,
        fields: &[NeededField],
        completion: &Completion<'_>,
    ) -> Result<(), EngineError> {
        if fields.is_empty() {
            return Ok(());
        }
        if !query.is_filtered() && fields.iter().all(|field| field.needs.are_ends()) {
            return self.add_first_last(source, series, query, fields, completion);
        }
        let follows = |field: &NeededField| field.needs.growth || field.needs.over_time;
        let reached = GroupQuery {
            // Without a previous value, only the wanted steps matter.
            range_ns: match fields.iter().any(follows) {
                true => query.range_ns,
                false => self.cells.reach(source, query.step, query.range_ns),
            },
            ..*query
        };
        self.walk(source, series, None, &reached, fields, completion)
    }

    /// The same for the rows of one run, or of all, in order of time.
    pub(super) fn walk(
        &mut self,
        source: u32,
        series: &SeriesSnapshot,
        run: Option<Run<'_>>,
        query: &GroupQuery<'_>,
        fields: &[NeededField],
        completion: &Completion<'_>,
    ) -> Result<(), EngineError> {
        let budget = self.budget;
        self.cells.expect(fields.len());
        let mut walk = Vec::new();
        let mut held = budget.hold();
        held.reserve(&mut walk, fields.len())?;
        // What open steps have besides their own size.
        let with_parts = fields.iter().filter(|field| field.needs.has_parts());
        held.grow(with_parts.count() * size_of::<Parts>())?;
        walk.extend(fields.iter().map(|field| Walked {
            field: *field,
            previous: None,
            reached_ns: i64::MAX,
            step: None,
            held: budget.hold(),
        }));
        let mut wants_rows = true;
        let mut each = |batch: &Batch<'_>, touched| {
            self.touched += touched;
            let mut steps = Steps {
                grouping: self,
                source,
                query,
                completion,
            };
            for walked in &mut walk {
                if wants_rows || walked.may_hold(&steps) {
                    walked.add(batch, &mut steps, budget)?;
                }
            }
            let last = batch.stretches.last();
            let last_ns = last.map(|(run, rows)| batch.runs[*run].times.get(rows.end.max(1) - 1));
            wants_rows &= last_ns.is_none_or(|last_ns| steps.wants_after(last_ns));
            Ok(wants_rows || walk.iter().any(|walked| walked.may_hold(&steps)))
        };
        match run {
            Some(run) => single(run, series, query, budget, &mut each).map(drop)?,
            None => in_order(series, query, budget, each)?,
        }
        let mut steps = Steps {
            grouping: self,
            source,
            query,
            completion,
        };
        walk.into_iter()
            .try_for_each(|mut walked| walked.end_step(&mut steps))
    }
}

/// Where completed steps go.
struct Steps<'g, 'b, C> {
    grouping: &'g mut Grouping<'b, C>,
    source: u32,
    query: &'g GroupQuery<'g>,
    completion: &'g Completion<'g>,
}

impl<C: Content + From<Statistics>> Steps<'_, '_, C> {
    /// Whether rows after this time may matter.
    fn wants_after(&self, at_ns: i64) -> bool {
        let wanted = &self.grouping.cells.wanted;
        let start_ns = self.query.step.start_ns(at_ns);
        start_ns <= wanted.starts_ns.1
            && (wanted.descending
                || start_ns < wanted.starts_ns.0
                || self.grouping.cells.admits(start_ns, self.source))
    }

    fn put(&mut self, start_ns: i64, number: u32, mut statistics: Statistics) -> Result<(), EngineError> {
        if !self.completion.is_merged {
            statistics.reduce(self.completion.quantiles);
        }
        self.grouping.touched.cells += 1;
        self.grouping
            .cells
            .add(start_ns, self.source, number, C::from(statistics))
    }
}

impl Walked<'_> {
    fn add<C: Content + From<Statistics>>(
        &mut self,
        batch: &Batch<'_>,
        steps: &mut Steps<'_, '_, C>,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        let mut decoded = budget.hold();
        let mut columns = Vec::new();
        decoded.reserve(&mut columns, batch.runs.len())?;
        for run in &batch.runs {
            columns.push(run.column(self.field.field, &mut decoded)?);
        }
        for (run, rows) in &batch.stretches {
            if let Some(column) = &columns[*run] {
                self.add_rows(&batch.runs[*run], column, rows.clone(), steps)?;
            }
        }
        Ok(())
    }

    /// Adds rows that follow each other, step by step.
    fn add_rows<C: Content + From<Statistics>>(
        &mut self,
        run: &BatchRun<'_>,
        column: &Column,
        rows: Range<usize>,
        steps: &mut Steps<'_, '_, C>,
    ) -> Result<(), EngineError> {
        let passes = run.passes.as_deref();
        let counts = |row: &usize| column.has(*row) && passes.is_none_or(|passes| passes[*row]);
        let mut row = rows.start;
        while let Some(first) = (row..rows.end).find(counts) {
            let first_ns = run.times.get(first);
            if self.step.as_ref().is_none_or(|step| first_ns >= step.next_ns) {
                self.end_step(steps)?;
                self.open_step(first_ns, steps)?;
            }
            let Some(step) = &mut self.step else { break };
            row = run.times.first_at(first + 1..rows.end, step.next_ns);
            let part = Part {
                run,
                column,
                rows: first..row,
                is_dense: passes.is_none() && column.present.is_none(),
            };
            step.add(&part, self.field.needs, &mut self.previous, &mut self.held)?;
        }
        Ok(())
    }

    fn open_step<C: Content + From<Statistics>>(
        &mut self,
        first_ns: i64,
        steps: &mut Steps<'_, '_, C>,
    ) -> Result<(), EngineError> {
        let step = steps.query.step;
        let bounds_ns = (step.start_ns(first_ns), step.next_ns(first_ns));
        if let Some((_, value)) = self.previous.filter(|_| self.field.needs.over_time)
            && steps.completion.is_merged
        {
            let between_ns = (self.reached_ns, bounds_ns.0);
            let cells = (steps.source, self.field.number);
            steps.grouping.gaps.add(cells, value, between_ns)?;
        }
        let opened = OpenStep::new(bounds_ns, first_ns, self.field.needs, &mut self.previous);
        self.step = Some(opened);
        Ok(())
    }

    /// Whether the last value may hold through later steps that are wanted: its field's next value, which says until
    /// when, may be in any later row.
    fn may_hold<C: Content + From<Statistics>>(&self, steps: &Steps<'_, '_, C>) -> bool {
        let is_held = self.field.needs.over_time && steps.completion.is_merged;
        let open = self.step.as_ref().filter(|_| is_held);
        open.is_some_and(|step| steps.wants_after(step.next_ns))
    }

    /// Completes the open step.
    fn end_step<C: Content + From<Statistics>>(
        &mut self,
        steps: &mut Steps<'_, '_, C>,
    ) -> Result<(), EngineError> {
        let Some(step) = self.step.take() else {
            return Ok(());
        };
        let start_ns = step.start_ns;
        self.reached_ns = step.next_ns;
        let statistics = step.complete(self.previous, steps.completion.holds_until_ns);
        self.held.shrink(usize::MAX);
        steps.put(start_ns, self.field.number, statistics)
    }
}
