//! The cluster's directory of accounts: lookups on a thread of their own, with a connection of their own.

use std::io;
use std::sync::Arc;

use log_store::{CredentialHash, Shard, StoreError};
use tokio::sync::oneshot;

use crate::catalog::KeyHash;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::pools::Workers;
use crate::service::{Directory, Lookup};

/// `Retry-After` of a request that needs the directory while the log store does not answer.
const RETRY_AFTER_SECONDS: u32 = 2;

/// Lookups at the same time.
const THREADS: usize = 1;

/// The directory in the log store.
pub(super) struct StoredDirectory {
    workers: Workers,
    store: Arc<parking_lot::Mutex<Box<dyn log_store::Directory>>>,
}

impl StoredDirectory {
    /// Starts the thread over this way to the store.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn start(store: Box<dyn log_store::Directory>) -> io::Result<Self> {
        Ok(StoredDirectory {
            workers: Workers::start("directory lookup", THREADS, || ())?,
            store: Arc::new(parking_lot::Mutex::new(store)),
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn log_store::Directory) -> Result<T, StoreError> + Send + 'static,
    ) -> Lookup<T> {
        let store = Arc::clone(&self.store);
        let (reply, answer) = oneshot::channel();
        self.workers.run(move || {
            // Nobody waits for the answer to a request that was dropped.
            if !reply.is_closed() {
                let _ = reply.send(question(&mut **store.lock()));
            }
        });
        Box::pin(async move {
            let answer = answer.await.map_err(ServiceError::internal)?;
            answer.map_err(|error| {
                let message = "the directory of accounts does not answer; send it again in a moment";
                ServiceError::unavailable(message, RETRY_AFTER_SECONDS).caused_by(error)
            })
        })
    }
}

impl Directory for StoredDirectory {
    fn shard_of_email(&self, email: &str) -> Lookup<Option<Shard>> {
        let email = email.to_owned();
        self.ask(move |store| Ok(store.find(&email)?.map(|place| place.shard)))
    }

    fn take_email(&self, email: &str, shard: Shard, organization: ObjectId) -> Lookup<Shard> {
        let (email, organization) = (email.to_owned(), organization.to_string());
        self.ask(move |store| Ok(store.take(&email, shard, &organization)?.shard))
    }

    fn shard_of_key(&self, hash: KeyHash) -> Lookup<Option<Shard>> {
        let hash: CredentialHash = hash.0;
        self.ask(move |store| store.find_credential(&hash))
    }
}
