//! Cost of an ingest by the shape of the batch and by its subscribers: a batch with a thousand sources, as collectors
//! send it, compared with one source; and a webhook for `data.received`.

use std::sync::mpsc::Receiver;

use tempfile::TempDir;

use crate::Outcome;
use crate::client::drive;
use crate::deliveries::unresponsive_receiver;
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const WIDE: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per ingested point, batches of 1,000 sources against batches of one",
            required: Requirement::AtMost(2.0),
            unit: "×",
        },
        Figure {
            what: "server CPU per ingested point, with a webhook for data.received against without, batches of one source",
            required: Requirement::AtMost(1.3),
            unit: "×",
        },
        Figure {
            what: "server CPU per ingested point, with a webhook for data.received against without, batches of 1,000 sources",
            required: Requirement::AtMost(1.3),
            unit: "×",
        },
    ],
    run: wide,
};

/// One connection, like one collector.
const CLIENTS: usize = 1;
/// Requests of each client in a round.
const EACH: usize = 400;
/// The first round only warms up.
const ROUNDS: usize = 6;

/// The shape of the batches, and whether a webhook is subscribed.
#[derive(Clone, Copy, PartialEq)]
struct Turn {
    wide: bool,
    subscribed: bool,
}

const TURNS: [Turn; 4] = [
    Turn {
        wide: false,
        subscribed: false,
    },
    Turn {
        wide: true,
        subscribed: false,
    },
    Turn {
        wide: false,
        subscribed: true,
    },
    Turn {
        wide: true,
        subscribed: true,
    },
];

/// A bucket, and each client's sources in it.
struct Sources {
    bucket: String,
    clients: Vec<Vec<(String, Series)>>,
}

struct Scene {
    server: Server,
    account: Account,
    webhook: String,
    /// One source for each client.
    narrow: Sources,
    /// A thousand sources for each client.
    wide: Sources,
    _connections: Receiver<std::net::TcpStream>,
    _dir: TempDir,
}

impl Scene {
    fn start() -> Outcome<Self> {
        let dir = data_root()?;
        let settings = [("webhooks.allow_private_networks", "true")];
        let server = Server::start(&dir.path().join("data"), &settings)?;
        let mut account = Account::sign_up(&server, NAME)?;
        // A receiver that never answers: the cost of an event is measured, not that of an HTTP request.
        let (address, connections) = unresponsive_receiver()?;
        let webhook = account.webhook_of(address, &["data.received"])?;
        let narrow = Self::sources(&mut account, "narrow", 1)?;
        let wide = Self::sources(&mut account, "wide", BATCH)?;
        Ok(Self {
            server,
            account,
            webhook,
            narrow,
            wide,
            _connections: connections,
            _dir: dir,
        })
    }

    fn sources(account: &mut Account, name: &str, each: usize) -> Outcome<Sources> {
        let bucket = account.bucket(name)?;
        let first_ns = days_ago_ns(20)?;
        let ids = account.sources(&bucket, CLIENTS * each)?;
        let series =
            |(seed, id): (usize, &String)| (id.clone(), Series::new(seed as u64, first_ns, SECOND_NS));
        let of_client = |ids: &[String]| ids.iter().enumerate().map(series).collect();
        let clients = ids.chunks(each).map(of_client).collect();
        Ok(Sources { bucket, clients })
    }

    fn requests(&mut self, wide: bool) -> Vec<Vec<Vec<u8>>> {
        let sources = if wide { &mut self.wide } else { &mut self.narrow };
        let Sources { bucket, clients } = sources;
        let (account, bucket) = (&self.account, &*bucket);
        let of_client = |sources: &mut Vec<(String, Series)>| {
            let batch = |_| {
                let each = BATCH / sources.len();
                let entries = sources
                    .iter_mut()
                    .flat_map(|(id, series)| (0..each).map(|_| series.entry(id)).collect::<Vec<_>>());
                account.batch(&Series::batch_of(bucket, &entries.collect::<Vec<_>>()))
            };
            (0..EACH).map(batch).collect()
        };
        clients.iter_mut().map(of_client).collect()
    }

    /// CPU time of a point in µs.
    fn cost_us(&mut self, turn: Turn) -> Outcome<f64> {
        let requests = self.requests(turn.wide);
        let status = if turn.subscribed { "active" } else { "paused" };
        self.account.set_webhook(&self.webhook, status)?;
        self.server.settle()?;
        let before = self.server.cpu_seconds()?;
        drive(self.server.address, &requests)?;
        self.server.settle()?;
        Ok((self.server.cpu_seconds()? - before) * 1e6 / (CLIENTS * EACH * BATCH) as f64)
    }
}

fn wide() -> Outcome<Vec<Measured>> {
    let mut scene = Scene::start()?;
    let mut costs = [const { Vec::new() }; TURNS.len()];
    for round in 0..ROUNDS {
        // The order rotates, so that a machine that becomes slower favours none.
        for place in 0..TURNS.len() {
            let turn = (place + round) % TURNS.len();
            let cost_us = scene.cost_us(TURNS[turn])?;
            if round > 0 {
                costs[turn].push(cost_us);
            }
        }
    }
    let [narrow, wide, narrow_heard, wide_heard] = costs.map(|mut costs| median(&mut costs));
    let measured = |value_us: f64, against_us: f64| Measured {
        value: value_us / against_us,
        note: format!(
            "{} against {} µs, {CLIENTS} connection, {EACH} requests of {BATCH} points a round, medians of {} alternating rounds; the receiver never answers",
            significant(value_us),
            significant(against_us),
            ROUNDS - 1
        ),
    };
    Ok(vec![
        measured(wide, narrow),
        measured(narrow_heard, narrow),
        measured(wide_heard, wide),
    ])
}
