//! The answer to `POST /api/data/query`, as it is described; `service::query` writes it.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::MeasurementDoc;
use crate::ids::ObjectId;
use crate::service::query::Aggregation;
use crate::timestamp::Timestamp;

/// An answer to a query.
#[derive(ToSchema)]
#[schema(as = QueryAnswer)]
pub struct QueryAnswerDoc {
    /// Points, or groups; absent where columns were asked for.
    #[schema(nullable = false)]
    pub data: Option<Vec<RowDoc>>,
    /// The same as columns, where they were asked for.
    #[schema(nullable = false)]
    pub columns: Option<ColumnsDoc>,
    /// What the rows are, and what comes behind them.
    pub metadata: QueryMetadataDoc,
}

/// Rows as columns: arrays of one length, with null where a row has no value.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Columns)]
pub struct ColumnsDoc {
    /// Ids, of points.
    #[serde(rename = "_id")]
    #[schema(nullable = false)]
    pub id: Option<Vec<ObjectId>>,
    /// As sent, UTC; of groups, the start of the step.
    pub timestamp: Vec<Timestamp>,
    /// Sources; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<Vec<ObjectId>>,
    /// Measurements, or aggregated numbers, by field.
    pub values: BTreeMap<String, Vec<MeasurementDoc>>,
    /// What the averages smoothed, by field; in downsampled answers.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, StatsColumnsDoc>>,
    /// As sent; absent where no point has any.
    #[schema(value_type = Option<Vec<Option<Object>>>, nullable = false)]
    pub metadata: Option<Vec<Option<Value>>>,
}

/// What averages were made of, as columns.
#[derive(ToSchema)]
#[schema(as = StatsColumns)]
pub struct StatsColumnsDoc {
    /// The least values.
    pub min: Vec<Option<f64>>,
    /// The greatest values.
    pub max: Vec<Option<f64>>,
    /// How many values.
    pub count: Vec<Option<u64>>,
}

/// A point, or a group.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = Row)]
pub enum RowDoc {
    /// A point.
    Raw(RawRowDoc),
    /// A group.
    Group(GroupRowDoc),
}

/// A point.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RawRow)]
pub struct RawRowDoc {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// As sent, UTC.
    pub timestamp: Timestamp,
    /// Its source.
    pub data_source_id: ObjectId,
    /// Measurements by field.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// As sent; absent when none was.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Value>,
}

/// A group. Each field of `values` also stands beside it under its own name.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GroupRow)]
pub struct GroupRowDoc {
    /// Start of the calendar unit.
    pub timestamp: Timestamp,
    /// The same.
    pub time: Timestamp,
    /// Its source; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<ObjectId>,
    /// The aggregated number of each field.
    pub values: BTreeMap<String, f64>,
    /// What the averages smoothed, by field; in downsampled answers.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, RowStatsDoc>>,
}

/// What an average was made of.
#[derive(ToSchema)]
#[schema(as = RowStats)]
pub struct RowStatsDoc {
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// How many values.
    pub count: u64,
}

/// What the rows are, and what comes behind them.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = QueryMetadata)]
pub struct QueryMetadataDoc {
    /// Rows of this answer.
    pub count: u64,
    /// Most rows of an answer.
    pub limit: u64,
    /// Rows passed over.
    pub offset: u64,
    /// Whether there are rows behind these.
    pub has_more: bool,
    /// Where a raw answer goes on; absent at its end.
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
    /// Of groups: what was aggregated.
    #[schema(nullable = false)]
    pub aggregation: Option<Aggregation>,
    /// Of groups: their step, a unit or a length such as `15m`.
    #[schema(nullable = false)]
    pub group_by: Option<String>,
    /// Of groups: the bucket.
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// True when groups took the place of points.
    #[schema(nullable = false)]
    pub downsampling_applied: Option<bool>,
    /// Why, when they did.
    #[schema(nullable = false)]
    pub downsampling: Option<DownsamplingDoc>,
}

/// Why groups took the place of points.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = Downsampling)]
pub struct DownsamplingDoc {
    /// The step chosen, a unit or a length such as `15m`.
    pub group_by: String,
    /// Points expected in the range; with `maxPoints`, those that are in it.
    pub expected_points: f64,
}
