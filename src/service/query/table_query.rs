//! The page of a table: its rows with their filled steps, what stood there before, and the results of expressions.

use engine::Aggregate;
use engine::query::{Grouped, Held, Statistics, Wanted};

use super::coverage::CoveredField;
use super::fill::{Fill, Grid, Slot};
use super::grouped::GroupPage;
use super::plan::Plan;
use super::reading::{Aggregated, Reading};
use super::series_groups::SeriesGroup;
use super::table::{TableRow, TableShape, TableValue, add_expressions};
use super::{Aggregation, Compare, Grouping};
use crate::bucket::IndexedView;
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// What downsampled rows have of each field: the average, and the members of `stats`.
const DOWNSAMPLED: [Aggregation; 4] = [
    Aggregation::Avg,
    Aggregation::Min,
    Aggregation::Max,
    Aggregation::Count,
];

/// A query for rows of a table.
pub(super) struct TableQuery<'r> {
    plan: &'r Plan,
    /// For what stood there before.
    indexed: Option<&'r IndexedView>,
    reading: &'r Reading<'r>,
    grouping: &'r Grouping,
    shape: TableShape<'r>,
    /// The groups that rows may have, in order of their keys.
    groups: &'r [SeriesGroup],
    page: GroupPage,
    stop: &'r Stop,
}

/// The rows of a page, and whether more follow.
pub(super) struct TablePage {
    pub(super) rows: Vec<TableRow>,
    pub(super) has_more: bool,
}

impl<'r> TableQuery<'r> {
    pub(super) fn new(
        plan: &'r Plan,
        indexed: Option<&'r IndexedView>,
        reading: &'r Reading<'r>,
        grouping: &'r Grouping,
        groups: &'r [SeriesGroup],
        page: GroupPage,
        stop: &'r Stop,
    ) -> Self {
        let shape = TableShape {
            coverage: reading.coverage,
            aggregations: match grouping.chosen {
                Some(_) => &DOWNSAMPLED,
                None => grouping.aggregations.all(),
            },
            shares: grouping.shares,
        };
        TableQuery {
            plan,
            indexed,
            reading,
            grouping,
            shape,
            groups,
            page,
            stop,
        }
    }

    pub(super) fn page(&self, held: &mut Held<'_>) -> Result<TablePage, ServiceError> {
        let input = &self.plan.input;
        let mut page = match (input.fill, input.start_ns.zip(input.end_ns)) {
            (Some(fill), Some(range_ns)) => self.filled(fill, range_ns, held)?,
            // The shape of the body ensures that a filled range has both ends.
            _ => self.found(held)?,
        };
        if let Some(compare) = input.compare {
            self.add_previous(&mut page.rows, compare, held)?;
        }
        if !input.expressions.is_empty() {
            for row in &mut page.rows {
                let schema = self.schema_of(row.source);
                self.add_results(schema, &mut row.values, held)?;
                // Where nothing stood before, nothing is computed.
                if let Some(previous) = row.previous.as_mut().filter(|values| !values.is_empty()) {
                    self.add_results(schema, previous, held)?;
                }
            }
        }
        Ok(page)
    }

    /// Index of the schema of a row's source; 0 if sources are merged.
    fn schema_of(&self, group: u32) -> usize {
        self.groups[group as usize].schema
    }

    fn fields_of(&self, schema: usize) -> &[CoveredField<'r>] {
        &self.reading.coverage.fields[schema]
    }

    /// The rows that have points.
    fn found(&self, held: &mut Held<'_>) -> Result<TablePage, ServiceError> {
        let plan = self.plan;
        let has_hidden = self
            .reading
            .coverage
            .fields
            .iter()
            .flatten()
            .any(|field| field.is_hidden);
        let mut rows = match has_hidden {
            false => self.rows(self.reading, plan.wanted(self.page), held)?,
            // Rows that have nothing but fields of expressions may turn out to be none.
            true => {
                let wanted = Wanted {
                    rows_max: usize::MAX,
                    ..plan.wanted(self.page)
                };
                let mut rows = self.rows(self.reading, wanted, held)?;
                rows.retain(|row| self.is_row(row));
                rows
            }
        };
        rows.drain(..self.page.offset.min(rows.len()));
        let has_more = rows.len() > self.page.limit;
        rows.truncate(self.page.limit);
        Ok(TablePage { rows, has_more })
    }

    /// All rows of a range with both ends.
    fn filled(
        &self,
        fill: Fill,
        range_ns: (i64, i64),
        held: &mut Held<'_>,
    ) -> Result<TablePage, ServiceError> {
        let descending = self.plan.input.descending;
        let count = self.groups.len();
        let page = (self.page.offset, self.page.limit, descending);
        let grid = Grid::new(range_ns, self.reading.step, count, page, held)?;
        let mut rows = Vec::new();
        if let Some(starts_ns) = grid.starts_ns(fill) {
            let wanted = Wanted {
                starts_ns,
                ..Wanted::ALL
            };
            let found = self.rows(self.reading, wanted, held)?;
            let slots = self.slots(held)?;
            rows = grid.rows(&found, |source| &*slots[self.schema_of(source)], fill, held)?;
        }
        if descending {
            rows.reverse();
        }
        Ok(TablePage {
            rows,
            has_more: grid.has_more(descending),
        })
    }

    /// The values that each row of a schema has when it is filled.
    fn slots(&self, held: &mut Held<'_>) -> Result<Vec<Vec<Slot>>, ServiceError> {
        let mut all = Vec::new();
        held.reserve(&mut all, self.reading.coverage.fields.len())?;
        for fields in &self.reading.coverage.fields {
            let mut slots = Vec::new();
            for (index, field) in (0..).zip(fields) {
                for (aggregation, one) in (0..).zip(self.shape.aggregations) {
                    let mut kinds = field
                        .kinds()
                        .filter(|kind| self.shape.covers(*one, *kind))
                        .peekable();
                    if kinds.peek().is_some() {
                        held.reserve(&mut slots, 1)?;
                        slots.push(Slot {
                            field: index,
                            aggregation,
                            is_numeric: !matches!(one, Aggregation::First | Aggregation::Last)
                                || kinds.all(|kind| kind == FieldType::Number),
                        });
                    }
                }
            }
            all.push(slots);
        }
        Ok(all)
    }

    /// The wanted rows, in their order.
    fn rows(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        held: &mut Held<'_>,
    ) -> Result<Vec<TableRow>, ServiceError> {
        match self.grouping.aggregations.are_sums() {
            true => self.rows_of::<Aggregate>(reading, wanted, held),
            false => self.rows_of::<Statistics>(reading, wanted, held),
        }
    }

    fn rows_of<C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        held: &mut Held<'_>,
    ) -> Result<Vec<TableRow>, ServiceError> {
        let found: Grouped<'_, C> = self.plan.cells(reading, wanted, self.stop)?;
        let found_groups = &reading.reached.groups;
        let schema = |group: u32| found_groups[group as usize].schema;
        let mut rows = self.shape.rows(found.cells, schema, held)?;
        rows.retain_mut(|row| {
            let key = found_groups[row.source as usize].key();
            // Usually both lists are the same.
            let there = self.groups.get(row.source as usize);
            if there.is_some_and(|group| group.key() == key) {
                return true;
            }
            let index = self.groups.binary_search_by(|group| group.key().cmp(&key));
            row.source = index.unwrap_or_default() as u32;
            index.is_ok()
        });
        Ok(rows)
    }

    /// Adds to each row what stood there before.
    fn add_previous(
        &self,
        rows: &mut [TableRow],
        compare: Compare,
        held: &mut Held<'_>,
    ) -> Result<(), ServiceError> {
        let starts = || rows.iter().map(|row| row.start_ns);
        let Some((first_ns, last_ns)) = starts().min().zip(starts().max()) else {
            return Ok(());
        };
        let (plan, reading) = (self.plan, self.reading);
        let earlier = self.grouping.earlier(compare);
        let step = reading.step.earlier(earlier);
        let range_ns = (
            plan.input
                .start_ns
                .map_or(i64::MIN, |ns| earlier.than_ns(ns))
                .max(plan.cutoff_ns),
            plan.input.end_ns.map_or(i64::MAX, |ns| earlier.than_ns(ns)),
        );
        let indexed = self
            .indexed
            .ok_or_else(|| ServiceError::internal("BUG: a comparison without a view"))?;
        let reached = plan.reach(indexed, range_ns, self.stop.budget(), &|_| self.stop.now())?;
        let before = Reading {
            reached: &reached,
            step,
            range_ns,
            holds_until_ns: match reading.holds_until_ns {
                i64::MAX => i64::MAX,
                until_ns => earlier.than_ns(until_ns),
            },
            ..*reading
        };
        let wanted = Wanted {
            starts_ns: (earlier.than_ns(first_ns), earlier.than_ns(last_ns)),
            ..Wanted::ALL
        };
        let mut found = self.rows(&before, wanted, held)?;
        for row in &mut found {
            row.start_ns = step.clock_start_ns(row.start_ns);
        }
        for row in rows {
            let key = (row.start_ns, row.source);
            let index = found.binary_search_by_key(&key, |row| (row.start_ns, row.source));
            let values = index.map(|index| std::mem::take(&mut found[index].values));
            row.previous = Some(values.unwrap_or_default());
        }
        Ok(())
    }

    /// Whether a row has a requested field, or a result of an expression.
    fn is_row(&self, row: &TableRow) -> bool {
        let fields = self.fields_of(self.schema_of(row.source));
        let is_requested = |value: &TableValue| !fields[value.field as usize].is_hidden;
        let has_result = || {
            let mut values = row.values.clone();
            self.add_expressions(fields, &mut values);
            let mut results = values[row.values.len()..].iter();
            results.any(|result| result.value.number().is_some())
        };
        row.values.iter().any(is_requested) || has_result()
    }

    /// Adds the results of expressions, and removes fields that only they use.
    fn add_results(
        &self,
        schema: usize,
        values: &mut Vec<TableValue>,
        held: &mut Held<'_>,
    ) -> Result<(), ServiceError> {
        let fields = self.fields_of(schema);
        let results = self.plan.input.expressions.len() * self.grouping.aggregations.all().len();
        held.reserve(values, results)?;
        self.add_expressions(fields, values);
        let is_hidden = |field: u32| fields.get(field as usize).is_some_and(|field| field.is_hidden);
        values.retain(|value| !is_hidden(value.field));
        Ok(())
    }

    fn add_expressions(&self, fields: &[CoveredField<'_>], values: &mut Vec<TableValue>) {
        let aggregations = self.grouping.aggregations.all().len() as u32;
        let index_of = |name: &String| {
            let index = fields.iter().position(|field| **field.name == **name);
            index.map(|index| index as u32)
        };
        add_expressions(
            values,
            &self.plan.input.expressions,
            index_of,
            fields.len() as u32,
            aggregations,
        );
    }
}
