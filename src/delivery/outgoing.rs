//! What the catalog says about a delivery when it is attempted: URL, signature, retry configuration, and the queue it
//! belongs to.

use super::format::{Rendered, render};
use super::guard::Guard;
use super::schedule::ReceiverKey;
use super::signature;
use super::transport::Request;
use crate::catalog::{Catalog, Delivery, Receiver, RetryConfig, Secret, WebhookFormat};
use crate::ids::ObjectId;

/// Where a delivery goes, and how, according to the current configuration.
pub(super) struct Destination {
    url: Box<str>,
    /// Signs the body.
    secret: Option<Secret>,
    format: WebhookFormat,
}

/// The destination of a delivery. Mails and the deliveries of a rule's URL are not signed. `None` if the receiver was deleted. A
/// rule's trigger still goes to the URL the rule had, even if the rule is deleted.
pub(super) fn destination(catalog: &Catalog, receiver: &Receiver) -> Option<Destination> {
    match receiver {
        Receiver::Webhook(id) => {
            let settings = &catalog.webhook(*id)?.settings;
            let is_signed = settings.format != WebhookFormat::Email;
            Some(Destination {
                url: settings.url.clone(),
                secret: is_signed.then(|| settings.secret.clone()),
                format: settings.format.clone(),
            })
        }
        Receiver::Rule { rule_id, url } => Some(Destination {
            url: rule_url(catalog, *rule_id).unwrap_or(url).into(),
            secret: None,
            format: WebhookFormat::Standard,
        }),
    }
}

/// The request of an attempt at `now_ns`, UTC nanoseconds. `None` if the body is only in the ledger, which is never the
/// case for an owed delivery.
///
/// # Errors
/// Why the event cannot be sent in the webhook's format.
pub(super) fn request(
    delivery: &Delivery,
    destination: Destination,
    now_ns: i64,
) -> Option<Result<Request, String>> {
    let Destination { url, secret, format } = destination;
    let envelope = delivery.body.sent_as(delivery.webhook_id)?;
    let request = |rendered: Rendered| {
        let Rendered {
            content_type,
            mut headers,
            body,
        } = rendered;
        headers.extend(match secret {
            Some(secret) => signature::headers(&secret, delivery.webhook_id, now_ns, &body),
            None => vec![("x-webhook-id", delivery.webhook_id.to_string())],
        });
        Request {
            url: url.into(),
            content_type,
            headers,
            body,
        }
    };
    Some(render(&format, envelope).map(request))
}

/// The retry configuration of a delivery's receiver.
pub(super) fn retry_config(catalog: &Catalog, delivery: &Delivery) -> RetryConfig {
    match &delivery.receiver {
        Receiver::Webhook(id) => catalog.webhook(*id).map(|webhook| webhook.settings.retry),
        Receiver::Rule { .. } => None,
    }
    .unwrap_or_default()
}

/// The queue that a delivery belongs to.
pub(super) fn receiver_key(catalog: &Catalog, guard: &Guard, delivery: &Delivery) -> ReceiverKey {
    match &delivery.receiver {
        Receiver::Webhook(id) => ReceiverKey::Webhook(*id),
        Receiver::Rule { rule_id, url } => {
            let url = rule_url(catalog, *rule_id).unwrap_or(url);
            let origin = guard
                .check_form(url)
                .map_or_else(|_| url.to_owned(), |url| url.origin());
            // The organization of a deleted rule is unknown; use the rule's id instead.
            let bucket = catalog.rule(*rule_id).map(|rule| rule.bucket_id);
            let bucket = bucket.and_then(|id| catalog.bucket(id));
            let owner = bucket.map_or(*rule_id, |bucket| bucket.organization_id);
            ReceiverKey::Origin(owner, origin.into())
        }
    }
}

fn rule_url(catalog: &Catalog, rule_id: ObjectId) -> Option<&str> {
    catalog.rule(rule_id)?.settings.webhook_url.as_deref()
}
