//! The shards of a cluster, as a node sees them: which it serves, and which node owns each of the others.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use log_store::Shard;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout_at;

use super::Service;
use super::cluster_counts::{ClusterCounts, ClusterFigures};
use super::cluster_status::Seen;
use super::node::{Location, Owner, ShardService};
use crate::clock::Clock;
use crate::cluster::Lease;
use crate::error::ServiceError;

/// Requests that use a shard at the same time; above it they wait.
const USERS_MAX: u32 = 1 << 20;

/// How often a request that waits for an owner has the tables read.
const NEWS_PERIOD: Duration = Duration::from_millis(50);

/// `Retry-After` of a request whose shard has no owner. A node that died is replaced after its lease.
const RETRY_AFTER_SECONDS: u32 = 2;

/// All shards of a cluster.
pub struct ShardTable {
    shards: Vec<RwLock<Entry>>,
    lease: Mutex<Lease>,
    /// Grows each time that the node is removed from the cluster.
    life: AtomicU64,
    clock: Arc<dyn Clock>,
    /// Notified when a shard may be served where it was not before.
    changed: Notify,
    /// Notified when what the table says was found to be old.
    stale: Notify,
    /// Why the log store takes no writes although it answers.
    weakness: Mutex<Option<String>>,
    /// What the last round of membership has shown.
    seen: Mutex<Option<Arc<Seen>>>,
    /// What has happened to shards and requests here.
    pub counts: ClusterCounts,
}

#[derive(Default)]
struct Entry {
    served: Option<Served>,
    /// The node that owns the shard, if it is another one.
    owner: Option<Owner>,
}

/// A shard that this node serves.
struct Served {
    service: Arc<Service>,
    /// A place for each request that uses it.
    users: Arc<Semaphore>,
}

impl ShardTable {
    /// A table of this many shards, none of which is served anywhere. Nothing is served before the lease begins.
    pub fn new(shards: u16, lease: Duration, clock: Arc<dyn Clock>) -> Self {
        ShardTable {
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            lease: Mutex::new(Lease::new(lease)),
            life: AtomicU64::new(0),
            clock,
            changed: Notify::new(),
            stale: Notify::new(),
            weakness: Mutex::default(),
            seen: Mutex::default(),
            counts: ClusterCounts::default(),
        }
    }

    /// The number of shards of the cluster.
    pub fn len(&self) -> u16 {
        self.shards.len() as u16
    }

    /// Whether the cluster has no shards, which no cluster does.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// Time on the clock that the lease counts by.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.monotonic_ns().max(0) as u64)
    }

    /// A renewal that was sent at this time has succeeded.
    pub fn renewed(&self, sent_at: Duration) {
        self.lease.lock().renewed(sent_at);
        self.changed.notify_waiters();
    }

    /// The node was removed from the cluster, and begins another life with a new lease. Nothing of the life before is served
    /// any more, also not what is still being opened.
    pub fn lost(&self, lease: Duration) {
        self.life.fetch_add(1, Ordering::SeqCst);
        *self.lease.lock() = Lease::new(lease);
        for entry in &self.shards {
            entry.write().served = None;
        }
    }

    /// The number of the node's present life.
    pub fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Whether the lease holds, so that what is served here may be answered.
    pub fn holds_lease(&self) -> bool {
        self.lease.lock().holds(self.now())
    }

    /// Notes why the log store takes no writes although it answers, and tells the server's log of a change.
    pub fn set_weakness(&self, weakness: Option<String>) {
        let mut known = self.weakness.lock();
        match &weakness {
            Some(why) if weakness != *known => tracing::error!("{why}"),
            None if known.is_some() => tracing::info!("a commit reaches a second disk again"),
            _ => {}
        }
        *known = weakness;
    }

    /// Why the log store takes no writes although it answers.
    pub fn weakness(&self) -> Option<String> {
        self.weakness.lock().clone()
    }

    /// Notes what a round of membership has shown.
    pub fn set_seen(&self, seen: Seen) {
        *self.seen.lock() = Some(Arc::new(seen));
        self.changed.notify_waiters();
    }

    /// What the last round of membership has shown; `None` before the first.
    pub fn seen(&self) -> Option<Arc<Seen>> {
        self.seen.lock().clone()
    }

    /// Whether the log store answers and takes writes.
    ///
    /// # Errors
    /// The reason why not, in short for unauthenticated clients: which settings of the database are to be changed is for the
    /// operator ([`ShardTable::weakness`]).
    pub fn readiness(&self) -> Result<(), String> {
        if !self.holds_lease() {
            return Err("the log store has not confirmed this node's lease".to_owned());
        }
        match &*self.weakness.lock() {
            Some(_) => Err("the log store takes no writes".to_owned()),
            None => Ok(()),
        }
    }

    /// Notes which other node owns a shard.
    pub fn owned_by(&self, shard: Shard, owner: Option<Owner>) {
        let Some(entry) = self.shards.get(usize::from(shard.0)) else {
            return;
        };
        if entry.read().owner == owner {
            return;
        }
        entry.write().owner = owner;
        self.changed.notify_waiters();
    }

    /// Begins to serve a shard that was claimed in this life of the node. `false` if that is over.
    pub fn serve(&self, shard: Shard, service: Arc<Service>, life: u64) -> bool {
        let Some(entry) = self.shards.get(usize::from(shard.0)) else {
            return false;
        };
        let users = Arc::new(Semaphore::new(USERS_MAX as usize));
        let mut entry = entry.write();
        // Looked at under the lock that ends what is served.
        let is_alive = self.life() == life;
        if is_alive {
            entry.served = Some(Served { service, users });
            drop(entry);
            self.changed.notify_waiters();
        }
        is_alive
    }

    /// Ends serving a shard at once: another node owns it.
    pub fn stop(&self, shard: Shard) {
        if let Some(entry) = self.shards.get(usize::from(shard.0)) {
            entry.write().served = None;
        }
    }

    /// Ends serving a shard by this service: new requests wait for its next owner, and those that use it get at most
    /// `within` to end.
    pub async fn end(&self, shard: Shard, service: &Arc<Service>, within: Duration) {
        let Some(entry) = self.shards.get(usize::from(shard.0)) else {
            return;
        };
        let is_this = |served: &mut Served| Arc::ptr_eq(&served.service, service);
        let ended = entry.write().served.take_if(is_this);
        if let Some(served) = ended {
            // After this time, what they have not done yet is refused by the log.
            let _ = tokio::time::timeout(within, served.users.acquire_many(USERS_MAX)).await;
        }
    }

    /// Where a shard is served now. `None` if it is between two owners.
    pub fn look(&self, shard: Shard) -> Option<Location<ShardService>> {
        let entry = self.shards.get(usize::from(shard.0))?.read();
        match (&entry.served, &entry.owner) {
            (Some(served), _) if self.holds_lease() => {
                let user = Arc::clone(&served.users).try_acquire_owned().ok()?;
                Some(Location::Here(ShardService::used_by(
                    Arc::clone(&served.service),
                    user,
                )))
            }
            (None, Some(owner)) => Some(Location::At(owner.clone())),
            _ => None,
        }
    }

    /// Where a shard is served, or will be `until` then. What `but` says is not where it is: an owner that has refused.
    ///
    /// # Errors
    /// 503 if nobody serves it by then.
    pub async fn locate(
        &self,
        shard: Shard,
        but: Option<&Owner>,
        until: Instant,
    ) -> Result<Location<ShardService>, ServiceError> {
        if shard.0 >= self.len() {
            return Err(nobody());
        }
        loop {
            // Registered before the look, so that no change is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.look(shard) {
                Some(Location::At(owner)) if but == Some(&owner) => {}
                Some(location) => return Ok(location),
                None => {}
            }
            let now = Instant::now();
            if now >= until {
                return Err(nobody());
            }
            // Somebody waits, so the tables are read more often than the lease demands.
            if timeout_at((now + NEWS_PERIOD).min(until).into(), changed)
                .await
                .is_err()
            {
                self.ask_for_news();
            }
        }
    }

    /// A node was found not to own a shard any more: the tables should be read again soon.
    pub fn ask_for_news(&self) {
        self.stale.notify_one();
    }

    /// Has the tables read, and waits until this node knows what they say now.
    pub async fn read_again(&self) {
        let now = self.now();
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.seen().is_some_and(|seen| seen.asked_at >= now) {
                return;
            }
            self.ask_for_news();
            changed.await;
        }
    }

    /// Waits until somebody asks for news.
    pub async fn asked_for_news(&self) {
        self.stale.notified().await;
    }

    /// Waits until a shard has another owner than this one, or none.
    pub async fn moved(&self, owner: &Owner) {
        let Some(entry) = self.shards.get(usize::from(owner.shard.0)) else {
            return;
        };
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if entry.read().owner.as_ref() != Some(owner) {
                return;
            }
            changed.await;
        }
    }

    /// The counters and the present state.
    pub fn figures(&self) -> ClusterFigures {
        ClusterFigures {
            shards: u64::from(self.len()),
            served: self.served().len() as u64,
            holds_lease: self.holds_lease(),
            ..self.counts.figures()
        }
    }

    /// The shards that are served here.
    pub fn served(&self) -> Vec<Arc<Service>> {
        let served = self.shards.iter().filter_map(|entry| {
            let entry = entry.read();
            entry.served.as_ref().map(|served| Arc::clone(&served.service))
        });
        served.collect()
    }
}

fn nobody() -> ServiceError {
    let message = "the organization's shard is being taken over by another node; send it again in a moment";
    ServiceError::unavailable(message, RETRY_AFTER_SECONDS)
}

#[cfg(test)]
mod tests {
    use tokio::join;
    use tokio::task::yield_now;

    use super::*;
    use crate::clock::ManualClock;
    use log_store::Epoch;

    const SHARD: Shard = Shard(1);
    const SOON: Duration = Duration::from_secs(20);

    fn table() -> ShardTable {
        ShardTable::new(2, Duration::from_secs(3), Arc::new(ManualClock::new(0)))
    }

    fn owner(epoch: Epoch) -> Owner {
        Owner {
            shard: SHARD,
            address: "10.0.0.1:7946".into(),
            epoch,
        }
    }

    fn epoch_of(located: Result<Location<ShardService>, ServiceError>) -> Option<Epoch> {
        match located.unwrap() {
            Location::At(owner) => Some(owner.epoch),
            Location::Here(_) => None,
        }
    }

    /// Regression: a request that had been refused by a node waited for one at another address, until its time was over.
    #[actix::test]
    async fn a_node_that_restarts_at_the_same_address_is_another_owner() {
        let table = table();
        table.owned_by(SHARD, Some(owner(1)));
        let until = Instant::now() + SOON;
        assert_eq!(epoch_of(table.locate(SHARD, None, until).await), Some(1));
        let before = owner(1);
        let takes_over = async {
            yield_now().await;
            table.owned_by(SHARD, None);
            yield_now().await;
            table.owned_by(SHARD, Some(owner(3)));
        };
        let located = table.locate(SHARD, Some(&before), until);
        let ((), located, ()) = join!(takes_over, located, table.moved(&before));
        assert_eq!(epoch_of(located), Some(3));
    }

    #[actix::test]
    async fn a_shard_without_an_owner_is_refused_in_time_and_so_is_one_that_is_not_there() {
        let table = table();
        for shard in [SHARD, Shard(2)] {
            let refused = table.locate(shard, None, Instant::now()).await.err().unwrap();
            assert_eq!(refused.retry_after_seconds, Some(RETRY_AFTER_SECONDS));
        }
    }

    #[test]
    fn a_lease_that_is_over_holds_again_only_in_another_life() {
        let clock = Arc::new(ManualClock::new(0));
        let lease = Duration::from_secs(3);
        let table = ShardTable::new(2, lease, Arc::clone(&clock) as _);
        assert!(table.readiness().is_err());
        table.renewed(table.now());
        assert_eq!(table.readiness(), Ok(()));
        table.set_weakness(Some("one disk only".to_owned()));
        assert_eq!(table.readiness(), Err("the log store takes no writes".to_owned()));
        let life = table.life();
        table.lost(lease);
        assert!(!table.holds_lease());
        assert_ne!(table.life(), life);
    }
}
