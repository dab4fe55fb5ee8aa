//! The body of `POST /api/data/query`.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};

use super::dimension_filters::{
    DimensionFilters, GroupDimensions, dimensions_go_with_groups, dimensions_with_groups_schema,
};
use super::query_members::{
    CompareBody, Expressions, FillValue, TopBody, filled_range_has_ends, filled_range_schema,
    results_are_distinct, top_has_a_field, top_schema,
};
use super::value_filters::ValueFilters;
use crate::error::{Detail, ServiceError};
use crate::http::shape::{
    Faults, FromJson, Integer, List, Moment, Object, Place, Rule, Sort, body, described,
};
use crate::ids::ObjectId;
use crate::ingest::timestamp;
use crate::limits::{
    METADATA_FILTER_MEMBERS_MAX, QUERY_ENTRIES_MAX, QUERY_FIELDS_MAX, QUERY_LIMIT_MAX, QUERY_POINTS_MIN,
};
use crate::service::query::{Aggregations, Cursor, GroupBy, Layout, QueryInput, RequestedField, zone_named};

type Limit = Integer<1, QUERY_LIMIT_MAX>;
type Offset = Integer<0, { u32::MAX as u64 }>;
type MaxPoints = Integer<QUERY_POINTS_MIN, QUERY_LIMIT_MAX>;
type Ids = List<ObjectId, 0, QUERY_ENTRIES_MAX>;

/// The members that make groups.
pub const GROUPS: &[&str] = &["aggregation", "groupBy"];
pub const OF_GROUPS: &str = "goes with groups: send aggregation and groupBy";

body! {
    /// Filters that select points.
    #[schema(as = QueryFilters)]
    pub struct FiltersBody {
        /// Data sources; all sources of the bucket when absent or empty.
        data_source_ids: Option<Ids>,
        /// Start of the range, ISO 8601, inclusive.
        start_time: Option<Moment>,
        /// End of the range, ISO 8601, inclusive.
        end_time: Option<Moment>,
        /// Members that a point's metadata must have; `a.b` addresses a nested member.
        metadata: Option<MetadataFilter>,
        /// Fields to return; all when absent or empty.
        fields: Option<FieldNames>,
        /// Conditions that a point's values must meet, by field: `gt`, `gte`, `lt`, `lte` with a number; `eq`, `neq` with a
        /// value of the field's type; `in` with 1 to 1,000 of them. A point without the field does not match.
        values: Option<ValueFilters>,
        /// Conditions that a point's dimensions must meet, by name: a value, an array of them, null for a point without
        /// the dimension, or an object with `not`, `matches` or `notMatches` (a regular expression for the whole value).
        dimensions: Option<DimensionFilters>,
    }
    rules [Rule::Values(start_is_before_end)]
}

body! {
    /// Body of a query.
    pub struct QueryBody {
        /// The bucket to query.
        bucket_id: ObjectId,
        /// Filters that select points.
        filters: Option<FiltersBody>,
        /// Aggregation of the values of a group, or 1 to 8 of them, which are then members of an object for each field;
        /// requires `groupBy`.
        aggregation: Option<Aggregations>,
        /// Step of a group; requires `aggregation`. `minute`, `hour`, `day`, `week`, `month`, `quarter`, `year`, `all` (one
        /// group for the range), or a length: a number and `s`, `m`, `h`, `d` or `w`, at most `52w`. Lengths that divide a
        /// day count from midnight, all others from 1970-01-05, a Monday.
        #[schema(value_type = Option<String>, example = "15m")]
        group_by: Option<GroupBy>,
        /// Maximum number of rows; the default is 100 for points and 10000 for groups.
        limit: Option<Limit>,
        /// Number of rows to skip.
        offset: Option<Offset>,
        /// Order by timestamp; `asc` when absent.
        sort: Option<Sort>,
        /// `nextCursor` of the previous page; replaces `offset`.
        #[schema(value_type = Option<String>)]
        cursor: Option<Cursor>,
        /// Groups the points of all data sources together.
        merge_sources: Option<bool>,
        /// Names of up to 8 dimensions: each combination of their values is a group of its own, and groups have the values
        /// in `dimensions`. Requires `aggregation` and `groupBy`.
        group_by_dimensions: Option<GroupDimensions>,
        /// `false` disables downsampling for this query.
        downsampling: Option<bool>,
        /// Returns points when no source has more of them in the range than this. Otherwise returns averages, with the
        /// finest step at which no source has more rows than this. Not allowed with `aggregation` and `groupBy`.
        max_points: Option<MaxPoints>,
        /// `columns` returns an array for each member of the rows instead of an object for each row.
        layout: Option<Layout>,
        /// Time zone in which hours, days and longer steps begin: a name of the IANA database, such as
        /// `Europe/Stockholm`; UTC when absent. Timestamps in responses are always UTC.
        #[schema(value_type = Option<String>, example = "Europe/Stockholm")]
        timezone: Option<ZoneName>,
        /// Makes every step of the range a row of every selected data source, and says what stands there for missing values:
        /// `null`, the `previous` value, a value on the line between its neighbours (`linear`), or a number. Requires
        /// `aggregation`, `groupBy` and both ends of the range.
        fill: Option<FillValue>,
        /// Up to 8 expressions over the fields of a row; the results are among its values, by their names.
        expressions: Option<Expressions>,
        /// Adds `previous` to each group: what stood there that long before. Requires `aggregation` and `groupBy`.
        compare: Option<CompareBody>,
        /// Keeps only the data sources, or groups of dimension values, with the greatest or least aggregate of a field over
        /// the whole range. Requires `aggregation` and `groupBy`; changes nothing with `mergeSources` alone.
        top: Option<TopBody>,
    }
    rules [
        Rule::Together("aggregation", "groupBy"),
        Rule::Beside("fill", GROUPS, OF_GROUPS),
        Rule::Beside("compare", GROUPS, OF_GROUPS),
        Rule::Beside("top", GROUPS, OF_GROUPS),
        Rule::Described(filled_range_has_ends, filled_range_schema),
        Rule::Described(dimensions_go_with_groups, dimensions_with_groups_schema),
        Rule::Described(top_has_a_field, top_schema),
        Rule::Values(results_are_distinct),
        Rule::Excludes(
            "maxPoints",
            &["aggregation", "groupBy"],
            "chooses averages by itself; leave aggregation and groupBy out",
        ),
        Rule::ExcludesFalse(
            "maxPoints",
            "downsampling",
            "downsamples, which downsampling forbids; leave one of them out",
        ),
        Rule::Excludes("cursor", &["offset"], "goes on behind a row; leave offset out"),
        Rule::Excludes(
            "cursor",
            &["aggregation", "groupBy"],
            "goes with raw rows; page through groups by offset",
        ),
    ]
}

/// Parses a query and collects all faults of its shape.
///
/// # Errors
/// Returns 400 with all faults.
pub fn read_query(body: &Value) -> Result<QueryInput, ServiceError> {
    let faults = Faults::default();
    let read = QueryBody::read(body, &faults.root());
    faults.finish(read)?.into_input()
}

impl QueryBody {
    /// Converts the body, and checks that the cursor was made for the same query.
    ///
    /// # Errors
    /// Returns 400 when the cursor belongs to another query.
    pub fn into_input(self) -> Result<QueryInput, ServiceError> {
        let input = QueryInput::from(self);
        match input.cursor {
            Some(cursor) if cursor.fingerprint != input.fingerprint() => {
                let message = "was made for another bucket, filter or sort; start again without it";
                Err(ServiceError::faults(vec![Detail::at(&["cursor"], message)]))
            }
            _ => Ok(input),
        }
    }
}

impl From<QueryBody> for QueryInput {
    fn from(body: QueryBody) -> Self {
        let filtered = match body.filters {
            Some(filters) => filters.into_input(body.bucket_id),
            None => Self::of_bucket(body.bucket_id),
        };
        Self {
            grouping: body.aggregation.zip(body.group_by),
            limit: body.limit.map(|limit| limit.0),
            offset: body.offset.map_or(0, |offset| offset.0),
            descending: body.sort == Some(Sort::Descending),
            cursor: body.cursor,
            merge_sources: body.merge_sources.unwrap_or(false),
            group_by_dimensions: body.group_by_dimensions.unwrap_or_default().0,
            downsampling: body.downsampling.unwrap_or(true),
            max_points: body.max_points.map(|points| points.0),
            layout: body.layout.unwrap_or_default(),
            timezone: body.timezone.map(|timezone| timezone.zone),
            fill: body.fill.and_then(|FillValue(fill)| fill),
            expressions: body
                .expressions
                .unwrap_or_default()
                .0
                .into_iter()
                .map(Into::into)
                .collect(),
            compare: body.compare.map(|compare| compare.offset),
            top: body.top.map(Into::into),
            ..filtered
        }
    }
}

impl FiltersBody {
    /// A query for the points of a bucket that these filters select.
    pub fn into_input(self, bucket_id: ObjectId) -> QueryInput {
        QueryInput {
            source_ids: self.data_source_ids.unwrap_or_default().0,
            start_ns: self.start_time.map(|Moment(at_ns)| at_ns),
            end_ns: self.end_time.map(|Moment(at_ns)| at_ns),
            metadata: self.metadata.unwrap_or_default().0,
            values: self.values.unwrap_or_default().0,
            dimensions: self.dimensions.unwrap_or_default().filters,
            fields: self.fields.unwrap_or_default().0,
            ..QueryInput::of_bucket(bucket_id)
        }
    }
}

/// Records a fault if `startTime` is not before `endTime`.
pub fn start_is_before_end(filters: &Object<'_>) {
    let moment = |name: &str| timestamp::parse(filters.given(name)?.as_str()?).ok();
    if let (Some(start), Some(end)) = (moment("startTime"), moment("endTime"))
        && start >= end
    {
        filters.place.member("startTime").fault("must be before endTime");
    }
}

impl FromJson for Cursor {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let cursor = Self::decode(&String::read(value, place)?);
        if cursor.is_none() {
            place.fault("must be a nextCursor of an answer, unchanged");
        }
        cursor
    }
}

/// A time zone, parsed from its name in the IANA database.
#[derive(Debug)]
pub struct ZoneName {
    /// The name.
    pub name: String,
    zone: TimeZone,
}

impl FromJson for ZoneName {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let name = String::read(value, place)?;
        let zone = zone_named(&name);
        if zone.is_none() {
            place.fault(format!(
                "must be the name of a zone in the IANA database, like Europe/Stockholm, not {name:?}"
            ));
        }
        zone.map(|zone| Self { name, zone })
    }
}

/// Members that the metadata of a point must have.
#[derive(Debug, Default)]
pub struct MetadataFilter(Map<String, Value>);

impl FromJson for MetadataFilter {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let members = place.object(value)?.members;
        if members.len() > METADATA_FILTER_MEMBERS_MAX {
            let count = members.len();
            place.fault(format!(
                "must have at most {METADATA_FILTER_MEMBERS_MAX} members, not {count}"
            ));
            return None;
        }
        Some(Self(members.clone()))
    }
}

described!(
    MetadataFilter,
    "MetadataFilter",
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(METADATA_FILTER_MEMBERS_MAX))
);

/// Field names without duplicates, each with its index in the request.
#[derive(Debug, Default)]
pub struct FieldNames(Vec<RequestedField>);

impl FromJson for FieldNames {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let List::<String, 0, QUERY_ENTRIES_MAX>(names) = FromJson::read(value, place)?;
        let mut seen = HashSet::new();
        let fields: Vec<RequestedField> = names
            .into_iter()
            .enumerate()
            .filter(|(_, name)| seen.insert(name.clone()))
            .map(|(index, name)| RequestedField { index, name })
            .collect();
        if fields.len() > QUERY_FIELDS_MAX {
            let count = fields.len();
            place.fault(format!(
                "must name at most {QUERY_FIELDS_MAX} fields, not {count}"
            ));
            return None;
        }
        Some(Self(fields))
    }
}

described!(
    FieldNames,
    "FieldNames",
    ArrayBuilder::new()
        .items(String::schema())
        .max_items(Some(QUERY_FIELDS_MAX))
);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BUCKET: &str = "0123456789abcdef01234567";

    fn read(filters: Value) -> Result<QueryInput, ServiceError> {
        read_query(&json!({"bucketId": BUCKET, "filters": filters}))
    }

    #[test]
    fn lists_in_a_query_are_bounded() {
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
