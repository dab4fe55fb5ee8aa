//! `POST /api/data/query`: the query, its plan for the selected sources, and its result.
//!
//! The catalog provides the sources. Everything else runs on the query pool, or on the thread of the request if it is
//! little: `plan` prepares the query for the sources, the bucket provides a snapshot, and `raw` or `grouped` read the
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
mod dimensions;
mod export;
mod expression;
mod fill;
mod group_by;
mod grouped;
mod groups;
mod metadata;
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
use std::time::{Duration, Instant};

pub use engine::query::Held;
use engine::query::{Budget, Estimate};
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
pub(in crate::service) use result::metadata_of;
pub use result::{FieldNames, PageInfo, Points, QueryResult, Run, RunExpression, WriteResult};
pub use series_groups::DimensionValue;
pub use top::Top;
pub use zones::{DATABASE_VERSION, zone_named};

use super::{Caller, Service};
use crate::bucket::{DamagedBlocks, IndexedView};
use crate::catalog::{Source, names};
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{QUERY_LIMIT_DEFAULT, QUERY_LIMIT_MAX};
use crate::query_pool::{QueryPool, Step, Stop, Turn, took_too_long};
use choice::Grouping;
use plan::{Plan, Reached};
use raw::Progress;

/// Approximate number of values read and written in a short turn: a few milliseconds.
pub(in crate::service) const SHORT_VALUES_MAX: u64 = 1 << 19;

/// What a series costs besides its blocks and values, in values.
const SERIES_VALUES: u64 = 64;

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

/// Longer answers are compressed in a long turn.
const SHORT_ANSWER_BYTES_MAX: u64 = 1 << 20;
/// A query for more points than this may have a large answer.
const SMALL_ANSWER_ROWS_MAX: u64 = 256;
/// How long the next piece of a started answer waits for a place in the pool, and how often it retries.
const PIECE_PATIENCE: Duration = Duration::from_secs(20);
const PIECE_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// An answer, or a piece of one.
pub type AnswerBytes = Vec<u8>;

/// A piece as it was written, where the next one begins, and the memory that it holds.
type Written<'b> = (AnswerBytes, Option<Progress>, Held<'b>);

/// A piece of an answer.
pub struct Piece<R, S = Rest> {
    /// The bytes, as the caller has processed them.
    pub content: R,
    /// Produces the following pieces; `None` if this is the last.
    pub rest: Option<S>,
}

/// Produces the pieces of an answer one after the other, all from the same snapshot.
pub trait PieceSource: Sized + 'static {
    /// Produces the next piece. `finish` processes it while still on the query pool; its flag says whether more follow.
    fn next<R: Send + 'static>(
        self,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Clone + Send + 'static,
    ) -> impl Future<Output = Result<Piece<R, Self>, ServiceError>>;
}

/// The rest of an answer, which has not been read yet. All pieces come from the same snapshot.
#[derive(Clone)]
pub struct Rest {
    queries: QueryPool,
    damaged: DamagedBlocks,
    plan: Arc<Plan>,
    indexed: IndexedView,
    progress: Progress,
    write: WriteResult,
}

impl Service {
    /// Answers a query. `write` writes its result, and `finish` processes a piece of the answer while still on the query
    /// pool (compression). The flag of `finish` says whether more pieces follow. `admit` says whether there is room for a
    /// large answer; it is asked before the query waits for its turn, and again before points are read for it.
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
        let (queries, buckets) = (self.resources.queries.clone(), self.buckets.clone());
        let now_ns = self.now_ns();
        let (bucket, sources) = self
            .catalog
            .read(|catalog| plan::select(catalog, caller, &input))?;
        let mut selected = Some((bucket, sources, input));
        let mut planned = None;
        let answer = move |stop: &Stop, turn: Turn| {
            let plannable = selected.take_if(|(_, sources, input)| !plan::is_long(sources, input, turn));
            // A view is dropped as soon as the turn is over or the answer is complete: while it exists, writers must
            // copy.
            let mut taken = None;
            if let Some((bucket, sources, input)) = plannable {
                let indexed = buckets.indexed_view(&bucket)?;
                if turn == Turn::Immediate && dimensions::selects_many(&sources, &input, &indexed.view, turn)
                {
                    // Whether the dimensions exist is not looked up, either.
                    selected = Some((bucket, sources, input));
                    return Ok(Step::Long);
                }
                planned = Some(Arc::new(Plan::of(bucket, sources, input, now_ns, &indexed)?));
                taken = Some(indexed);
            }
            let Some(plan) = &planned else {
                return Ok(Step::Long);
            };
            if may_be_large {
                admit()?;
            }
            let indexed = match taken {
                Some(indexed) => indexed,
                None => buckets.indexed_view(&plan.bucket)?,
            };
            let whole = Rest {
                queries: queries.clone(),
                damaged: buckets.damaged().clone(),
                plan: Arc::clone(plan),
                indexed,
                progress: Progress::new(),
                write,
            };
            whole.piece(stop, turn, &finish)
        };
        let queries = &self.resources.queries;
        let answered = queries.run_here_first(caller.organization_id, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl PieceSource for Rest {
    /// Produces the next piece.
    ///
    /// # Errors
    /// 503 if the pool stays full for too long, and all errors of a query.
    async fn next<R: Send + 'static>(
        self,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Clone + Send + 'static,
    ) -> Result<Piece<R>, ServiceError> {
        let until = Instant::now() + PIECE_PATIENCE;
        let rest = Arc::new(self);
        loop {
            let (this, finish) = (Arc::clone(&rest), finish.clone());
            let answer = move |stop: &Stop, turn: Turn| this.piece(stop, turn, &finish);
            let organization = rest.plan.bucket.organization_id;
            match rest.queries.run(organization, answer).await {
                // The pool is busy. Retry, because the client has the first piece already, and an error would truncate
                // the answer.
                Err(error) if error.kind == ErrorKind::Unavailable && Instant::now() < until => {
                    tokio::time::sleep(PIECE_RETRY_PERIOD).await;
                }
                answered => return answered.map_err(|error| rest.damaged.explain(error)),
            }
        }
    }
}

impl Rest {
    fn piece<R>(
        &self,
        stop: &Stop,
        turn: Turn,
        finish: &impl Fn(AnswerBytes, bool) -> Result<R, ServiceError>,
    ) -> Result<Step<Piece<R>>, ServiceError> {
        let (plan, is_bounded) = (&*self.plan, turn != Turn::Long);
        // The memory of the named sources, whether they are read or not.
        let mut held = stop.budget().hold();
        held.grow(plan.sources.named_len() * size_of::<Arc<Source>>())?;
        if dimensions::selects_many(&plan.sources, &plan.input, &self.indexed.view, turn) {
            return Ok(Step::Long);
        }
        let mut reached = plan.find(&self.indexed, plan.range_ns, stop.budget(), &|| stop.now())?;
        if turn == Turn::Immediate && plan.may_wait(&reached) {
            return Ok(Step::Long);
        }
        let is_long = |grouping: Option<&Grouping>, reached: &Reached<'_>| match is_bounded {
            true => plan.is_long(grouping, reached, &self.progress, stop.budget(), turn),
            false => Ok(false),
        };
        // To assign series to groups reads the values of dimensions, so a requested grouping is estimated before.
        let requested = plan.requested_grouping(&reached)?;
        if requested.is_some() && is_long(requested.as_ref(), &reached)? {
            // The selection is repeated in the long turn, so that no memory of the store is held while waiting.
            return Ok(Step::Long);
        }
        plan.group(&mut reached, &self.indexed)?;
        let grouping = match requested {
            Some(requested) => Some(requested),
            // Groups are always a single piece.
            None if !self.progress.is_at_beginning() => None,
            None if plan.counts_many(&reached, turn) => return Ok(Step::Long),
            None => plan.grouping(&reached, stop)?,
        };
        if plan.input.grouping.is_none() && is_long(grouping.as_ref(), &reached)? {
            return Ok(Step::Long);
        }
        let (bytes, progress, _answer_held) = match &grouping {
            Some(grouping) => {
                plan.keep_top(&mut reached, stop)?;
                plan.keep_occurring(&mut reached, grouping, stop)?;
                plan.grouped(&self.indexed, &reached, grouping, self.write, stop)?
            }
            None => plan.raw(&reached, self.progress, self.write, stop)?,
        };
        drop(reached);
        if is_bounded && (stop.turn_is_over() || bytes.len() as u64 > turn.max(SHORT_ANSWER_BYTES_MAX)) {
            // Compressing it would take as long again.
            return Ok(Step::Long);
        }
        let content = finish(bytes, progress.is_some())?;
        let rest = progress.map(|progress| Rest {
            progress,
            ..self.clone()
        });
        Ok(Step::Answer(Piece { content, rest }))
    }
}

impl Plan {
    /// Whether reading may wait for another machine. A comparison reads series that are not found yet.
    fn may_wait(&self, reached: &Reached<'_>) -> bool {
        self.input.compare.is_some() || !reached.series.iter().all(|it| it.series.is_here())
    }

    /// Whether the cost exceeds a turn, estimated without reading blocks.
    fn is_long(
        &self,
        grouping: Option<&Grouping>,
        reached: &Reached<'_>,
        progress: &Progress,
        budget: &Budget,
        turn: Turn,
    ) -> Result<bool, ServiceError> {
        let mut estimate = Estimate::new(turn.max(SHORT_VALUES_MAX));
        estimate.add(self.sources.named_len() as u64 + SERIES_VALUES * reached.series.len() as u64);
        match grouping {
            Some(grouping) => self.estimate_grouped(grouping, reached, &mut estimate, budget)?,
            None => self.estimate_raw(reached, progress, &mut estimate)?,
        }
        Ok(estimate.is_over())
    }

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
