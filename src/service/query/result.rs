//! Results of a query as data, which the edge renders.

use std::collections::HashMap;
use std::sync::Arc;

use engine::query::{Held, Page};
use engine::rows::Scalar;
use engine::{Column, Columns};

use super::groups::Groups;
use super::plan::{Plan, ReachedSeries, Resolved};
use super::{Answer, Cursor, NamedExpression};
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
