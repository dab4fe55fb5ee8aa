//! Webhook deliveries: throughput to one receiver, and the delay caused by an unresponsive one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::ingest::CLIENTS;
use crate::rules::{create, rule, verdict};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, quantile, significant};

pub const DELIVERIES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "durable webhook deliveries to one local receiver",
            required: Requirement::Shown,
            unit: "/s",
        },
        Figure {
            what: "latency from verdict to delivery, with an unresponsive receiver against without",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
    ],
    run: deliveries,
};

/// Triggers of each client in the throughput measurement.
const TRIGGERS: usize = 150;
/// Rounds of single triggers, alternating with and without the unresponsive receiver.
const ROUNDS: usize = 8;
const TRIGGERS_OF_ROUND: usize = 50;
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);

fn deliveries() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let settings = [("webhooks.allow_private_networks", "true")];
    let server = Server::start(&dir.path().join("data"), &settings)?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let source = account.source(&bucket, "boiler")?;
    let (alive, arrivals) = receiver()?;
    account.webhook(alive)?;

    let at_once = CLIENTS * TRIGGERS;
    let all = at_once + ROUNDS * TRIGGERS_OF_ROUND;
    create(&server, &rule(&account, &bucket, &source), all)?;
    let mut rules = account.rules(&bucket, all)?;
    let in_turns = rules.split_off(at_once);
    let rate = rate(&server, &account, &rules, &arrivals)?;
    let delay = delay(&server, &mut account, &in_turns, &arrivals)?;
    Ok(vec![rate, delay])
}

fn rate(
    server: &Server,
    account: &Account,
    rules: &[String],
    arrivals: &Receiver<Instant>,
) -> Outcome<Measured> {
    let of_client = |rules: &[String]| rules.iter().map(|rule| verdict(account, rule, "met")).collect();
    let clients: Vec<Vec<_>> = rules.chunks(TRIGGERS).map(of_client).collect();
    server.settle()?;
    let (used_before, started) = (server.cpu_seconds()?, Instant::now());
    let verdicts_took = drive(server.address, &clients)?;
    let mut last = started;
    for _ in rules {
        last = arrivals.recv_timeout(ARRIVES_WITHIN)?;
    }
    server.settle()?;
    let used = server.cpu_seconds()? - used_before;
    Ok(Measured {
        value: rules.len() as f64 / (last - started).as_secs_f64(),
        note: format!(
            "{} triggers by {CLIENTS} connections ({} ms), each delivery signed, sent and its attempt recorded durably, on cores \
             shared with evaluators and receiver; {} µs of server CPU for verdict and delivery",
            rules.len(),
            significant(verdicts_took.as_secs_f64() * 1e3),
            significant(used * 1e6 / rules.len() as f64)
        ),
    })
}

fn delay(
    server: &Server,
    account: &mut Account,
    rules: &[String],
    arrivals: &Receiver<Instant>,
) -> Outcome<Measured> {
    let (unresponsive, _connections) = unresponsive_receiver()?;
    let unresponsive = account.webhook(unresponsive)?;
    let mut connection = Connection::open(server.address)?;
    let mut took = [Vec::new(), Vec::new()];
    for (round, rules) in rules.chunks(TRIGGERS_OF_ROUND).enumerate() {
        let concurrent = round % 2;
        account.set_webhook(&unresponsive, ["paused", "active"][concurrent])?;
        for rule in rules {
            let request = verdict(account, rule, "met");
            let sent = Instant::now();
            connection.send_ok(&request)?;
            let arrived = arrivals.recv_timeout(ARRIVES_WITHIN)?;
            took[concurrent].push((arrived - sent).as_secs_f64() * 1e6);
        }
    }
    let [without, concurrent] = took.each_mut().map(|times| median(times));
    let [without_p99, beside_p99] = took.each_mut().map(|times| quantile(times, 0.99));
    Ok(Measured {
        value: concurrent / without,
        note: format!(
            "medians of {} triggers each, one at a time; the unresponsive receiver accepts connections and never answers, with up to \
             {} deliveries waiting for it; {} against {} µs, p99 {} against {} µs",
            took[0].len(),
            took[1].len(),
            significant(concurrent),
            significant(without),
            significant(beside_p99),
            significant(without_p99)
        ),
    })
}

/// A receiver that answers every request with 200 and reports the time at which its body was read.
fn receiver() -> Outcome<(SocketAddr, Receiver<Instant>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (arrived, arrivals) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let arrived = arrived.clone();
            thread::spawn(move || answer_all(stream, &arrived));
        }
    });
    Ok((address, arrivals))
}

fn answer_all(stream: TcpStream, arrived: &Sender<Instant>) -> Option<()> {
    let mut answers = stream.try_clone().ok()?;
    let mut requests = BufReader::new(stream);
    loop {
        let mut body_len = None;
        loop {
            let mut line = String::new();
            requests.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                body_len = value.trim().parse::<usize>().ok();
            }
        }
        requests.read_exact(&mut vec![0; body_len?]).ok()?;
        arrived.send(Instant::now()).ok()?;
        answers
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .ok()?;
    }
}

/// A receiver that accepts connections and never reads from them; they close when the returned channel is dropped.
pub fn unresponsive_receiver() -> Outcome<(SocketAddr, Receiver<TcpStream>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (accepted, connections) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if accepted.send(stream).is_err() {
                return;
            }
        }
    });
    Ok((address, connections))
}
