//! Schema of the response to `POST /api/data/query`; `write` writes it.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::MeasurementDoc;
use crate::http::endpoint::Pagination;
use crate::http::resources::shared::SharedRuleView;
use crate::http::write::QueryMetadata;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// The response to a query.
#[derive(ToSchema)]
pub struct QueryAnswer {
    /// Rows, either points or groups; absent with the layout `columns`.
    #[schema(nullable = false)]
    pub data: Option<Vec<Row>>,
    /// The rows as columns; present with the layout `columns`.
    #[schema(nullable = false)]
    pub columns: Option<Columns>,
    /// Information about the rows and the pages that follow.
    pub metadata: QueryMetadata,
}

/// What a panel shows: what its query answers, or, of the kind `rules`, a list of rules.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = PanelAnswer)]
pub enum PanelAnswerDoc {
    /// What the query answers.
    Rows(Box<QueryAnswer>),
    /// The rules of the bucket, at most 1,000.
    Rules(SharedRulesDoc),
}

/// A page of rules.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SharedRules)]
pub struct SharedRulesDoc {
    /// Oldest first.
    pub alert_rules: Vec<SharedRuleView<'static>>,
    /// Position of this page in the list.
    pub pagination: Pagination,
}

/// Rows as columns: arrays of equal length, with null where a row has no value.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Columns {
    /// IDs of the points; absent for groups.
    #[serde(rename = "_id")]
    #[schema(nullable = false)]
    pub id: Option<Vec<ObjectId>>,
    /// Timestamps of the points, in UTC; for groups, the start of each step.
    pub timestamp: Vec<Timestamp>,
    /// IDs of the data sources; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<Vec<ObjectId>>,
    /// Measurements or aggregates by field, and results of expressions.
    pub values: BTreeMap<String, ColumnValues>,
    /// With `compare`: the same of the time before.
    #[schema(nullable = false)]
    pub previous: Option<BTreeMap<String, ColumnValues>>,
    /// Minimum, maximum and count behind each average, by field; in downsampled responses.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, StatsColumns>>,
    /// Metadata as sent; absent when no point has any.
    #[schema(value_type = Option<Vec<Option<Object>>>, nullable = false)]
    pub metadata: Option<Vec<Option<Value>>>,
}

/// The values of a field, as columns.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ColumnValues {
    /// Measurements, or values of a single aggregation.
    One(Vec<MeasurementDoc>),
    /// With an array of aggregations: the values of each, by its name.
    Several(BTreeMap<String, Vec<MeasurementDoc>>),
}

/// Statistics of the values behind averages, as columns.
#[derive(ToSchema)]
pub struct StatsColumns {
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
pub enum Row {
    /// A point.
    Raw(RawRow),
    /// A group.
    Group(GroupRow),
}

/// A row that is a point.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RawRow {
    /// ID of the point.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Timestamp of the point, in UTC.
    pub timestamp: Timestamp,
    /// ID of the data source.
    pub data_source_id: ObjectId,
    /// Measurements by field, and results of expressions.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// Metadata as sent; absent when none was sent.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Value>,
}

/// A row that is a group. With a single aggregation, each field of `values` is repeated as a member of the row, under its own
/// name.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupRow {
    /// Start of the step.
    pub timestamp: Timestamp,
    /// Same as `timestamp`.
    pub time: Timestamp,
    /// ID of the data source; absent with `mergeSources`.
    #[schema(nullable = false)]
    pub data_source_id: Option<ObjectId>,
    /// Aggregate of each field, and results of expressions.
    pub values: BTreeMap<String, GroupValue>,
    /// With `compare`: the same of the time before; empty if nothing was there.
    #[schema(nullable = false)]
    pub previous: Option<BTreeMap<String, GroupValue>>,
    /// Minimum, maximum and count behind each average, by field; in downsampled responses.
    #[schema(nullable = false)]
    pub stats: Option<BTreeMap<String, RowStats>>,
}

/// The aggregate of a field in a group.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum GroupValue {
    /// The value of a single aggregation; null if it has no result.
    One(MeasurementDoc),
    /// With an array of aggregations: the value of each, by its name.
    Several(BTreeMap<String, MeasurementDoc>),
}

/// Statistics of the values behind an average.
#[derive(ToSchema)]
pub struct RowStats {
    /// Minimum value.
    pub min: f64,
    /// Maximum value.
    pub max: f64,
    /// Number of values.
    pub count: u64,
}
