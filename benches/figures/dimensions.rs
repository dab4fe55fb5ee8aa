//! Sources with dimensions: a million series, and groups by a label.

use std::fmt::Write;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Outcome;
use crate::client::{Connection, alternate, request};
use crate::points::{SECOND_NS, days_ago_ns};
use crate::server::{Account, NAME, Server, bytes_below, data_root, files_below};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const SERIES: Experiment = Experiment {
    figures: &[
        Figure {
            what: "new series a second, durable, one client, up to 1,000,000",
            required: Requirement::AtLeast(50_000.0),
            unit: "series/s",
        },
        Figure {
            what: "memory a series, 1,000,000 series of a source, after a restart",
            required: Requirement::AtMost(600.0),
            unit: "B",
        },
        Figure {
            what: "time to ready after a kill, 1,000,000 series of a source",
            required: Requirement::AtMost(2.0),
            unit: "s",
        },
        Figure {
            what: "points of one series by its labels, of 1,000,000 series",
            required: Requirement::AtMost(0.15),
            unit: "ms",
        },
        Figure {
            what: "points of one series by its labels, of 1,000,000 series against 100,000",
            required: Requirement::AtMost(1.5),
            unit: "×",
        },
        Figure {
            what: "points of one series by its labels alone, no data source named, of 1,000,000 series against 100,000",
            required: Requirement::AtMost(1.5),
            unit: "×",
        },
        Figure {
            what: "1,000 values of a dimension listed, of 1,000,000 series",
            required: Requirement::AtMost(5.0),
            unit: "ms",
        },
        Figure {
            what: "disk a point, 1,000,000 series of one point",
            required: Requirement::Shown,
            unit: "B",
        },
    ],
    run: series,
};

pub const GROUPS: Experiment = Experiment {
    figures: &[
        Figure {
            what: "hourly averages of 7 days by a label of 100 values, 10,000 series",
            required: Requirement::AtMost(50.0),
            unit: "ms",
        },
        Figure {
            what: "hourly averages of 7 days of one series by its labels, against those of a source without dimensions",
            required: Requirement::AtMost(1.3),
            unit: "×",
        },
    ],
    run: groups,
};

const HOSTS: usize = 10_000;
pub const CORES: usize = 100;
/// Lines of a request.
const LINES: usize = 10_000;
/// Values of a dimension in a page.
const VALUES: usize = 1_000;
const ROUNDS: usize = 201;
const RESTARTS: usize = 3;

fn series() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("plant")?;
    let few = account.bucket("few")?;
    let time_ns = days_ago_ns(1)?;
    write_series(&server, &account, &few, HOSTS / 10, time_ns)?;
    let rate = write_series(&server, &account, &bucket, HOSTS, time_ns)?;
    server.settle()?;
    let source = source_of(&server, &account, &bucket)?;
    let source_of_few = source_of(&server, &account, &few)?;
    server.stop()?;
    let (files, (bytes, _)) = (files_below(&data_dir), bytes_below(&data_dir)?);
    let (mut ready_s, mut memory) = (Vec::new(), 0.0);
    for _ in 0..RESTARTS {
        let server = Server::start(&data_dir, &[])?;
        ready_s.push(server.ready_after.as_secs_f64());
        server.settle()?;
        memory = server.anonymous_bytes()?;
        server.kill()?;
    }
    let server = Server::start(&data_dir, &[])?;
    server.settle()?;
    let query = |bucket: &str, source: Option<&str>| {
        let mut filters = json!({"dimensions": {"host": "h00777", "core": "7"}});
        if let Some(source) = source {
            filters["dataSourceIds"] = json!([source]);
        }
        account.query(&json!({"bucketId": bucket, "downsampling": false, "filters": filters}))
    };
    let (one, one_of_few) = (query(&bucket, Some(&source)), query(&few, Some(&source_of_few)));
    let (anywhere, anywhere_of_few) = (query(&bucket, None), query(&few, None));
    let path = format!("/api/buckets/{bucket}/sources/{source}/dimensions/host?limit={VALUES}");
    let listing = request("GET", &path, &account.credential, b"");
    let requests: [&[u8]; 4] = [&one, &one_of_few, &anywhere, &anywhere_of_few];
    let [one_ms, few_ms, anywhere_ms, anywhere_of_few_ms] =
        alternate(server.address, ROUNDS, requests)?.map(|(median_ms, _)| median_ms);
    // Not among the others: it takes so much longer that the request after it finds nothing in the processor's caches.
    let [(listing_ms, _)] = alternate(server.address, ROUNDS, [&listing])?;
    let count = (HOSTS * CORES) as f64;
    let measured = |value: f64, note: String| Measured { value, note };
    let floor = alternate(
        server.address,
        ROUNDS,
        [&request("GET", "/health", "x-of: bench", b"")],
    )?[0]
        .0;
    Ok(vec![
        measured(
            rate,
            format!("{LINES} lines a request, one connection, one field, two labels"),
        ),
        measured(
            memory / (1.1 * count),
            format!(
                "RssAnon {} MB with 1,100,000 series, all sealed",
                significant(memory / 1e6)
            ),
        ),
        measured(
            median(&mut ready_s),
            format!("median of {RESTARTS}, 1,100,000 series in two buckets"),
        ),
        measured(
            one_ms,
            format!(
                "over HTTP, median of {ROUNDS}; GET /health took {} ms",
                significant(floor)
            ),
        ),
        measured(
            one_ms / few_ms,
            format!("{} against {} ms", significant(one_ms), significant(few_ms)),
        ),
        measured(
            anywhere_ms / anywhere_of_few_ms,
            format!(
                "{} against {} ms",
                significant(anywhere_ms),
                significant(anywhere_of_few_ms)
            ),
        ),
        measured(listing_ms, format!("median of {ROUNDS}, the first page")),
        measured(
            bytes as f64 / (1.1 * count),
            format!(
                "{files} files of {} MB, index of the series included",
                significant(bytes as f64 / 1e6)
            ),
        ),
    ])
}

/// Writes a point to each series of so many hosts. Returns the series a second.
pub fn write_series(
    server: &Server,
    account: &Account,
    bucket: &str,
    hosts: usize,
    time_ns: i64,
) -> Outcome<f64> {
    let mut connection = Connection::open(server.address)?;
    let (mut body, mut took_s) = (String::new(), 0.0);
    for number in 0..hosts * CORES {
        let (host, core) = (number / CORES, number % CORES);
        writeln!(
            body,
            "cpu,core={core},host=h{host:05} usage={} {time_ns}",
            number % 97
        )?;
        if number % LINES == LINES - 1 {
            let path = format!("/write?bucket={bucket}");
            let request = request("POST", &path, &account.credential, body.as_bytes());
            let began = Instant::now();
            connection.send_ok(&request)?;
            took_s += began.elapsed().as_secs_f64();
            body.clear();
        }
    }
    Ok((hosts * CORES) as f64 / took_s)
}

/// The id of the bucket's first source.
pub fn source_of(server: &Server, account: &Account, bucket: &str) -> Outcome<String> {
    let mut connection = Connection::open(server.address)?;
    let path = format!("/api/buckets/{bucket}/sources");
    let listed = connection.json("GET", &path, &account.credential, &Value::Null)?;
    let id = listed.pointer("/dataSources/0/_id").and_then(Value::as_str);
    Ok(id.ok_or("no source")?.to_owned())
}

const GROUPED: usize = 10_000;
const LABELS: usize = 100;
const DAYS: usize = 7;
/// Points of a series in an hour.
const HOURLY: usize = 4;

fn groups() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let data_dir = dir.path().join("data");
    let server = Server::start(&data_dir, &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("plant")?;
    let plain = account.bucket("plain")?;
    let hour_ns = 3_600 * SECOND_NS;
    let first_ns = days_ago_ns(DAYS as i64 + 1)? / hour_ns * hour_ns;
    let steps = DAYS * 24 * HOURLY;
    let time_ns = |step: usize| first_ns + step as i64 * hour_ns / HOURLY as i64;
    let mut connection = Connection::open(server.address)?;
    let mut send = |bucket: &str, lines: &str| {
        let path = format!("/write?bucket={bucket}");
        let request = request("POST", &path, &account.credential, lines.as_bytes());
        connection.send_ok(&request).map(drop)
    };
    let mut random = fastrand::Rng::with_seed(1);
    let mut tenths = vec![5_000i64; GROUPED];
    let mut plain_lines = String::new();
    for step in 0..steps {
        let mut lines = String::new();
        for (series, tenths) in tenths.iter_mut().enumerate() {
            *tenths += random.i64(-3..=3);
            let (rack, level) = (series % LABELS, *tenths as f64 / 10.0);
            writeln!(
                lines,
                "cpu,host=h{series:05},rack=r{rack:02} usage={level} {}",
                time_ns(step)
            )?;
            if series == 777 {
                writeln!(plain_lines, "cpu usage={level} {}", time_ns(step))?;
            }
        }
        send(&bucket, &lines)?;
    }
    send(&plain, &plain_lines)?;
    let source = source_of(&server, &account, &bucket)?;
    let source_of_plain = source_of(&server, &account, &plain)?;
    server.stop()?;
    let server = Server::start(&data_dir, &[])?;
    server.settle()?;
    let query = |bucket: &str, mut more: Value| {
        more["bucketId"] = json!(bucket);
        more["aggregation"] = json!("avg");
        more["groupBy"] = json!("hour");
        more["limit"] = json!(10_000);
        account.query(&more)
    };
    let grouped = query(
        &bucket,
        json!({"groupByDimensions": ["rack"], "filters": {"dataSourceIds": [source]}}),
    );
    let one = query(
        &bucket,
        json!({"filters": {"dataSourceIds": [source], "dimensions": {"host": "h00777"}}}),
    );
    let alone = query(&plain, json!({"filters": {"dataSourceIds": [source_of_plain]}}));
    let [(grouped_ms, bytes)] = alternate(server.address, 21, [&grouped])?;
    let [(one_ms, _), (alone_ms, _)] = alternate(server.address, ROUNDS, [&one, &alone])?;
    Ok(vec![
        Measured {
            value: grouped_ms,
            note: format!(
                "over HTTP, median of 21; the first 10,000 of {} rows, {} MB; {steps} points a series, a walk in tenths",
                DAYS * 24 * LABELS,
                significant(bytes as f64 / 1e6)
            ),
        },
        Measured {
            value: one_ms / alone_ms,
            note: format!(
                "{} against {} ms, median of {ROUNDS} alternating rounds",
                significant(one_ms),
                significant(alone_ms)
            ),
        },
    ])
}
