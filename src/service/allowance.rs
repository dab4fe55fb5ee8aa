//! Limits of an organization: numbers of objects, bytes of their texts, pending deliveries.
//!
//! Checked before a command is logged, while changes of the organization are serialized. The catalog maintains the
//! sums; this module compares them with the configuration. Existing objects above a limit are kept.

use super::Service;
use crate::catalog::{Catalog, NewDeliveries, PendingLimits};
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
    Silence,
    Annotation,
}

impl Service {
    /// Checks that an organization may have one more object with texts of `text_bytes`.
    pub(super) fn admit_one_more(
        &self,
        organization_id: ObjectId,
        countable: Countable,
        text_bytes: usize,
    ) -> Result<(), ServiceError> {
        self.admit_another(organization_id, countable, 0, text_bytes)
    }

    /// The same after `before` others that the catalog does not have yet; all texts together have `text_bytes`.
    pub(super) fn admit_another(
        &self,
        organization_id: ObjectId,
        countable: Countable,
        before: u64,
        text_bytes: usize,
    ) -> Result<(), ServiceError> {
        let limits = &self.config.limits;
        let now_ns = self.now_ns();
        let (held, buckets, webhooks, silences) = self.catalog.read(|catalog| {
            (
                catalog.holdings(organization_id),
                catalog.bucket_count(organization_id) as u64,
                catalog.webhook_count(organization_id) as u64,
                catalog.silence_count(organization_id, now_ns) as u64,
            )
        });
        let (things, limit, max, count) = match countable {
            Countable::Bucket => ("buckets", "buckets_max", limits.buckets_max, buckets),
            Countable::Source => ("data sources", "sources_max", limits.sources_max, held.sources),
            Countable::Key => ("API keys", "keys_max", limits.keys_max, held.keys),
            Countable::Rule => ("alert rules", "rules_max", limits.rules_max, held.rules),
            Countable::Webhook => ("webhooks", "webhooks_max", limits.webhooks_max, webhooks),
            Countable::Silence => ("silences", "silences_max", limits.silences_max, silences),
            Countable::Annotation => (
                "annotations",
                "annotations_max",
                limits.annotations_max,
                held.annotations,
            ),
        };
        let count = count + before;
        if count >= max {
            return Err(ServiceError::forbidden(format!(
                "the organization has {count} {things}, and may have {max} (limits.{limit}); delete some it does not need"
            )));
        }
        self.admit_text(organization_id, 0, text_bytes)
    }

    /// Checks that texts of an organization may grow from `before` to `after` bytes. Shrinking is always allowed.
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
            "names, descriptions, schemas, rules, webhooks, silences, annotations and boards of the organization take {held} bytes, and may take {max} \
             (limits.catalog_bytes_max); shorten or delete some"
        )))
    }

    /// Checks that an organization may owe these deliveries in addition.
    ///
    /// # Errors
    /// 403 that names the limit; 503 if the pending deliveries of all organizations use all memory reserved for them.
    pub(super) fn admit_deliveries(
        &self,
        organization_id: ObjectId,
        new: &NewDeliveries,
    ) -> Result<(), ServiceError> {
        let (deliveries, bytes) = new.size();
        if deliveries == 0 {
            return Ok(());
        }
        let room = owed_room(&self.config, organization_id);
        let (owed, all_bytes) = self
            .catalog
            .read(|it| (it.owed(organization_id), it.owed_bytes()));
        for (is, more, max, what) in [
            (owed.deliveries, deliveries, room.deliveries_max, "deliveries"),
            (owed.bytes, bytes, room.bytes_max, "bytes"),
        ] {
            if is.saturating_add(more) > max {
                return Err(ServiceError::forbidden(format!(
                    "the organization's webhooks are owed {is} {what}, and may be owed {max} (limits.owed_{what}_max); wait \
                     until they took some, or pause or delete those that do not answer"
                )));
            }
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
pub(super) fn trigger_room(config: &Config, catalog: &Catalog, organization_id: ObjectId) -> PendingLimits {
    let room = owed_room(config, organization_id);
    if catalog.owed_bytes() < config.storage.owed_bytes_max() {
        return room;
    }
    PendingLimits {
        bytes_max: room.bytes_max.min(catalog.owed(organization_id).bytes),
        ..room
    }
}

/// The limits of an organization's pending deliveries. At most half of the server's memory for them, so that one
/// organization alone does not block the others.
fn owed_room(config: &Config, organization_id: ObjectId) -> PendingLimits {
    let limits = &config.limits;
    PendingLimits {
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

    /// An organization with a pending delivery of this size.
    fn add_pending(catalog: &mut Catalog, number: u8, bytes: usize) {
        let organization = Organization {
            id: id(number),
            name: "o".into(),
            plan: Plan::Free,
            invitations: Vec::new(),
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
    fn pending_bytes_of_one_organization_are_bounded_by_half_the_memory() {
        let mut config = Config::defaults().unwrap();
        let room = |config: &Config| owed_room(config, id(1)).bytes_max;
        config.storage.memory_bytes_max = 256 * MIB;
        assert_eq!(room(&config), 32 * MIB);
        config.storage.memory_bytes_max = 1 << 40;
        assert_eq!(room(&config), config.limits.owed_bytes_max);
    }

    #[test]
    fn with_no_room_left_a_trigger_evicts_within_its_organization() {
        let mut config = Config::defaults().unwrap();
        config.storage.memory_bytes_max = 64 * MIB;
        let mut catalog = Catalog::default();
        add_pending(&mut catalog, 1, 7 << 20);
        add_pending(&mut catalog, 2, 7 << 20);
        assert_eq!(trigger_room(&config, &catalog, id(1)).bytes_max, 8 * MIB);
        add_pending(&mut catalog, 3, 7 << 20);
        let owed = catalog.owed(id(1)).bytes;
        assert!((7 * MIB..8 * MIB).contains(&owed));
        assert_eq!(trigger_room(&config, &catalog, id(1)).bytes_max, owed);
        assert_eq!(trigger_room(&config, &catalog, id(4)).bytes_max, 0);
    }
}
