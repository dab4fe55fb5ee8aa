//! What the catalog says of a delivery at the time of an attempt: where it goes, how it is signed, when it is tried
//! again, and whose queue it stands in.

use super::guard::Guard;
use super::schedule::ReceiverKey;
use super::signature;
use super::transport::Request;
use crate::catalog::{Catalog, Delivery, Receiver, RetryConfig, Secret};
use crate::ids::ObjectId;

/// Where a delivery goes now.
pub(super) struct Destination {
    url: Box<str>,
    /// `None` where nothing is signed: the URL of a rule.
    secret: Option<Secret>,
}

impl Destination {
    /// `None` when the receiver is gone. The trigger of a rule is owed to the URL it had even when the rule is gone.
    pub fn of(catalog: &Catalog, delivery: &Delivery) -> Option<Self> {
        Some(match &delivery.receiver {
            Receiver::Webhook(id) => {
                let settings = &catalog.webhook(*id)?.settings;
                Self {
                    url: settings.url.clone(),
                    secret: Some(settings.secret.clone()),
                }
            }
            Receiver::Rule { rule_id, url } => Self {
                url: rule_url(catalog, *rule_id).unwrap_or(url).into(),
                secret: None,
            },
        })
    }

    /// The request of an attempt at `now_ns`, UTC nanoseconds. `None` where the body is in the ledger alone, which it
    /// never is of what is owed.
    pub fn request(self, delivery: &Delivery, now_ns: i64) -> Option<Request> {
        let body = delivery.body.sent_as(delivery.webhook_id)?;
        let headers = match self.secret {
            Some(secret) => signature::headers(&secret, delivery.webhook_id, now_ns, &body),
            None => vec![("x-webhook-id", delivery.webhook_id.to_string())],
        };
        Some(Request {
            url: self.url.into(),
            headers,
            body,
        })
    }
}

/// When the attempts at a delivery are repeated.
pub(super) fn retry_config(catalog: &Catalog, delivery: &Delivery) -> RetryConfig {
    match &delivery.receiver {
        Receiver::Webhook(id) => catalog.webhook(*id).map(|webhook| webhook.settings.retry),
        Receiver::Rule { .. } => None,
    }
    .unwrap_or_default()
}

/// Whose queue a delivery stands in.
pub(super) fn receiver_key(catalog: &Catalog, guard: &Guard, delivery: &Delivery) -> ReceiverKey {
    match &delivery.receiver {
        Receiver::Webhook(id) => ReceiverKey::Webhook(*id),
        Receiver::Rule { rule_id, url } => {
            let url = rule_url(catalog, *rule_id).unwrap_or(url);
            let origin = guard
                .check_form(url)
                .map_or_else(|_| url.to_owned(), |url| url.origin());
            // Of a rule that is gone nobody knows the organization any more.
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
