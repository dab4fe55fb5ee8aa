//! Limits of an organization: numbers of objects, bytes of their texts, pending deliveries.
//!
//! Checked before a command is logged, while changes of the organization are serialized. The catalog maintains the
//! sums; this module compares them with the configuration. Existing objects above a limit are kept.

use super::Service;
use crate::catalog::{Catalog, OwedRoom, Owing};
use crate::config::Config;
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// `Retry-After` while the server's memory for pending deliveries is full.
const RETRY_AFTER_SECONDS: u32 = 5;

/// An object whose number is limited per organization.
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
    /// Checks that an organization may have one more object with texts of `text_bytes`.
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

    /// Checks that texts of an organization may grow from `before` to `after` bytes. Shrinking is always allowed.
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

    /// Checks that an organization may owe these deliveries in addition.
    ///
    /// # Errors
    /// 403 that names the limit; 503 if the pending deliveries of all organizations use all memory reserved for them.
    pub(super) fn admit_owing(&self, organization_id: ObjectId, owing: &Owing) -> Result<(), ServiceError> {
        let (deliveries, bytes) = owing.size();
        if deliveries == 0 {
            return Ok(());
        }
        let room = owed_room(&self.config, organization_id);
        let (owed, all_bytes) = self
            .catalog
            .read(|it| (it.owed(organization_id), it.owed_bytes()));
        let refuse = |is: u64, max: u64, what: &str, limit: &str| {
            ServiceError::forbidden(format!(
                "the organization's webhooks are owed {is} {what}, and may be owed {max} ({limit}); wait until they took \
                 some, or pause or delete those that do not answer"
            ))
        };
        if owed.deliveries.saturating_add(deliveries) > room.deliveries_max {
            let max = room.deliveries_max;
            return Err(refuse(
                owed.deliveries,
                max,
                "deliveries",
                "limits.owed_deliveries_max",
            ));
        }
        if owed.bytes.saturating_add(bytes) > room.bytes_max {
            return Err(refuse(
                owed.bytes,
                room.bytes_max,
                "bytes",
                "limits.owed_bytes_max",
            ));
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

/// The limits for deliveries of a trigger, which is accepted in any case. If the memory for the pending deliveries of
/// all organizations is full, the trigger's organization may not owe more than before.
pub(super) fn trigger_room(config: &Config, catalog: &Catalog, organization_id: ObjectId) -> OwedRoom {
    let room = owed_room(config, organization_id);
    if catalog.owed_bytes() < config.storage.owed_bytes_max() {
        return room;
    }
    OwedRoom {
        bytes_max: room.bytes_max.min(catalog.owed(organization_id).bytes),
        ..room
    }
}

/// The limits of an organization's pending deliveries. At most half of the server's memory for them, so that one
/// organization alone does not block the others.
fn owed_room(config: &Config, organization_id: ObjectId) -> OwedRoom {
    let limits = &config.limits;
    OwedRoom {
        organization_id,
        deliveries_max: limits.owed_deliveries_max,
        bytes_max: limits.owed_bytes_max.min(config.storage.owed_bytes_max() / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        Body, Command, Delivery, DeliveryStatus, Event, Organization, Plan, Receiver, User,
    };
    use crate::catalog::{Bytes, PasswordHash};

    const MIB: u64 = 1 << 20;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    /// An organization that owes a delivery of this size.
    fn owing(catalog: &mut Catalog, number: u8, bytes: usize) {
        let organization = Organization {
            id: id(number),
            name: "o".into(),
            plan: Plan::Free,
            created_at_ns: 0,
            updated_at_ns: 0,
        };
        let user = User::new(
            id(number),
            id(number),
            number.to_string(),
            "u",
            PasswordHash {
                memory_kib: 1,
                passes: 1,
                lanes: 1,
                salt: Bytes([0; 16]),
                hash: Bytes([0; 32]),
            },
            0,
        );
        catalog.apply(&Command::SignedUp { organization, user });
        let delivery = Delivery {
            id: id(number),
            webhook_id: id(number),
            receiver: Receiver::Webhook(id(number)),
            event: Event::BucketUpdated,
            body: Body::whole(vec![b'x'; bytes]),
            created_at_ns: 0,
            status: DeliveryStatus::Pending,
            attempts: Vec::new(),
            tries: 0,
            next_attempt_at_ns: Some(0),
            again: false,
            organization_id: Some(id(number)),
        };
        catalog.apply(&Command::DeliveriesQueued {
            deliveries: vec![delivery],
        });
    }

    #[test]
    fn one_organization_owes_no_more_than_half_of_what_there_is_memory_for() {
        let mut config = Config::default();
        let room = |config: &Config| owed_room(config, id(1)).bytes_max;
        config.storage.memory_bytes_max = 256 * MIB;
        assert_eq!(room(&config), 32 * MIB);
        config.storage.memory_bytes_max = 1 << 40;
        assert_eq!(room(&config), config.limits.owed_bytes_max);
    }

    #[test]
    fn where_all_is_owed_a_trigger_makes_room_among_its_own() {
        let mut config = Config::default();
        config.storage.memory_bytes_max = 64 * MIB;
        let mut catalog = Catalog::default();
        owing(&mut catalog, 1, 7 << 20);
        owing(&mut catalog, 2, 7 << 20);
        assert_eq!(trigger_room(&config, &catalog, id(1)).bytes_max, 8 * MIB);
        owing(&mut catalog, 3, 7 << 20);
        let owed = catalog.owed(id(1)).bytes;
        assert!((7 * MIB..8 * MIB).contains(&owed));
        assert_eq!(trigger_room(&config, &catalog, id(1)).bytes_max, owed);
        assert_eq!(trigger_room(&config, &catalog, id(4)).bytes_max, 0);
    }
}
