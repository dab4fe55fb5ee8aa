//! The threads of a node, and the service of a shard on them.

use std::sync::Arc;

use crate::alerts::{self, Alerts};
use crate::catalog::{Bytes, CatalogHandle, Command};
use crate::checkpoint::{self, Pools, Rooms};
use crate::clock::Clock;
use crate::config::{Config, SmtpConfig, SmtpTls};
use crate::delivery::{Deliveries, MailEncryption, MailServer};
use crate::error::ServiceError;
use crate::journal::JournalHandle;
use crate::pools::Arbiters;
use crate::random;
use crate::service::events::Events;
use crate::service::{Cluster, Node, Resources, Service, ShardPlace};

/// What all shards of a node run on.
pub(super) struct Opener {
    pub(super) config: Arc<Config>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) pools: Arc<Pools>,
    resources: Arc<Resources>,
    /// The thread of the rules' actors.
    rules: Arbiters,
    /// The thread of the deliveries' actors.
    deliveries: Arbiters,
}

impl Opener {
    /// Starts the threads, for this many checkpoints at the same time. Must be called within an actix system.
    ///
    /// # Errors
    /// The operating system provides no random bytes or no thread.
    pub(super) fn start(
        config: Arc<Config>,
        clock: Arc<dyn Clock>,
        checkpoints: usize,
    ) -> Result<Self, ServiceError> {
        Ok(Opener {
            pools: checkpoint::start_pools(&config, checkpoints).map_err(ServiceError::internal)?,
            resources: Resources::start(&config)?,
            rules: Arbiters::start(1).map_err(ServiceError::internal)?,
            deliveries: Arbiters::start(1).map_err(ServiceError::internal)?,
            config,
            clock,
        })
    }

    /// The node of a cluster.
    pub(super) fn node_of(&self, cluster: Cluster) -> Node {
        let (config, clock) = (Arc::clone(&self.config), Arc::clone(&self.clock));
        Node::of_cluster(config, clock, Arc::clone(&self.resources), cluster)
    }

    /// Starts the service of a shard, whose rooms have recovered. `place` is its place in a cluster.
    ///
    /// # Errors
    /// The operating system provides no random bytes, or the log accepts no writes.
    pub(super) async fn serve(
        &self,
        rooms: Rooms,
        place: Option<ShardPlace>,
    ) -> Result<Service, ServiceError> {
        tracing::info!(
            records = rooms.recovered.log.records,
            points = rooms.recovered.points,
            torn_tail = ?rooms.recovered.log.torn_tail,
            took = ?rooms.recovered.took,
            catalog = ?rooms.recovered.times.catalog,
            footers = ?rooms.recovered.times.footers,
            replay = ?rooms.recovered.times.replay,
            "recovered"
        );
        make_server_secret(&rooms.catalog, &rooms.journal).await?;
        let deliveries = Deliveries::start(
            rooms.catalog.clone(),
            rooms.journal.clone(),
            Arc::clone(&self.clock),
            self.config.webhooks.allow_private_networks,
            mail_server(&self.config.smtp),
            &self.deliveries.next(),
        )?;
        let owed = deliveries.clone();
        let dependencies = alerts::Dependencies {
            catalog: rooms.catalog.clone(),
            journal: rooms.journal.clone(),
            clock: Arc::clone(&self.clock),
            owed: Box::new(move |ids| owed.queued(ids)),
            events: Box::new(Events::new(
                rooms.catalog.clone(),
                Arc::clone(&self.resources.ids),
                Arc::clone(&self.config),
            )),
        };
        let alerts = Alerts::start(dependencies, &self.rules.next());
        let (config, clock) = (Arc::clone(&self.config), Arc::clone(&self.clock));
        Service::new(
            config,
            clock,
            rooms,
            alerts,
            deliveries,
            Arc::clone(&self.resources),
            place,
        )
    }
}

/// Creates the secret that signs tokens, at the first start of a shard.
async fn make_server_secret(catalog: &CatalogHandle, journal: &JournalHandle) -> Result<(), ServiceError> {
    if catalog.read(|catalog| catalog.server_secret().is_some()) {
        return Ok(());
    }
    journal
        .commit(Command::ServerSecretSet {
            secret: Bytes(random::bytes()?),
        })
        .await
}

/// The mail server of the configuration, if there is one.
fn mail_server(config: &SmtpConfig) -> Option<MailServer> {
    let (host, from) = config.server()?;
    Some(MailServer {
        host: host.to_owned(),
        port: config.port,
        encryption: match config.tls {
            SmtpTls::StartTls => MailEncryption::StartTls,
            SmtpTls::Tls => MailEncryption::Tls,
            SmtpTls::None => MailEncryption::None,
        },
        credentials: config.username.clone().zip(config.password.clone()),
        from: from.clone(),
    })
}
