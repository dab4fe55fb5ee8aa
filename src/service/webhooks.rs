//! Webhooks and their deliveries.

use std::sync::Arc;

use super::allowance::Countable;
use super::page::{Page, PageRequest};
use super::{Caller, Service};
use crate::catalog::{
    Command, Delivery, DeliveryTotals, Event, NewDeliveries, Secret, Webhook, WebhookFormat, WebhookSettings,
    text_bytes,
};
use crate::delivery::{MAILTO, delivery_to, generate_secret, recipients, test_data};
pub use crate::delivery::{check_secret, check_url_form};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;

/// The given secret; a generated one if it is absent.
///
/// # Errors
/// 500 if the operating system provides no random bytes.
pub fn secret_or_generated(secret: Option<Secret>) -> Result<Secret, ServiceError> {
    Ok(secret.map_or_else(generate_secret, Ok)?)
}

/// Checks what of the URL of a receiver can be checked by itself.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_receiver(url: &str) -> Result<(), String> {
    match url.starts_with(MAILTO) {
        true => recipients(url).map(drop),
        false => check_url_form(url),
    }
}

/// Checks that mail goes to addresses, and everything else to none.
fn check_scheme(settings: &WebhookSettings) -> Result<(), ServiceError> {
    let fault = match (&settings.format, settings.url.starts_with(MAILTO)) {
        (WebhookFormat::Email, _) => recipients(&settings.url).err(),
        (_, true) => Some("is for the format \"email\" only; name an http or https URL".to_owned()),
        (_, false) => None,
    };
    url_detail(fault).map_or(Ok(()), |fault| Err(ServiceError::faults(vec![fault])))
}

fn url_detail(fault: Option<String>) -> Option<Detail> {
    fault.map(|message| Detail::at(&["url"], message))
}

impl Service {
    /// Lists the webhooks of the caller's organization.
    pub fn list_webhooks(&self, caller: &Caller, page: PageRequest) -> Page<Arc<Webhook>> {
        let mut page = self.catalog.read(|catalog| {
            let count = catalog.webhook_count(caller.organization_id);
            page.cut(count, catalog.webhooks_of(caller.organization_id).cloned())
        });
        for webhook in &mut page.entries {
            self.count_recent(webhook);
        }
        page
    }

    /// Returns one webhook.
    pub fn webhook(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Webhook>, ServiceError> {
        let mut webhook = self
            .catalog
            .read(|catalog| catalog.webhook(id).cloned())
            .filter(|webhook| webhook.organization_id == caller.organization_id)
            .ok_or_else(|| ServiceError::not_found("webhook"))?;
        self.count_recent(&mut webhook);
        Ok(webhook)
    }

    /// Adds recent best-effort deliveries, which the catalog has not counted yet.
    fn count_recent(&self, webhook: &mut Arc<Webhook>) {
        let uncounted = self.deliveries.uncounted(webhook.id);
        if uncounted.total > 0 {
            Arc::make_mut(webhook).totals.add(uncounted);
        }
    }

    /// Creates a webhook.
    ///
    /// # Errors
    /// 404 for an unknown bucket; 400 for a URL that must not be called; 403 beyond a limit.
    pub async fn create_webhook(
        &self,
        caller: &Caller,
        settings: WebhookSettings,
    ) -> Result<Arc<Webhook>, ServiceError> {
        self.check_bucket(caller, settings.bucket_id)?;
        check_scheme(&settings)?;
        self.check_url(Some(&settings.url)).await?;
        let decision = self.decisions.begin(caller.organization_id).await;
        // Checking the URL takes time, and the bucket may have been deleted meanwhile.
        self.check_bucket(caller, settings.bucket_id)?;
        let text_bytes = text_bytes::of_webhook(&settings);
        self.admit_one_more(caller.organization_id, Countable::Webhook, text_bytes)?;
        let (id, now_ns) = (self.next_id(), self.now_ns());
        let webhook = Webhook {
            id,
            organization_id: caller.organization_id,
            settings,
            totals: DeliveryTotals::default(),
            created_at_ns: now_ns,
            updated_at_ns: now_ns,
        };
        let _settled = decision
            .commit(self.auditor(caller).audited(Command::WebhookCreated { webhook }))
            .await?;
        self.webhook(caller, id)
    }

    /// Changes a webhook. `change` makes its new settings from the present ones; `url` and `bucket_id` are those that are
    /// new in them.
    ///
    /// # Errors
    /// As [`Service::create_webhook`]; 404.
    pub async fn update_webhook(
        &self,
        caller: &Caller,
        id: ObjectId,
        url: Option<&str>,
        bucket_id: Option<ObjectId>,
        change: impl FnOnce(&WebhookSettings) -> Result<WebhookSettings, ServiceError>,
    ) -> Result<Arc<Webhook>, ServiceError> {
        self.webhook(caller, id)?;
        self.check_bucket(caller, bucket_id)?;
        self.check_url(url).await?;
        let decision = self.decisions.begin(caller.organization_id).await;
        self.check_bucket(caller, bucket_id)?;
        let known = self.webhook(caller, id)?;
        let settings = change(&known.settings)?;
        check_scheme(&settings)?;
        let before = text_bytes::of_webhook(&known.settings);
        let after = text_bytes::of_webhook(&settings);
        self.admit_text(caller.organization_id, before, after)?;
        let command = Command::WebhookUpdated {
            webhook_id: id,
            settings,
            at_ns: self.now_ns(),
        };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        self.webhook(caller, id)
    }

    /// Deletes a webhook with its deliveries.
    pub async fn delete_webhook(&self, caller: &Caller, id: ObjectId) -> Result<Arc<Webhook>, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let webhook = self.webhook(caller, id)?;
        let command = Command::WebhookDeleted { webhook_id: id };
        let _settled = decision.commit(self.auditor(caller).audited(command)).await?;
        Ok(webhook)
    }

    /// Sends a test event, even to a paused webhook.
    ///
    /// # Errors
    /// 404; 403 beyond a limit; 503 when the log does not accept writes.
    pub async fn test_webhook(&self, caller: &Caller, id: ObjectId) -> Result<Delivery, ServiceError> {
        let decision = self.decisions.begin(caller.organization_id).await;
        let webhook = self.webhook(caller, id)?;
        let now_ns = self.now_ns();
        let bucket_id = webhook.settings.bucket_id;
        let event = Event::WebhookTest;
        let test = delivery_to(
            &webhook,
            event,
            bucket_id,
            &self.resources.ids,
            now_ns,
            &test_data(),
        );
        self.admit_deliveries(caller.organization_id, &NewDeliveries::of(vec![test.clone()]))?;
        let command = Command::DeliveriesQueued {
            deliveries: vec![test.clone()],
        };
        let (deliveries, owed) = (self.deliveries.clone(), vec![test.id]);
        let _settled = decision
            .commit_then(command, move || deliveries.queued(owed))
            .await?;
        Ok(test)
    }

    /// Sends a delivery again, whatever its status, with the same `webhookId` and its own retry schedule.
    ///
    /// # Errors
    /// 404; 403 beyond a limit; 503 when the log does not accept writes.
    pub async fn redeliver(
        &self,
        caller: &Caller,
        webhook_id: ObjectId,
        delivery_id: ObjectId,
    ) -> Result<Delivery, ServiceError> {
        let mut decision = self.decisions.begin(caller.organization_id).await;
        self.webhook(caller, webhook_id)?;
        loop {
            let known = self.delivery_of(webhook_id, delivery_id)?;
            let known = known.ok_or_else(|| ServiceError::not_found("delivery"))?;
            if self.catalog.read(|it| it.pending_delivery(delivery_id).is_none()) {
                self.admit_deliveries(caller.organization_id, &NewDeliveries::of(vec![known.clone()]))?;
            }
            let deliveries = self.deliveries.clone();
            let redelivery = async move { deliveries.redeliver(known).await };
            let (owed, still_deciding) = decision.carry_out(redelivery).await?;
            if let Some(owed) = owed {
                return Ok(owed);
            }
            decision = still_deciding;
        }
    }

    /// Lists the retained deliveries of a webhook, newest first.
    ///
    /// # Errors
    /// 404; 500 when the ledger cannot be read.
    pub fn webhook_deliveries(
        &self,
        caller: &Caller,
        webhook_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<Delivery>, ServiceError> {
        self.webhook(caller, webhook_id)?;
        self.deliveries_of(webhook_id, page)
    }

    /// Lists the retained deliveries of a rule's `webhookUrl`, newest first.
    ///
    /// # Errors
    /// 404, 403; 500 when the ledger cannot be read.
    pub fn rule_deliveries(
        &self,
        caller: &Caller,
        rule_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<Delivery>, ServiceError> {
        self.rule(caller, rule_id)?;
        self.deliveries_of(rule_id, page)
    }

    /// Returns what is wrong with the URL of a receiver.
    pub(super) async fn url_fault(&self, member: &str, url: Option<&str>) -> Option<Detail> {
        let checked = self.deliveries.check_url(url?).await;
        checked.err().map(|message| Detail::at(&[member], message))
    }

    /// Whether webhooks may have the format `email`.
    pub fn has_mail_server(&self) -> bool {
        self.config.smtp.server().is_some()
    }

    async fn check_url(&self, url: Option<&str>) -> Result<(), ServiceError> {
        let fault = match url {
            // Its form was checked with the body, and it names no host.
            Some(url) if url.starts_with(MAILTO) => None,
            url => self.url_fault("url", url).await,
        };
        match fault {
            None => Ok(()),
            Some(fault) => Err(ServiceError::faults(vec![fault])),
        }
    }

    fn check_bucket(&self, caller: &Caller, bucket_id: Option<ObjectId>) -> Result<(), ServiceError> {
        bucket_id.map_or(Ok(()), |id| self.bucket(caller, id).map(drop))
    }
}
