//! The shards of this node: opened when they are claimed, closed when they are handed over, dropped when they are lost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use disk::{Disk, StdDisk, list_existing};
use log_store::{Claimed, Epoch, LogStore, Shard};
use objects::ObjectStore;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Failure;
use super::membership::{Order, Report, Reports};
use crate::catalog::Command;
use crate::checkpoint::{self, Layout, Rooms, StoredHome};
use crate::error::ServiceError;
use crate::extents::ExtentCache;
use crate::http::NodeClient;
use crate::journal::{Journal, StoredShard};
use crate::remote::{self, Epochs, PublishAndWait, Publisher, PublisherOptions, TakenOver};
use crate::service::{ClusterTag, Directory, Service, ShardName, ShardPlace, ShardTable};
use crate::startup::opener::Opener;
use crate::startup::{DELIVERIES_STOP_WITHIN, flush_uses, save_calls};

/// How long a hand-over waits for requests that use the shard. Later ones are refused by the log.
const REQUESTS_WITHIN: Duration = Duration::from_secs(5);

/// How often the logs of the open shards are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Checkpoints that are copied at the same time.
pub(super) const FETCHES_MAX: usize = 4;

/// The directory of the shards within the data directory.
const SHARDS: &str = "shards";

/// What shards are opened with.
pub(super) struct Keeper {
    pub(super) opener: Arc<Opener>,
    pub(super) journal: Arc<Journal>,
    /// Makes connections to the log store.
    pub(super) store: Mutex<Box<dyn LogStore>>,
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Keeps blocks of segments that are in the object store only.
    pub(super) extents: ExtentCache,
    pub(super) table: Arc<ShardTable>,
    pub(super) tag: ClusterTag,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) reports: Reports,
    pub(super) others: NodeClient,
    /// Places for checkpoints that are being copied.
    pub(super) fetches: Semaphore,
    pub(super) shards: RefCell<BTreeMap<Shard, Kept>>,
}

/// A shard that this node has claimed.
pub(super) struct Kept {
    epoch: Epoch,
    state: State,
}

enum State {
    Opening,
    Open(Arc<Service>),
    HandingOver,
}

impl Keeper {
    /// Follows orders for as long as the process lives.
    pub(super) fn start(self, mut orders: UnboundedReceiver<Order>) {
        let keeper = Rc::new(self);
        let watching = Rc::clone(&keeper);
        rt::spawn(async move {
            loop {
                rt::time::sleep(LOOK_PERIOD).await;
                watching.look();
            }
        });
        rt::spawn(async move {
            while let Some(order) = orders.recv().await {
                match order {
                    Order::Open(shard, claimed, life) => {
                        rt::spawn(Rc::clone(&keeper).open(shard, claimed, life));
                    }
                    Order::Tell(address) => drop(rt::spawn(Rc::clone(&keeper).tell(address))),
                    Order::HandOver(shard, epoch) => keeper.hand_over(shard, epoch),
                    Order::Drop(shard, epoch) => keeper.forget(shard, epoch).await,
                }
            }
        });
    }

    /// Reports shards whose log takes no more records.
    fn look(&self) {
        for (shard, kept) in self.shards.borrow().iter() {
            if let State::Open(service) = &kept.state
                && let Some(failure) = service.log_failure()
            {
                tracing::warn!(%shard, %failure, "the shard is opened again");
                self.reports.send(Report::Broken(*shard, kept.epoch));
            }
        }
    }

    /// Tells another node that a shard is free for it. It would find out by itself, a little later.
    async fn tell(self: Rc<Self>, address: String) {
        if let Err(error) = self.others.tell_news(&address).await {
            tracing::debug!(address, %error, "another node was not told that a shard is free for it");
        }
    }

    async fn open(self: Rc<Self>, shard: Shard, claimed: Claimed, life: u64) {
        let (began, epoch) = (Instant::now(), claimed.epoch);
        let kept = Kept {
            epoch,
            state: State::Opening,
        };
        self.shards.borrow_mut().insert(shard, kept);
        match self.try_open(shard, claimed).await {
            Ok(service) => {
                let service = Arc::new(service);
                let is_served =
                    self.is_at(shard, epoch) && self.table.serve(shard, Arc::clone(&service), life);
                if !is_served {
                    service.abandon();
                    self.remove(shard, epoch);
                    return;
                }
                tracing::info!(%shard, epoch, took = ?began.elapsed(), "shard opened");
                self.table.counts.opened(began.elapsed());
                self.set(shard, epoch, State::Open(service));
            }
            Err(error) => {
                tracing::error!(%shard, epoch, %error, "a shard could not be opened; other nodes try, and this one again in a minute");
                self.remove(shard, epoch);
                self.reports.send(Report::NotOpened(shard, epoch));
            }
        }
    }

    async fn try_open(&self, shard: Shard, claimed: Claimed) -> Result<Service, Failure> {
        let (layout, taken_over) = self.take_over(shard, &claimed).await?;
        let (root, elsewhere) = taken_over.map(|it| (it.root, it.segments)).unzip();
        let (epoch, ordinals) = (claimed.epoch, claimed.ordinals.clone());
        let log = StoredShard::new(self.store.lock().another()?, shard, claimed);
        let publisher = Publisher::new(PublisherOptions {
            store: Arc::clone(&self.objects),
            disk: Arc::new(StdDisk),
            layout: layout.clone(),
            clock: Arc::clone(&self.opener.clock),
            shard: shard.0,
            epochs: Epochs::Given(epoch),
            taken_over: root,
        });
        let period = self.opener.config.storage.remote_period;
        let home = StoredHome {
            shard,
            layout,
            journal: Arc::clone(&self.journal),
            publish: Box::new(PublishAndWait::new(publisher, period)),
            elsewhere: elsewhere.unwrap_or_default(),
        };
        let opener = &self.opener;
        let (pools, clock) = (Arc::clone(&opener.pools), Arc::clone(&opener.clock));
        let rooms = checkpoint::start_stored(&opener.config, pools, clock, home, log).await?;
        let checkpointer = rooms.checkpointer.clone();
        let served = self.serve(rooms, shard, ordinals).await;
        served.inspect_err(|_| checkpointer.abandon())
    }

    /// Starts the service of a shard that has recovered.
    async fn serve(&self, rooms: Rooms, shard: Shard, ordinals: Range<u32>) -> Result<Service, Failure> {
        if rooms.catalog.read(|catalog| catalog.last_bucket_ordinal()) < ordinals.start {
            let begun = rooms.journal.commit(Command::BucketOrdinalsBegun {
                first: ordinals.start,
            });
            begun.await.map_err(cause_of)?;
        }
        let place = ShardPlace {
            shard,
            name: ShardName {
                cluster: self.tag,
                shard,
            },
            directory: Arc::clone(&self.directory),
        };
        self.opener.serve(rooms, Some(place)).await.map_err(cause_of)
    }

    /// Copies what is needed of the shard's last checkpoint into a directory of its own. What earlier openings have left is
    /// removed.
    async fn take_over(
        &self,
        shard: Shard,
        claimed: &Claimed,
    ) -> Result<(Layout, Option<TakenOver>), Failure> {
        let dir = shard_dir(&self.opener.config.storage.data_dir, shard);
        let own = copy_dir(&self.opener.config.storage.data_dir, shard, claimed.epoch);
        let (objects, root) = (Arc::clone(&self.objects), claimed.root.clone());
        let extents = self.extents.clone();
        let copy = move || -> Result<_, Failure> {
            let disk = StdDisk;
            let own_name = own.file_name().map(ToOwned::to_owned);
            let earlier = list_existing(&disk, &dir)?.into_iter();
            for name in earlier.filter(|name| Some(name) < own_name.as_ref()) {
                // What is still being written there, by an opening that was dropped, is removed the next time.
                try_remove(&dir.join(name));
            }
            disk.create_dir_all(&own)?;
            let layout = Layout::of(&own);
            let taken_over = root
                .map(|root| remote::take_over(&*objects, shard.0, &root, &disk, &layout, &extents))
                .transpose()?;
            Ok((layout, taken_over))
        };
        let _place = self.fetches.acquire().await?;
        if !self.is_at(shard, claimed.epoch) {
            return Err("it was dropped before it was opened".into());
        }
        rt::task::spawn_blocking(copy).await?
    }

    /// Ends serving a shard, so that another node can go on. Until the last moment it is served: what takes time is done
    /// before.
    fn hand_over(self: &Rc<Self>, shard: Shard, epoch: Epoch) {
        let mut shards = self.shards.borrow_mut();
        let Some(kept) = shards.get_mut(&shard).filter(|kept| kept.epoch == epoch) else {
            return;
        };
        let service = match std::mem::replace(&mut kept.state, State::HandingOver) {
            State::Open(service) => service,
            other => {
                // It is ordered again in the next round.
                kept.state = other;
                return;
            }
        };
        let keeper = Rc::clone(self);
        rt::spawn(async move {
            let began = Instant::now();
            service.deliveries.stop(DELIVERIES_STOP_WITHIN).await;
            if let Err(error) = service.checkpointer.checkpoint().await {
                tracing::warn!(%shard, %error, "a shard is handed over without a checkpoint: the next owner replays its log");
            }
            let paused = Instant::now();
            // Another opening of the shard may be served by now, if this one was dropped meanwhile.
            keeper.table.end(shard, &service, REQUESTS_WITHIN).await;
            flush_uses(&service).await;
            save_calls(&service).await;
            if let Err(error) = service.checkpointer.hand_over().await {
                tracing::warn!(%shard, %error, "closing a shard failed; everything acknowledged is in its log");
            }
            drop(service);
            keeper.remove(shard, epoch);
            keeper.remove_copy(shard, epoch);
            keeper.table.counts.handed_over(paused.elapsed());
            tracing::info!(%shard, epoch, took = ?began.elapsed(), paused = ?paused.elapsed(), "shard handed over");
            keeper.reports.send(Report::Closed(shard, epoch));
        });
    }

    /// Drops a shard that somebody else owns, or that is about to be opened again.
    async fn forget(&self, shard: Shard, epoch: Epoch) {
        if let Some(State::Open(service)) = self.remove(shard, epoch) {
            self.table.end(shard, &service, Duration::ZERO).await;
            service.abandon();
            drop(service);
            self.remove_copy(shard, epoch);
            self.table.counts.dropped();
            tracing::warn!(%shard, epoch, "shard dropped");
        }
    }

    /// Removes what an opening has copied and written. What uses its files to the end keeps them; what is left of it is
    /// removed with the next opening, or at the next start.
    fn remove_copy(&self, shard: Shard, epoch: Epoch) {
        let own = copy_dir(&self.opener.config.storage.data_dir, shard, epoch);
        rt::task::spawn_blocking(move || try_remove(&own));
    }

    fn is_at(&self, shard: Shard, epoch: Epoch) -> bool {
        let shards = self.shards.borrow();
        shards.get(&shard).is_some_and(|kept| kept.epoch == epoch)
    }

    fn set(&self, shard: Shard, epoch: Epoch, state: State) {
        if let Some(kept) = self.shards.borrow_mut().get_mut(&shard)
            && kept.epoch == epoch
        {
            kept.state = state;
        }
    }

    fn remove(&self, shard: Shard, epoch: Epoch) -> Option<State> {
        let is_this = self.is_at(shard, epoch);
        is_this
            .then(|| self.shards.borrow_mut().remove(&shard))?
            .map(|kept| kept.state)
    }
}

/// The directory with the openings of a shard.
fn shard_dir(data_dir: &Path, shard: Shard) -> PathBuf {
    data_dir.join(SHARDS).join(format!("{:05}", shard.0))
}

/// The directory with what one opening of a shard has copied and written.
fn copy_dir(data_dir: &Path, shard: Shard, epoch: Epoch) -> PathBuf {
    shard_dir(data_dir, shard).join(format!("{epoch:020}"))
}

fn try_remove(copy: &Path) {
    if let Err(error) = StdDisk.remove_dir_all(copy) {
        tracing::debug!(%error, "an old copy of a shard could not be removed yet");
    }
}

/// Removes what earlier processes have copied and written: each opening has a directory of its own.
pub(super) fn remove_copies(data_dir: &Path) -> io::Result<()> {
    let copies = data_dir.join(SHARDS);
    match StdDisk.exists(&copies)? {
        true => StdDisk.remove_dir_all(&copies),
        false => Ok(()),
    }
}

fn cause_of(error: ServiceError) -> Failure {
    match error.cause() {
        Some(cause) => format!("{error}: {cause}").into(),
        None => error.into(),
    }
}
