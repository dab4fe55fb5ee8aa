//! Deliveries: webhooks that arrive.
//!
//! What is owed lives in the catalog; this room does what happens between: it makes bodies ([`Trigger`],
//! [`BucketUpdate`] …), attempts them over HTTP, records how that went, and tries again. It decides nothing about who
//! is told, never follows a redirect and never connects to an address that the [`Guard`] has not checked. The service
//! calls it through [`Deliveries`]: `queued` once a command that owes deliveries is durable, `offer_received` for
//! `data.received`, which is best effort and stays in memory.

mod actor;
mod address;
mod connections;
mod counters;
mod envelope;
mod failure;
mod guard;
mod handle;
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
mod transport;

#[cfg(test)]
mod tests;

pub use counters::DeliveryStats;
pub use envelope::{
    BucketUpdate, Named, Point, Received, Trigger, TriggerPoint, delivery, delivery_to, owing, test_body,
};
pub use guard::{CheckedUrl, Guard, Place};
pub use handle::{Deliveries, Neighbours};
pub use points::{NewPoints, Show, Shown};
pub use resolve::{Lookup, Resolve, SystemResolver};
pub use signature::{check_secret, generate_secret};
pub use transport::{AttemptFuture, HttpTransport, Outcome, Request, Transport};
