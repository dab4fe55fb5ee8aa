//! A webhook's own text with members of the envelope: `{{data.alertName}}`.

use serde_json::Value;

/// A text with places for members.
#[derive(Debug, PartialEq, Eq)]
pub struct Template<'t> {
    parts: Vec<Part<'t>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    /// Names from the envelope to the member.
    Member(Vec<&'t str>),
}

/// Members of the envelope.
const ENVELOPE: [&str; 5] = ["event", "timestamp", "webhookId", "bucketId", "data"];
/// Members of `data` of all events.
const DATA: [&str; 28] = [
    "alertId",
    "alertName",
    "changes",
    "condition",
    "currentValue",
    "dataPoint",
    "dataPointCount",
    "dataSourceId",
    "dataSourceName",
    "dueAt",
    "expectedIntervalSeconds",
    "lastDataPoint",
    "lastEvaluatedAt",
    "message",
    "operator",
    "recoveredAt",
    "resolvedAt",
    "resumedAt",
    "staleSince",
    "threshold",
    "triggeredAt",
    "updatedAt",
    "updatedBy",
    "dataPoint._id",
    "dataPoint.timestamp",
    "changes.name",
    "changes.description",
    "changes.retentionDays",
];
/// Members of `data` that may have any members: an evaluator's evidence, and the point, which it may send as well.
const OPEN: [&str; 4] = ["currentValue", "dataPoint", "operator", "threshold"];
/// Members of each change.
const CHANGE: [&str; 2] = ["old", "new"];

impl<'t> Template<'t> {
    /// Reads a template. Braces that are not doubled are text.
    ///
    /// # Errors
    /// Describes what to change: braces that are not closed, a member that no event has.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((path, after)) = after.split_once("}}") else {
                return Err(String::from("has {{ without }} behind it"));
            };
            let names: Vec<&str> = path.trim().split('.').collect();
            if !exists(&names) {
                return Err(format!(
                    "{{{{{}}}}} is no member of an event; write, for example, {{{{data.alertName}}}}",
                    path.trim()
                ));
            }
            parts.push(Part::Text(before));
            parts.push(Part::Member(names));
            rest = after;
        }
        parts.push(Part::Text(rest));
        Ok(Self { parts })
    }

    /// The text with the event's members: strings escaped for JSON without their quotes, others as JSON, `null` for members
    /// that the event does not have. Members are never read as templates.
    ///
    /// # Errors
    /// The text would be longer than `bytes_max`.
    pub fn render(&self, event: &Value, bytes_max: usize) -> Result<String, String> {
        let mut rendered = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Member(names) => {
                    let member = names.iter().fold(event, |value, name| &value[*name]);
                    let json = member.to_string();
                    rendered.push_str(match member {
                        Value::String(_) => &json[1..json.len() - 1],
                        _ => &json,
                    });
                }
            }
            if rendered.len() > bytes_max {
                return Err(format!("the template gives more than {bytes_max} bytes"));
            }
        }
        Ok(rendered)
    }
}

/// Whether any event can have the member.
fn exists(names: &[&str]) -> bool {
    let [first, rest @ ..] = names else { return false };
    let is_open = |names: &[&str]| names.iter().all(|name| !name.is_empty());
    match (*first, rest) {
        ("data", ["changes", change, member]) => {
            DATA.contains(&&*format!("changes.{change}")) && CHANGE.contains(member)
        }
        ("data", [open, members @ ..]) if OPEN.contains(open) => is_open(members),
        ("data", []) => true,
        ("data", members) => DATA.contains(&&*members.join(".")),
        (name, []) => ENVELOPE.contains(&name),
        _ => false,
    }
}
