//! A fleet of hosts as monitoring agents send it, in the manner of TSBS ("devops, cpu-only"): each host has ten tags, and a
//! row of ten fields every 10 s, as line protocol with the rows of all hosts in a request.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{alternate, drive, request};
use crate::dimensions::source_of;
use crate::points::{SECOND_NS, days_ago_ns};
use crate::server::{Account, NAME, Server, bytes_below, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const HOSTS: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU for a million rows of 1,000 hosts, ten fields and ten tags each",
            required: Requirement::AtMost(4.0),
            unit: "s",
        },
        Figure {
            what: "disk a row of 1,000 hosts, ten fields and ten tags each",
            required: Requirement::AtMost(6.0),
            unit: "B",
        },
        answer("hosts: maximum by minute, one field, one host, an hour", 0.12),
        answer("hosts: maximum by minute, five fields, eight hosts, an hour", 0.5),
        answer("hosts: maximum by hour, ten fields, eight hosts", 0.5),
        answer("hosts: average by host and hour, one field", 4.0),
        answer("hosts: average by host and hour, five fields", 15.0),
        answer("hosts: 10,000 rows above 90 with all fields", 100.0),
        answer("hosts: newest row of every host", 5.0),
        answer("hosts: maximum by minute over all, the five newest", 8.0),
        answer("hosts: names of all hosts", 0.5),
    ],
    run: hosts,
};

const fn answer(what: &'static str, milliseconds: f64) -> Figure {
    Figure {
        what,
        required: Requirement::AtMost(milliseconds),
        unit: "ms",
    }
}

const COUNT: usize = 1_000;
const ROWS: usize = 1_000_000;
const CLIENTS: usize = 2;
const FIELDS: usize = 10;
const TAGS: usize = 9;
const STEP_NS: i64 = 10 * SECOND_NS;
const SEED: u64 = 7;
const ROUNDS: usize = 21;

fn hosts() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("hosts")?;
    let steps = ROWS / COUNT;
    let first_ns = days_ago_ns(1)? / (3_600 * SECOND_NS) * 3_600 * SECOND_NS;
    let path = format!("/write?bucket={bucket}");
    let of_client = |client: usize| -> Outcome<Vec<Vec<u8>>> {
        let hosts = client * COUNT / CLIENTS..(client + 1) * COUNT / CLIENTS;
        let mut random = fastrand::Rng::with_seed(SEED + client as u64);
        let mut levels = vec![[50_i64; FIELDS]; hosts.len()];
        let mut requests = Vec::with_capacity(steps);
        for step in 0..steps {
            let mut lines = String::new();
            for (host, levels) in hosts.clone().zip(&mut levels) {
                write!(lines, "cpu,hostname=host_{host:04}")?;
                for tag in 0..TAGS {
                    write!(lines, ",tag{tag}=value-{}", (host * 7 + tag) % 20)?;
                }
                for (field, level) in levels.iter_mut().enumerate() {
                    *level = (*level + random.i64(-1..=1)).clamp(0, 100);
                    let before = if field == 0 { ' ' } else { ',' };
                    write!(lines, "{before}usage_{field}={level}i")?;
                }
                writeln!(lines, " {}", first_ns + step as i64 * STEP_NS)?;
            }
            requests.push(request("POST", &path, &account.credential, lines.as_bytes()));
        }
        Ok(requests)
    };
    let clients = (0..CLIENTS).map(of_client).collect::<Outcome<Vec<_>>>()?;
    let before = server.cpu_seconds()?;
    drive(server.address, &clients)?;
    drop(clients);
    server.settle()?;
    let cpu_s = server.cpu_seconds()? - before;
    server.stop()?;
    let (bytes, _) = bytes_below(&data_dir)?;
    let server = Server::start(&data_dir, &[])?;
    server.settle()?;
    let source = source_of(&server, &account, &bucket)?;
    let last_ns = first_ns + (steps as i64 - 1) * STEP_NS;
    let time = |time_ns: i64| jiff::Timestamp::from_nanosecond(time_ns.into()).map(|time| time.to_string());
    let hour = [time(last_ns - 3_600 * SECOND_NS + STEP_NS)?, time(last_ns)?];
    let fields = |count: usize| -> Value { (0..count).map(|field| format!("usage_{field}")).collect() };
    let few: Value = (0..8).map(|host| format!("host_{:04}", host * 100)).collect();
    let query = |filters: Value, more: Value| {
        let mut body = json!({"bucketId": bucket, "limit": 10_000, "filters": filters});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        account.query(&body)
    };
    let within = |hosts: &Value, count: usize| {
        let dimensions = json!({"hostname": hosts});
        json!({"dimensions": dimensions, "fields": fields(count), "startTime": hour[0], "endTime": hour[1]})
    };
    let by_minute = json!({"aggregation": "max", "groupBy": "minute"});
    let by_hour = json!({"aggregation": "max", "groupBy": "hour"});
    let by_host = json!({"aggregation": "avg", "groupBy": "hour", "groupByDimensions": ["hostname"]});
    let newest = json!({"aggregation": "last", "groupBy": "all", "groupByDimensions": ["hostname"]});
    let last_five = json!({"aggregation": "max", "groupBy": "minute", "sortOrder": "desc", "limit": 5});
    let names = format!("/api/buckets/{bucket}/sources/{source}/dimensions/hostname?limit={COUNT}");
    let questions = [
        query(within(&json!("host_0007"), 1), by_minute.clone()),
        query(within(&few, 5), by_minute),
        query(json!({"dimensions": {"hostname": few}}), by_hour),
        query(json!({"fields": fields(1)}), by_host.clone()),
        query(json!({"fields": fields(5)}), by_host),
        query(
            json!({"values": {"usage_0": {"gt": 90}}}),
            json!({"downsampling": false}),
        ),
        query(json!({}), newest),
        query(json!({"fields": fields(1)}), last_five),
        request("GET", &names, &account.credential, b""),
    ];
    // Each by itself: the largest answer would leave nothing of the others in the processor's caches.
    let mut asked = Vec::new();
    for question in &questions {
        asked.extend(alternate(server.address, ROUNDS, [question.as_slice()])?);
    }
    let mut measured = vec![
        Measured {
            value: cpu_s * 1e6 / ROWS as f64,
            note: format!(
                "durable, {CLIENTS} connections, {} rows a request, sealing and checkpoints included",
                COUNT / CLIENTS
            ),
        },
        Measured {
            value: bytes as f64 / ROWS as f64,
            note: "walks of whole numbers from 0 to 100, after a stop".to_owned(),
        },
    ];
    measured.extend(asked.into_iter().map(|(milliseconds, bytes)| Measured {
        value: milliseconds,
        note: format!(
            "over HTTP, median of {ROUNDS}, {} KB; {steps} rows a host",
            significant(bytes as f64 / 1e3)
        ),
    }));
    Ok(measured)
}
