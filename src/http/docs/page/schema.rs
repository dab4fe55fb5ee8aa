//! Renders schemas as tables: a row for each member, with nested members below it.

use serde_json::Value;

use super::markdown;
use super::text::escaped;
use super::text_of;

/// Limit on nesting; no body of the interface is deeper.
const DEPTH_MAX: usize = 8;

/// A row of a table.
pub struct Row<'a> {
    /// The member's name.
    pub name: &'a str,
    /// Nesting level.
    pub depth: usize,
    /// The member's type in words.
    pub kind: String,
    /// Whether it is required, and similar notes.
    pub notes: String,
    /// The limits of its values.
    pub limits: String,
    /// Its description, in Markdown.
    pub about: &'a str,
}

impl Row<'_> {
    /// Renders the row.
    pub fn html(&self) -> String {
        let limits = if self.limits.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", escaped(&self.limits))
        };
        format!(
            "<tr><th scope=\"row\" class=\"depth{}\"><code>{}</code></th><td>{} <small>{}</small></td><td>{}{limits}</td></tr>\n",
            self.depth,
            escaped(self.name),
            escaped(&self.kind),
            escaped(&self.notes),
            markdown::inline(self.about)
        )
    }
}

/// Renders rows as a table with a heading; nothing if there are none.
pub fn table(title: &str, rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h4>{title}</h4>\n<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Name</th>\
         <th scope=\"col\">Type</th><th scope=\"col\">Meaning</th></tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

/// Resolves a reference; returns anything else unchanged.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'));
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
        let words: Vec<String> = words.iter().map(|word| text_of(word).to_owned()).collect();
        limits.push(if words.len() == 1 {
            format!("always {}", words.join(""))
        } else {
            format!("one of {}", words.join(", "))
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
    for part in schema["allOf"].as_array().into_iter().flatten() {
        add_rows(document, part, depth, html);
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array)
        && schema.get("properties").is_none()
    {
        for choice in choices {
            let about = markdown::inline(description_of(document, choice));
            html.push_str(&format!(
                "<tr><th scope=\"rowgroup\" colspan=\"3\" class=\"depth{depth}\">Either: {about}</th></tr>\n"
            ));
            add_rows(document, choice, depth, html);
        }
    }
    let required = schema["required"].as_array();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let is_required =
            required.is_some_and(|names| names.iter().any(|required| required == name.as_str()));
        let target = non_null(document, member);
        let row = Row {
            name,
            depth,
            kind: kind(document, member),
            notes: if is_required { "required" } else { "optional" }.to_owned(),
            limits: limits(target),
            about: description_of(document, member),
        };
        html.push_str(&row.html());
        add_rows(document, member, depth + 1, html);
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
        && schema.get("properties").is_none()
        && with_members(document, values).get("properties").is_some()
    {
        let row = Row {
            name: "‹name›",
            depth,
            kind: kind(document, values),
            notes: String::new(),
            limits: String::new(),
            about: text_of(&non_null(document, values)["description"]),
        };
        html.push_str(&row.html());
        add_rows(document, values, depth + 1, html);
    }
}

/// Returns the description of a member, or else that of its type.
fn description_of<'a>(document: &'a Value, member: &'a Value) -> &'a str {
    let choices = member["oneOf"].as_array().into_iter().flatten();
    // A nullable member has its description beside its type.
    let mut places = [member]
        .into_iter()
        .chain(choices)
        .chain([non_null(document, member)]);
    places
        .find_map(|place| place["description"].as_str())
        .unwrap_or_default()
}

/// Returns the schema of a member when it is not null.
fn non_null<'a>(document: &'a Value, member: &'a Value) -> &'a Value {
    let choices = member.get("oneOf").and_then(Value::as_array);
    let some = choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"));
    match choices {
        Some(choices) if choices.len() == 2 => resolved(document, some.unwrap_or(member)),
        _ => resolved(document, member),
    }
}

/// Returns the schema with the members: the schema itself, or that of an array's entries.
fn with_members<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = non_null(document, schema);
    let is_array = target["type"] == "array"
        || target["type"]
            .as_array()
            .is_some_and(|types| types.iter().any(|kind| kind == "array"));
    if is_array {
        with_members(document, &target["items"])
    } else {
        target
    }
}
