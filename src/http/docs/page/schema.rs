//! Renders schemas as tables: a row for each member, with nested members below it.

use serde_json::Value;

use super::text::escaped;
use super::{items, markdown, members, text_of};

/// Limit on nesting; no body of the interface is deeper.
const DEPTH_MAX: usize = 8;

/// Renders the row of a value: its name, its type with notes and limits, and its description in Markdown.
pub fn row(document: &Value, name: &str, depth: usize, schema: &Value, notes: &str, about: &str) -> String {
    let limits = limits(non_null(document, schema));
    let limits = match limits.as_str() {
        "" => String::new(),
        limits => format!(" <small>{}</small>", escaped(limits)),
    };
    format!(
        "<tr><th scope=\"row\" class=\"depth{depth}\"><code>{}</code></th><td>{} <small>{}</small></td><td>{}{limits}</td></tr>\n",
        escaped(name),
        escaped(&kind(document, schema)),
        escaped(notes),
        markdown::inline(about)
    )
}

/// Renders rows as a table with a heading; nothing if there are none.
pub fn table(title: &str, rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    super::table(title, ["Name", "Type", "Meaning"], rows)
}

/// Resolves a reference; returns anything else unchanged.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = text_of(&value["$ref"]).strip_prefix('#');
    pointer
        .and_then(|pointer| document.pointer(pointer))
        .unwrap_or(value)
}

/// Describes the type: `array of string`, `number or null`.
pub fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolved(document, schema);
    if let Some(choices) = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Value::as_array)
        && schema.get("type").is_none()
    {
        let mut kinds: Vec<String> = choices.iter().map(|choice| kind(document, choice)).collect();
        // Put `null` last.
        kinds.sort_by_key(|kind| kind == "null");
        kinds.dedup();
        return kinds.join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("array of {}", kind(document, &schema["items"])),
        "string" if schema["format"] == "date-time" => "timestamp".to_owned(),
        "string" if schema["pattern"] == "^[0-9a-f]{24}$" => "id".to_owned(),
        "object" if schema.get("properties").is_none() && schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(document, &schema["additionalProperties"]))
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => names
            .iter()
            .map(|name| one(text_of(name)))
            .collect::<Vec<_>>()
            .join(" or "),
        _ if schema.get("allOf").is_some() => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Describes the limits of values: `1 to 100 characters`, `from 1 to 1000`, `one of …`.
pub fn limits(schema: &Value) -> String {
    let mut limits = Vec::new();
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().map(text_of).collect();
        limits.push(match words.as_slice() {
            [word] => format!("always {word}"),
            words => format!("one of {}", words.join(", ")),
        });
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
        ("minProperties", "maxProperties", " members"),
    ] {
        match (&schema[least], &schema[most]) {
            (Value::Null, Value::Null) => {}
            (least, Value::Null) => limits.push(format!("at least {least}{unit}")),
            (Value::Null, most) => limits.push(format!("at most {most}{unit}")),
            (least, most) => limits.push(format!("{least} to {most}{unit}")),
        }
    }
    limits.join("; ")
}

/// Renders the rows of a schema's members; empty if it has none.
pub fn rows(document: &Value, schema: &Value) -> String {
    let mut html = String::new();
    add_rows(document, schema, 0, &mut html);
    html
}

fn add_rows(document: &Value, schema: &Value, depth: usize, html: &mut String) {
    let schema = with_members(document, schema);
    if depth > DEPTH_MAX {
        return;
    }
    for part in items(&schema["allOf"]) {
        add_rows(document, part, depth, html);
    }
    let has_properties = schema.get("properties").is_some();
    if !has_properties {
        for choice in items(&schema["oneOf"]) {
            let about = markdown::inline(description_of(document, choice));
            html.push_str(&format!(
                "<tr><th scope=\"rowgroup\" colspan=\"3\" class=\"depth{depth}\">Either: {about}</th></tr>\n"
            ));
            add_rows(document, choice, depth, html);
        }
    }
    for (name, member) in members(&schema["properties"]) {
        let is_required = items(&schema["required"]).any(|required| required == name);
        let notes = if is_required { "required" } else { "optional" };
        let about = description_of(document, member);
        html.push_str(&row(document, name, depth, member, notes, about));
        add_rows(document, member, depth + 1, html);
    }
    let values = &schema["additionalProperties"];
    if !has_properties && with_members(document, values).get("properties").is_some() {
        let about = description_of(document, values);
        html.push_str(&row(document, "‹name›", depth, values, "", about));
        add_rows(document, values, depth + 1, html);
    }
}

/// Returns the description of a member, or else that of its type.
fn description_of<'a>(document: &'a Value, member: &'a Value) -> &'a str {
    // A nullable member has its description beside its type.
    let mut places = [member]
        .into_iter()
        .chain(items(&member["oneOf"]))
        .chain([non_null(document, member)]);
    places
        .find_map(|place| place["description"].as_str())
        .unwrap_or_default()
}

/// Returns the schema of a member when it is not null.
fn non_null<'a>(document: &'a Value, member: &'a Value) -> &'a Value {
    let target = match member["oneOf"].as_array().map(Vec::as_slice) {
        Some([null, other] | [other, null]) if null["type"] == "null" => other,
        _ => member,
    };
    resolved(document, target)
}

/// Returns the schema with the members: the schema itself, or that of an array's entries.
fn with_members<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = non_null(document, schema);
    let kind = &target["type"];
    if kind == "array" || items(kind).any(|kind| kind == "array") {
        with_members(document, &target["items"])
    } else {
        target
    }
}
