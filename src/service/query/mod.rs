//! `POST /api/data/query`: the query, its plan for the selected sources, and the bytes of the answer.
//!
//! The catalog provides the sources. Everything else runs on the query pool: `plan` prepares the query for the sources,
//! the bucket's actor provides a snapshot, and `raw` or `grouped` produce the answer.

mod answer;
mod choice;
mod columns;
mod cursor;
mod grouped;
mod metadata;
mod plan;
mod raw;
mod zones;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use engine::Unit;
use engine::query::{Budget, Estimate};
use engine::{EngineError, Step as TimeStep, View};
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use cursor::Cursor;
pub use zones::{DATABASE_VERSION, zone_named};

use super::{Caller, Service};
use crate::bucket::DamagedBlocks;
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{QUERY_LIMIT_DEFAULT, QUERY_LIMIT_MAX};
use crate::query_pool::{QueryPool, Step, Stop, Turn, wait};
use choice::{Grouping, Kind};
use plan::{Plan, Reached};
use raw::Progress;

/// Approximate number of values read and written in a short turn: a few milliseconds.
pub(in crate::service) const SHORT_VALUES_MAX: u64 = 1 << 19;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of a number field.
    Avg,
    /// Sum of a number field.
    Sum,
    /// Minimum of a number field.
    Min,
    /// Maximum of a number field.
    Max,
    /// Number of values of any field.
    Count,
}

impl Aggregation {
    /// All aggregations by their names in the API.
    pub const NAMES: [(&str, Self); 5] = [
        ("avg", Self::Avg),
        ("sum", Self::Sum),
        ("min", Self::Min),
        ("max", Self::Max),
        ("count", Self::Count),
    ];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Count => "count",
        }
    }
}

/// All units by their names in the API.
pub const UNIT_NAMES: [(&str, Unit); 5] = [
    ("minute", Unit::Minute),
    ("hour", Unit::Hour),
    ("day", Unit::Day),
    ("week", Unit::Week),
    ("month", Unit::Month),
];

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

/// The name of a step in the API: a unit's name, or a length of time.
fn step_name(step: TimeStep) -> Cow<'static, str> {
    let seconds = match step {
        TimeStep::Unit(unit) => return Cow::Borrowed(unit_name(unit)),
        TimeStep::Length(length) => length.whole_seconds(),
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

/// All layouts by their names in the API.
pub const LAYOUT_NAMES: [(&str, Layout); 2] = [("rows", Layout::Rows), ("columns", Layout::Columns)];

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
    /// The requested fields, without duplicates; empty for all.
    pub fields: Vec<AskedField>,
    /// Aggregation and unit; either both or neither is given.
    pub grouping: Option<(Aggregation, Unit)>,
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
    /// Whether the answer may be downsampled automatically.
    pub downsampling: bool,
    /// Maximum points per source; above it the answer contains averages.
    pub max_points: Option<u64>,
    /// Layout of the rows.
    pub layout: Layout,
    /// Time zone in which days and hours start; UTC if absent.
    pub timezone: Option<TimeZone>,
}

/// A name in `fields`.
#[derive(Clone, Debug)]
pub struct AskedField {
    /// Index in the array as sent.
    pub index: usize,
    /// Name of the field.
    pub name: String,
}

/// Longer answers are compressed in a long turn.
const SHORT_ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long the next piece of a started answer waits for a place in the pool, and how often it retries.
const PIECE_PATIENCE: Duration = Duration::from_secs(20);
const PIECE_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// An answer, or a piece of one, as JSON.
pub type AnswerBytes = Vec<u8>;

/// A piece of an answer.
pub struct Answered<R> {
    /// The first or next piece.
    pub piece: R,
    /// Produces the following pieces; `None` if this is the last.
    pub rest: Option<Rest>,
}

/// The rest of an answer, which has not been read yet. All pieces come from the same snapshot.
pub struct Rest {
    queries: QueryPool,
    damaged: DamagedBlocks,
    organization: ObjectId,
    plan: Arc<Plan>,
    view: View,
    progress: Progress,
}

impl Service {
    /// Answers a query. `finish` processes a piece while still on the query pool (compression). Its flag says whether
    /// more pieces follow.
    ///
    /// # Errors
    /// 404, 403; 400 for faults that depend on the sources and for queries that exceed the memory limit; 503.
    pub async fn query<R: Send + 'static>(
        &self,
        caller: &Caller,
        input: QueryInput,
        finish: impl FnOnce(AnswerBytes, bool) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<Answered<R>, ServiceError> {
        let now_ns = self.now_ns();
        let (bucket, sources) = self
            .catalog
            .read(|catalog| plan::select(catalog, caller, &input))?;
        let (buckets, queries) = (self.buckets.clone(), self.queries.clone());
        let organization = caller.organization_id;
        let mut selected = Some((bucket, sources, input));
        let mut planned = None;
        let mut finish = Some(finish);
        let answer = move |stop: &Stop, turn: Turn| {
            if turn == Turn::Short
                && let Some((_, sources, input)) = &selected
                && plan::is_long(sources, input)
            {
                return Ok(Step::Long);
            }
            if let Some((bucket, sources, input)) = selected.take() {
                planned = Some(Arc::new(Plan::of(bucket, sources, input, now_ns)?));
            }
            let Some(plan) = &planned else {
                return Err(ServiceError::internal("BUG: a query without a plan"));
            };
            // Drop the view as soon as the turn is over or the answer is complete: while it exists, writers must copy.
            let view = wait(buckets.view(&plan.bucket))?;
            let Step::Answer((bytes, progress)) = plan.piece(&view, Progress::new(), stop, turn)? else {
                return Ok(Step::Long);
            };
            let rest = progress.map(|progress| Rest {
                queries: queries.clone(),
                damaged: buckets.damaged().clone(),
                organization,
                plan: Arc::clone(plan),
                view,
                progress,
            });
            finished(bytes, rest, &mut finish)
        };
        let answered = self.queries.run(organization, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl Rest {
    /// Produces the next piece.
    ///
    /// # Errors
    /// 503 if the pool stays full for too long, and all errors of a query.
    pub async fn next<R: Send + 'static>(
        self,
        finish: impl FnOnce(AnswerBytes, bool) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<Answered<R>, ServiceError> {
        let until = Instant::now() + PIECE_PATIENCE;
        let (queries, organization) = (self.queries.clone(), self.organization);
        let damaged = self.damaged.clone();
        let (rest, finish) = (Arc::new(self), Arc::new(Mutex::new(Some(finish))));
        loop {
            let (rest, finish) = (Arc::clone(&rest), Arc::clone(&finish));
            let answer = move |stop: &Stop, turn: Turn| {
                let Step::Answer((bytes, progress)) =
                    rest.plan.piece(&rest.view, rest.progress, stop, turn)?
                else {
                    return Ok(Step::Long);
                };
                let following = progress.map(|progress| rest.at(progress));
                finished(bytes, following, &mut *finish.lock())
            };
            match queries.run(organization, answer).await {
                // The pool is busy. Retry, because the client has the first piece already, and an error would truncate
                // the answer.
                Err(error) if error.kind == ErrorKind::Unavailable && Instant::now() < until => {
                    tokio::time::sleep(PIECE_RETRY_PERIOD).await;
                }
                answered => return answered.map_err(|error| damaged.explain(error)),
            }
        }
    }

    fn at(&self, progress: Progress) -> Self {
        Rest {
            queries: self.queries.clone(),
            damaged: self.damaged.clone(),
            organization: self.organization,
            plan: Arc::clone(&self.plan),
            view: self.view.clone(),
            progress,
        }
    }
}

/// Passes a piece to `finish`.
fn finished<R, F: FnOnce(AnswerBytes, bool) -> Result<R, ServiceError>>(
    bytes: AnswerBytes,
    rest: Option<Rest>,
    finish: &mut Option<F>,
) -> Result<Step<Answered<R>>, ServiceError> {
    let Some(finish) = finish.take() else {
        return Err(ServiceError::internal("BUG: a query was answered twice"));
    };
    let piece = finish(bytes, rest.is_some())?;
    Ok(Step::Answer(Answered { piece, rest }))
}

impl Plan {
    /// Produces a piece of the answer from this view of the bucket.
    fn piece(
        &self,
        view: &View,
        progress: Progress,
        stop: &Stop,
        turn: Turn,
    ) -> Result<Step<(AnswerBytes, Option<Progress>)>, ServiceError> {
        let _held = plan::hold_sources(self.sources.named_len(), stop.budget())?;
        let reached = self.reach(view, stop.budget())?;
        let kind = match progress.is_at_beginning() {
            true if turn == Turn::Short && self.counts_many(&reached) => return Ok(Step::Long),
            true => self.kind(&reached, stop)?,
            // Groups are always a single piece.
            false => Kind::Raw,
        };
        if turn == Turn::Short && self.is_long(&kind, &reached, &progress, stop.budget())? {
            // The selection is repeated in the long turn, so that no memory of the store is held while waiting.
            return Ok(Step::Long);
        }
        let (bytes, rest, _held) = match &kind {
            Kind::Grouped(grouping) => {
                let (bytes, held) = self.grouped(reached, grouping, stop)?;
                (bytes, None, held)
            }
            Kind::Raw if self.input.layout == Layout::Columns => {
                let (bytes, held) = self.raw_columns(&reached, stop)?;
                (bytes, None, held)
            }
            Kind::Raw => self.raw(&reached, progress, stop)?,
        };
        if turn == Turn::Short && (stop.turn_is_over() || bytes.len() > SHORT_ANSWER_BYTES_MAX) {
            // Compressing it would take as long again.
            return Ok(Step::Long);
        }
        Ok(Step::Answer((bytes, rest)))
    }

    /// Whether the cost exceeds a short turn, estimated without reading blocks.
    fn is_long(
        &self,
        kind: &Kind,
        reached: &Reached<'_>,
        progress: &Progress,
        budget: &Budget,
    ) -> Result<bool, ServiceError> {
        let mut estimate = Estimate::new(SHORT_VALUES_MAX);
        estimate.add((self.sources.named_len() + reached.sources.len()) as u64);
        match kind {
            Kind::Grouped(grouping) => self.estimate_grouped(grouping, reached, &mut estimate, budget)?,
            Kind::Raw => self.estimate_raw(reached, progress, &mut estimate)?,
        }
        Ok(estimate.is_over())
    }

    fn limit(&self, default: u64) -> usize {
        self.input.limit.unwrap_or(default).min(QUERY_LIMIT_MAX) as usize
    }

    fn raw_limit(&self) -> usize {
        self.limit(match self.input.max_points {
            Some(_) => QUERY_LIMIT_MAX,
            None => QUERY_LIMIT_DEFAULT,
        })
    }

    fn grouped_limit(&self) -> usize {
        self.limit(QUERY_LIMIT_MAX)
    }
}

/// Stops and oversized queries are reported to the client; damage is an internal error.
pub(in crate::service) fn engine_error(error: EngineError) -> ServiceError {
    match error {
        EngineError::Stopped => ServiceError::unavailable(
            "the query took too long; ask for a shorter range or a coarser unit",
            1,
        ),
        EngineError::OverBudget { bytes_max } => ServiceError::validation(format!(
            "the query would hold more than {bytes_max} bytes of memory (query.memory_bytes_max); ask for a shorter \
             range (filters.startTime, filters.endTime), a coarser unit (groupBy), fewer fields (filters.fields) or data \
             sources (filters.dataSourceIds), or a smaller limit or offset"
        )),
        EngineError::Corrupt { .. } | EngineError::Damaged(_) => ServiceError::internal(error),
    }
}

/// A field's name as a JSON member name with a colon.
fn member_name(name: &str) -> Vec<u8> {
    let mut member = Vec::with_capacity(name.len() + 3);
    crate::ingest::json::write_string(name, &mut member);
    member.push(b':');
    member
}
