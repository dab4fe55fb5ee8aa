//! From the arguments of a tool to a request of the API. Pure.
//!
//! Only what makes the path is checked here. The service checks everything else, and its messages are the better ones.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::tools::{DUE_DEFAULT, LIST_DEFAULT, ROWS_DEFAULT, ToolName};

/// Arguments as the client sent them.
pub type Arguments = Map<String, Value>;

/// A request of the API.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// Path and query string.
    pub path: String,
    pub verb: Verb,
}

#[derive(Debug, PartialEq)]
pub enum Verb {
    Get,
    Post(Value),
}

/// The request that a tool stands for.
///
/// # Errors
/// An argument that belongs to the path is missing or malformed; the text says which.
pub fn call(tool: ToolName, mut arguments: Arguments) -> Result<Call, String> {
    match tool {
        ToolName::ListBuckets => get("/api/buckets", LIST_DEFAULT, &arguments),
        ToolName::ListSources => {
            let bucket = id(&mut arguments, "bucketId")?;
            get(
                &format!("/api/buckets/{bucket}/sources"),
                LIST_DEFAULT,
                &arguments,
            )
        }
        ToolName::ListRules => {
            let bucket = id(&mut arguments, "bucketId")?;
            get(&format!("/api/buckets/{bucket}/alerts"), LIST_DEFAULT, &arguments)
        }
        ToolName::Query => {
            let limit = arguments.entry("limit").or_insert(Value::Null);
            if limit.is_null() {
                *limit = ROWS_DEFAULT.into();
            }
            Ok(Call {
                path: "/api/data/query".to_owned(),
                verb: Verb::Post(Value::Object(arguments)),
            })
        }
        ToolName::Due => {
            let limit = integer(&arguments, "limit")?.unwrap_or(DUE_DEFAULT);
            let mut path = format!("/api/evaluations/due?limit={limit}");
            if let Some(seconds) = integer(&arguments, "claimSeconds")? {
                push(&mut path, format_args!("&claim={seconds}"));
            }
            Ok(Call {
                path,
                verb: Verb::Get,
            })
        }
        ToolName::Verdict => {
            let rule = id(&mut arguments, "ruleId")?;
            let outcome = arguments.remove("outcome").unwrap_or_default();
            let mut body = json!({"outcome": outcome});
            if let Some(evidence) = arguments
                .remove("evidence")
                .filter(|evidence| !evidence.is_null())
            {
                body["evidence"] = evidence;
            }
            Ok(Call {
                path: format!("/api/evaluations/{rule}/verdict"),
                verb: Verb::Post(body),
            })
        }
    }
}

fn get(path: &str, limit_default: u64, arguments: &Arguments) -> Result<Call, String> {
    let limit = integer(arguments, "limit")?.unwrap_or(limit_default);
    let mut path = format!("{path}?limit={limit}");
    if let Some(offset) = integer(arguments, "offset")? {
        push(&mut path, format_args!("&offset={offset}"));
    }
    Ok(Call {
        path,
        verb: Verb::Get,
    })
}

/// Takes an id, which becomes a part of the path.
fn id(arguments: &mut Arguments, name: &str) -> Result<String, String> {
    let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match arguments.remove(name) {
        Some(Value::String(text)) if text.len() == 24 && text.bytes().all(is_hex) => Ok(text),
        None | Some(Value::Null) => Err(format!("{name} is missing: an id of 24 lowercase hex characters")),
        Some(other) => Err(format!(
            "{name} is {other}, but must be an id of 24 lowercase hex characters"
        )),
    }
}

fn integer(arguments: &Arguments, name: &str) -> Result<Option<u64>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} is {value}, but must be an integer of 0 or more")),
        },
    }
}

fn push(path: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = path.write_fmt(text);
}
