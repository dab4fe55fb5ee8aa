//! What the catalog says about a delivery when it is attempted: URL, signature, retry configuration, and the queue it
//! belongs to.

use super::guard::Guard;
use super::schedule::ReceiverKey;
use super::signature;
use super::transport::Request;
use crate::catalog::{Catalog, Delivery, Receiver, RetryConfig, Secret};
use crate::ids::ObjectId;

/// Where a delivery goes according to the current configuration: the URL, and the secret that signs it. The deliveries of
/// a rule's URL are not signed. `None` if the receiver was deleted. A rule's trigger still goes to the URL the rule had,
/// even if the rule is deleted.
pub(super) fn destination(catalog: &Catalog, receiver: &Receiver) -> Option<(Box<str>, Option<Secret>)> {
    match receiver {
        Receiver::Webhook(id) => {
            let settings = &catalog.webhook(*id)?.settings;
            Some((settings.url.clone(), Some(settings.secret.clone())))
        }
        Receiver::Rule { rule_id, url } => Some((rule_url(catalog, *rule_id).unwrap_or(url).into(), None)),
    }
}

/// The request of an attempt at `now_ns`, UTC nanoseconds. `None` if the body is only in the ledger, which is never the
/// case for an owed delivery.
pub(super) fn request(
    delivery: &Delivery,
    (url, secret): (Box<str>, Option<Secret>),
    now_ns: i64,
) -> Option<Request> {
    let body = delivery.body.sent_as(delivery.webhook_id)?;
    let headers = match secret {
        Some(secret) => signature::headers(&secret, delivery.webhook_id, now_ns, &body),
        None => vec![("x-webhook-id", delivery.webhook_id.to_string())],
    };
    Some(Request {
        url: url.into(),
        headers,
        body,
    })
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
