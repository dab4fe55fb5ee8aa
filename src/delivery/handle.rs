//! How other rooms reach the deliveries.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter};
use tokio::sync::oneshot;

use super::actor::{DeliveryActor, Queued, Stop};
use super::counters::{Counters, DeliveryStats};
use super::guard::{CheckedUrl, Guard};
use super::offered::Offered;
use super::points::{NewPoints, hearers};
use super::recent::Recent;
use super::redelivery::Redeliver;
use super::resolve::SystemResolver;
use super::transport::{HttpTransport, Transport};
use crate::catalog::{Bucket, CatalogHandle, Delivery, DeliveryTotals};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::{JournalError, JournalHandle};
use crate::random::NoRandomness;

/// Points that wait to be turned into deliveries.
const OFFERED_BYTES_MAX: usize = 8 << 20;

/// What deliveries need of the other rooms.
#[derive(Clone)]
pub struct Neighbours {
    /// What is owed, and to whom.
    pub catalog: CatalogHandle,
    /// Makes results durable.
    pub journal: JournalHandle,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
}

/// Bytes of what is offered, given back when dropped.
pub(super) struct Hold {
    offered_bytes: Arc<AtomicUsize>,
    bytes: usize,
}

impl Hold {
    fn take(offered_bytes: &Arc<AtomicUsize>, bytes: usize) -> Option<Self> {
        let before = offered_bytes.fetch_add(bytes, Ordering::Relaxed);
        let hold = Self {
            offered_bytes: Arc::clone(offered_bytes),
            bytes,
        };
        (before + bytes <= OFFERED_BYTES_MAX).then_some(hold)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.offered_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The deliveries' actor. Cheap to clone.
#[derive(Clone)]
pub struct Deliveries(Arc<Inner>);

struct Inner {
    address: Addr<DeliveryActor>,
    arbiter: Arbiter,
    catalog: CatalogHandle,
    guard: Guard,
    recent: Arc<Recent>,
    counters: Arc<Counters>,
    offered_bytes: Arc<AtomicUsize>,
}

impl Deliveries {
    /// Starts with all that is owed. Must be called within an actix system.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn start(neighbours: Neighbours, allow_private_networks: bool) -> Result<Self, NoRandomness> {
        let guard = Guard::new(allow_private_networks, Arc::new(SystemResolver));
        let for_transport = guard.clone();
        Self::start_with(neighbours, guard, || Rc::new(HttpTransport::new(for_transport)))
    }

    /// The same over a transport of the caller's, which is made on the actor's thread.
    pub(super) fn start_with(
        neighbours: Neighbours,
        guard: Guard,
        transport: impl FnOnce() -> Rc<dyn Transport> + Send + 'static,
    ) -> Result<Self, NoRandomness> {
        let ids = ObjectIds::new()?;
        let (recent, counters) = (Arc::<Recent>::default(), Arc::<Counters>::default());
        let arbiter = Arbiter::new();
        let catalog = neighbours.catalog.clone();
        let (for_actor, recent_of_actor, counters_of_actor) =
            (guard.clone(), Arc::clone(&recent), Arc::clone(&counters));
        let address = DeliveryActor::start_in_arbiter(&arbiter.handle(), move |_| {
            DeliveryActor::new(
                neighbours,
                for_actor,
                transport(),
                ids,
                recent_of_actor,
                counters_of_actor,
            )
        });
        Ok(Self(Arc::new(Inner {
            address,
            arbiter,
            catalog,
            guard,
            recent,
            counters,
            offered_bytes: Arc::default(),
        })))
    }

    /// Checks a URL that somebody sets.
    ///
    /// # Errors
    /// What to change.
    pub async fn check_url(&self, text: &str) -> Result<CheckedUrl, String> {
        self.0.guard.check_url(text).await
    }

    /// Has these deliveries sent, which the catalog owes by now: for the first time, or again.
    pub fn queued(&self, ids: Vec<ObjectId>) {
        if !ids.is_empty() {
            self.0.address.do_send(Queued(ids));
        }
    }

    /// Whether any webhook hears of ingests into this bucket.
    pub fn hears_received(&self, bucket: &Bucket) -> bool {
        self.0.catalog.read(|catalog| {
            hearers(catalog, bucket.organization_id, bucket.id)
                .next()
                .is_some()
        })
    }

    /// Tells webhooks of new points, if there is room: never waits, never fails; what is dropped is counted.
    pub fn offer_received(&self, points: NewPoints) {
        let sources = points.rows.len();
        match Hold::take(&self.0.offered_bytes, points.bytes()) {
            Some(hold) => self.0.address.do_send(Offered { points, hold }),
            None => self.0.counters.dropped(sources),
        }
    }

    /// The best-effort deliveries of a webhook that are still known, pending and finished, newest first.
    pub fn recent(&self, webhook_id: ObjectId) -> Vec<Arc<Delivery>> {
        self.0.recent.list(webhook_id)
    }

    /// Sends a delivery once more, given as it was read. `None` when it has changed since: read it again.
    ///
    /// # Errors
    /// The log takes no writes; nothing has changed.
    pub async fn redeliver(&self, known: Delivery) -> Result<Option<Delivery>, ServiceError> {
        let (reply, answer) = oneshot::channel();
        self.0.address.do_send(Redeliver { known, reply });
        // The actor ends only with its thread.
        answer.await.unwrap_or_else(|_| Err(JournalError::Closed.into()))
    }

    /// What to add to a webhook's totals: best-effort deliveries that the catalog has not counted yet.
    pub fn uncounted(&self, webhook_id: ObjectId) -> DeliveryTotals {
        self.0.recent.uncounted(webhook_id)
    }

    /// What deliveries came to since the start, and where they stand.
    pub fn stats(&self) -> DeliveryStats {
        DeliveryStats {
            offered_bytes: self.0.offered_bytes.load(Ordering::Relaxed) as u64,
            offered_bytes_max: OFFERED_BYTES_MAX as u64,
            ..self.0.counters.stats()
        }
    }

    /// Starts no attempt any more, waits for those in flight, and has their results made durable. What is not over
    /// `within` this time is owed still, and goes on after the next start.
    pub async fn stop(&self, within: Duration) {
        let (reply, stopped) = oneshot::channel();
        self.0.address.do_send(Stop { within, reply });
        // The actor answers by itself in time; it ends early only with its thread.
        let _ = stopped.await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.arbiter.stop();
    }
}
