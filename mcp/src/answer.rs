//! From an answer of the API to the result of a tool: bounded, with the API's own message where it is an error. Pure.

use serde_json::Value;

use crate::api::Reply;
use crate::keys;
use crate::tools::ToolName;

/// The largest answer that a model is given: about 100,000 tokens.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Faults of one request that are shown.
const DETAILS_MAX: usize = 20;

/// What a tool returns.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The API's JSON, and what the model should know beside it.
    Done { json: String, hint: Option<String> },
    /// A tool error.
    Failed(String),
}

/// The result of a call with this key.
pub fn outcome(tool: ToolName, reply: &Reply, key: &str) -> Outcome {
    let parsed = serde_json::from_slice::<Value>(&reply.body).unwrap_or_default();
    if reply.status != 200 {
        return Outcome::Failed(failure(tool, reply, &parsed, key));
    }
    let size = reply.body.len();
    if size > ANSWER_BYTES_MAX {
        return Outcome::Failed(format!(
            "the answer has {size} bytes, which is more than the {ANSWER_BYTES_MAX} that are passed on: {}",
            narrowing(tool)
        ));
    }
    Outcome::Done {
        json: String::from_utf8_lossy(&reply.body).into_owned(),
        hint: hint(tool, &parsed),
    }
}

fn narrowing(tool: ToolName) -> &'static str {
    match tool {
        ToolName::Query => {
            "shorten the range between filters.startTime and filters.endTime, name filters.fields and \
             filters.dataSourceIds, ask for groups with aggregation and groupBy (or maxPoints) instead of points, or \
             lower limit"
        }
        ToolName::ListBuckets
        | ToolName::ListSources
        | ToolName::ListRules
        | ToolName::Due
        | ToolName::Verdict => "lower limit",
    }
}

/// What to do if there is more than the answer shows.
fn hint(tool: ToolName, answer: &Value) -> Option<String> {
    match tool {
        ToolName::Query => {
            let metadata = &answer["metadata"];
            if metadata["hasMore"] != true {
                return None;
            }
            let next = match metadata["nextCursor"].as_str() {
                Some(_) => "repeat the query with cursor = metadata.nextCursor",
                None => "repeat the query with a larger limit or offset",
            };
            Some(format!(
                "There are more rows than these {}. To see fewer and all of them, {}. To go on, {next}.",
                metadata["count"],
                narrowing(tool)
            ))
        }
        ToolName::ListBuckets | ToolName::ListSources | ToolName::ListRules => {
            let pagination = &answer["pagination"];
            (pagination["hasMore"] == true).then(|| {
                format!(
                    "This is a part of {}: go on with offset = {}.",
                    pagination["total"],
                    pagination["offset"].as_u64().unwrap_or_default()
                        + pagination["limit"].as_u64().unwrap_or_default()
                )
            })
        }
        ToolName::Due | ToolName::Verdict => None,
    }
}

fn failure(tool: ToolName, reply: &Reply, answer: &Value, key: &str) -> String {
    let text = |member: &str| answer[member].as_str().unwrap_or_default().to_owned();
    let message = text("message");
    let mut told = format!("{} {}: {message}", reply.status, text("error"));
    for detail in answer["details"]
        .as_array()
        .into_iter()
        .flatten()
        .take(DETAILS_MAX)
    {
        let path: Vec<&str> = detail["path"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fault = detail["message"].as_str().unwrap_or_default();
        // The message of a single fault names it already.
        if !message.contains(fault) {
            told.push_str(&format!("\n- {}: {fault}", path.join(".")));
        }
    }
    match reply.status {
        401 => told.push_str("\nThe service does not know this key."),
        403 => told.push_str(&format!("\nThe key is {}; {}.", keys::kind(key), tool.keys())),
        // The rule's state, by which a repeated verdict can tell that the first one counted.
        409 if answer["evaluation"].is_object() => {
            told.push_str(&format!("\nevaluation: {}", answer["evaluation"]));
        }
        _ => {}
    }
    if let Some(wait) = reply.retry_after {
        told.push_str(&format!("\nTry again in {} s.", wait.as_secs()));
    }
    told
}
