//! A cluster of real parts: PostgreSQL with two standbys, an object store, three nodes, and a proxy on each link.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::Client;
use crate::database::Postgres;
use crate::link::Link;
use crate::objects_server::{S3Server, environment};
use crate::process::{Server, Setup, command, run_to_end};
use crate::waiting::{until, until_within};

pub const NODES: usize = 3;
pub const SHARDS: u16 = 8;
pub const LEASE: Duration = Duration::from_secs(3);
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client of the load waits for an answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(4);
/// Time for a command such as `cluster init`.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// Time until a cluster is in order again, on two busy cores.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// The ports of the nodes' inner listeners, below those that the system gives to outgoing connections: a node finds its own
/// again after a restart.
const PORTS: std::ops::Range<u16> = 12_000..30_000;

pub struct Node {
    pub server: Server,
    pub setup: Setup,
    /// The client of the load, which is less patient than the server's own.
    pub client: Client,
    pub to_database: Link,
    /// The way of other nodes to this one, unless they are connected directly.
    pub from_nodes: Link,
    /// The port at which other nodes reach this one.
    port: u16,
    /// The way to the S3 server, if there is one.
    pub to_objects: Option<Link>,
}

/// Where the checkpoints are.
pub enum Objects {
    Directory(TempDir),
    S3(Box<S3Server>),
}

/// What a world is made of.
#[derive(Clone, Default)]
pub struct Plan {
    pub has_s3: bool,
    /// Nodes reach each other without a proxy, so that a node that has stopped refuses connections. A proxy accepts them
    /// first.
    pub is_direct: bool,
    /// Nodes are killed when the thread that starts them ends, however it ends.
    pub is_tied: bool,
    /// The database waits for its disk, as one that is in use does.
    pub has_fsync: bool,
    /// The number of shards, if not [`SHARDS`].
    pub shards: Option<u16>,
    /// Further settings of the nodes.
    pub settings: Vec<(&'static str, String)>,
}

pub struct World {
    // Dropped first: the nodes end before what they use.
    pub nodes: Vec<Node>,
    pub databases: Vec<Postgres>,
    primary: usize,
    pub database: String,
    pub objects: Objects,
    pub shards: u16,
}

impl World {
    /// All parts run, and every shard has an owner.
    pub fn start(plan: &Plan) -> World {
        let settings: &[&str] = match plan.has_fsync {
            true => &[],
            // What the tests look at is in memory, or on its way there.
            false => &["fsync=off"],
        };
        let databases = Postgres::start(2, settings);
        let database = databases[0].database();
        let objects = match plan.has_s3 {
            true => Objects::S3(Box::new(S3Server::start())),
            false => Objects::Directory(TempDir::new().unwrap()),
        };
        let shards = plan.shards.unwrap_or(SHARDS);
        init(&Postgres::url_of_all(&databases, &database), shards);
        let mut world = World {
            nodes: Vec::new(),
            databases,
            primary: 0,
            database,
            objects,
            shards,
        };
        // Of this test's own sessions: they see the tables of the nodes.
        world.sql(&format!(
            "ALTER DATABASE {} SET search_path = tidewatch",
            world.database
        ));
        world.sql(WITNESS);
        for _ in 0..NODES {
            let node = world.node(plan);
            world.nodes.push(node);
        }
        world.settle();
        // The first node has taken all shards, and would keep them for a while.
        assert!(
            world.nodes[0].server.stop().success(),
            "contract 9: SIGTERM: exit 0"
        );
        world.launch(0);
        world.settle();
        let status = run(&["cluster", "status", "--log"], &world.url(), &[]);
        assert_eq!(status.matches("member").count(), NODES, "{status}");
        world
    }

    /// Starts a node.
    fn node(&self, plan: &Plan) -> Node {
        let primary = &self.databases[self.primary];
        let to_database = Link::to(primary.port);
        let inside = free_port();
        let from_nodes = Link::to(inside);
        let port = if plan.is_direct { inside } else { from_nodes.port };
        let mut setup = Setup::unlimited()
            .set("cluster.log", &primary.url(&self.database, to_database.port))
            .set("cluster.listen", &format!("127.0.0.1:{inside}"))
            .set("cluster.address", &format!("127.0.0.1:{port}"))
            .set("cluster.secret", "a secret of the tests")
            .set("cluster.lease_seconds", &LEASE.as_secs().to_string())
            .set("webhooks.allow_private_networks", "true")
            .set("accounts.signups_per_hour_max", "0")
            .set(
                "server.request_timeout_seconds",
                &REQUEST_TIMEOUT.as_secs().to_string(),
            )
            // Checkpoints are frequent.
            .set("storage.checkpoint_bytes", "65536")
            .set("storage.remote_period_seconds", "2");
        let mut to_objects = None;
        match &self.objects {
            Objects::Directory(dir) => {
                let url = format!("file://{}", dir.path().display());
                setup = setup.set("cluster.objects", &url);
            }
            Objects::S3(server) => {
                let link = Link::to(server.address.port());
                let address = ([127, 0, 0, 1], link.port).into();
                for (name, value) in environment(address, "key", "secret") {
                    setup = setup.environment(&name, &value);
                }
                setup = setup.set("cluster.objects", S3_URL);
                to_objects = Some(link);
            }
        }
        for (key, value) in &plan.settings {
            setup = setup.set(key, value);
        }
        setup.is_tied = plan.is_tied;
        let server = Server::start_with(setup.clone());
        let client = Client::with_timeout(CLIENT_TIMEOUT);
        client.point_at(&server.client.base());
        Node {
            server,
            setup,
            client,
            to_database,
            from_nodes,
            port,
            to_objects,
        }
    }

    /// Starts a node that does not run.
    pub fn launch(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        node.server.launch();
        node.client.point_at(&node.server.client.base());
    }

    /// Sends a signal to a node.
    pub fn signal(&self, node: usize, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.nodes[node].server.pid()).unwrap());
        kill_process(pid.unwrap(), signal).unwrap();
    }

    /// Waits until every node is ready and every shard has an owner.
    pub fn settle(&self) {
        until_within(SETTLED_WITHIN, "all nodes are ready, all shards owned", || {
            let is_ready = |node: &Node| {
                let answer = node.server.client.get("/ready").try_send();
                answer.is_ok_and(|answer| answer.status == 200)
            };
            (self.nodes.iter().all(is_ready) && self.owners().len() == usize::from(self.shards)).then_some(())
        });
    }

    /// The owners of the shards that have one among the nodes that are registered.
    pub fn owners(&self) -> BTreeMap<u16, usize> {
        let rows = self.sql("SELECT shard.id, node.address FROM shard JOIN node ON node.id = shard.node");
        let owner = |row: &str| {
            let (shard, address) = row.split_once('|')?;
            Some((shard.parse().ok()?, self.node_at(address)?))
        };
        rows.lines().filter_map(owner).collect()
    }

    /// The node that others reach at an address.
    pub fn node_at(&self, address: &str) -> Option<usize> {
        let port: u16 = address.rsplit(':').next()?.parse().ok()?;
        self.nodes.iter().position(|node| node.port == port)
    }

    /// The shards of a node.
    pub fn shards_of(&self, node: usize) -> Vec<u16> {
        let owned = self.owners().into_iter().filter(|(_, owner)| *owner == node);
        owned.map(|(shard, _)| shard).collect()
    }

    /// The epochs of these shards, added up.
    pub fn epochs(&self, shards: &[u16]) -> u64 {
        let ids: Vec<String> = shards.iter().map(u16::to_string).collect();
        let sum = format!(
            "SELECT coalesce(sum(epoch), 0) FROM shard WHERE id IN ({})",
            ids.join(",")
        );
        self.sql(&sum).parse().unwrap()
    }

    /// Rows that were written under another epoch than their shard's, by what the database has seen.
    pub fn late_rows(&self) -> u64 {
        self.sql("SELECT count(*) FROM late").parse().unwrap()
    }

    /// Runs statements in the database.
    pub fn sql(&self, statements: &str) -> String {
        self.databases[self.primary].sql(&self.database, statements)
    }

    /// Kills the primary as a loss of power would, promotes the standby that has received more, and moves the address.
    pub fn fail_over(&mut self) {
        let killed = self.primary;
        kill(&self.databases[killed]);
        let received = |index: &usize| -> u64 {
            let lsn = "SELECT (pg_last_wal_receive_lsn() - '0/0'::pg_lsn)::bigint";
            self.databases[*index].sql("postgres", lsn).parse().unwrap()
        };
        let standbys = (0..self.databases.len()).filter(|index| *index != killed);
        // The other one may lack what was acknowledged.
        self.primary = standbys.max_by_key(received).unwrap();
        let promoted = &self.databases[self.primary];
        assert_eq!(promoted.sql("postgres", "SELECT pg_promote()"), "t");
        for node in &self.nodes {
            node.to_database.lead_to(promoted.port);
        }
    }

    /// The index of the database server that takes writes.
    pub fn primary(&self) -> usize {
        self.primary
    }

    /// The address of the database, past the links.
    pub fn url(&self) -> String {
        let primary = &self.databases[self.primary];
        primary.url(&self.database, primary.port)
    }
}

/// Has the database note what is written under another epoch than the shard's.
const WITNESS: &str = "
CREATE TABLE late (shard integer, first bigint, epoch bigint);
CREATE FUNCTION note_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO late SELECT NEW.shard, NEW.first, NEW.epoch FROM shard WHERE id = NEW.shard AND epoch <> NEW.epoch;
    RETURN NULL;
END $$;
CREATE TRIGGER note_late AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION note_late()";

/// The place of the checkpoints on the S3 server.
pub const S3_URL: &str = "s3://bucket/checkpoints";

/// Makes the tables of a cluster.
pub fn init(url: &str, shards: u16) {
    let shards = shards.to_string();
    // The standbys may need a moment to follow.
    until("the cluster has its tables", || {
        let said = run(&["cluster", "init", "--log"], url, &["--shards", &shards]);
        said.contains("has the tables").then_some(())
    });
}

fn run(arguments: &[&str], url: &str, further: &[&str]) -> String {
    let dir = TempDir::new().unwrap();
    let mut command = command(dir.path());
    command.args(arguments).arg(url).args(further);
    run_to_end(&mut command, COMMAND_WITHIN).1
}

fn kill(server: &Postgres) {
    let file = server.sql("postgres", "SELECT pg_read_file('postmaster.pid')");
    let pid = file
        .lines()
        .next()
        .and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
    kill_process(pid.unwrap(), Signal::KILL).unwrap();
}

fn free_port() -> u16 {
    until("a port is free", || {
        let port = fastrand::u16(PORTS);
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    })
}

impl World {
    /// The objects of a world whose object store is a directory.
    pub fn objects_dir(&self) -> PathBuf {
        match &self.objects {
            Objects::Directory(dir) => dir.path().to_owned(),
            Objects::S3(_) => panic!("the objects of this world are on a server"),
        }
    }
}
