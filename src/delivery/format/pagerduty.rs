//! An event of PagerDuty's Events API v2 (<https://developer.pagerduty.com/docs/events-api-v2-overview>).

use serde_json::{Value, json};

use super::summary::{Summary, Tone};

/// Longest summary that PagerDuty takes, in characters.
const SUMMARY_CHARS_MAX: usize = 1_024;

/// The second of two events that belong together resolves what the first one has triggered.
pub fn event(event: &Value, routing_key: &str) -> Value {
    let (name, data) = (event["event"].as_str().unwrap_or_default(), &event["data"]);
    let resolves = ["alert.resolved", "source.recovered", "evaluation.resumed"].contains(&name);
    // `alert`, `source` or `evaluation`, and what it is about.
    let kind = name.split('.').next().unwrap_or_default();
    let about = match kind {
        "source" => &data["dataSourceId"],
        "webhook" => &event["webhookId"],
        _ => &data["alertId"],
    };
    let summary = Summary::of(event);
    let severity = match summary.tone {
        Tone::Alarm => "critical",
        Tone::Warning => "warning",
        Tone::Good | Tone::Neutral => "info",
    };
    let title: String = summary.title.chars().take(SUMMARY_CHARS_MAX).collect();
    json!({
        "routing_key": routing_key,
        "event_action": if resolves { "resolve" } else { "trigger" },
        "dedup_key": format!("{kind}-{}", about.as_str().unwrap_or_default()),
        "payload": {
            "summary": title,
            "source": data["dataSourceName"].as_str().unwrap_or("tidewatch"),
            "severity": severity,
            "timestamp": event["timestamp"],
            "custom_details": data,
        },
    })
}
