//! An event in words, for people.

use serde_json::Value;

/// How an event is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Alarm,
    Warning,
    Good,
    Neutral,
}

/// A title, and facts by name.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    pub tone: Tone,
}

impl Summary {
    /// Summarizes an envelope.
    pub fn of(event: &Value) -> Self {
        let data = &event["data"];
        let (rule, source) = (text(&data["alertName"]), text(&data["dataSourceName"]));
        let name = text(&event["event"]);
        let (title, tone) = match &*name {
            "alert.triggered" => (format!("{rule} has fired"), Tone::Alarm),
            "alert.resolved" => (format!("{rule} is resolved"), Tone::Good),
            "evaluation.overdue" => (format!("{rule} is not evaluated"), Tone::Warning),
            "evaluation.resumed" => (format!("{rule} is evaluated again"), Tone::Good),
            "source.stale" => (format!("{source} is silent"), Tone::Warning),
            "source.recovered" => (format!("{source} sends again"), Tone::Good),
            "data.received" => (format!("{source} has sent data"), Tone::Neutral),
            "bucket.updated" => (String::from("A bucket has changed"), Tone::Neutral),
            "webhook.test" => (String::from("Test of a webhook"), Tone::Neutral),
            _ => (name.clone(), Tone::Neutral),
        };
        let named = FACTS.iter().map(|(label, path)| (*label, &data[*path]));
        let facts = named.filter(|(_, value)| !value.is_null());
        let facts = facts.map(|(label, value)| (label, text(value))).collect();
        Self { title, facts, tone }
    }

    /// The title, then a line for each fact.
    pub fn lines(&self) -> String {
        let facts = self
            .facts
            .iter()
            .map(|(label, value)| format!("\n{label}: {value}"));
        self.title.clone() + &facts.collect::<String>()
    }
}

/// Members of `data` that people read, in their order.
const FACTS: [(&str, &str); 15] = [
    ("Condition", "condition"),
    ("Value", "currentValue"),
    ("Operator", "operator"),
    ("Threshold", "threshold"),
    ("Source", "dataSourceName"),
    ("Triggered", "triggeredAt"),
    ("Resolved", "resolvedAt"),
    ("Due", "dueAt"),
    ("Last verdict", "lastEvaluatedAt"),
    ("Resumed", "resumedAt"),
    ("Last point", "lastDataPoint"),
    ("Silent since", "staleSince"),
    ("Recovered", "recoveredAt"),
    ("Changes", "changes"),
    ("Message", "message"),
];

/// A string as it is, anything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
