//! What a person does to the cluster, and how it goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::link::Mode;
use crate::load::Load;
use crate::record::Outcome;
use crate::world::{NODES, World};

use super::balancer::Balancer;
use super::keys::Key;
use super::meter::Meter;
use super::screen::Screen;

pub struct Session<'a> {
    world: &'a mut World,
    load: &'a Load,
    balancer: Balancer,
    meter: Meter,
    screen: Screen,
    states: [State; NODES],
    chosen: usize,
    /// The former primary, once it is killed.
    killed_primary: Option<usize>,
    watches: Vec<Watch>,
    owners: BTreeMap<u16, usize>,
}

/// What was done to a node.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    process: Process,
    has_no_database: bool,
    is_unreachable: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Process {
    #[default]
    Running,
    Frozen,
    Killed,
}

/// A fault whose end is to be told.
struct Watch {
    /// The node that loses its shards.
    node: Option<usize>,
    /// When it began, on the clock of the load.
    since: u64,
    shards: Vec<u16>,
    /// Whether it was told that the shards have new owners.
    has_owners: bool,
    /// Whether it was told that all organizations of the shards are written to.
    is_written: bool,
}

impl<'a> Session<'a> {
    pub fn new(world: &'a mut World, load: &'a Load, screen: Screen) -> Self {
        let owners = world.owners();
        let shards = |node: &usize| owners.values().filter(|owner| *owner == node).count();
        Session {
            balancer: Balancer::start(world),
            meter: Meter::new(load),
            world,
            load,
            screen,
            states: Default::default(),
            // A fault of a node without shards would show little.
            chosen: (0..NODES).max_by_key(shards).unwrap_or(0),
            killed_primary: None,
            watches: Vec::new(),
            owners,
        }
    }

    /// Does what a key stands for.
    pub fn press(&mut self, key: Key) {
        let node = self.chosen;
        let State {
            process,
            has_no_database,
            is_unreachable,
        } = self.states[node];
        match (key, process) {
            (Key::Node(node), _) => self.chosen = node,
            (Key::Kill, Process::Killed) if has_no_database => {
                self.tell(node, "cannot start without the database: mend its link first");
            }
            (Key::Kill, Process::Killed) => self.start(node),
            (Key::Kill, _) => {
                self.begin(Some(node), "killed");
                self.world.nodes[node].server.kill();
                self.states[node].process = Process::Killed;
            }
            (Key::Freeze | Key::Database, Process::Killed) => self.tell(node, "does not run"),
            (Key::Freeze, Process::Running) => {
                self.begin(Some(node), "frozen");
                self.world.signal(node, Signal::STOP);
                self.states[node].process = Process::Frozen;
            }
            (Key::Freeze, Process::Frozen) => self.wake(node),
            (Key::Database, _) if has_no_database => self.mend_database(node),
            (Key::Database, _) => {
                self.begin(Some(node), "cut off from the database");
                self.world.nodes[node].to_database.set(Mode::Hold);
                self.states[node].has_no_database = true;
            }
            (Key::Nodes, _) if is_unreachable => self.mend_nodes(node),
            (Key::Nodes, _) => {
                self.meter.begin_fault(self.load.now());
                self.world.nodes[node].from_nodes.set(Mode::Hold);
                self.states[node].is_unreachable = true;
                self.tell(
                    node,
                    "cut off from the other nodes: it keeps its shards, and answers only those who ask it directly",
                );
            }
            (Key::Primary, _) => self.fail_over(),
            (Key::Quit, _) => {}
        }
        self.screen.redraw();
    }

    /// Looks at the cluster, and says what has changed.
    pub fn look(&mut self) {
        self.meter.update(self.load);
        self.load.use_nodes(self.balancer.ready());
        let is_due = self.screen.is_due();
        if is_due || !self.watches.is_empty() {
            self.owners = self.world.owners();
        }
        for mut watch in std::mem::take(&mut self.watches) {
            self.follow(&mut watch);
            if !(watch.has_owners && watch.is_written) {
                self.watches.push(watch);
            }
        }
        if is_due {
            let (page, line) = (self.page(), self.line());
            self.screen.show(&page, &line);
        }
    }

    /// Undoes what still lasts.
    pub fn mend_all(&mut self) {
        for node in 0..NODES {
            let state = self.states[node];
            if state.has_no_database {
                self.mend_database(node);
            }
            if state.is_unreachable {
                self.mend_nodes(node);
            }
            match state.process {
                Process::Running => {}
                Process::Frozen => self.wake(node),
                Process::Killed => self.start(node),
            }
        }
    }

    pub fn end(mut self) -> (Meter, Screen) {
        self.look();
        self.screen.end();
        (self.meter, self.screen)
    }

    fn tell(&mut self, node: usize, what: &str) {
        self.screen.tell(&format!("node {} {what}", node + 1));
    }

    /// Notes a fault that begins. Without a node, it concerns all shards.
    fn begin(&mut self, node: Option<usize>, what: &str) {
        let since = self.load.now();
        self.meter.begin_fault(since);
        let shards = match node {
            Some(node) => {
                let shards = self.world.shards_of(node);
                self.tell(node, &format!("{what}: it owned {} shards", shards.len()));
                shards
            }
            None => self.world.owners().into_keys().collect(),
        };
        // A node has one fault at a time that others wait for.
        self.watches
            .retain(|watch| watch.node != node || watch.node.is_none());
        if !shards.is_empty() {
            self.watches.push(Watch {
                node,
                since,
                shards,
                has_owners: node.is_none(),
                is_written: false,
            });
        }
    }

    /// Says how far a cluster has recovered from a fault.
    fn follow(&mut self, watch: &mut Watch) {
        let elapsed = |until: u64| Duration::from_micros(until.saturating_sub(watch.since)).as_secs_f64();
        if let (Some(node), false) = (watch.node, watch.has_owners) {
            let owner = |shard: &u16| self.owners.get(shard).filter(|owner| **owner != node);
            if watch.shards.iter().all(|shard| owner(shard).is_some()) {
                watch.has_owners = true;
                let after = elapsed(self.load.now());
                let said = format!(
                    "the {} shards of node {} have new owners after {after:.1} s",
                    watch.shards.len(),
                    node + 1
                );
                self.screen.tell(&said);
            }
        }
        if watch.has_owners && !watch.is_written {
            let tenants = self.load.tenants.iter();
            let concerned = tenants.filter(|tenant| watch.shards.contains(&tenant.shard));
            let written = concerned.map(|tenant| {
                let writes = tenant.writes.lock().unwrap();
                let of_now = writes
                    .iter()
                    .filter(|write| write.outcome == Outcome::Acknowledged && write.span.began > watch.since);
                of_now.map(|write| write.span.ended).min()
            });
            let Some(written) = written.collect::<Option<Vec<u64>>>() else {
                return;
            };
            watch.is_written = true;
            let said = match written.iter().max() {
                Some(last) => format!(
                    "all {} organizations on them write again, the last one after {:.1} s",
                    written.len(),
                    elapsed(*last)
                ),
                None => "no organization of the load is on them".to_owned(),
            };
            self.screen.tell(&said);
        }
    }

    fn start(&mut self, node: usize) {
        let began = Instant::now();
        self.world.launch(node);
        self.states[node].process = Process::Running;
        self.end_watches(node);
        let said = format!("started again in {:.1} s", began.elapsed().as_secs_f64());
        self.tell(node, &said);
    }

    fn wake(&mut self, node: usize) {
        self.world.signal(node, Signal::CONT);
        self.states[node].process = Process::Running;
        self.end_watches(node);
        self.tell(node, "woken up");
    }

    fn mend_database(&mut self, node: usize) {
        self.world.nodes[node].to_database.set(Mode::Pass);
        self.states[node].has_no_database = false;
        self.end_watches(node);
        self.tell(node, "reaches the database again");
    }

    fn mend_nodes(&mut self, node: usize) {
        self.world.nodes[node].from_nodes.set(Mode::Pass);
        self.states[node].is_unreachable = false;
        self.tell(node, "is reached by the other nodes again");
    }

    /// A node that is back may keep its shards.
    fn end_watches(&mut self, node: usize) {
        for watch in &mut self.watches {
            if watch.node == Some(node) {
                watch.has_owners = true;
            }
        }
    }

    fn fail_over(&mut self) {
        if self.killed_primary.is_some() {
            self.screen
                .tell("the database's primary stays: each commit needs the standby that is left");
            return;
        }
        let killed = self.world.primary();
        self.begin(None, "");
        let began = Instant::now();
        self.screen.tell(&format!(
            "database {} killed, the primary: nothing is acknowledged until a standby is promoted",
            killed + 1
        ));
        self.world.fail_over();
        self.killed_primary = Some(killed);
        self.screen.tell(&format!(
            "database {} promoted, and the address moved to it, after {:.1} s",
            self.world.primary() + 1,
            began.elapsed().as_secs_f64()
        ));
    }

    fn page(&self) -> Vec<String> {
        let mut page = Vec::new();
        for (index, node) in self.world.nodes.iter().enumerate() {
            page.push(format!(
                "{} node {}  {:<24} {:>2} shards  {}",
                if index == self.chosen { '>' } else { ' ' },
                index + 1,
                node.server.client.base(),
                self.shards(index),
                self.describe(index)
            ));
        }
        page.push(String::new());
        for (index, database) in self.world.databases.iter().enumerate() {
            let state = match index {
                _ if Some(index) == self.killed_primary => "killed",
                _ if index == self.world.primary() => "primary",
                _ => "standby",
            };
            page.push(format!(
                "  database {}  127.0.0.1:{:<5}  {state}",
                index + 1,
                database.port
            ));
        }
        page.push(String::new());
        page.extend(self.figures().map(|figure| format!("  {figure}")));
        page
    }

    /// The same in a line.
    fn line(&self) -> String {
        let nodes = (0..NODES).map(|node| {
            let state = self.describe(node);
            format!("node {}: {} shards, {state}", node + 1, self.shards(node))
        });
        let parts: Vec<String> = nodes.chain(self.figures()).collect();
        format!("state: {}", parts.join("; "))
    }

    fn describe(&self, node: usize) -> String {
        let state = self.states[node];
        let is_ready = state.process != Process::Running || self.balancer.ready().contains(&node);
        let ready = if is_ready { "" } else { ", not ready" };
        format!("{}{ready}", state.describe())
    }

    fn shards(&self, node: usize) -> usize {
        self.owners.values().filter(|owner| **owner == node).count()
    }

    fn figures(&self) -> [String; 3] {
        let (meter, lately) = (&self.meter, self.meter.lately());
        let (reads, points) = meter.compared;
        [
            format!(
                "last 10 s: {} points/s acknowledged, {} requests refused, {} without an answer, slowest {:.2} s",
                lately.points_a_second,
                lately.refused,
                lately.unanswered,
                lately.slowest.as_secs_f64()
            ),
            format!(
                "since the last fault: no organization was without an acknowledged write for more than {:.2} s",
                meter.pause().as_secs_f64()
            ),
            format!(
                "{} writes acknowledged, of {} points; {reads} reads compared, of {points} points: {}",
                meter.acknowledged(),
                meter.points(),
                meter.summary()
            ),
        ]
    }
}

impl State {
    fn describe(self) -> String {
        let process = match self.process {
            Process::Running => "runs",
            Process::Frozen => "frozen",
            Process::Killed => "killed",
        };
        let mut said = process.to_owned();
        if self.has_no_database {
            said.push_str(", cut off from the database");
        }
        if self.is_unreachable {
            said.push_str(", cut off from the other nodes");
        }
        said
    }
}
