//! `POST /api/data/query`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::docs::ErrorDoc;
use super::faults::{Faults, Members};
use super::{auth, body, respond, values};
use crate::error::ServiceError;
use crate::ingest::timestamp;
use crate::limits::QUERY_LIMIT_MAX;
use crate::service::query::{Aggregation, Cursor, QueryInput, UNIT_NAMES};
use crate::service::{Access, Service};

const ACCESS: Access = Access::ADMIN
    .or(Access::WRITE)
    .or(Access::READ)
    .or(Access::INTEGRATION);

/// Which points.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct QueryFiltersDoc {
    /// Sources; all of the bucket when absent or empty.
    pub data_source_ids: Option<Vec<String>>,
    /// ISO 8601, inclusive.
    pub start_time: Option<String>,
    /// ISO 8601, inclusive.
    pub end_time: Option<String>,
    /// Members that the metadata must have; `a.b` reaches into nested objects.
    pub metadata: Option<Map<String, Value>>,
    /// Names of fields; all when absent or empty.
    pub fields: Option<Vec<String>>,
}

/// Body of a query.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct QueryBodyDoc {
    /// The bucket.
    pub bucket_id: String,
    /// Which points.
    pub filters: Option<QueryFiltersDoc>,
    /// `avg`, `sum`, `min`, `max` or `count`; together with `groupBy`.
    pub aggregation: Option<String>,
    /// `minute`, `hour`, `day`, `week` or `month`, UTC; together with `aggregation`.
    pub group_by: Option<String>,
    /// Most rows: 100 raw rows when absent, 10000 groups.
    #[schema(minimum = 1, maximum = 10000)]
    pub limit: Option<u64>,
    /// Rows to pass over.
    pub offset: Option<u64>,
    /// `asc` or `desc`.
    pub sort: Option<String>,
    /// `nextCursor` of the page before, instead of `offset`.
    pub cursor: Option<String>,
    /// Groups all sources together.
    pub merge_sources: Option<bool>,
    /// `false`: never downsample this query.
    pub downsampling: Option<bool>,
}

/// An answer to a query.
#[derive(ToSchema)]
pub struct QueryAnswerDoc {
    /// Raw rows `{_id, timestamp, dataSourceId, values, metadata}`, or groups
    /// `{timestamp, time, dataSourceId, values, …}` with each field flat beside `values`.
    pub data: Vec<Map<String, Value>>,
    /// `count`, `limit`, `offset`, `hasMore`, and `nextCursor` for raw rows; `aggregation`, `groupBy` and `bucketId`
    /// for groups; `downsamplingApplied` and `downsampling` when the query was downsampled by itself.
    pub metadata: Map<String, Value>,
}

/// Reads points: raw, grouped, or downsampled when there would be too many.
#[utoipa::path(post, path = "/api/data/query", tag = "data", security(("apiKey" = []), ("bearer" = [])),
    request_body = QueryBodyDoc,
    responses((status = 200, body = QueryAnswerDoc), (status = "default", body = ErrorDoc)))]
pub async fn query(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let body = body::read_json(&request, payload).await?;
    let input = read_query(&body)?;
    let coding = respond::coding_of(&request);
    let encoded = service
        .query(&caller, input, move |body| respond::encode(coding, body))
        .await?;
    Ok(respond::respond_encoded(StatusCode::OK, encoded))
}

/// The body's shape, with all its faults.
fn read_query(body: &Value) -> Result<QueryInput, ServiceError> {
    let mut faults = Faults::default();
    let members = Members::of_body(body, &mut faults);
    let bucket_id = members.required("bucketId", &mut faults, values::id);
    let none = Value::Object(Map::new());
    let filters = members
        .get("filters")
        .filter(|filters| !filters.is_null())
        .unwrap_or(&none);
    let filters = Members::at(filters, members.path_of("filters"), &mut faults);
    let source_ids = strings(&filters, "dataSourceIds", &mut faults, values::id);
    let start_ns = filters.optional("startTime", &mut faults, moment);
    let end_ns = filters.optional("endTime", &mut faults, moment);
    if let (Some(start), Some(end)) = (start_ns, end_ns)
        && start >= end
    {
        faults.add(&filters.path_of("startTime"), "must be before endTime");
    }
    let metadata = filters.optional("metadata", &mut faults, |value| {
        value
            .as_object()
            .cloned()
            .ok_or_else(|| "must be an object of members to match".to_owned())
    });
    let fields = strings(&filters, "fields", &mut faults, |value| {
        values::string(value).map(str::to_owned)
    });
    let aggregation = members.optional("aggregation", &mut faults, |value| {
        values::one_of(value, &Aggregation::NAMES)
    });
    let group_by = members.optional("groupBy", &mut faults, |value| values::one_of(value, &UNIT_NAMES));
    for (given, missing) in [("aggregation", "groupBy"), ("groupBy", "aggregation")] {
        let has = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
        if has(given) && !has(missing) {
            faults.add(&members.path_of(missing), format!("is required with {given}"));
        }
    }
    let limit = members.optional("limit", &mut faults, |value| {
        values::integer(value, 1, QUERY_LIMIT_MAX)
    });
    let offset = members.optional("offset", &mut faults, |value| {
        values::integer(value, 0, u64::from(u32::MAX))
    });
    let descending = members.optional("sort", &mut faults, |value| {
        values::one_of(value, &[("asc", false), ("desc", true)])
    });
    let cursor = members.optional("cursor", &mut faults, |value| {
        Cursor::decode(values::string(value)?)
            .ok_or_else(|| "must be a nextCursor of an answer, unchanged".to_owned())
    });
    let merge_sources = members.optional("mergeSources", &mut faults, values::boolean);
    let downsampling = members.optional("downsampling", &mut faults, values::boolean);
    if cursor.is_some() && members.get("offset").is_some_and(|offset| !offset.is_null()) {
        faults.add(
            &members.path_of("cursor"),
            "goes on behind a row; leave offset out",
        );
    }
    if cursor.is_some() && (aggregation.is_some() || group_by.is_some()) {
        faults.add(
            &members.path_of("cursor"),
            "goes with raw rows; page through groups by offset",
        );
    }
    let (Some(bucket_id), true) = (bucket_id, faults.none()) else {
        return Err(faults.into_error());
    };
    let input = QueryInput {
        bucket_id,
        source_ids,
        start_ns,
        end_ns,
        metadata: metadata.unwrap_or_default(),
        fields,
        grouping: aggregation.zip(group_by),
        limit,
        offset: offset.unwrap_or(0),
        descending: descending.unwrap_or(false),
        cursor,
        merge_sources: merge_sources.unwrap_or(false),
        downsampling: downsampling.unwrap_or(true),
    };
    if input
        .cursor
        .is_some_and(|cursor| cursor.fingerprint != input.fingerprint())
    {
        let mut faults = Faults::default();
        faults.add(
            &members.path_of("cursor"),
            "was made for another bucket, filter or sort; start again without it",
        );
        return Err(faults.into_error());
    }
    Ok(input)
}

fn moment(value: &Value) -> Result<i64, String> {
    timestamp::parse(values::string(value)?).map_err(|fault| fault.to_string())
}

/// An array read entry by entry; absent, null and empty are the same.
fn strings<T>(
    members: &Members<'_>,
    name: &str,
    faults: &mut Faults,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Vec<T> {
    let entries = members.optional(name, faults, |value| {
        value
            .as_array()
            .ok_or_else(|| "must be an array".to_owned())
            .cloned()
    });
    let mut all = Vec::new();
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        match read(&entry) {
            Ok(value) => all.push(value),
            Err(message) => {
                let mut path = members.path_of(name);
                path.push(index.to_string());
                faults.add(&path, message);
            }
        }
    }
    all
}
