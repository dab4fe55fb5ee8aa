//! Which format a webhook gets, and what it needs for it.

use crate::catalog::{Event, FormatName, Secret, WebhookFormat};
use crate::delivery::Template;
use crate::error::{Detail, ServiceError};

/// Events that PagerDuty would make incidents of that nothing resolves.
const NO_INCIDENTS: [Event; 2] = [Event::DataReceived, Event::BucketUpdated];

/// What a request says of the format; absent members keep their values.
pub struct FormatChange {
    pub name: Option<FormatName>,
    /// Text of a template.
    pub template: Option<Box<str>>,
    /// Key of a PagerDuty integration.
    pub routing_key: Option<Secret>,
}

impl FormatChange {
    /// The format of a webhook that has this one now, and will have these events, on a server with or without a mail server.
    ///
    /// # Errors
    /// 400 with all faults.
    pub fn over(
        self,
        known: &WebhookFormat,
        events: &[Event],
        has_mail_server: bool,
    ) -> Result<WebhookFormat, ServiceError> {
        let name = self.name.unwrap_or(known.name());
        let mut faults = Vec::new();
        let mut fault = |member: &str, text: String| faults.push(Detail::at(&[member], text));
        if self.template.is_some() && name != FormatName::Template {
            fault(
                "template",
                String::from("belongs to the format \"template\" only"),
            );
        }
        if self.routing_key.is_some() && name != FormatName::PagerDuty {
            fault(
                "routingKey",
                String::from("belongs to the format \"pagerduty\" only"),
            );
        }
        let format = match (name, known) {
            (FormatName::Standard, _) => WebhookFormat::Standard,
            (FormatName::Slack, _) => WebhookFormat::Slack,
            (FormatName::Teams, _) => WebhookFormat::Teams,
            (FormatName::Ntfy, _) => WebhookFormat::Ntfy,
            (FormatName::Email, known) => {
                if !has_mail_server && *known != WebhookFormat::Email {
                    fault(
                        "format",
                        String::from("cannot be \"email\": this server has no mail server"),
                    );
                }
                WebhookFormat::Email
            }
            (FormatName::PagerDuty, known) => {
                if let Some(event) = NO_INCIDENTS.iter().find(|event| events.contains(event)) {
                    fault(
                        "events",
                        format!("must not have {} with this format", event.name()),
                    );
                }
                match (self.routing_key, known) {
                    (Some(routing_key), _) => WebhookFormat::PagerDuty { routing_key },
                    (None, WebhookFormat::PagerDuty { .. }) => known.clone(),
                    (None, _) => {
                        fault(
                            "routingKey",
                            String::from("is required with the format \"pagerduty\""),
                        );
                        WebhookFormat::Standard
                    }
                }
            }
            (FormatName::Template, known) => match (self.template, known) {
                (Some(text), _) => {
                    if let Err(error) = check(&text) {
                        fault("template", error);
                    }
                    WebhookFormat::Template { text }
                }
                (None, WebhookFormat::Template { .. }) => known.clone(),
                (None, _) => {
                    fault(
                        "template",
                        String::from("is required with the format \"template\""),
                    );
                    WebhookFormat::Standard
                }
            },
        };
        match faults.is_empty() {
            true => Ok(format),
            false => Err(ServiceError::faults(faults)),
        }
    }
}

fn check(template: &str) -> Result<(), String> {
    if template.is_empty() {
        return Err(String::from("must not be empty"));
    }
    Template::parse(template).map(drop)
}
