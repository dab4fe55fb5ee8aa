//! The query of a panel: its shape, which is that of `POST /api/data/query`, and what it asks when its variables have
//! values.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::query_body::{QueryBody, read_query};
use crate::catalog::{BoardSettings, PanelKind, Variable};
use crate::error::{Detail, ServiceError};
use crate::http::shape::{Faults, FromJson, Place, body, kind_of};
use crate::ids::ObjectId;
use crate::service::query::QueryInput;
use crate::timestamp::Timestamp;

/// The first and the last instant of a range, where any bound is right.
const ANY_RANGE: [&str; 2] = ["1678-01-01T00:00:00Z", "2261-12-31T23:59:59Z"];
const BOUNDS: [&str; 2] = ["startTime", "endTime"];

/// A query as it was sent. It is checked with its board, which has the variables.
#[derive(Debug)]
pub struct PanelQuery(pub Value);

impl FromJson for PanelQuery {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.object(value).map(|_| Self(value.clone()))
    }
}

body! {
    /// The query of a panel that shows rules.
    pub struct RulesQueryBody {
        /// Bucket whose rules are shown.
        bucket_id: ObjectId,
    }
}

/// The variables that may stand in a query.
pub enum Declared<'a> {
    These(HashSet<&'a str>),
    /// Those of a board that is not known yet.
    Any,
}

impl Declared<'_> {
    /// Whether the value is a string that stands for a variable.
    fn includes(&self, value: &Value) -> bool {
        let Some(name) = value.as_str().and_then(|text| text.strip_prefix('$')) else {
            return false;
        };
        match self {
            Self::These(names) => names.contains(name),
            Self::Any => true,
        }
    }
}

/// Records the faults of a query's shape at their places.
pub fn check_query(kind: PanelKind, query: &Value, variables: &Declared<'_>, place: &Place<'_>) {
    if !query.is_object() {
        // Said where the panel is read.
        return;
    }
    let faults = Faults::default();
    match kind {
        PanelKind::Rules => drop(RulesQueryBody::read(query, &faults.root())),
        PanelKind::Lines | PanelKind::Bars | PanelKind::Stat | PanelKind::Table | PanelKind::States => {
            let mut query = query.clone();
            give_bounds(&mut query, ANY_RANGE);
            drop(QueryBody::read(&query, &faults.root()));
        }
    }
    let is_fault = |detail: &Detail| {
        let found = value_at(query, &detail.path);
        found.is_none_or(|value| is_of_wrong_type(value, detail) || !variables.includes(value))
    };
    place.adopt(faults.into_details().into_iter().filter(is_fault));
}

/// Whether the fault is that no string may stand there.
fn is_of_wrong_type(value: &Value, detail: &Detail) -> bool {
    detail.message.ends_with(&format!("not {}", kind_of(value)))
}

fn value_at<'a>(query: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(query, |value, step| match value {
        Value::Array(entries) => entries.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

/// Sets the bounds that a query leaves out.
fn give_bounds(query: &mut Value, bounds: [&str; 2]) {
    let Some(members) = query.as_object_mut() else {
        return;
    };
    let filters = members.entry("filters").or_insert(Value::Null);
    if filters.is_null() {
        *filters = Value::Object(Map::new());
    }
    let Some(filters) = filters.as_object_mut() else {
        return;
    };
    for (name, bound) in BOUNDS.into_iter().zip(bounds) {
        let known = filters.entry(name).or_insert(Value::Null);
        if known.is_null() {
            *known = json!(bound);
        }
    }
}

/// What a panel asks, with the defaults of the board's variables and, where the query leaves them out, with these bounds
/// and the board's time zone.
///
/// # Errors
/// 400 for variables without a default, and for a query that is no query with these values.
pub fn query_of(
    query: &str,
    board: &BoardSettings,
    range_ns: (i64, i64),
) -> Result<QueryInput, ServiceError> {
    let mut query = with_defaults(query, &board.variables)?;
    let [start, end] = [range_ns.0, range_ns.1].map(|at_ns| json!(Timestamp(at_ns)));
    let bounds = [&start, &end].map(|bound| bound.as_str().unwrap_or_default());
    give_bounds(&mut query, bounds);
    if let Some(members) = query.as_object_mut() {
        let zone = members.entry("timezone").or_insert(Value::Null);
        if zone.is_null() {
            *zone = json!(board.timezone);
        }
    }
    read_query(&query)
}

/// The bucket whose rules a panel shows.
///
/// # Errors
/// 400, as [`query_of`].
pub fn bucket_of_rules(query: &str, board: &BoardSettings) -> Result<ObjectId, ServiceError> {
    let query = with_defaults(query, &board.variables)?;
    let faults = Faults::default();
    let read = RulesQueryBody::read(&query, &faults.root());
    Ok(faults.finish(read)?.bucket_id)
}

fn with_defaults(query: &str, variables: &[Variable]) -> Result<Value, ServiceError> {
    let mut query = serde_json::from_str(query).map_err(ServiceError::internal)?;
    let mut missing = BTreeSet::new();
    substitute(&mut query, variables, &mut missing);
    match missing.first() {
        None => Ok(query),
        Some(name) => Err(ServiceError::validation(format!(
            "variable {name:?} of the board has no default, so a link cannot show this panel; give it one"
        ))),
    }
}

/// Puts the variables' defaults in their places. `missing`: the names of those without one.
fn substitute<'a>(value: &mut Value, variables: &'a [Variable], missing: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('$');
            let found = name.and_then(|name| variables.iter().find(|variable| &*variable.name == name));
            match found.map(|variable| (&variable.name, &variable.default)) {
                Some((_, Some(default))) => *text = default.to_string(),
                Some((name, None)) => drop(missing.insert(name)),
                None => {}
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                substitute(entry, variables, missing);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                substitute(member, variables, missing);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6740a1f2c3d4e5f607182930";

    fn faults_of(kind: PanelKind, query: &Value) -> Vec<String> {
        let faults = Faults::default();
        let declared = Declared::These(HashSet::from(["b", "n"]));
        check_query(kind, query, &declared, &faults.root().member("query"));
        let details = faults.into_details().into_iter();
        details.map(|detail| detail.path.join(".")).collect()
    }

    #[test]
    fn variables_stand_for_strings_and_for_nothing_else() {
        for (member, value, fault) in [
            ("bucketId", json!("$b"), None),
            ("groupBy", json!("$n"), None),
            ("timezone", json!("$n"), None),
            ("sort", json!("$n"), None),
            (
                "filters",
                json!({"dataSourceIds": [ID, "$n"], "startTime": "$b"}),
                None,
            ),
            ("filters", json!({"values": {"state": {"eq": "$n"}}}), None),
            (
                "filters",
                json!({"dataSourceIds": ["$unknown"]}),
                Some("query.filters.dataSourceIds.0"),
            ),
            (
                "filters",
                json!({"dataSourceIds": "$n"}),
                Some("query.filters.dataSourceIds"),
            ),
            ("filters", json!("$n"), Some("query.filters")),
            (
                "filters",
                json!({"values": {"level": {"gt": "$n"}}}),
                Some("query.filters.values.level.gt"),
            ),
            ("bucketId", json!("$unknown"), Some("query.bucketId")),
            ("bucketId", json!("$B"), Some("query.bucketId")),
            ("bucketId", json!(" $b"), Some("query.bucketId")),
            ("limit", json!("$n"), Some("query.limit")),
            ("mergeSources", json!("$n"), Some("query.mergeSources")),
        ] {
            let mut query = json!({"bucketId": ID, "aggregation": "avg", "groupBy": "hour"});
            query[member] = value.clone();
            let found = faults_of(PanelKind::Lines, &query);
            assert_eq!(
                found,
                Vec::from_iter(fault.map(str::to_owned)),
                "{member}: {value}"
            );
        }
        assert_eq!(faults_of(PanelKind::Rules, &json!({"bucketId": "$b"})), [""; 0]);
        assert_eq!(faults_of(PanelKind::Rules, &json!({})), ["query.bucketId"]);
    }

    #[test]
    fn bounds_that_are_left_out_are_no_fault_of_what_needs_them() {
        let mut query = json!({"bucketId": ID, "aggregation": "avg", "groupBy": "hour", "fill": 0});
        assert_eq!(faults_of(PanelKind::Bars, &query), [""; 0]);
        query["filters"] = json!({"startTime": "2026-01-02", "endTime": "2026-01-01"});
        assert_eq!(faults_of(PanelKind::Bars, &query), ["query.filters.startTime"]);
    }

    #[test]
    fn defaults_take_the_places_of_variables() {
        let variable = |name: &str, default: Option<&str>| Variable {
            name: name.into(),
            default: default.map(Into::into),
            values: None,
        };
        let variables = [variable("b", Some("x")), variable("n", None)];
        let query = json!({"bucketId": "$b", "filters": {"dataSourceIds": ["$b", "$$b", "$c"]}, "limit": 1});
        let filled = with_defaults(&query.to_string(), &variables).unwrap();
        assert_eq!(
            filled,
            json!({"bucketId": "x", "filters": {"dataSourceIds": ["x", "$$b", "$c"]}, "limit": 1})
        );
        let refused = with_defaults(r#"{"bucketId":"$n"}"#, &variables).unwrap_err();
        assert!(refused.message.contains("\"n\""), "{}", refused.message);
    }
}
