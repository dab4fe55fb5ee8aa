//! `POST /api/data/query`: the query, its plan for the selected sources, and its result.
//!
//! The catalog provides the sources. Everything else runs on the query pool, or on the thread of the request if it is
//! small: `plan` prepares the query for the sources, the bucket provides a snapshot, and `raw` or `grouped` read the
//! rows. The caller passes the function that writes them to the answer.

mod aggregations;
mod answer;
mod checks;
mod choice;
mod compare;
mod conditions;
mod coverage;
mod cursor;
mod deletion;
mod dimension_groups;
mod dimensions;
mod export;
mod expression;
mod fill;
mod group_by;
mod grouped;
mod groups;
mod immediate;
mod metadata;
mod piece;
mod plan;
mod raw;
mod reading;
mod result;
mod series_groups;
mod table;
mod table_query;
mod top;
mod zones;

use std::borrow::Cow;
use std::sync::Arc;

pub use engine::query::Held;
pub use engine::rows::Scalar;
pub use engine::{Column, Unit};
use engine::{EngineError, Step as TimeStep};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

pub use aggregations::{Aggregation, Aggregations};
pub use answer::{Answer, PIECE_BYTES};
pub use compare::Compare;
pub use conditions::{Condition, Literal, Set, Test};
pub use cursor::Cursor;
pub use dimensions::DimensionFilter;
pub(super) use dimensions::{available_dimensions, has_dimension};
pub use export::{
    ColumnType, EXPORT_BYTES, Export, ExportField, ExportName, ExportShape, GroupShape, NewWriter,
    WriteExport,
};
pub use expression::{Expression, NamedExpression};
pub use fill::Fill;
pub use group_by::{GroupBy, length_seconds};
pub use groups::{GroupColumn, GroupColumns, GroupField, GroupRow, GroupValue, Groups, GroupsPart};
pub use piece::{AnswerBytes, Piece, PieceSource, Rest};
pub(in crate::service) use result::metadata_of;
pub use result::{FieldNames, PageInfo, Points, QueryResult, Run, RunExpression, WriteResult};
pub use series_groups::DimensionValue;
pub use top::Top;
pub use zones::{DATABASE_VERSION, zone_named};

use super::{Caller, Service};
use crate::bucket::IndexedView;
use crate::catalog::{Bucket, names};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{QUERY_LIMIT_DEFAULT, QUERY_LIMIT_MAX};
use crate::query_pool::{Step, Stop, Turn, took_too_long};
use choice::Grouping;
use immediate::Context;
use plan::{Plan, QuerySources};

/// Approximate number of values read and written in a short turn: a few milliseconds.
pub(in crate::service) const SHORT_VALUES_MAX: u64 = 1 << 19;

/// The name of a unit in the API.
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Week => "week",
        Unit::Month => "month",
    }
}

/// The name of a step in the API.
fn step_name(step: TimeStep) -> Cow<'static, str> {
    let seconds = match step {
        TimeStep::Unit(unit) => return Cow::Borrowed(unit_name(unit)),
        TimeStep::Length(length) => length.whole_seconds(),
        TimeStep::Quarter => return Cow::Borrowed("quarter"),
        TimeStep::Year => return Cow::Borrowed("year"),
        TimeStep::From(_) => return Cow::Borrowed("all"),
    };
    Cow::Owned(match seconds {
        _ if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    })
}

/// The layout of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One object per row.
    #[default]
    Rows,
    /// One array per member.
    Columns,
}

names!(Layout: Rows => "rows", Columns => "columns");

/// A query with a valid shape.
#[derive(Clone, Debug)]
pub struct QueryInput {
    /// The bucket to query.
    pub bucket_id: ObjectId,
    /// The sources to query; empty for all.
    pub source_ids: Vec<ObjectId>,
    /// Earliest timestamp, inclusive.
    pub start_ns: Option<i64>,
    /// Latest timestamp, inclusive.
    pub end_ns: Option<i64>,
    /// Members that the metadata must contain.
    pub metadata: Map<String, Value>,
    /// Conditions that the values must meet.
    pub values: Vec<Condition>,
    /// Conditions that the dimensions must meet.
    pub dimensions: Vec<DimensionFilter>,
    /// The requested fields, without duplicates; empty for all.
    pub fields: Vec<RequestedField>,
    /// Where the request has `fields`, for faults.
    pub fields_path: &'static [&'static str],
    /// Aggregations and step; either both or neither is given.
    pub grouping: Option<(Aggregations, GroupBy)>,
    /// Maximum number of rows.
    pub limit: Option<u64>,
    /// Number of rows to skip.
    pub offset: u64,
    /// Whether rows are sorted newest first.
    pub descending: bool,
    /// Where to continue.
    pub cursor: Option<Cursor>,
    /// Whether all sources are merged into one.
    pub merge_sources: bool,
    /// The dimensions by whose values series are grouped; requires grouping.
    pub group_by_dimensions: Vec<String>,
    /// Whether the answer may be downsampled automatically.
    pub downsampling: bool,
    /// Maximum points per source; above it the answer contains averages.
    pub max_points: Option<u64>,
    /// Layout of the rows.
    pub layout: Layout,
    /// Time zone in which days and hours start; UTC if absent.
    pub timezone: Option<TimeZone>,
    /// Makes every step of the range a row; requires grouping and both ends of the range.
    pub fill: Option<Fill>,
    /// Arithmetic over the fields of a row.
    pub expressions: Vec<NamedExpression>,
    /// Adds what stood in the same steps before; requires grouping.
    pub compare: Option<Compare>,
    /// Keeps some groups; requires grouping.
    pub top: Option<Top>,
}

/// A name in `fields`.
#[derive(Clone, Debug)]
pub struct RequestedField {
    /// Index in the array as sent.
    pub index: usize,
    /// Name of the field.
    pub name: String,
}

impl QueryInput {
    /// A query for all points of a bucket.
    pub fn of_bucket(bucket_id: ObjectId) -> Self {
        QueryInput {
            bucket_id,
            source_ids: Vec::new(),
            start_ns: None,
            end_ns: None,
            metadata: Map::new(),
            values: Vec::new(),
            dimensions: Vec::new(),
            fields: Vec::new(),
            fields_path: &["filters", "fields"],
            grouping: None,
            limit: None,
            offset: 0,
            descending: false,
            cursor: None,
            merge_sources: false,
            group_by_dimensions: Vec::new(),
            downsampling: true,
            max_points: None,
            layout: Layout::default(),
            timezone: None,
            fill: None,
            expressions: Vec::new(),
            compare: None,
            top: None,
        }
    }

    /// The names of the fields that expressions use.
    fn operands(&self) -> impl Iterator<Item = &String> {
        self.expressions
            .iter()
            .flat_map(|named| named.expression.operands())
    }

    /// What `top` keeps, and the field by which it chooses.
    fn top_field(&self) -> Option<(&Top, &str)> {
        let top = self.top.as_ref()?;
        let only = match self.fields.as_slice() {
            [only] => Some(&*only.name),
            _ => None,
        };
        Some((top, top.field.as_deref().or(only)?))
    }

    /// Groups are few, whatever the limit is.
    fn may_have_large_answer(&self) -> bool {
        let limit = self.limit.unwrap_or(QUERY_LIMIT_DEFAULT);
        self.grouping.is_none() && limit > SMALL_ANSWER_ROWS_MAX
    }
}

/// A query for more points than this may have a large answer.
const SMALL_ANSWER_ROWS_MAX: u64 = 256;

/// What a query selects in the catalog, before it is planned.
struct Selected {
    bucket: Arc<Bucket>,
    sources: QuerySources,
    input: QueryInput,
}

impl Selected {
    fn plan(&self, now_ns: i64, indexed: &IndexedView) -> Result<Plan, ServiceError> {
        let (bucket, sources) = (Arc::clone(&self.bucket), self.sources.clone());
        Plan::of(bucket, sources, self.input.clone(), now_ns, indexed)
    }
}

impl Service {
    /// Answers a query. `write` writes its result, and `finish` processes a piece of the answer on the same thread
    /// (compression). The flag of `finish` says whether more pieces follow. `admit` says whether there is room for a large
    /// answer; it is asked before the query waits for its turn, and again before the pool reads points for it.
    ///
    /// # Errors
    /// 404, 403; 400 for faults that depend on the sources and for queries that exceed the memory limit; 503.
    pub async fn query<R: Send + 'static>(
        &self,
        caller: &Caller,
        input: QueryInput,
        admit: impl Fn() -> Result<(), ServiceError> + Send + 'static,
        write: WriteResult,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<Piece<R>, ServiceError> {
        let may_be_large = input.may_have_large_answer();
        if may_be_large {
            admit()?;
        }
        let (bucket, sources) = self
            .catalog
            .read(|catalog| plan::select(catalog, caller, &input))?;
        let context = Context {
            queries: self.resources.queries.clone(),
            buckets: self.buckets.clone(),
            now_ns: self.now_ns(),
            write,
        };
        let mut selected = Some(Selected {
            bucket,
            sources,
            input,
        });
        let mut planned = None;
        let answer = move |stop: &Stop, turn: Turn| {
            if let (Turn::Immediate, Some(selected)) = (turn, &selected) {
                let piece = context.immediately(selected, stop, &finish);
                return Ok(piece.map_or(Step::Long, Step::Answer));
            }
            // A view is dropped as soon as the turn is over or the answer is complete: while it exists, writers must
            // copy.
            let mut taken = None;
            // Kept until there is a plan: a turn that is over before is repeated.
            if let Some(selected) = &selected
                && !plan::is_long(&selected.sources, &selected.input, turn)
            {
                let indexed = context.buckets.indexed_view(&selected.bucket)?;
                planned = Some(Arc::new(selected.plan(context.now_ns, &indexed)?));
                taken = Some(indexed);
            }
            let Some(plan) = &planned else {
                return Ok(Step::Long);
            };
            selected = None;
            if may_be_large {
                admit()?;
            }
            let indexed = match taken {
                Some(indexed) => indexed,
                None => context.buckets.indexed_view(&plan.bucket)?,
            };
            Rest::whole(&context, Arc::clone(plan), indexed).piece(stop, turn, &finish)
        };
        let queries = &self.resources.queries;
        let answered = queries.run_here_first(caller.organization_id, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl Plan {
    fn raw_limit(&self) -> usize {
        match (self.input.limit, self.input.max_points) {
            (None, None) => QUERY_LIMIT_DEFAULT as usize,
            _ => self.grouped_limit(),
        }
    }

    fn grouped_limit(&self) -> usize {
        self.input.limit.unwrap_or(QUERY_LIMIT_MAX).min(QUERY_LIMIT_MAX) as usize
    }
}

/// Stops and oversized queries are reported to the client; damage is an internal error.
impl From<EngineError> for ServiceError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Stopped => took_too_long(),
            EngineError::Unavailable(_) => Self::unavailable(
                "points cannot be read from the object store at the moment; try again",
                1,
            )
            .caused_by(error),
            EngineError::OverBudget { bytes_max } => Self::validation(format!(
                "the query would hold more than {bytes_max} bytes of memory (query.memory_bytes_max); ask for a \
                 shorter range (filters.startTime, filters.endTime), a coarser unit (groupBy), fewer fields \
                 (filters.fields) or data sources (filters.dataSourceIds), or a smaller limit or offset"
            )),
            EngineError::Corrupt { .. } | EngineError::Damaged(_) => Self::internal(error),
        }
    }
}
