//! Groups of an answer as data, from cells of the engine or from a table.

use std::borrow::Cow;
use std::sync::Arc;

use engine::Aggregate;
use engine::query::{Cell, CellValues, CellsOfLevel, CellsPart, LevelCells};
use engine::rows::Scalar;

use super::coverage::Coverage;
use super::plan::Plan;
use super::result::PageInfo;
use super::series_groups::{DimensionValue, SeriesGroup};
use super::table::{Computed, TableRow, TableValue};
use super::{Aggregation, Aggregations};
use crate::catalog::FieldType;
use crate::ids::ObjectId;

/// Groups of an answer.
pub struct Groups<'a> {
    pub(super) plan: &'a Plan,
    pub(super) coverage: &'a Coverage<'a>,
    pub(super) rows: GroupRows<'a>,
    pub page: PageInfo,
    pub aggregations: &'a Aggregations,
    /// Name of the step in the API.
    pub step: Cow<'static, str>,
    /// Number of points that were expected, if the step was chosen by downsampling.
    pub downsampled: Option<u64>,
}

/// The groups, in order.
pub(super) struct GroupRows<'a> {
    pub(super) parts: Vec<RowsPart<'a>>,
    /// The groups of series by their numbers.
    pub(super) groups: &'a [SeriesGroup],
}

/// Consecutive groups.
pub(super) enum RowsPart<'a> {
    /// Cells of the engine.
    Cells(CellsPart<'a>),
    /// Rows of a table.
    Table(&'a [TableRow]),
}

/// A group.
#[derive(Clone, Copy)]
pub struct GroupRow<'a> {
    /// Start of the step.
    pub start_ns: i64,
    /// The source; `None` if sources are merged.
    pub source_id: Option<ObjectId>,
    /// The values of the dimensions by which series are grouped, in the order of their names.
    pub dimensions: &'a [DimensionValue],
    /// Index of the schema; 0 if sources are merged.
    pub schema: usize,
    values: RowValues<'a>,
}

#[derive(Clone, Copy)]
enum RowValues<'a> {
    Cell(&'a Cell),
    /// A cell of a level.
    Level(&'a LevelCells, usize),
    Table(&'a TableRow),
}

impl<'a> RowsPart<'a> {
    fn len(&self) -> usize {
        match self {
            RowsPart::Cells(cells) => cells.len(),
            RowsPart::Table(rows) => rows.len(),
        }
    }

    /// Start, number of the group of series, and values of a group.
    fn row(&self, index: usize) -> (i64, u32, RowValues<'a>) {
        match self {
            RowsPart::Cells(CellsPart::Copied(cells)) => {
                let cell = &cells[index];
                (cell.start_ns, cell.source, RowValues::Cell(cell))
            }
            RowsPart::Cells(CellsPart::Level(cells)) => {
                let (level, cell) = (cells.level, cells.cell(index));
                let start_ns = level.starts_ns()[cell];
                (start_ns, level.source, RowValues::Level(level, cell))
            }
            RowsPart::Table(rows) => {
                let row = &rows[index];
                (row.start_ns, row.source, RowValues::Table(row))
            }
        }
    }
}

impl GroupRows<'_> {
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(RowsPart::len).sum()
    }
}

/// Consecutive groups of an answer.
pub struct GroupsPart<'g, 'a> {
    groups: &'g Groups<'a>,
    part: &'g RowsPart<'a>,
}

impl<'g, 'a> GroupsPart<'g, 'a> {
    /// Number of groups.
    pub fn count(&self) -> usize {
        self.part.len()
    }

    /// The groups, in order.
    pub fn rows(&self) -> impl Iterator<Item = GroupRow<'a>> + use<'g, 'a> {
        let GroupsPart { groups, part } = *self;
        (0..part.len()).map(move |index| {
            let (start_ns, group, values) = part.row(index);
            let group = &groups.rows.groups[group as usize];
            GroupRow {
                start_ns,
                source_id: group.source_id,
                dimensions: &group.dimensions,
                schema: group.schema,
                values,
            }
        })
    }

    /// The values of the groups by fields, if they are stored like that.
    pub fn columns(&self) -> Option<GroupColumns<'g, 'a>> {
        let RowsPart::Cells(CellsPart::Level(cells)) = self.part else {
            return None;
        };
        let group = &self.groups.rows.groups[cells.level.source as usize];
        Some(GroupColumns {
            groups: self.groups,
            cells,
            schema: group.schema,
        })
    }
}

/// Groups of one series, whose values are stored by fields.
pub struct GroupColumns<'g, 'a> {
    groups: &'g Groups<'a>,
    cells: &'g CellsOfLevel<'a>,
    /// Index of the schema; 0 if sources are merged.
    pub schema: usize,
}

impl<'g, 'a> GroupColumns<'g, 'a> {
    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = GroupColumn<'g>> {
        let (cells, numbers) = (self.cells, self.groups.numbers());
        cells.level.columns().map(move |(number, aggregates)| {
            let (index, kind) = numbers.field_of(self.schema, number);
            GroupColumn {
                index,
                kind,
                aggregates,
                cells,
            }
        })
    }
}

/// A field of consecutive groups.
pub struct GroupColumn<'g> {
    /// Its index among the names of the schema.
    pub index: u32,
    kind: FieldType,
    /// In all cells of the level.
    aggregates: &'g [Aggregate],
    cells: &'g CellsOfLevel<'g>,
}

impl<'g> GroupColumn<'g> {
    /// Number of groups.
    pub fn count(&self) -> usize {
        self.cells.len()
    }

    /// Whether any of the groups has the field.
    pub fn has_values(&self) -> bool {
        (0..self.count()).any(|group| self.field(group).is_some())
    }

    /// The field in a group, if that has it.
    #[inline]
    pub fn field(&self, group: usize) -> Option<GroupField<'g>> {
        let aggregate = &self.aggregates[self.cells.cell(group)];
        (aggregate.count > 0).then(|| GroupField::of_cell(self.index, self.kind, aggregate, 0))
    }
}

impl<'a> Groups<'a> {
    /// The bucket of the points.
    pub fn bucket_id(&self) -> ObjectId {
        self.plan.bucket.id
    }

    /// Whether each group contains the points of all sources.
    pub fn is_merged(&self) -> bool {
        self.coverage.is_merged
    }

    /// Whether each group has the values of the time before.
    pub fn is_compared(&self) -> bool {
        self.plan.input.compare.is_some()
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The groups, in order.
    pub fn rows(&self) -> impl Iterator<Item = GroupRow<'a>> {
        self.parts().flat_map(|part| part.rows())
    }

    /// The same in parts.
    pub fn parts(&self) -> impl Iterator<Item = GroupsPart<'_, 'a>> {
        let parts = self.rows.parts.iter();
        parts.map(|part| GroupsPart { groups: self, part })
    }

    fn numbers(&self) -> CellNumbers<'a> {
        CellNumbers {
            coverage: self.coverage,
            are_shares: self.downsampled.is_some(),
        }
    }

    /// The names of the dimensions by which series are grouped.
    pub fn dimensions(&self) -> &'a [String] {
        &self.plan.input.group_by_dimensions
    }

    /// The names of the fields of a schema by their indexes, followed by those of expressions.
    pub fn names(&self, schema: usize) -> Vec<&'a Arc<str>> {
        let fields = self.coverage.fields[schema].iter().map(|field| field.name);
        let results = self.plan.input.expressions.iter().map(|named| &named.name);
        fields.chain(results).collect()
    }

    /// The fields of a group, each with all its values.
    pub fn fields(&self, row: GroupRow<'a>) -> Fields<'a> {
        match row.values {
            RowValues::Cell(cell) => Fields::Cell {
                values: cell.values(),
                next: None,
                numbers: self.numbers(),
                schema: row.schema,
            },
            RowValues::Level(level, cell) => Fields::Level {
                level,
                cell,
                next: 0,
                numbers: self.numbers(),
                schema: row.schema,
            },
            RowValues::Table(row) => Fields::Table(&row.values),
        }
    }

    /// What stood in the place of a group before.
    pub fn previous(&self, row: GroupRow<'a>) -> Fields<'a> {
        Fields::Table(match row.values {
            RowValues::Table(row) => row.previous.as_deref().unwrap_or_default(),
            RowValues::Cell(_) | RowValues::Level(..) => &[],
        })
    }
}

/// What the numbers of fields in cells mean.
#[derive(Clone, Copy)]
pub struct CellNumbers<'a> {
    coverage: &'a Coverage<'a>,
    /// Whether booleans are averages: the share of time in which they are true.
    are_shares: bool,
}

impl CellNumbers<'_> {
    /// The index of a field, and the type of its values.
    #[inline]
    fn field_of(self, schema: usize, number: u32) -> (u32, FieldType) {
        let (index, kind) = self.coverage.field_of(schema, number);
        (index, if self.are_shares { FieldType::Number } else { kind })
    }
}

/// The fields of a group.
pub enum Fields<'a> {
    /// Of a cell, in which values of different types have different numbers.
    Cell {
        values: CellValues<'a, Aggregate>,
        /// The value that follows.
        next: Option<(u32, &'a Aggregate)>,
        numbers: CellNumbers<'a>,
        schema: usize,
    },
    /// Of a cell of a level.
    Level {
        level: &'a LevelCells,
        cell: usize,
        /// Index of the column that follows.
        next: usize,
        numbers: CellNumbers<'a>,
        schema: usize,
    },
    /// Of values that are sorted by field.
    Table(&'a [TableValue]),
}

impl<'a> Iterator for Fields<'a> {
    type Item = GroupField<'a>;

    #[inline]
    fn next(&mut self) -> Option<GroupField<'a>> {
        match self {
            Fields::Cell {
                values,
                next,
                numbers,
                schema,
            } => {
                let (number, aggregate) = next.take().or_else(|| values.next())?;
                let (index, kind) = numbers.field_of(*schema, number);
                // Values of other types, of merged sources.
                let mut others = 0;
                if numbers.coverage.is_merged {
                    for (number, other) in values.by_ref() {
                        if numbers.field_of(*schema, number).0 != index {
                            *next = Some((number, other));
                            break;
                        }
                        others += other.count;
                    }
                }
                Some(GroupField::of_cell(index, kind, aggregate, others))
            }
            Fields::Level {
                level,
                cell,
                next,
                numbers,
                schema,
            } => loop {
                let (number, aggregate) = level.value(*next, *cell)?;
                *next += 1;
                if aggregate.count > 0 {
                    let (index, kind) = numbers.field_of(*schema, number);
                    return Some(GroupField::of_cell(index, kind, aggregate, 0));
                }
            },
            Fields::Table(values) => {
                let index = values.first()?.field;
                let of_field = values.iter().take_while(|value| value.field == index).count();
                let (own, rest) = values.split_at(of_field);
                *values = rest;
                Some(GroupField {
                    index,
                    values: FieldValues::Table(own),
                })
            }
        }
    }
}

/// A field of a group.
#[derive(Clone, Copy)]
pub struct GroupField<'a> {
    /// Its index among the names of its schema.
    pub index: u32,
    values: FieldValues<'a>,
}

#[derive(Clone, Copy)]
enum FieldValues<'a> {
    Cell {
        kind: FieldType,
        aggregate: &'a Aggregate,
        /// Number of values of other types.
        others: u64,
    },
    Table(&'a [TableValue]),
}

/// A value of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GroupValue<'a> {
    /// It has no result.
    Null,
    /// A value.
    Value(Scalar<'a>),
}

impl<'a> GroupField<'a> {
    #[inline]
    fn of_cell(index: u32, kind: FieldType, aggregate: &'a Aggregate, others: u64) -> Self {
        let values = FieldValues::Cell {
            kind,
            aggregate,
            others,
        };
        GroupField { index, values }
    }

    /// Its value of the aggregation with this index; `None` if that does not cover its type.
    #[inline]
    pub fn value(&self, index: usize, aggregation: Aggregation) -> Option<GroupValue<'a>> {
        match self.values {
            FieldValues::Cell {
                kind,
                aggregate,
                others,
            } => {
                let value = aggregation
                    .covers(kind)
                    .then(|| aggregation.of(aggregate))
                    .flatten()?;
                let others = if aggregation == Aggregation::Count {
                    others
                } else {
                    0
                };
                Some(GroupValue::Value(Scalar::Number(value + others as f64)))
            }
            FieldValues::Table(values) => {
                let value = values.iter().find(|value| value.aggregation as usize == index)?;
                Some((&value.value).into())
            }
        }
    }

    /// Minimum, maximum and number of the values behind an average.
    pub fn stats(&self) -> Option<[f64; 3]> {
        match self.values {
            FieldValues::Cell { aggregate, .. } => {
                Some([aggregate.min, aggregate.max, aggregate.count as f64])
            }
            FieldValues::Table([_, min, max, count]) => {
                Some([min.value.number()?, max.value.number()?, count.value.number()?])
            }
            // The result of an expression.
            FieldValues::Table(_) => None,
        }
    }
}

impl<'a> From<&'a Computed> for GroupValue<'a> {
    fn from(value: &'a Computed) -> Self {
        GroupValue::Value(match value {
            Computed::Null => return GroupValue::Null,
            Computed::Number(number) => Scalar::Number(*number),
            Computed::Boolean(boolean) => Scalar::Boolean(*boolean),
            Computed::Text(text) => Scalar::Text(text),
        })
    }
}
