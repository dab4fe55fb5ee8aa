//! Bodies and answers of `POST /api/data/query`, as they are described.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::docs::{AggregationDoc, GroupByDoc, LayoutDoc, MeasurementDoc, SortDoc};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Which points.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = QueryFilters)]
pub struct QueryFiltersDoc {
    /// Sources; all of the bucket when absent or empty.
    pub data_source_ids: Option<Vec<ObjectId>>,
    /// ISO 8601, inclusive.
    pub start_time: Option<Timestamp>,
    /// ISO 8601, inclusive.
    pub end_time: Option<Timestamp>,
    /// Members that the metadata must have; `a.b` reaches into nested objects.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Names of fields; all when absent or empty.
    pub fields: Option<Vec<String>>,
}

/// Body of a query.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = QueryBody)]
pub struct QueryBodyDoc {
    /// The bucket.
    pub bucket_id: ObjectId,
    /// Which points.
    pub filters: Option<QueryFiltersDoc>,
    /// What is told of each group; together with `groupBy`.
    pub aggregation: Option<AggregationDoc>,
    /// The calendar unit of a group, UTC; together with `aggregation`.
    pub group_by: Option<GroupByDoc>,
    /// Most rows: 100 raw rows when absent, 10000 groups.
    #[schema(minimum = 1, maximum = 10_000)]
    pub limit: Option<u64>,
    /// Rows to pass over.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32)]
    pub offset: Option<u64>,
    /// By timestamp; `asc` when absent.
    pub sort: Option<SortDoc>,
    /// `nextCursor` of the page before, instead of `offset`.
    pub cursor: Option<String>,
    /// Groups all sources together.
    pub merge_sources: Option<bool>,
    /// `false`: never downsample this query.
    pub downsampling: Option<bool>,
    /// Raw rows when no source has more points than this in the range, else averages by the finest step that gives none of
    /// them more rows than this. Not with `aggregation` and `groupBy`.
    #[schema(minimum = 100, maximum = 10_000)]
    pub max_points: Option<u64>,
    /// `columns`: an array for each member of the rows, instead of an object for each row.
    pub layout: Option<LayoutDoc>,
    /// By the clock of which zone hours, days and longer steps begin: a name of the IANA database, such as
    /// `Europe/Stockholm`; UTC when absent. Timestamps are UTC all the same.
    #[schema(example = "Europe/Stockholm")]
    pub timezone: Option<String>,
}

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
    pub aggregation: Option<AggregationDoc>,
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
