//! Webhook deliveries.
//!
//! The catalog stores what is owed. This module builds the bodies ([`Trigger`], [`BucketUpdate`] …), sends them over
//! HTTP, records the results and retries. It never decides who is notified, never follows a redirect and never connects
//! to an address that the [`Guard`] has not checked. The service calls it through [`Deliveries`]: `queued` once a
//! command that owes deliveries is durable, `offer_received` for `data.received`, which is best effort and kept in
//! memory only.

mod actor;
mod address;
mod connections;
mod envelope;
mod event_data;
mod failure;
mod format;
mod guard;
mod handle;
mod mail;
mod offered;
mod outgoing;
mod pace;
mod points;
mod recent;
mod redelivery;
mod resolve;
mod retry;
mod schedule;
mod signature;
mod stats;
mod transport;

#[cfg(test)]
mod tests;

pub use envelope::{
    BucketChanges, BucketUpdate, Change, Named, Point, Trigger, delivery, delivery_to, new_deliveries,
    test_data,
};
pub use event_data::{Overdue, Resolved, StaleSource};
pub use format::Template;
pub use guard::{CheckedUrl, Guard, Place, check_url_form};
pub use handle::Deliveries;
pub use mail::{MAILTO, MailEncryption, MailServer, recipients};
pub use points::{NewPoints, raw_json, values_of};
pub use resolve::{Lookup, Resolve};
pub use signature::{check_secret, generate_secret};
pub use stats::DeliveryStats;
