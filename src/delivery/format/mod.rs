//! What a delivery sends in each format of a webhook (contract, chapter 14). The event is stored as the envelope of the
//! standard format, and is rendered for each attempt: the same envelope and settings give the same bytes.

mod chat;
mod ntfy;
mod pagerduty;
mod summary;
mod template;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use crate::catalog::WebhookFormat;
use summary::Summary;

pub use template::Template;

/// Longest body that a template may give.
const RENDERED_BYTES_MAX: usize = 1 << 20;

/// What an attempt sends, apart from its signature.
#[derive(Debug)]
pub struct Rendered {
    pub content_type: &'static str,
    /// Lower-case names and values.
    pub headers: Vec<(&'static str, String)>,
    pub body: Arc<[u8]>,
}

const JSON: &str = "application/json";

impl Rendered {
    /// The envelope as it is.
    pub fn standard(envelope: Arc<[u8]>) -> Self {
        Self {
            content_type: JSON,
            headers: Vec::new(),
            body: envelope,
        }
    }

    fn json(value: &Value) -> Self {
        Self::standard(value.to_string().into_bytes().into())
    }
}

/// Renders an envelope.
///
/// # Errors
/// Why it cannot be sent in this format, for the list of attempts.
pub fn render(format: &WebhookFormat, envelope: Arc<[u8]>) -> Result<Rendered, String> {
    if *format == WebhookFormat::Standard {
        return Ok(Rendered::standard(envelope));
    }
    let event: Value = serde_json::from_slice(&envelope)
        .map_err(|fault| format!("the stored event is not JSON: {fault}"))?;
    Ok(match format {
        WebhookFormat::Standard => Rendered::standard(envelope),
        WebhookFormat::Slack => Rendered::json(&chat::slack(&event)),
        WebhookFormat::Teams => Rendered::json(&chat::teams(&event)),
        WebhookFormat::Ntfy => ntfy::message(&event),
        WebhookFormat::PagerDuty { routing_key } => Rendered::json(&pagerduty::event(&event, &routing_key.0)),
        WebhookFormat::Email => {
            let summary = Summary::of(&event);
            Rendered {
                content_type: "text/plain; charset=utf-8",
                body: summary.lines().into_bytes().into(),
                headers: vec![("subject", summary.title)],
            }
        }
        WebhookFormat::Template { text } => {
            let body = Template::parse(text)?.render(&event, RENDERED_BYTES_MAX)?;
            Rendered::standard(body.into_bytes().into())
        }
    })
}
