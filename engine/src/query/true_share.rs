//! The fraction of time for which boolean fields were true, in each step. A value holds until the next one of its
//! source, across steps, and the last one until the end of its step or of the range. Time before the first value in the
//! range does not count. Read row by row, because rollups store only the count of booleans.

use std::sync::Arc;

use super::group::{GroupQuery, Grouping};
use super::scan::{Position, ScanQuery, Selection, scan_within};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::column::Values;
use crate::snapshot::SeriesSnapshot;
use crate::zone::LocalStep;

/// Number of rows read at a time.
const PAGE_ROWS: usize = 16_384;

/// A field and its current value.
struct Field {
    ordinal: u16,
    number: u32,
    holding: Option<Holding>,
}

/// The current value, and the step in which it holds.
#[derive(Default)]
struct Holding {
    value: bool,
    /// The value's time is accounted for up to here.
    since_ns: i64,
    start_ns: i64,
    next_ns: i64,
    true_ns: i64,
    covered_ns: i64,
    /// Number of values within the step, and how many of them are true.
    count: u64,
    true_count: u64,
}

impl Grouping<'_> {
    /// Adds a source's boolean fields to the cells with this number: the average of a cell is the fraction of time
    /// true, minimum and maximum are 0 or 1. `numbers` contains the number of each field in the cells.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
    /// [`EngineError::OverBudget`].
    pub fn add_true_shares(
        &mut self,
        source: u32,
        series: &SeriesSnapshot,
        query: &GroupQuery<'_>,
        numbers: &[u32],
    ) -> Result<(), EngineError> {
        if query.fields.is_empty() {
            return Ok(());
        }
        let fields = query.fields.iter().zip(numbers);
        let fields = fields.map(|(ordinal, number)| Field {
            ordinal: *ordinal,
            number: *number,
            holding: None,
        });
        let mut fields: Vec<Field> = fields.collect();
        let selection = [Selection {
            series,
            fields: Some(Arc::from(query.fields)),
            values: query.values,
        }];
        let mut after = None;
        while let Some(last) = self.add_page(source, &selection, query, after, &mut fields)? {
            after = Some(last);
        }
        for field in &mut fields {
            if let Some(holding) = field.holding.take() {
                let until_ns = holding.next_ns.min(query.range_ns.1);
                self.put(source, field.number, holding, until_ns)?;
            }
        }
        Ok(())
    }

    /// Adds the rows after `after`; returns the last of them if more follow that may matter.
    fn add_page(
        &mut self,
        source: u32,
        selection: &[Selection<'_>],
        query: &GroupQuery<'_>,
        after: Option<Position>,
        fields: &mut [Field],
    ) -> Result<Option<Position>, EngineError> {
        let scan = ScanQuery {
            range_ns: query.range_ns,
            descending: false,
            after,
            skip: 0,
            limit: PAGE_ROWS,
            metadata: query.metadata,
            stop: query.stop,
        };
        let (page, _held) = scan_within(selection, &scan, self.budget)?;
        self.touched += page.touched;
        // The columns of the fields, for each run.
        let mut columns = Vec::with_capacity(page.runs.len());
        for run in &page.runs {
            let of_run = fields.iter().map(|field| run.columns.field(field.ordinal));
            columns.push(of_run.collect::<Vec<_>>());
        }
        let mut last = None;
        for (run, row) in &page.rows {
            let (run, row) = (*run as usize, *row as usize);
            let position = page.runs[run].columns.key(row);
            last = Some(position);
            for (field, column) in fields.iter_mut().zip(&columns[run]) {
                if let Some(column) = column.filter(|column| column.has(row))
                    && let Values::Booleans(values) = &column.values
                {
                    self.value(source, field, query.step, position.0, values[row])?;
                }
            }
        }
        // Beyond a full window nothing is wanted any more.
        let wanted = last.is_some_and(|(timestamp_ns, _)| {
            self.cells.wanted.descending || self.cells.admits(query.step.start_ns(timestamp_ns), source)
        });
        Ok(last.filter(|_| page.more && wanted))
    }

    fn value(
        &mut self,
        source: u32,
        field: &mut Field,
        step: LocalStep<'_>,
        at_ns: i64,
        value: bool,
    ) -> Result<(), EngineError> {
        let number = field.number;
        let mut holding = match field.holding.take() {
            Some(holding) if at_ns < holding.next_ns => holding,
            before => {
                let start_ns = step.start_ns(at_ns);
                let mut holding = Holding {
                    value,
                    since_ns: at_ns,
                    start_ns,
                    next_ns: step.next_ns(at_ns),
                    ..Holding::default()
                };
                if let Some(before) = before {
                    holding.value = before.value;
                    holding.since_ns = start_ns;
                    let until_ns = before.next_ns;
                    self.put(source, number, before, until_ns)?;
                }
                holding
            }
        };
        holding.account(at_ns);
        holding.value = value;
        holding.count += 1;
        holding.true_count += u64::from(value);
        field.holding = Some(holding);
        Ok(())
    }

    /// Ends a step.
    fn put(
        &mut self,
        source: u32,
        number: u32,
        mut holding: Holding,
        until_ns: i64,
    ) -> Result<(), EngineError> {
        holding.account(until_ns);
        let start_ns = holding.start_ns;
        if let Some(into) = self.cells.entry(start_ns, source, number)? {
            into.merge(&holding.aggregate());
        }
        self.touched.cells += 1;
        Ok(())
    }
}

impl Holding {
    /// Accounts for the value's time up to here.
    fn account(&mut self, until_ns: i64) {
        let ns = until_ns.saturating_sub(self.since_ns).max(0);
        self.covered_ns = self.covered_ns.saturating_add(ns);
        if self.value {
            self.true_ns = self.true_ns.saturating_add(ns);
        }
        self.since_ns = until_ns;
    }

    fn aggregate(&self) -> Aggregate {
        let share = match (self.covered_ns, self.value) {
            (1.., _) => self.true_ns as f64 / self.covered_ns as f64,
            (_, value) => f64::from(value),
        };
        let (min, max) = (self.true_count == self.count, self.true_count > 0);
        let sum = share * self.count as f64;
        Aggregate::new(self.count, sum, f64::from(min), f64::from(max))
    }
}
