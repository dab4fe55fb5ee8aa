//! Results of a query as data, which the edge renders.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use engine::query::{Cell, Held, Page};
use engine::rows::Scalar;
use engine::{Aggregate, Column, Columns};

use super::grouped::Coverage;
use super::plan::{Plan, ReachedSource, Resolved};
use super::{Aggregation, Aggregations, Answer, Cursor};
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
    pub(super) sources: &'a [ReachedSource],
    /// Number of rows written before this page.
    pub rows_before: usize,
    /// Information for the end of the answer; `None` if another page of the answer follows.
    pub end: Option<PageInfo>,
}

impl<'a> Points<'a> {
    /// The rows in their order: the index of a run, and the row of that run.
    pub fn rows(&self) -> &'a [(u32, u32)] {
        &self.page.rows
    }

    /// The runs that contain the rows.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = Run<'a>> {
        let (plan, sources) = (self.plan, self.sources);
        self.page.runs.iter().map(move |run| {
            let ReachedSource { source, schema, .. } = &sources[run.selection];
            Run {
                source_id: source.id,
                schema: *schema,
                resolved: &plan.schemas[*schema],
                bucket: plan.bucket.ordinal,
                columns: &run.columns,
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
}

impl<'a> Run<'a> {
    /// The requested fields: their ordinals and names.
    pub fn fields(&self) -> impl Iterator<Item = (u16, &'a Arc<str>)> {
        let resolved = self.resolved;
        let ordinals = resolved.ordinals().into_iter();
        ordinals.map(move |ordinal| (ordinal, resolved.name(ordinal)))
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
    pub(super) sources: &'a [ReachedSource],
    pub(super) coverage: &'a Coverage<'a>,
    /// The groups, in order.
    pub cells: &'a [Cell],
    pub page: PageInfo,
    pub aggregations: &'a Aggregations,
    /// Name of the step in the API.
    pub step: Cow<'static, str>,
    /// Number of points that were expected, if the step was chosen by downsampling.
    pub downsampled: Option<u64>,
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

    /// The source of a group; `None` if sources are merged.
    pub fn source_id(&self, cell: &Cell) -> Option<ObjectId> {
        (!self.is_merged()).then(|| self.sources[cell.source as usize].source.id)
    }

    /// Index of the schema of a group; 0 if sources are merged.
    pub fn schema(&self, cell: &Cell) -> usize {
        match self.is_merged() {
            true => 0,
            false => self.sources[cell.source as usize].schema,
        }
    }

    /// The names of the fields of a schema, by their numbers in groups.
    pub fn field_names(&self, schema: usize) -> &'a [&'a Arc<str>] {
        &self.coverage.names[schema]
    }

    /// The fields of a group, each with all its values.
    pub fn fields<'c>(&self, cell: &'c Cell) -> impl Iterator<Item = GroupField<'c>> {
        let (kinds, splits) = (&*self.coverage.kinds[self.schema(cell)], self.coverage.splits);
        let mut values = cell.values().peekable();
        std::iter::from_fn(move || {
            let (number, aggregate) = values.next()?;
            let is_other = |other: &(u32, _)| splits && number % 2 == 0 && other.0 == number + 1;
            let others = values.next_if(is_other);
            Some(GroupField {
                number,
                kind: kinds[number as usize],
                aggregate,
                others: others.map_or(0, |(_, others)| others.count),
            })
        })
    }
}

/// A field of a group.
#[derive(Clone, Copy)]
pub struct GroupField<'c> {
    /// Its number among the names of its schema.
    pub number: u32,
    kind: FieldType,
    /// Of its values of this type.
    pub aggregate: &'c Aggregate,
    /// Number of values of other types, of merged sources.
    others: u64,
}

impl GroupField<'_> {
    /// Its value of an aggregation; `None` if that does not cover its type.
    pub fn value(&self, aggregation: Aggregation) -> Option<f64> {
        let value = aggregation
            .covers(self.kind)
            .then(|| aggregation.of(self.aggregate))?;
        Some(match aggregation {
            Aggregation::Count => value + self.others as f64,
            _ => value,
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
