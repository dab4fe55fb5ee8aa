//! The sizes of all tails in the log store, read on a thread and a connection of their own: no append waits for it.

use std::io;
use std::sync::Arc;

use log_store::{LogStore, StoreError};
use parking_lot::Mutex;

use crate::pools::Workers;
use crate::service::{PendingTails, Tails};

/// The tails in the log store.
pub(super) struct StoredTails {
    worker: Workers,
    store: Arc<Mutex<Box<dyn LogStore>>>,
}

impl StoredTails {
    /// Starts the thread over this way to the store.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn start(store: Box<dyn LogStore>) -> io::Result<Self> {
        Ok(StoredTails {
            worker: Workers::start("tail sizes", 1, || ())?,
            store: Arc::new(Mutex::new(store)),
        })
    }
}

impl Tails for StoredTails {
    fn read(&self) -> PendingTails {
        let (worker, store) = (self.worker.clone(), Arc::clone(&self.store));
        Box::pin(async move {
            let tails = worker.call(move || store.lock().tails()).await;
            tails.unwrap_or_else(|| Err(StoreError::Failed("the thread that reads it has failed".into())))
        })
    }
}
