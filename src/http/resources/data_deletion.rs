//! `POST /api/data/delete`.

use serde_json::{Value, json};

use super::dimension_filters::DimensionFilters;
use super::query_body::{FiltersBody, MetadataFilter, start_is_before_end};
use super::value_filters::ValueFilters;
use super::views::view;
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, Unread, post};
use crate::http::server::request_context::lift_deadline;
use crate::http::shape::{List, Moment, Object, Rule, body};
use crate::ids::ObjectId;
use crate::limits::QUERY_ENTRIES_MAX;

type Ids = List<ObjectId, 0, QUERY_ENTRIES_MAX>;

/// The members of the filters, one of which is needed.
const FILTERS: [&str; 6] = [
    "dataSourceIds",
    "startTime",
    "endTime",
    "metadata",
    "values",
    "dimensions",
];

body! {
    /// Filters that select the points to delete: those that match all of them.
    pub struct DeletionFilters {
        /// Data sources; all sources of the bucket when absent or empty.
        data_source_ids: Option<Ids>,
        /// Start of the range, ISO 8601, inclusive.
        start_time: Option<Moment>,
        /// End of the range, ISO 8601, inclusive.
        end_time: Option<Moment>,
        /// Members that a point's metadata must have; `a.b` addresses a nested member.
        metadata: Option<MetadataFilter>,
        /// Conditions that a point's values must meet, by field, as in a query.
        values: Option<ValueFilters>,
        /// Conditions that a point's dimensions must meet, by name, as in a query.
        dimensions: Option<DimensionFilters>,
    }
    rules [Rule::Closed, Rule::Values(start_is_before_end)]
}

body! {
    /// Body of a deletion of points.
    pub struct DeletionBody {
        /// The bucket whose points are deleted.
        bucket_id: ObjectId,
        /// Filters that select the points; at least one must be given.
        filters: DeletionFilters,
        /// Counts the points that would be deleted, and deletes none.
        dry_run: Option<bool>,
    }
    rules [Rule::Described(some_filter_is_given, some_filter_schema)]
}

view! {
    /// The response to a deletion of points.
    pub struct DeletionAnswer of(points: u64, is_dry_run: bool) {
        /// Result in words.
        message: &'static str = match is_dry_run {
            true => "nothing was deleted; deletedCount points match",
            false => "points deleted",
        },
        /// Number of points that were deleted, or that match.
        deleted_count: u64 = points,
        /// Present and true when nothing was deleted.
        dry_run?: bool = is_dry_run.then_some(true),
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    let deletion = post("/api/data/delete", "deletePoints", delete_points);
    vec![deletion.forwarded(|route| route.takes_long = true)]
}

async fn delete_points(call: Call<Admin, (), Unread<DeletionBody>>) -> Reply<DeletionAnswer> {
    lift_deadline(&call.request);
    let body = call.body.read()?;
    let is_dry_run = body.dry_run.unwrap_or(false);
    let input = FiltersBody::from(body.filters).into_input(body.bucket_id);
    let sent = call.body.json["filters"].clone();
    let points = call
        .service
        .delete_points(&call.caller, input, sent, is_dry_run)
        .await?;
    Answer::of(&DeletionAnswer::of(points, is_dry_run))
}

impl From<DeletionFilters> for FiltersBody {
    fn from(filters: DeletionFilters) -> Self {
        Self {
            data_source_ids: filters.data_source_ids,
            start_time: filters.start_time,
            end_time: filters.end_time,
            metadata: filters.metadata,
            fields: None,
            values: filters.values,
            dimensions: filters.dimensions,
        }
    }
}

/// Records a fault if the filters select everything.
fn some_filter_is_given(body: &Object<'_>) {
    let Some(filters) = body.given("filters").and_then(Value::as_object) else {
        return;
    };
    let selects = |name: &&str| match filters.get(*name) {
        None | Some(Value::Null) => false,
        Some(Value::Array(entries)) => !entries.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    };
    if !FILTERS.iter().any(selects) {
        let message = format!(
            "must have at least one of {}; to delete all points of a data source, name it in dataSourceIds",
            FILTERS.join(", ")
        );
        body.place.member("filters").fault(message);
    }
}

/// The same as a schema.
fn some_filter_schema() -> Value {
    let given = |name: &str| {
        let selects = match name {
            "dataSourceIds" => json!({"type": "array", "minItems": 1}),
            "metadata" | "values" | "dimensions" => json!({"type": "object", "minProperties": 1}),
            _ => json!({"type": "string"}),
        };
        json!({"required": [name], "properties": {name: selects}})
    };
    let any: Vec<Value> = FILTERS.iter().map(|name| given(name)).collect();
    json!({"properties": {"filters": {"anyOf": any}}})
}
