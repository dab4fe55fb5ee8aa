//! The cluster's directory of accounts: lookups on threads of their own, with connections of their own.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use log_store::{CredentialHash, Shard, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use crate::catalog::KeyHash;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::pools::Workers;
use crate::service::{Directory, Lookup};

/// `Retry-After` of a request that needs the directory while the log store does not answer.
const RETRY_AFTER_SECONDS: u32 = 2;

/// Lookups of one kind that wait; above it requests are refused. Anybody can cause one, with a key that does not exist.
const WAITING_MAX: usize = 256;

/// Keys of imported servers whose shard is remembered: it never changes.
const KNOWN_KEYS_MAX: usize = 100_000;

/// The directory in the log store. Log-ins do not wait behind keys.
pub(super) struct StoredDirectory {
    addresses: Desk,
    keys: Desk,
    known_keys: Arc<Mutex<HashMap<CredentialHash, Shard>>>,
}

/// A way to the store, with a thread.
struct Desk {
    workers: Workers,
    store: Arc<Mutex<Box<dyn log_store::Directory>>>,
    waiting: Arc<Semaphore>,
}

impl StoredDirectory {
    /// Starts the threads over these two ways to the store.
    ///
    /// # Errors
    /// A thread could not be started.
    pub(super) fn start(stores: [Box<dyn log_store::Directory>; 2]) -> io::Result<Self> {
        let [addresses, keys] = stores.map(Desk::start);
        Ok(StoredDirectory {
            addresses: addresses?,
            keys: keys?,
            known_keys: Arc::default(),
        })
    }
}

impl Desk {
    fn start(store: Box<dyn log_store::Directory>) -> io::Result<Self> {
        Ok(Desk {
            workers: Workers::start("directory lookup", 1, || ())?,
            store: Arc::new(Mutex::new(store)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn log_store::Directory) -> Result<T, StoreError> + Send + 'static,
    ) -> Lookup<T> {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            let message = "too many requests wait for the directory of accounts; send it again in a moment";
            return Box::pin(async move { Err(ServiceError::unavailable(message, RETRY_AFTER_SECONDS)) });
        };
        let store = Arc::clone(&self.store);
        let (reply, answer) = oneshot::channel();
        self.workers.run(move || {
            let _place = place;
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
        self.addresses
            .ask(move |store| Ok(store.find(&email)?.map(|place| place.shard)))
    }

    fn take_email(&self, email: &str, shard: Shard, organization: ObjectId) -> Lookup<Shard> {
        let (email, organization) = (email.to_owned(), organization.to_string());
        self.addresses
            .ask(move |store| Ok(store.take(&email, shard, &organization)?.shard))
    }

    fn give_up_email(&self, email: &str, shard: Shard) -> Lookup<()> {
        let email = email.to_owned();
        self.addresses
            .ask(move |store| store.give_up(&email, shard).map(drop))
    }

    fn shard_of_key(&self, hash: KeyHash) -> Lookup<Option<Shard>> {
        let hash: CredentialHash = hash.0;
        let known = self.known_keys.lock().get(&hash).copied();
        if known.is_some() {
            return Box::pin(async move { Ok(known) });
        }
        let known_keys = Arc::clone(&self.known_keys);
        self.keys.ask(move |store| {
            let found = store.find_credential(&hash)?;
            if let Some(shard) = found {
                let mut known = known_keys.lock();
                if known.len() >= KNOWN_KEYS_MAX {
                    known.clear();
                }
                known.insert(hash, shard);
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use log_store::sim::SimStore;

    use super::*;
    use crate::catalog::Bytes;
    use crate::error::ErrorKind;

    const HASH: CredentialHash = [7; 32];

    #[actix::test]
    async fn a_key_is_looked_up_once_and_too_many_lookups_are_refused() {
        let store = SimStore::new(4);
        let way = || Box::new(store.clone()) as Box<dyn log_store::Directory>;
        log_store::Directory::add_credentials(&mut store.clone(), &[(HASH, Shard(3))]).unwrap();
        let directory = StoredDirectory::start([way(), way()]).unwrap();
        let find = |hash| directory.shard_of_key(Bytes(hash));
        assert_eq!(find([8; 32]).await.unwrap(), None);
        assert_eq!(find(HASH).await.unwrap(), Some(Shard(3)));
        // While the thread is held up, places run out; a key that is known needs none.
        let (release, held) = std::sync::mpsc::channel::<()>();
        directory.keys.workers.run(move || {
            let _ = held.recv();
        });
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| find([8; 32])).collect();
        let refused = find([8; 32]).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert_eq!(find(HASH).await.unwrap(), Some(Shard(3)));
        let address = "ada@example.com";
        assert_eq!(directory.shard_of_email(address).await.unwrap(), None);
        let organization = ObjectId::from_bytes([1; 12]);
        let taken = directory.take_email(address, Shard(3), organization).await;
        assert_eq!(taken.unwrap(), Shard(3));
        directory.give_up_email(address, Shard(2)).await.unwrap();
        assert_eq!(directory.shard_of_email(address).await.unwrap(), Some(Shard(3)));
        directory.give_up_email(address, Shard(3)).await.unwrap();
        assert_eq!(directory.shard_of_email(address).await.unwrap(), None);
        drop(release);
        assert_eq!(waiting.remove(0).await.unwrap(), None);
    }
}
