//! `filters.dimensions` and `groupByDimensions` of a query, and `dimensions` of a data source.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type,
};

use crate::catalog::Dimensions;
use crate::http::shape::{FromJson, List, Object, Place, described, kind_of};
use crate::limits::{
    DIMENSION_FILTERS_MAX, DIMENSION_NAME_CHARS_MAX, DIMENSIONS_MAX, GROUP_DIMENSIONS_MAX,
    VALUE_FILTER_VALUES_MAX,
};
use crate::series::{Matcher, Pattern};
use crate::service::query::DimensionFilter;

/// Conditions that the dimensions of a point must meet.
#[derive(Debug, Default)]
pub struct DimensionFilters {
    /// The conditions, by name of the dimension.
    pub filters: Vec<DimensionFilter>,
    /// As they were sent.
    pub sent: Value,
}

impl FromJson for DimensionFilters {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let members = place.object(value)?.members;
        if members.len() > DIMENSION_FILTERS_MAX {
            let count = members.len();
            place.fault(format!(
                "must name at most {DIMENSION_FILTERS_MAX} dimensions, not {count}"
            ));
            return None;
        }
        let read = |(name, value): (&String, &Value)| {
            let matcher = matcher(value, &place.member(name))?;
            Some(DimensionFilter {
                name: name.as_str().into(),
                matcher,
            })
        };
        // All of them are read, so that all faults are found.
        let filters: Vec<Option<DimensionFilter>> = members.iter().map(read).collect();
        Some(Self {
            filters: filters.into_iter().collect::<Option<_>>()?,
            sent: value.clone(),
        })
    }
}

const MATCHERS: &str =
    "a string, an array of strings and null, null, or an object with one of not, matches, notMatches";

fn matcher(value: &Value, place: &Place<'_>) -> Option<Matcher> {
    match value {
        Value::Null | Value::String(_) | Value::Array(_) => values(value, place).map(Matcher::In),
        Value::Object(members) => {
            let mut members = members.iter();
            let (Some((operator, operand)), None) = (members.next(), members.next()) else {
                place.fault("must have exactly one of not, matches, notMatches");
                return None;
            };
            let place = place.member(operator);
            match operator.as_str() {
                "not" => values(operand, &place).map(Matcher::NotIn),
                "matches" => pattern(operand, &place).map(Matcher::Matches),
                "notMatches" => pattern(operand, &place).map(Matcher::NotMatches),
                _ => {
                    place.fault("is no operator; they are not, matches, notMatches");
                    None
                }
            }
        }
        Value::Number(_) | Value::Bool(_) => {
            place.fault(format!("must be {MATCHERS}, not {}", kind_of(value)));
            None
        }
    }
}

/// A value, null for none, or several of both.
fn values(value: &Value, place: &Place<'_>) -> Option<Box<[Option<Box<str>>]>> {
    let Value::Array(entries) = value else {
        return one(value, place).map(|one| [one].into());
    };
    if entries.is_empty() || entries.len() > VALUE_FILTER_VALUES_MAX {
        let count = entries.len();
        place.fault(format!(
            "must have 1 to {VALUE_FILTER_VALUES_MAX} values, not {count}"
        ));
        return None;
    }
    let read = |(index, entry): (usize, &Value)| one(entry, &place.index(index));
    let read: Vec<Option<_>> = entries.iter().enumerate().map(read).collect();
    read.into_iter().collect()
}

fn one(value: &Value, place: &Place<'_>) -> Option<Option<Box<str>>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.as_str().into())),
        Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            place.fault(format!("must be a string or null, not {}", kind_of(value)));
            None
        }
    }
}

fn pattern(value: &Value, place: &Place<'_>) -> Option<Pattern> {
    place.parse(value, |text| Pattern::parse(text, false))
}

described!(
    DimensionFilters,
    "DimensionFilters",
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(DIMENSION_FILTERS_MAX))
        .additional_properties(Some(AdditionalProperties::RefOr(schema_of_matchers().into())))
        .examples([json!({"host": "a", "line": ["1", "2"], "site": {"matches": "eu-.*"}})])
);

fn schema_of_matchers() -> Schema {
    let values = || OneOfBuilder::new().item(text_or_null()).item(some_values());
    let matchers = values()
        .item(operator("not", values().into()))
        .item(operator("matches", text().into()))
        .item(operator("notMatches", text().into()));
    matchers.into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn some_values() -> ArrayBuilder {
    ArrayBuilder::new()
        .items(text_or_null())
        .min_items(Some(1))
        .max_items(Some(VALUE_FILTER_VALUES_MAX))
}

fn operator(name: &str, operand: Schema) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property(name, operand)
        .required(name)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

/// The names of dimensions by whose values series are grouped.
#[derive(Debug, Default)]
pub struct GroupDimensions(pub Vec<String>);

impl FromJson for GroupDimensions {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let List::<String, 0, GROUP_DIMENSIONS_MAX>(names) = FromJson::read(value, place)?;
        are_different(&names, place).then_some(Self(names))
    }
}

/// Records a fault at each name that is there twice.
fn are_different(names: &[String], place: &Place<'_>) -> bool {
    let mut are_different = true;
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            place.index(index).fault(format!("{name:?} is there twice"));
            are_different = false;
        }
    }
    are_different
}

described!(
    GroupDimensions,
    "GroupDimensions",
    ArrayBuilder::new()
        .items(text())
        .max_items(Some(GROUP_DIMENSIONS_MAX))
        .unique_items(true)
);

/// Checks that dimensions by which series are grouped go with groups.
pub fn dimensions_go_with_groups(query: &Object<'_>) {
    let names = query.given("groupByDimensions").and_then(Value::as_array);
    let has_groups = query.given("aggregation").is_some() && query.given("groupBy").is_some();
    if names.is_some_and(|names| !names.is_empty()) && !has_groups {
        let place = query.place.member("groupByDimensions");
        place.fault(super::query_body::OF_GROUPS);
    }
}

/// The same as a schema.
pub fn dimensions_with_groups_schema() -> Value {
    let given = json!({"not": {"type": "null"}});
    json!({"anyOf": [
        {"properties": {"groupByDimensions": {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]}}},
        {"required": ["aggregation", "groupBy"], "properties": {"aggregation": given, "groupBy": given}},
    ]})
}

/// Which members of metadata are dimensions: `"all"`, or their names.
#[derive(Debug)]
pub struct DimensionsBody(pub Arc<Dimensions>);

impl FromJson for DimensionsBody {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        if !value.is_array() {
            let all = place.parse(value, |text| match text {
                "all" => Ok(Dimensions::All),
                _ => Err(format!("must be \"all\" or an array of names, not {text:?}")),
            });
            return all.map(|all| Self(Arc::new(all)));
        }
        let List::<String, 1, DIMENSIONS_MAX>(names) = FromJson::read(value, place)?;
        let mut are_names = true;
        for (index, name) in names.iter().enumerate() {
            let characters = name.chars().count();
            let message = match characters {
                0 => "must not be empty",
                1..=DIMENSION_NAME_CHARS_MAX if name.chars().any(char::is_control) => {
                    "must not have control characters"
                }
                1..=DIMENSION_NAME_CHARS_MAX => continue,
                _ => "must have at most 128 characters",
            };
            place.index(index).fault(message);
            are_names = false;
        }
        let are_fine = are_different(&names, place) && are_names;
        let names = names.into_iter().map(Into::into).collect();
        are_fine.then(|| Self(Arc::new(Dimensions::Named(names))))
    }
}

described!(
    DimensionsBody,
    "Dimensions",
    OneOfBuilder::new().item(text().enum_values(Some(["all"]))).item(
        ArrayBuilder::new()
            .items(
                text()
                    .min_length(Some(1))
                    .max_length(Some(DIMENSION_NAME_CHARS_MAX))
            )
            .min_items(Some(1))
            .max_items(Some(DIMENSIONS_MAX))
            .unique_items(true)
    )
);

/// The same as the API shows it.
pub struct DimensionsView<'a>(pub &'a Dimensions);

impl Serialize for DimensionsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Dimensions::All => serializer.serialize_str("all"),
            Dimensions::Named(names) => serializer.collect_seq(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::shape::Faults;

    fn faults<T: FromJson>(value: &Value) -> Vec<String> {
        let faults = Faults::default();
        let read = T::read(value, &faults.root().member("here"));
        let details = faults.into_details();
        assert_eq!(read.is_some(), details.is_empty(), "{value}");
        details.into_iter().map(|detail| detail.path.join(".")).collect()
    }

    #[test]
    fn matchers_are_read_and_their_faults_are_at_their_paths() {
        let none: [&str; 0] = [];
        for fine in [
            json!({}),
            json!({"a": "x", "b": ["x", null], "c": null, "d": ""}),
            json!({"a": {"not": "x"}, "b": {"not": null}, "c": {"not": ["x", null]}}),
            json!({"a": {"matches": "x.*|y"}, "b": {"notMatches": ""}}),
        ] {
            assert_eq!(faults::<DimensionFilters>(&fine), none, "{fine}");
        }
        for (wrong, path) in [
            (json!({"a": 1}), "here.a"),
            (json!({"a": true}), "here.a"),
            (json!({"a": []}), "here.a"),
            (json!({"a": {}}), "here.a"),
            (json!({"a": {"not": "x", "matches": "y"}}), "here.a"),
            (json!({"a": {"is": "x"}}), "here.a.is"),
            (json!({"a": ["x", 1]}), "here.a.1"),
            (json!({"a": {"not": []}}), "here.a.not"),
            (json!({"a": {"not": 5}}), "here.a.not"),
            (json!({"a": {"not": {"not": "x"}}}), "here.a.not"),
            (json!({"a": {"not": ["x", [1]]}}), "here.a.not.1"),
            (json!({"a": {"matches": "("}}), "here.a.matches"),
            (json!({"a": {"notMatches": null}}), "here.a.notMatches"),
            (json!("a"), "here"),
        ] {
            assert_eq!(faults::<DimensionFilters>(&wrong), [path], "{wrong}");
        }
        let all = faults::<DimensionFilters>(&json!({"a": 1, "b": {"not": [1, 2]}}));
        assert_eq!(all, ["here.a", "here.b.not.0", "here.b.not.1"]);
    }

    #[test]
    fn filters_are_bounded() {
        let many = |count: usize| -> Value {
            let members = (0..count).map(|n| (format!("d{n}"), json!("x")));
            Value::Object(members.collect())
        };
        assert!(faults::<DimensionFilters>(&many(DIMENSION_FILTERS_MAX)).is_empty());
        assert_eq!(
            faults::<DimensionFilters>(&many(DIMENSION_FILTERS_MAX + 1)),
            ["here"]
        );
        let values = |count: usize| json!({"a": vec!["x"; count]});
        assert!(faults::<DimensionFilters>(&values(VALUE_FILTER_VALUES_MAX)).is_empty());
        assert_eq!(
            faults::<DimensionFilters>(&values(VALUE_FILTER_VALUES_MAX + 1)),
            ["here.a"]
        );
    }

    #[test]
    fn names_of_dimensions_have_their_limits() {
        let none: [&str; 0] = [];
        for fine in [
            json!("all"),
            json!(["host"]),
            json!([" a.b ", "all"]),
            json!(["n".repeat(128)]),
        ] {
            assert_eq!(faults::<DimensionsBody>(&fine), none, "{fine}");
        }
        for (wrong, path) in [
            (json!("some"), "here"),
            (json!(5), "here"),
            (json!([]), "here"),
            (json!(vec!["x"; 33]), "here"),
            (json!([""]), "here.0"),
            (json!(["a", "b\n"]), "here.1"),
            (json!(["n".repeat(129)]), "here.0"),
            (json!(["a", "b", "a"]), "here.2"),
            (json!(["a", 1]), "here.1"),
        ] {
            assert_eq!(faults::<DimensionsBody>(&wrong), [path], "{wrong}");
        }
        assert_eq!(faults::<GroupDimensions>(&json!(["a", "b", "a"])), ["here.2"]);
        assert_eq!(
            faults::<GroupDimensions>(&json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"])),
            ["here"]
        );
        assert_eq!(faults::<GroupDimensions>(&json!([])), none);
    }
}
