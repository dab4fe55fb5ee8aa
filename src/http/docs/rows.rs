//! Schema of the response to `POST /api/data/query`; `service::query` writes it.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::MeasurementDoc;
use crate::ids::ObjectId;
use crate::service::query::Aggregation;
use crate::timestamp::Timestamp;

/// The response to a query.
#[derive(ToSchema)]
#[schema(as = QueryAnswer)]
pub struct QueryAnswerDoc {
    /// Rows, either points or groups; absent with the layout `columns`.
    #[schema(nullable = false)]
    pub data: Option<Vec<RowDoc>>,
    /// The rows as columns; present with the layout `columns`.
    #[schema(nullable = false)]
    pub columns: Option<ColumnsDoc>,
    /// Information about the rows and the pages that follow.
    pub metadata: QueryMetadataDoc,
}

/// Rows as columns: arrays of equal length, with null where a row has no value.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Columns)]
pub struct ColumnsDoc {
    /// IDs of the points; absent for groups.
    #[serde(rename = "_id")]
    #[schema(nullable = false)]
    pub id: Option<Vec<ObjectId>>,
    /// Timestamps of the points, in UTC; for groups, the start of each step.
    pub timestamp: Vec<Timestamp>,
    /// IDs of the data sources; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<Vec<ObjectId>>,
    /// Measurements or aggregates, by field.
    pub values: BTreeMap<String, Vec<MeasurementDoc>>,
    /// Minimum, maximum and count behind each average, by field; in downsampled responses.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, StatsColumnsDoc>>,
    /// Metadata as sent; absent when no point has any.
    #[schema(value_type = Option<Vec<Option<Object>>>, nullable = false)]
    pub metadata: Option<Vec<Option<Value>>>,
}

/// Statistics of the values behind averages, as columns.
#[derive(ToSchema)]
#[schema(as = StatsColumns)]
pub struct StatsColumnsDoc {
    /// Minimum values.
    pub min: Vec<Option<f64>>,
    /// Maximum values.
    pub max: Vec<Option<f64>>,
    /// Numbers of values.
    pub count: Vec<Option<u64>>,
}

/// A row: a point or a group.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = Row)]
pub enum RowDoc {
    /// A point.
    Raw(RawRowDoc),
    /// A group.
    Group(GroupRowDoc),
}

/// A row that is a point.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RawRow)]
pub struct RawRowDoc {
    /// ID of the point.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Timestamp of the point, in UTC.
    pub timestamp: Timestamp,
    /// ID of the data source.
    pub data_source_id: ObjectId,
    /// Measurements by field.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// Metadata as sent; absent when none was sent.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Value>,
}

/// A row that is a group. Each field of `values` is repeated as a member of the row, under its own name.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GroupRow)]
pub struct GroupRowDoc {
    /// Start of the step.
    pub timestamp: Timestamp,
    /// Same as `timestamp`.
    pub time: Timestamp,
    /// ID of the data source; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<ObjectId>,
    /// Aggregate of each field.
    pub values: BTreeMap<String, f64>,
    /// Minimum, maximum and count behind each average, by field; in downsampled responses.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, RowStatsDoc>>,
}

/// Statistics of the values behind an average.
#[derive(ToSchema)]
#[schema(as = RowStats)]
pub struct RowStatsDoc {
    /// Minimum value.
    pub min: f64,
    /// Maximum value.
    pub max: f64,
    /// Number of values.
    pub count: u64,
}

/// Information about the rows and the pages that follow.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = QueryMetadata)]
pub struct QueryMetadataDoc {
    /// Number of rows in this response.
    pub count: u64,
    /// Maximum number of rows in a response.
    pub limit: u64,
    /// Number of rows skipped.
    pub offset: u64,
    /// Whether more rows follow.
    pub has_more: bool,
    /// Cursor of the next page of points; absent on the last page.
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
    /// Aggregate that was computed; for groups only.
    #[schema(nullable = false)]
    pub aggregation: Option<Aggregation>,
    /// Step of the groups, a calendar unit or a length such as `15m`; for groups only.
    #[schema(nullable = false)]
    pub group_by: Option<String>,
    /// ID of the bucket; for groups only.
    #[schema(nullable = false)]
    pub bucket_id: Option<ObjectId>,
    /// True when groups were returned instead of points because of downsampling.
    #[schema(nullable = false)]
    pub downsampling_applied: Option<bool>,
    /// Details of the downsampling, when it was applied.
    #[schema(nullable = false)]
    pub downsampling: Option<DownsamplingDoc>,
}

/// How the server downsampled a query.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = Downsampling)]
pub struct DownsamplingDoc {
    /// Step that was chosen, a calendar unit or a length such as `15m`.
    pub group_by: String,
    /// Estimated number of points in the range; with `maxPoints`, the actual number.
    pub expected_points: f64,
}
