//! Results of a query as data, which the edge renders.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use engine::query::{Cell, CellValues, Held, Page};
use engine::rows::Scalar;
use engine::{Aggregate, Column, Columns};

use super::coverage::Coverage;
use super::plan::{Plan, ReachedSeries, Resolved};
use super::series_groups::{DimensionValue, SeriesGroup};
use super::table::{Computed, TableRow, TableValue};
use super::{Aggregation, Aggregations, Answer, Cursor, NamedExpression};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// Writes a result, or a page of one, to an answer. Returns the number of rows written, which is smaller than that of
/// the page only if the answer is full.
pub type WriteResult = fn(&QueryResult<'_>, &mut Answer<'_>) -> Result<usize, ServiceError>;

/// The rows of an answer.
pub enum QueryResult<'a> {
    /// Points.
    Points(Points<'a>),
    /// Groups: points aggregated by a step of time.
    Groups(Groups<'a>),
}

/// The position of an answer in all rows of the query.
#[derive(Clone, Copy, Debug)]
pub struct PageInfo {
    /// Number of rows in the answer.
    pub count: usize,
    /// Maximum number of rows in the answer.
    pub limit: usize,
    /// Number of rows skipped.
    pub offset: u64,
    /// Whether more rows follow.
    pub has_more: bool,
    /// The cursor of the rows that follow, if these are points.
    pub next: Option<Cursor>,
}

/// A page of points. An answer consists of one page or more.
pub struct Points<'a> {
    pub(super) plan: &'a Plan,
    pub(super) page: &'a Page,
    pub(super) series: &'a [ReachedSeries],
    /// Number of rows of the page that are left out.
    pub(super) skipped: usize,
    /// Number of rows written before this page.
    pub rows_before: usize,
    /// Information for the end of the answer; `None` if another page of the answer follows.
    pub end: Option<PageInfo>,
}

impl<'a> Points<'a> {
    /// The rows in their order: the index of a run, and the row of that run.
    pub fn rows(&self) -> &'a [(u32, u32)] {
        &self.page.rows[self.skipped..]
    }

    /// The runs that contain the rows.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = Run<'a>> {
        let (plan, series) = (self.plan, self.series);
        self.page.runs.iter().map(move |run| {
            let ReachedSeries { source, schema, .. } = &series[run.selection];
            Run {
                source_id: source.id,
                schema: *schema,
                resolved: &plan.schemas[*schema],
                bucket: plan.bucket.ordinal,
                columns: &run.columns,
                expressions: &plan.input.expressions,
            }
        })
    }
}

/// Rows of one source.
pub struct Run<'a> {
    pub source_id: ObjectId,
    /// Index of the source's schema in the query.
    pub schema: usize,
    resolved: &'a Resolved,
    /// Ordinal of the bucket.
    bucket: u32,
    columns: &'a Columns,
    expressions: &'a [NamedExpression],
}

/// An expression over the columns of a run.
pub struct RunExpression<'a> {
    pub named: &'a NamedExpression,
    operands: Vec<Option<&'a Column>>,
}

impl RunExpression<'_> {
    /// Its value in this row, if it has one.
    pub fn value(&self, row: u32) -> Option<f64> {
        let number = |index: usize| match self.operands[index]?.value(row as usize)? {
            Scalar::Number(number) => Some(number),
            Scalar::Boolean(_) | Scalar::Text(_) => None,
        };
        self.named.expression.evaluate(number)
    }
}

impl<'a> Run<'a> {
    /// The requested fields: their ordinals and names.
    pub fn fields(&self) -> impl Iterator<Item = (u16, &'a Arc<str>)> {
        let resolved = self.resolved;
        let ordinals = resolved.ordinals().into_iter();
        ordinals.map(move |ordinal| (ordinal, resolved.name(ordinal)))
    }

    /// The expressions, with the columns of their operands.
    pub fn expressions(&self) -> impl ExactSizeIterator<Item = RunExpression<'a>> {
        let (columns, resolved) = (self.columns, self.resolved);
        self.expressions.iter().map(move |named| RunExpression {
            named,
            operands: named
                .expression
                .operands()
                .iter()
                .map(|operand| columns.field(resolved.schema.field(operand)?))
                .collect(),
        })
    }

    /// The values of a field, if any row has one.
    pub fn column(&self, ordinal: u16) -> Option<&'a Column> {
        self.columns.field(ordinal)
    }

    /// The id of the point in this row.
    pub fn point_id(&self, row: u32) -> ObjectId {
        let (_, sequence) = self.columns.key(row as usize);
        ObjectId::of_point(self.bucket, sequence)
    }

    /// The timestamp of the point in this row, UTC nanoseconds.
    pub fn timestamp_ns(&self, row: u32) -> i64 {
        self.columns.key(row as usize).0
    }

    /// The metadata of the point in this row: a JSON object.
    pub fn metadata(&self, row: u32) -> Option<&'a str> {
        metadata_of(self.columns, row as usize)
    }
}

/// The metadata of a row: a JSON object.
pub(in crate::service) fn metadata_of(columns: &Columns, row: usize) -> Option<&str> {
    match columns.metadata.as_ref()?.value(row)? {
        Scalar::Text(text) => Some(text),
        Scalar::Number(_) | Scalar::Boolean(_) => None,
    }
}

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
pub(super) enum GroupRows<'a> {
    /// Cells of the engine, with the groups of series by their numbers.
    Cells {
        cells: &'a [Cell],
        groups: &'a [SeriesGroup],
    },
    /// Rows of a table, with the groups of series by their indexes.
    Table {
        rows: &'a [TableRow],
        groups: &'a [SeriesGroup],
    },
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
    Table(&'a TableRow),
}

impl GroupRows<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            GroupRows::Cells { cells, .. } => cells.len(),
            GroupRows::Table { rows, .. } => rows.len(),
        }
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
    pub fn rows(&self) -> impl ExactSizeIterator<Item = GroupRow<'a>> {
        (0..self.len()).map(|index| self.row(index))
    }

    fn row(&self, index: usize) -> GroupRow<'a> {
        let (start_ns, values, group) = match self.rows {
            GroupRows::Cells { cells, groups } => {
                let cell = &cells[index];
                (
                    cell.start_ns,
                    RowValues::Cell(cell),
                    &groups[cell.source as usize],
                )
            }
            GroupRows::Table { rows, groups } => {
                let row = &rows[index];
                (row.start_ns, RowValues::Table(row), &groups[row.source as usize])
            }
        };
        GroupRow {
            start_ns,
            source_id: group.source_id,
            dimensions: &group.dimensions,
            schema: group.schema,
            values,
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
                coverage: self.coverage,
                schema: row.schema,
                is_share: self.downsampled.is_some(),
            },
            RowValues::Table(row) => Fields::Table(&row.values),
        }
    }

    /// What stood in the place of a group before.
    pub fn previous(&self, row: GroupRow<'a>) -> Fields<'a> {
        Fields::Table(match row.values {
            RowValues::Table(row) => row.previous.as_deref().unwrap_or_default(),
            RowValues::Cell(_) => &[],
        })
    }
}

/// The fields of a group.
pub enum Fields<'a> {
    /// Of a cell, in which values of different types have different numbers.
    Cell {
        values: CellValues<'a, Aggregate>,
        /// The value that follows.
        next: Option<(u32, &'a Aggregate)>,
        coverage: &'a Coverage<'a>,
        schema: usize,
        /// Whether booleans are averages: the share of time in which they are true.
        is_share: bool,
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
                coverage,
                schema,
                is_share,
            } => {
                let (number, aggregate) = next.take().or_else(|| values.next())?;
                let (index, kind) = coverage.field_of(*schema, number);
                // Values of other types, of merged sources.
                let mut others = 0;
                if coverage.is_merged {
                    for (number, other) in values.by_ref() {
                        if coverage.field_of(*schema, number).0 != index {
                            *next = Some((number, other));
                            break;
                        }
                        others += other.count;
                    }
                }
                Some(GroupField {
                    index,
                    values: FieldValues::Cell {
                        kind: if *is_share { FieldType::Number } else { kind },
                        aggregate,
                        others,
                    },
                })
            }
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

/// Distinct names of fields, in the order in which they were added.
#[derive(Default)]
pub struct FieldNames<'n> {
    pub(super) names: Vec<&'n Arc<str>>,
    indexes: HashMap<&'n str, u32>,
}

impl<'n> FieldNames<'n> {
    /// The index of a name, which is added if it is new.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit.
    pub fn index(&mut self, name: &'n Arc<str>, held: &mut Held<'_>) -> Result<u32, ServiceError> {
        if let Some(index) = self.indexes.get(&**name) {
            return Ok(*index);
        }
        held.grow(4 * size_of::<&str>())?;
        let index = self.names.len() as u32;
        self.names.push(name);
        self.indexes.insert(name, index);
        Ok(index)
    }

    /// All names by their indexes.
    pub fn names(&self) -> &[&'n Arc<str>] {
        &self.names
    }
}
