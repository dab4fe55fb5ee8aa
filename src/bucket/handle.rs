//! Access to the actor of one bucket.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Addr;
use engine::View;
use tokio::sync::oneshot;

use super::actor::BucketActor;
use super::budget::Budget;
use super::hold::{HoldPoints, PointsHold};
use super::intake::IntakeDoor;
use super::request::{Ask, Request};
use super::shared::SharedState;
use crate::error::ServiceError;
use crate::series::{IndexReader, SeriesIndex};

/// Handle of one bucket's actor. Cheap to clone, as each request that stores points does.
#[derive(Clone)]
pub struct BucketHandle(Arc<HandleInner>);

/// What the clones of a handle share.
pub struct HandleInner {
    pub(super) address: Addr<BucketActor>,
    pub(super) state: SharedState,
    pub(super) intake: IntakeDoor,
    pub(super) mailbox: Arc<Budget>,
    pub(super) changed: Changed,
    pub(super) series: Arc<SeriesIndex>,
    /// Held by whoever compares rows with those that are there: late rows of sources that do not take points twice come
    /// one request after the other.
    pub(super) repeats: Arc<tokio::sync::Mutex<()>>,
}

/// A view of a bucket, with the index of its series.
#[derive(Clone)]
pub struct IndexedView {
    /// The view.
    pub view: View,
    /// The index, which may have more series than the view.
    pub index: Arc<SeriesIndex>,
    /// Keeps the labels of the view's series in the index.
    pub reader: IndexReader,
}

/// Whether a bucket may have changed since the last checkpoint, so that a checkpoint costs what has changed rather than
/// what there is.
#[derive(Clone)]
pub(super) struct Changed(Arc<AtomicBool>);

impl Changed {
    /// Initially set: what was replayed when the bucket was opened is in no segment yet.
    pub(super) fn new() -> Self {
        Changed(Arc::new(AtomicBool::new(true)))
    }

    /// Called after the message that changes the bucket is sent, so that whoever clears the flag sends its own message
    /// after that one.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

pub(super) fn gone() -> ServiceError {
    ServiceError::unavailable("the bucket is not available; send it again in a moment", 1)
}

impl Deref for BucketHandle {
    type Target = HandleInner;

    fn deref(&self) -> &HandleInner {
        &self.0
    }
}

impl BucketHandle {
    pub(super) fn new(inner: HandleInner) -> Self {
        BucketHandle(Arc::new(inner))
    }

    /// Sends a request, and returns the channel of its answer. The channel is closed without one if the actor has
    /// stopped.
    pub fn send<R: Request>(&self, request: R) -> oneshot::Receiver<R::Answer> {
        let (reply, answer) = oneshot::channel();
        self.address.do_send(Ask { request, reply });
        answer
    }

    /// Sends a request and awaits its answer.
    ///
    /// # Errors
    /// 503 when the actor has stopped.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, ServiceError> {
        self.send(request).await.map_err(|_| gone())
    }

    /// Holds back all new points of a source, or of the bucket (`None`). All earlier ones are applied when the hold comes.
    /// The channel is closed without one if the actor has stopped.
    pub fn hold(&self, source: Option<u32>) -> oneshot::Receiver<PointsHold> {
        let (reply, hold) = oneshot::channel();
        self.address.do_send(HoldPoints { source, reply });
        hold
    }

    /// Whether a checkpoint has to visit this bucket: it has changed since the last call, or its actor is gone.
    pub fn take_changed(&self) -> bool {
        self.changed.take() || !self.address.connected()
    }

    /// Makes the next checkpoint visit this bucket again, because this one could not write its data to files.
    pub fn set_changed(&self) {
        self.changed.set();
    }

    /// A view of the current points: those of every ingest that has been answered. Its cost does not depend on the amount
    /// of data.
    ///
    /// # Errors
    /// 503 when the actor has stopped.
    pub fn view(&self) -> Result<View, ServiceError> {
        let view = self.address.connected().then(|| self.state.view());
        view.flatten().ok_or_else(gone)
    }

    /// The same without waiting for the actor; `None` if that is not possible now.
    pub fn try_view(&self) -> Option<View> {
        self.address.connected().then(|| self.state.try_view()).flatten()
    }

    /// The bucket's series.
    pub fn series(&self) -> &Arc<SeriesIndex> {
        &self.series
    }

    /// Waits until nobody else compares rows with those that are there.
    pub async fn compare_alone(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.repeats).lock_owned().await
    }

    /// Bytes of ingests queued for the bucket.
    pub fn mailbox_bytes(&self) -> u64 {
        self.mailbox.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::BucketState;

    /// A test's own look at the state.
    struct Look<F>(F);

    impl<R: Send + 'static, F: FnOnce(&mut BucketState) -> R + Send + 'static> Request for Look<F> {
        type Answer = R;

        fn answer(self, state: &mut BucketState) -> R {
            (self.0)(state)
        }
    }

    impl BucketHandle {
        pub async fn with<R: Send + 'static>(
            &self,
            look: impl FnOnce(&mut BucketState) -> R + Send + 'static,
        ) -> Result<R, ServiceError> {
            self.ask(Look(look)).await
        }
    }
}
