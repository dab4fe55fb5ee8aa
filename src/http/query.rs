//! `POST /api/data/query`.

use std::collections::HashSet;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::faults::{Faults, Members};
use super::pieces::{self, Encoder, respond_in_pieces};
use super::query_docs::{QueryAnswerDoc, QueryBodyDoc};
use super::{auth, body, respond, values};
use crate::error::ServiceError;
use crate::ingest::timestamp;
use crate::limits::{
    METADATA_FILTER_MEMBERS_MAX, QUERY_ENTRIES_MAX, QUERY_FIELDS_MAX, QUERY_LIMIT_MAX, QUERY_POINTS_MIN,
};
use crate::service::query::{
    Aggregation, Answered, AskedField, Cursor, LAYOUT_NAMES, QueryInput, UNIT_NAMES, zone_named,
};
use crate::service::{Access, Service};

const ACCESS: Access = Access::ADMIN
    .or(Access::WRITE)
    .or(Access::READ)
    .or(Access::INTEGRATION);

/// Reads points: raw, grouped, or downsampled when there would be too many.
///
/// With `aggregation` and `groupBy`, a row is a calendar unit (UTC, weeks from Monday) of a source, or of all sources
/// together with `mergeSources`. Without them, rows are the points; but when sources have `downsampling` on and more than
/// about 500 points are expected, rows are averages with the least and the greatest value of what they average, and
/// `metadata.downsamplingApplied` is true. `"downsampling": false` always gives the points. A chart says by `maxPoints` how
/// many points it has room for: booleans then have the share of the time in which they were true.
///
/// To read many points, go on with `metadata.nextCursor` as `cursor` until it is absent: no point is missed or seen twice,
/// whatever arrives meanwhile.
#[utoipa::path(post, path = "/api/data/query", operation_id = "queryPoints", tag = "data",
    security(("apiKey" = ["admin", "write", "read", "integration"]), ("bearer" = [])),
    request_body = QueryBodyDoc,
    responses(
        (status = 200, body = QueryAnswerDoc, description = "Rows, in the order asked for.")))]
pub async fn query(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let body = body::read_json(&request, payload).await?;
    let input = read_query(&body)?;
    let coding = respond::coding_of(&request);
    let encode = move |piece, more: bool| match more {
        false => respond::encode(coding, piece).map(Begun::Whole),
        true => Encoder::new(coding)?.encode(piece, more).map(Begun::Piece),
    };
    let Answered { piece, rest } = service.query(&caller, input, encode).await?;
    match (piece, rest) {
        (Begun::Whole(body), _) => Ok(respond::respond_encoded(StatusCode::OK, body)),
        (Begun::Piece(first), Some(rest)) => Ok(respond_in_pieces(coding, first, rest)),
        (Begun::Piece(_), None) => Err(ServiceError::internal("BUG: a piece without those behind it")),
    }
}

/// A whole answer, or the beginning of one that is made in pieces.
enum Begun {
    Whole(respond::Encoded),
    Piece(pieces::Encoded),
}

/// Reads the body, and finds all faults of its shape.
///
/// # Errors
/// These faults.
pub fn read_query(body: &Value) -> Result<QueryInput, ServiceError> {
    let mut faults = Faults::default();
    let members = Members::of_body(body, &mut faults);
    let bucket_id = members.required("bucketId", &mut faults, values::id);
    let none = Value::Object(Map::new());
    let filters = members.given("filters").unwrap_or(&none);
    let filters = Members::at(filters, members.path_of("filters"), &mut faults);
    let source_ids = strings(&filters, "dataSourceIds", &mut faults, values::id);
    let start_ns = filters.optional("startTime", &mut faults, moment);
    let end_ns = filters.optional("endTime", &mut faults, moment);
    if let (Some(start), Some(end)) = (start_ns, end_ns)
        && start >= end
    {
        faults.add(&filters.path_of("startTime"), "must be before endTime");
    }
    let metadata = filters.optional("metadata", &mut faults, |value| match value.as_object() {
        Some(members) if members.len() <= METADATA_FILTER_MEMBERS_MAX => Ok(members.clone()),
        Some(members) => Err(format!(
            "must have at most {METADATA_FILTER_MEMBERS_MAX} members, not {}",
            members.len()
        )),
        None => Err("must be an object of members to match".to_owned()),
    });
    let fields = fields(&filters, &mut faults);
    let aggregation = members.optional("aggregation", &mut faults, |value| {
        values::one_of(value, &Aggregation::NAMES)
    });
    let group_by = members.optional("groupBy", &mut faults, |value| values::one_of(value, &UNIT_NAMES));
    for (given, missing) in [("aggregation", "groupBy"), ("groupBy", "aggregation")] {
        if members.given(given).is_some() && members.given(missing).is_none() {
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
    let max_points = members.optional("maxPoints", &mut faults, |value| {
        values::integer(value, QUERY_POINTS_MIN, QUERY_LIMIT_MAX)
    });
    let layout = members.optional("layout", &mut faults, |value| {
        values::one_of(value, &LAYOUT_NAMES)
    });
    let timezone = members.optional("timezone", &mut faults, timezone);
    if max_points.is_some() && (aggregation.is_some() || group_by.is_some()) {
        faults.add(
            &members.path_of("maxPoints"),
            "chooses averages by itself; leave aggregation and groupBy out",
        );
    }
    if max_points.is_some() && downsampling == Some(false) {
        faults.add(
            &members.path_of("maxPoints"),
            "downsamples, which downsampling forbids; leave one of them out",
        );
    }
    if cursor.is_some() && members.given("offset").is_some() {
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
        max_points,
        layout: layout.unwrap_or_default(),
        timezone,
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

fn timezone(value: &Value) -> Result<TimeZone, String> {
    let name = values::string(value)?;
    zone_named(name).ok_or_else(|| {
        format!("must be the name of a zone in the IANA database, like Europe/Stockholm, not {name:?}")
    })
}

fn moment(value: &Value) -> Result<i64, String> {
    timestamp::parse(values::string(value)?).map_err(|fault| fault.to_string())
}

/// `fields`, each name once.
fn fields(filters: &Members<'_>, faults: &mut Faults) -> Vec<AskedField> {
    let names = strings(filters, "fields", faults, |value| {
        values::string(value).map(str::to_owned)
    });
    let mut seen = HashSet::new();
    let fields: Vec<AskedField> = names
        .into_iter()
        .enumerate()
        .filter(|(_, name)| seen.insert(name.clone()))
        .map(|(index, name)| AskedField { index, name })
        .collect();
    if fields.len() > QUERY_FIELDS_MAX {
        faults.add(
            &filters.path_of("fields"),
            format!(
                "must name at most {QUERY_FIELDS_MAX} fields, not {}",
                fields.len()
            ),
        );
    }
    fields
}

/// An array read entry by entry; absent, null and empty are the same.
fn strings<T>(
    members: &Members<'_>,
    name: &str,
    faults: &mut Faults,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Vec<T> {
    let entries = members.optional(name, faults, |value| match value.as_array() {
        Some(entries) if entries.len() <= QUERY_ENTRIES_MAX => Ok(entries),
        Some(entries) => Err(format!(
            "must have at most {QUERY_ENTRIES_MAX} entries, not {}",
            entries.len()
        )),
        None => Err("must be an array".to_owned()),
    });
    let mut all = Vec::new();
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        match read(entry) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BUCKET: &str = "0123456789abcdef01234567";

    fn read(filters: Value) -> Result<QueryInput, ServiceError> {
        read_query(&json!({"bucketId": BUCKET, "filters": filters}))
    }

    #[test]
    fn what_a_query_lists_is_bounded() {
        let names = |count: usize| (0..count).map(|n| format!("f{n}")).collect::<Vec<_>>();
        let ids = |count: usize| vec![BUCKET; count];
        let members = |count: usize| -> Map<String, Value> {
            names(count)
                .into_iter()
                .map(|name| (name, Value::from(1)))
                .collect()
        };
        let twice = [names(QUERY_FIELDS_MAX), names(QUERY_FIELDS_MAX)].concat();
        for filters in [
            json!({"fields": twice}),
            json!({"dataSourceIds": ids(QUERY_ENTRIES_MAX)}),
            json!({"metadata": members(METADATA_FILTER_MEMBERS_MAX)}),
        ] {
            assert!(read(filters).is_ok());
        }
        for (member, filters) in [
            ("fields", json!({"fields": names(QUERY_FIELDS_MAX + 1)})),
            ("fields", json!({"fields": vec!["level"; QUERY_ENTRIES_MAX + 1]})),
            (
                "dataSourceIds",
                json!({"dataSourceIds": ids(QUERY_ENTRIES_MAX + 1)}),
            ),
            (
                "metadata",
                json!({"metadata": members(METADATA_FILTER_MEMBERS_MAX + 1)}),
            ),
        ] {
            let details = read(filters).unwrap_err().details;
            assert_eq!(details.len(), 1, "{member}");
            assert_eq!(details[0].path, ["filters", member]);
        }
    }

    #[test]
    fn a_field_named_twice_keeps_its_first_place() {
        let fields = read(json!({"fields": ["a", "a", "b", "a"]})).unwrap().fields;
        let found: Vec<_> = fields
            .iter()
            .map(|field| (field.index, field.name.as_str()))
            .collect();
        assert_eq!(found, [(0, "a"), (2, "b")]);
    }

    #[test]
    fn null_is_the_same_as_absent() {
        let filters = json!({
            "dataSourceIds": null, "startTime": null, "endTime": null, "metadata": null, "fields": null
        });
        let mut body = json!({"bucketId": BUCKET, "filters": filters});
        for name in [
            "aggregation",
            "groupBy",
            "limit",
            "offset",
            "sort",
            "cursor",
            "mergeSources",
            "downsampling",
            "maxPoints",
            "layout",
            "timezone",
        ] {
            body[name] = Value::Null;
        }
        let (nulls, absent) = (read_query(&body).unwrap(), read(Value::Null).unwrap());
        assert_eq!(format!("{nulls:?}"), format!("{absent:?}"));
    }
}
