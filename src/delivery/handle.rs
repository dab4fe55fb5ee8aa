//! The interface of deliveries for other modules.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, ArbiterHandle};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::actor::{DeliveryActor, DeliveryMessage};
use super::guard::{CheckedUrl, Guard};
use super::mail::{MailServer, MailTransport};
use super::points::{NewPoints, subscribers};
use super::recent::Recent;
use super::resolve::SystemResolver;
use super::stats::DeliveryStats;
use super::transport::{ByScheme, HttpTransport, Transport};
use crate::catalog::{Bucket, CatalogHandle, Delivery, DeliveryTotals};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::ids::{ObjectId, ObjectIds};
use crate::journal::{JournalError, JournalHandle};
use crate::random::NoRandomness;

/// For a whole attempt, from name resolution to the head of the answer.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit for points that are not deliveries yet.
const OFFERED_BYTES_MAX: usize = 8 << 20;

/// What the handle and the actor share.
pub(super) struct Shared {
    /// Holds owed deliveries and their receivers.
    pub(super) catalog: CatalogHandle,
    /// Makes results durable.
    pub(super) journal: JournalHandle,
    /// Wall clock.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) guard: Guard,
    pub(super) recent: Recent,
    /// Without the members that [`Deliveries::stats`] fills in.
    pub(super) stats: Mutex<DeliveryStats>,
}

/// Handle of the delivery actor. Cheap to clone.
#[derive(Clone)]
pub struct Deliveries(Arc<Inner>);

struct Inner {
    address: Addr<DeliveryActor>,
    shared: Arc<Shared>,
    /// Free bytes for points that are not deliveries yet.
    free_bytes: Arc<Semaphore>,
}

impl Deliveries {
    /// Starts the actor on this thread with all deliveries owed by the catalog.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn start(
        catalog: CatalogHandle,
        journal: JournalHandle,
        clock: Arc<dyn Clock>,
        allow_private_networks: bool,
        mail: Option<MailServer>,
        thread: &ArbiterHandle,
    ) -> Result<Self, NoRandomness> {
        let guard = Guard::new(allow_private_networks, Arc::new(SystemResolver));
        let mail = MailTransport::new(mail, ATTEMPT_TIMEOUT);
        let for_transport = guard.clone();
        let shared = Shared {
            catalog,
            journal,
            clock,
            guard,
            recent: Recent::default(),
            stats: Mutex::default(),
        };
        Self::start_with(shared, thread, || {
            let http = HttpTransport::new(for_transport, ATTEMPT_TIMEOUT);
            Rc::new(ByScheme { http, mail })
        })
    }

    /// Like [`Deliveries::start`] with a custom transport, which is constructed on the actor's thread.
    pub(super) fn start_with(
        shared: Shared,
        thread: &ArbiterHandle,
        transport: impl FnOnce() -> Rc<dyn Transport> + Send + 'static,
    ) -> Result<Self, NoRandomness> {
        let ids = ObjectIds::new()?;
        let shared = Arc::new(shared);
        let for_actor = Arc::clone(&shared);
        let address =
            DeliveryActor::start_in_arbiter(thread, move |_| DeliveryActor::new(for_actor, transport(), ids));
        Ok(Self(Arc::new(Inner {
            address,
            shared,
            free_bytes: Arc::new(Semaphore::new(OFFERED_BYTES_MAX)),
        })))
    }

    /// Checks a URL that a user sets for a webhook or rule; see [`Guard::check_url`].
    ///
    /// # Errors
    /// Describes what to change.
    pub async fn check_url(&self, text: &str) -> Result<CheckedUrl, String> {
        self.0.shared.guard.check_url(text).await
    }

    /// Schedules deliveries that are in the catalog by now, for the first time or again.
    pub fn queued(&self, ids: Vec<ObjectId>) {
        if !ids.is_empty() {
            self.0.address.do_send(DeliveryMessage::Queued(ids));
        }
    }

    /// Whether any webhook subscribes to ingests into this bucket.
    pub fn has_subscriber(&self, bucket: &Bucket) -> bool {
        self.0.shared.catalog.read(|catalog| {
            subscribers(catalog, bucket.organization_id, bucket.id)
                .next()
                .is_some()
        })
    }

    /// Notifies webhooks of new points if there is room. Never blocks and never fails; dropped points are counted.
    pub fn offer_received(&self, points: NewPoints) {
        let sources = points.rows.rows().len();
        let bytes = u32::try_from(points.bytes()).unwrap_or(u32::MAX);
        match Arc::clone(&self.0.free_bytes).try_acquire_many_owned(bytes) {
            Ok(reserved) => self.0.address.do_send(DeliveryMessage::Offered(points, reserved)),
            Err(_) => self.0.shared.stats.lock().dropped += sources as u64,
        }
    }

    /// The best-effort deliveries of a webhook that are still in memory, pending and finished, newest first.
    pub fn recent(&self, webhook_id: ObjectId) -> Vec<Arc<Delivery>> {
        self.0.shared.recent.list(webhook_id)
    }

    /// Sends a delivery again, given as the caller read it. `None` if it has changed since; the caller must read it
    /// again.
    ///
    /// # Errors
    /// The log refuses writes; nothing has changed.
    pub async fn redeliver(&self, known: Delivery) -> Result<Option<Delivery>, ServiceError> {
        let (reply, answer) = oneshot::channel();
        self.0.address.do_send(DeliveryMessage::Redeliver(known, reply));
        // The actor lives as long as its thread.
        answer.await.unwrap_or_else(|_| Err(JournalError::Closed.into()))
    }

    /// Totals of best-effort deliveries that are not yet in the catalog's totals of the webhook.
    pub fn uncounted(&self, webhook_id: ObjectId) -> DeliveryTotals {
        self.0.shared.recent.uncounted(webhook_id)
    }

    /// Statistics since the start.
    pub fn stats(&self) -> DeliveryStats {
        DeliveryStats {
            offered_bytes: (OFFERED_BYTES_MAX - self.0.free_bytes.available_permits()) as u64,
            offered_bytes_max: OFFERED_BYTES_MAX as u64,
            ..*self.0.shared.stats.lock()
        }
    }

    /// Stops starting attempts, waits for those in flight, and makes their results durable. Deliveries not finished
    /// `within` this time stay owed and continue after the next start.
    pub async fn stop(&self, within: Duration) {
        let (reply, stopped) = oneshot::channel();
        self.0.address.do_send(DeliveryMessage::Stop { within, reply });
        // The actor replies within the time limit, unless its thread ended.
        let _ = stopped.await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The actor has timers, so that it would not end for lack of addresses.
        self.address.do_send(DeliveryMessage::End);
    }
}
