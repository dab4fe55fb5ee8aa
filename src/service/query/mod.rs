//! `POST /api/data/query`: what is asked, what it means for the selected sources, and the answer's bytes.
//!
//! `plan` decides against the catalog (pure but for reading it), the bucket's actor gives a snapshot, and `raw` or
//! `grouped` answer on the query pool.

mod cursor;
mod grouped;
mod metadata;
mod plan;
mod raw;

use std::sync::Arc;

use engine::query::{Downsampling, Expected, choose_unit};
use engine::{EngineError, Snapshot, Unit};
use serde_json::{Map, Value};

pub use cursor::Cursor;

use super::{Caller, Service};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{QUERY_LIMIT_DEFAULT, QUERY_LIMIT_MAX};
use crate::query_pool::Stop;
use plan::Plan;

/// The aggregations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of a number field.
    Avg,
    /// Sum of a number field.
    Sum,
    /// Least value of a number field.
    Min,
    /// Greatest value of a number field.
    Max,
    /// Values present, of any field.
    Count,
}

impl Aggregation {
    /// All, by their names in the API.
    pub const NAMES: [(&str, Self); 5] = [
        ("avg", Self::Avg),
        ("sum", Self::Sum),
        ("min", Self::Min),
        ("max", Self::Max),
        ("count", Self::Count),
    ];

    /// The name in the API.
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

/// The units by their names in the API.
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

/// A query whose shape is in order.
#[derive(Clone, Debug)]
pub struct QueryInput {
    /// The bucket asked.
    pub bucket_id: ObjectId,
    /// The sources asked; empty for all.
    pub source_ids: Vec<ObjectId>,
    /// Earliest timestamp, inclusive.
    pub start_ns: Option<i64>,
    /// Latest timestamp, inclusive.
    pub end_ns: Option<i64>,
    /// What the metadata must say.
    pub metadata: Map<String, Value>,
    /// The fields asked for, each once; empty for all.
    pub fields: Vec<AskedField>,
    /// Aggregation and unit, which come together.
    pub grouping: Option<(Aggregation, Unit)>,
    /// Most rows.
    pub limit: Option<u64>,
    /// Rows to pass over.
    pub offset: u64,
    /// Newest first.
    pub descending: bool,
    /// Where to go on.
    pub cursor: Option<Cursor>,
    /// All sources as one.
    pub merge_sources: bool,
    /// Whether it may be downsampled by itself.
    pub downsampling: bool,
}

/// A name in `fields`.
#[derive(Clone, Debug)]
pub struct AskedField {
    /// Its place in the array as sent.
    pub index: usize,
    /// The field's name.
    pub name: String,
}

/// A finished answer: JSON.
pub type AnswerBytes = Vec<u8>;

impl Service {
    /// Answers a query. `finish` works on the body while still on the query pool (compression).
    ///
    /// # Errors
    /// 404, 403, 400 for faults that only the sources can tell, 503.
    pub async fn query<R: Send + 'static>(
        &self,
        caller: &Caller,
        input: QueryInput,
        finish: impl FnOnce(AnswerBytes) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let now_ns = self.now_ns();
        let (bucket, sources) = self
            .catalog
            .read(|catalog| plan::select(catalog, caller, &input))?;
        let plan = Plan::of(bucket, sources, input, now_ns)?;
        let ordinals = plan
            .sources
            .iter()
            .map(|selected| selected.source.ordinal)
            .collect();
        let snapshot = self.buckets.snapshot(&plan.bucket, ordinals).await?;
        self.queries
            .run(move |stop| finish(plan.answer(&snapshot, stop)?))
            .await
    }
}

impl Plan {
    fn answer(&self, snapshot: &Snapshot, stop: &Stop) -> Result<AnswerBytes, ServiceError> {
        if let Some((aggregation, unit)) = self.input.grouping {
            return self.grouped(snapshot, aggregation, unit, None, stop);
        }
        match self.downsampling(snapshot)? {
            Some(chosen) => self.grouped(snapshot, Aggregation::Avg, chosen.unit, Some(chosen), stop),
            None => self.raw(snapshot, stop),
        }
    }

    /// Whether, and by which unit, to downsample a query that did not ask for groups.
    fn downsampling(&self, snapshot: &Snapshot) -> Result<Option<Downsampling>, ServiceError> {
        let wanted = self.input.downsampling
            && self.input.cursor.is_none()
            && self.sources.iter().all(|selected| selected.source.downsampling)
            && self.has_number_field();
        if !wanted {
            return Ok(None);
        }
        let mut expected = Vec::with_capacity(snapshot.series.len());
        for series in &snapshot.series {
            let stats = series.stats(self.cutoff_ns).map_err(engine_error)?;
            expected.extend(Expected::of(stats, self.range_ns));
        }
        Ok(choose_unit(&expected))
    }

    fn limit(&self, default: u64) -> usize {
        self.input.limit.unwrap_or(default).min(QUERY_LIMIT_MAX) as usize
    }

    fn raw_limit(&self) -> usize {
        self.limit(QUERY_LIMIT_DEFAULT)
    }

    fn grouped_limit(&self) -> usize {
        self.limit(QUERY_LIMIT_MAX)
    }
}

/// A stop is the client's or the clock's; damage is ours to repair.
pub(in crate::service) fn engine_error(error: EngineError) -> ServiceError {
    match error {
        EngineError::Stopped => ServiceError::unavailable(
            "the query took too long; ask for a shorter range or a coarser unit",
            1,
        ),
        EngineError::Corrupt { .. } => ServiceError::internal(error),
    }
}

/// Names of fields as JSON member names with their colons, made once for an answer.
fn member_names(names: impl Iterator<Item = Arc<str>>) -> Vec<Vec<u8>> {
    names
        .map(|name| {
            let mut member = Vec::with_capacity(name.len() + 3);
            crate::ingest::json::write_string(&name, &mut member);
            member.push(b':');
            member
        })
        .collect()
}
