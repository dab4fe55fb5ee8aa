//! Bodies of queries, cursors, timestamps and conditions of rules: each is parsed or refused, and a parsed one
//! round-trips.
//!
//! The first byte of an input selects its kind.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tidewatch::alerts::condition;
use tidewatch::catalog::{ConditionValue, Field, FieldType, Operator, ParsedCondition, Schema};
use tidewatch::http::read_query;
use tidewatch::ingest::timestamp;
use tidewatch::service::query::{Aggregations, Condition, Cursor, Fill, Literal, QueryInput, Test};
use tidewatch::timestamp::format_timestamp_ns;

/// Fields of a machine, with and without units, some named like words of the grammar.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let fields = [
        ("temperature", FieldType::Number, Some("°C")),
        ("pressure", FieldType::Number, None),
        ("cpu_usage", FieldType::Number, Some("%")),
        ("above_ground_level", FieldType::Number, Some("m")),
        ("time over limit", FieldType::Number, Some("s")),
        ("Füllstand", FieldType::Number, Some("l")),
        ("price", FieldType::Number, Some("EUR/kWh")),
        ("is_open", FieldType::Boolean, None),
        ("door", FieldType::String, None),
        ("error-code", FieldType::String, None),
    ];
    let field = |(name, kind, unit): (&str, FieldType, Option<&str>)| Field {
        name: name.into(),
        kind,
        unit: unit.map(Into::into),
        description: None,
    };
    fields.map(field).to_vec().into()
});

pub fn check(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => query(rest),
        1 => cursor(rest),
        2 => moment(rest),
        _ => rule(&String::from_utf8_lossy(rest)),
    }
}

fn query(data: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let Ok(input) = read_query(&body) else { return };
    let again = read_query(&query_json(&input)).unwrap();
    assert_eq!(format!("{again:?}"), format!("{input:?}"));
    if input.grouping.is_none() && input.offset == 0 {
        // The next page of the same query.
        let cursor = Cursor {
            position: (-1, data.len() as u64),
            fingerprint: input.fingerprint(),
        };
        let next = QueryInput {
            cursor: Some(cursor),
            ..input
        };
        let read = read_query(&query_json(&next)).unwrap();
        assert_eq!(read.cursor, Some(cursor));
    }
}

/// The body of this query.
fn query_json(input: &QueryInput) -> Value {
    let bound = |ns: Option<i64>| ns.map(|ns| format_timestamp_ns(ns).as_str().to_owned());
    let names: Vec<&str> = input.fields.iter().map(|field| field.name.as_str()).collect();
    // A duplicate name left a gap in the numbering.
    let places = input.fields.iter().map(|field| field.index);
    let mut fields =
        vec![names.first().copied().unwrap_or_default(); places.max().map_or(0, |last| last + 1)];
    let mut last = "";
    for (place, slot) in fields.iter_mut().enumerate() {
        last = input
            .fields
            .iter()
            .find(|field| field.index == place)
            .map_or(last, |field| field.name.as_str());
        *slot = last;
    }
    let ids: Vec<String> = input.source_ids.iter().map(ToString::to_string).collect();
    let mut body = json!({
        "bucketId": input.bucket_id.to_string(),
        "filters": {
            "dataSourceIds": ids,
            "startTime": bound(input.start_ns),
            "endTime": bound(input.end_ns),
            "metadata": Value::Object(input.metadata.clone()),
            "fields": fields,
            "values": input
                .values
                .iter()
                .map(|condition| (condition.field.clone(), tests_json(condition)))
                .collect::<Value>(),
        },
        "aggregation": input.grouping.as_ref().map(|(aggregations, _)| match aggregations {
            Aggregations::One(one) => json!(one.name()),
            Aggregations::Several(all) => all.iter().map(|one| one.name()).collect(),
        }),
        "groupBy": input.grouping.as_ref().map(|(_, group_by)| group_by.as_str()),
        "limit": input.limit,
        "sort": if input.descending { "desc" } else { "asc" },
        "cursor": input.cursor.map(|cursor| cursor.encode()),
        "mergeSources": input.merge_sources,
        "downsampling": input.downsampling,
        "fill": input.fill.map(|fill| match fill {
            Fill::Null => json!("null"),
            Fill::Previous => json!("previous"),
            Fill::Linear => json!("linear"),
            Fill::Number(number) => json!(number),
        }),
        "expressions": input
            .expressions
            .iter()
            .map(|named| json!({"name": &*named.name, "expression": &*named.text}))
            .collect::<Value>(),
        "compare": input.compare.map(|compare| json!({"offset": compare.as_text()})),
        "top": input.top.as_ref().map(|top| {
            json!({
                "n": top.n, "by": top.by.name(), "field": top.field, "order": if top.ascending { "asc" } else { "desc" }
            })
        }),
    });
    if input.cursor.is_none() {
        body["offset"] = Value::from(input.offset);
    }
    body
}

fn tests_json(condition: &Condition) -> Value {
    let literal = |literal: &Literal| match literal {
        Literal::Number(number) => json!(number),
        Literal::Boolean(value) => json!(value),
        Literal::Text(text) => json!(text),
    };
    let test = |test: &Test| {
        let operands = test.operands().iter().map(literal).collect::<Vec<Value>>();
        let operand = match test {
            Test::In(_) => Value::Array(operands),
            _ => operands[0].clone(),
        };
        (test.name().to_owned(), operand)
    };
    condition.tests.iter().map(test).collect()
}

fn cursor(data: &[u8]) {
    if let Some(read) = Cursor::decode(&String::from_utf8_lossy(data)) {
        assert_eq!(read.encode().as_bytes(), data);
    }
    let Some((position, rest)) = data.split_first_chunk::<8>() else {
        return;
    };
    let Some((sequence, rest)) = rest.split_first_chunk::<8>() else {
        return;
    };
    let Some(fingerprint) = rest.first_chunk() else {
        return;
    };
    let cursor = Cursor {
        position: (i64::from_le_bytes(*position), u64::from_le_bytes(*sequence)),
        fingerprint: *fingerprint,
    };
    assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
}

fn moment(data: &[u8]) {
    let bytes = timestamp::parse(data);
    if let Ok(text) = str::from_utf8(data) {
        assert_eq!(timestamp::parse(text).ok(), bytes.as_ref().ok().copied());
    }
    if let Ok(timestamp_ns) = bytes {
        let formatted = format_timestamp_ns(timestamp_ns);
        assert_eq!(timestamp::parse(formatted.as_str()).ok(), Some(timestamp_ns));
    }
}

fn rule(text: &str) {
    let condition = match condition::parse(text, &SCHEMA) {
        Ok(condition) => condition,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut shown = serde_json::to_value(&condition).unwrap();
    shown["value"] = condition.value.to_json();
    assert_eq!(
        serde_json::from_value::<ParsedCondition>(shown).unwrap(),
        condition
    );
    let field = SCHEMA.field(&condition.field).unwrap();
    let kind = SCHEMA.fields[usize::from(field)].kind;
    let change = matches!(condition.operator, Operator::IncreasesBy | Operator::DecreasesBy);
    let range = matches!(condition.operator, Operator::Between | Operator::Outside);
    let equality = matches!(condition.operator, Operator::Eq | Operator::Neq);
    let fits = match (&condition.value, kind) {
        (ConditionValue::Number(number), FieldType::Number) => {
            number.is_finite() && !range && (!change || *number > 0.0)
        }
        (ConditionValue::Range([low, high]), FieldType::Number) => range && low <= high,
        (ConditionValue::Boolean(_), FieldType::Boolean) => equality,
        (ConditionValue::Text(value), FieldType::String) => equality && text.contains(&**value),
        _ => false,
    };
    assert!(fits && (change || !condition.percent), "{text:?}: {condition:?}");
    if let Some(condition_text) = condition_text(&condition) {
        let again = condition::parse(&condition_text, &SCHEMA);
        assert!(
            again.as_ref() == Ok(&condition),
            "{text:?}: {condition_text:?} is {again:?}, not {condition:?}"
        );
    }
}

/// The condition as text; `None` if it has long numbers or a text that cannot be quoted.
fn condition_text(condition: &ParsedCondition) -> Option<String> {
    let number = |value: f64| {
        let shown = value.to_string();
        (shown.len() <= 20).then_some(shown)
    };
    let value = match &condition.value {
        ConditionValue::Number(value) => number(*value)?,
        ConditionValue::Boolean(value) => value.to_string(),
        ConditionValue::Text(text) => {
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ');
            format!("\"{}\"", plain.then_some(text)?)
        }
        ConditionValue::Range([low, high]) => format!("{} and {}", number(*low)?, number(*high)?),
    };
    let operator = match condition.operator {
        Operator::Gt => ">",
        Operator::Gte => ">=",
        Operator::Lt => "<",
        Operator::Lte => "<=",
        Operator::Eq => "=",
        Operator::Neq => "!=",
        Operator::Between => "is between",
        Operator::Outside => "is outside",
        Operator::IncreasesBy => "increases by",
        Operator::DecreasesBy => "decreases by",
    };
    let percent = if condition.percent { "%" } else { "" };
    Some(format!("{} {operator} {value}{percent}", condition.field))
}
