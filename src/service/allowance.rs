//! What one organization may have: counts of things, bytes of their texts, deliveries that are owed.
//!
//! Asked before a command is logged, while its organization's changes are decided one at a time. The catalog keeps the
//! sums; here they meet the configuration. What an organization has beyond a limit, since before there was one, stays.

use super::Service;
use crate::catalog::{Catalog, OwedRoom, Owing};
use crate::config::Config;
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// Until deliveries of all organizations have ended that others wait for.
const RETRY_AFTER_SECONDS: u32 = 5;

/// A thing that organizations have a limited number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Countable {
    Bucket,
    Source,
    Key,
    Rule,
    Webhook,
}

impl Countable {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Bucket => ("buckets", "limits.buckets_max"),
            Self::Source => ("data sources", "limits.sources_max"),
            Self::Key => ("API keys", "limits.keys_max"),
            Self::Rule => ("alert rules", "limits.rules_max"),
            Self::Webhook => ("webhooks", "limits.webhooks_max"),
        }
    }

    fn count(self, catalog: &Catalog, organization_id: ObjectId) -> u64 {
        match self {
            Self::Bucket => catalog.bucket_count(organization_id) as u64,
            Self::Source => catalog.holdings(organization_id).sources,
            Self::Key => catalog.holdings(organization_id).keys,
            Self::Rule => catalog.holdings(organization_id).rules,
            Self::Webhook => catalog.webhook_count(organization_id) as u64,
        }
    }
}

impl Service {
    /// Whether an organization may have one thing more, with texts of so many bytes.
    ///
    /// # Errors
    /// 403 that names the limit.
    pub(super) fn admit_one_more(
        &self,
        organization_id: ObjectId,
        countable: Countable,
        text_bytes: usize,
    ) -> Result<(), ServiceError> {
        let limits = &self.config.limits;
        let max = match countable {
            Countable::Bucket => limits.buckets_max,
            Countable::Source => limits.sources_max,
            Countable::Key => limits.keys_max,
            Countable::Rule => limits.rules_max,
            Countable::Webhook => limits.webhooks_max,
        };
        let count = self.catalog.read(|it| countable.count(it, organization_id));
        if count >= max {
            let (things, limit) = countable.names();
            return Err(ServiceError::forbidden(format!(
                "the organization has {count} {things}, and may have {max} ({limit}); delete some it does not need"
            )));
        }
        self.admit_text(organization_id, 0, text_bytes)
    }

    /// Whether texts of an organization may take so many bytes in the place of so many. They may always get shorter.
    ///
    /// # Errors
    /// 403 that names the limit.
    pub(super) fn admit_text(
        &self,
        organization_id: ObjectId,
        before: usize,
        after: usize,
    ) -> Result<(), ServiceError> {
        let max = self.config.limits.catalog_bytes_max;
        let held = self.catalog.read(|it| it.holdings(organization_id).text_bytes);
        let growth = after.saturating_sub(before) as u64;
        if growth == 0 || held.saturating_add(growth) <= max {
            return Ok(());
        }
        Err(ServiceError::forbidden(format!(
            "names, descriptions, schemas, rules and webhooks of the organization take {held} bytes, and may take {max} \
             (limits.catalog_bytes_max); shorten or delete some"
        )))
    }

    /// Whether an organization may owe this, too.
    ///
    /// # Errors
    /// 403 that names the limit; 503 when all organizations together owe as much as the server has memory for.
    pub(super) fn admit_owing(&self, organization_id: ObjectId, owing: &Owing) -> Result<(), ServiceError> {
        let (deliveries, bytes) = owing.size();
        if deliveries == 0 {
            return Ok(());
        }
        let room = owed_room(&self.config, organization_id);
        let (owed, all_bytes) = self.catalog.read(|it| (it.owed(organization_id), it.owed_bytes()));
        let refuse = |is: u64, max: u64, what: &str, limit: &str| {
            ServiceError::forbidden(format!(
                "the organization's webhooks are owed {is} {what}, and may be owed {max} ({limit}); wait until they took \
                 some, or pause or delete those that do not answer"
            ))
        };
        if owed.deliveries.saturating_add(deliveries) > room.deliveries_max {
            let max = room.deliveries_max;
            return Err(refuse(owed.deliveries, max, "deliveries", "limits.owed_deliveries_max"));
        }
        if owed.bytes.saturating_add(bytes) > room.bytes_max {
            return Err(refuse(owed.bytes, room.bytes_max, "bytes", "limits.owed_bytes_max"));
        }
        if all_bytes.saturating_add(bytes) > self.config.storage.owed_bytes_max() {
            return Err(ServiceError::unavailable(
                "too many deliveries wait for their receivers; send it again in a moment",
                RETRY_AFTER_SECONDS,
            ));
        }
        Ok(())
    }
}

/// What an organization may owe at once. No more than half of what the server has memory for: one alone keeps nobody else
/// from owing something.
pub(super) fn owed_room(config: &Config, organization_id: ObjectId) -> OwedRoom {
    let limits = &config.limits;
    OwedRoom {
        organization_id,
        deliveries_max: limits.owed_deliveries_max,
        bytes_max: limits.owed_bytes_max.min(config.storage.owed_bytes_max() / 2),
    }
}
