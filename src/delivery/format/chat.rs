//! Messages for chats: Slack's incoming webhooks, and Teams' workflows, which take adaptive cards.

use serde_json::{Value, json};

use super::summary::{Summary, Tone};

/// `{text}` (<https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>).
pub fn slack(event: &Value) -> Value {
    json!({"text": escaped(&Summary::of(event).lines())})
}

/// Slack reads `<…>` as links and `&…;` as characters
/// (<https://docs.slack.dev/messaging/formatting-message-text#escaping>).
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A message with one adaptive card of version 1.4 (<https://adaptivecards.io/explorer>).
pub fn teams(event: &Value) -> Value {
    let Summary { title, facts, tone } = Summary::of(event);
    let facts: Vec<_> = facts
        .into_iter()
        .map(|(label, value)| json!({"title": label, "value": value}))
        .collect();
    let color = match tone {
        Tone::Alarm => "attention",
        Tone::Warning => "warning",
        Tone::Good => "good",
        Tone::Neutral => "default",
    };
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": title, "weight": "bolder", "size": "medium", "color": color, "wrap": true},
            {"type": "FactSet", "facts": facts},
        ],
    });
    json!({
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    })
}
