//! Protocols of agents, and files: server CPU of a sample against batches of one source.

use std::fmt::Write;

use crate::Outcome;
use crate::client::{drive, request};
use crate::ingest::CHECKPOINT_BYTES;
use crate::points::{SECOND_NS, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, median, significant};

pub const WRITERS: Experiment = Experiment {
    figures: &[
        of_protocol(
            "server CPU a sample of line protocol, 1,000 series a request, against JSON batches of one source",
        ),
        of_protocol(
            "server CPU a sample of remote write, 1,000 series a request, against JSON batches of one source",
        ),
        of_protocol(
            "server CPU a data point of OTLP, 1,000 series a request, against JSON batches of one source",
        ),
        of_protocol(
            "server CPU a row of an imported CSV file, 1,000 series, against JSON batches of one source",
        ),
    ],
    run: writers,
};

const fn of_protocol(what: &'static str) -> Figure {
    Figure {
        what,
        required: Requirement::AtMost(1.2),
        unit: "×",
    }
}

const SERIES: usize = 1_000;
/// As many as an organization may have imports at the same time.
const CLIENTS: usize = 4;
/// Requests of each client in a round.
const REQUESTS: usize = 120;
/// The first round only warms up: it creates the series.
const ROUNDS: usize = 6;

/// A way of sending samples: the path, further headers, and the body of 1,000 samples of one time.
struct Way {
    name: &'static str,
    path: String,
    headers: &'static str,
    body: fn(client: usize, time_ns: i64) -> Outcome<Vec<u8>>,
}

fn writers() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(
        &dir.path().join("data"),
        &[("storage.checkpoint_bytes", CHECKPOINT_BYTES)],
    )?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("plant")?;
    let sources = account.sources(&bucket, CLIENTS)?;
    let import =
        format!("/api/buckets/{bucket}/import?format=csv&source=file&dimensions=host,rack&precision=ns");
    let ways = [
        Way {
            name: "line protocol",
            path: format!("/write?bucket={bucket}"),
            headers: "",
            body: lines,
        },
        Way {
            name: "remote write",
            path: format!("/api/v1/write?bucket={bucket}"),
            headers: "\r\ncontent-encoding: snappy\r\nx-prometheus-remote-write-version: 0.1.0",
            body: remote_write,
        },
        Way {
            name: "OTLP",
            path: format!("/v1/metrics?bucket={bucket}"),
            headers: "",
            body: otlp,
        },
        Way {
            name: "CSV",
            path: import,
            headers: "",
            body: csv,
        },
    ];
    let mut used = [const { Vec::new() }; 5];
    let mut second = 0;
    for round in 0..ROUNDS {
        let first_ns = days_ago_ns(2)? + second * SECOND_NS;
        second += REQUESTS as i64;
        for (way, used) in used.iter_mut().enumerate() {
            let of_client = |client: usize| -> Outcome<Vec<Vec<u8>>> {
                let of_time = |nth: usize| match way.checked_sub(1) {
                    None => Ok(account.batch(&batch(&bucket, &sources[client], first_ns, nth)?)),
                    Some(way) => {
                        let way = &ways[way];
                        let body = (way.body)(client, first_ns + nth as i64 * SECOND_NS)?;
                        let headers = format!("{}{}", account.credential, way.headers);
                        let content_type = match way.name {
                            "remote write" | "OTLP" => "application/x-protobuf",
                            _ => "text/plain",
                        };
                        let request = request("POST", &way.path, &headers, &body);
                        Ok(typed(&request, content_type))
                    }
                };
                (0..REQUESTS).map(of_time).collect()
            };
            let clients = (0..CLIENTS).map(of_client).collect::<Outcome<Vec<_>>>()?;
            server.settle()?;
            let before = server.cpu_seconds()?;
            drive(server.address, &clients)?;
            server.settle()?;
            if round > 0 {
                let samples = (CLIENTS * REQUESTS * SERIES) as f64;
                used.push((server.cpu_seconds()? - before) * 1e6 / samples);
            }
        }
    }
    let [json, of_ways @ ..] = used.map(|mut used| median(&mut used));
    let measured = |of_way: f64| Measured {
        value: of_way / json,
        note: format!(
            "{} against {} µs, durable, {CLIENTS} connections, median of {} alternating rounds; each connection has a \
             source, whose series have two labels",
            significant(of_way),
            significant(json),
            ROUNDS - 1
        ),
    };
    Ok(of_ways.into_iter().map(measured).collect())
}

/// The request with another type of content.
fn typed(request: &[u8], content_type: &str) -> Vec<u8> {
    let json = b"content-type: application/json";
    let at = request
        .windows(json.len())
        .position(|bytes| bytes == json)
        .unwrap_or(0);
    let typed = format!("content-type: {content_type}");
    [&request[..at], typed.as_bytes(), &request[at + json.len()..]].concat()
}

fn value(series: usize, time_ns: i64) -> f64 {
    (time_ns / SECOND_NS % 1_000 + series as i64) as f64 / 4.0
}

/// 1,000 points of one source, a millisecond apart.
fn batch(bucket: &str, source: &str, first_ns: i64, nth: usize) -> Outcome<Vec<u8>> {
    let mut body = format!("{{\"bucketId\":\"{bucket}\",\"dataPoints\":[");
    for point in 0..SERIES {
        let time_ns = first_ns + nth as i64 * SECOND_NS + point as i64 * 1_000_000;
        let time = jiff::Timestamp::from_nanosecond(time_ns.into())?;
        let comma = if point == 0 { "" } else { "," };
        let level = value(point, time_ns);
        write!(
            body,
            "{comma}{{\"dataSourceId\":\"{source}\",\"timestamp\":\"{time}\",\"values\":{{\"temperature\":{level}}}}}"
        )?;
    }
    body.push_str("]}");
    Ok(body.into_bytes())
}

fn lines(client: usize, time_ns: i64) -> Outcome<Vec<u8>> {
    let mut body = String::new();
    for series in 0..SERIES {
        let (rack, level) = (series % 20, value(series, time_ns));
        writeln!(
            body,
            "line{client},host=web-{series:04},rack=r{rack} value={level} {time_ns}"
        )?;
    }
    Ok(body.into_bytes())
}

fn csv(client: usize, time_ns: i64) -> Outcome<Vec<u8>> {
    let mut body = String::from("time,host,rack,value\n");
    for series in 0..SERIES {
        let (rack, level) = (series % 20, value(series, time_ns));
        writeln!(body, "{time_ns},web-{client}-{series:04},r{rack},{level}")?;
    }
    Ok(body.into_bytes())
}

fn remote_write(client: usize, time_ns: i64) -> Outcome<Vec<u8>> {
    let mut message = Vec::new();
    for series in 0..SERIES {
        let host = format!("web-{series:04}");
        let rack = format!("r{}", series % 20);
        let name = format!("remote{client}");
        let mut written = Vec::new();
        for (label, text) in [("__name__", &name), ("host", &host), ("rack", &rack)] {
            let pair = [bytes(1, label.as_bytes()), bytes(2, text.as_bytes())].concat();
            written.extend(bytes(1, &pair));
        }
        let mut sample = fixed(1, value(series, time_ns).to_bits());
        sample.push(2 << 3);
        varint((time_ns / 1_000_000).cast_unsigned(), &mut sample);
        written.extend(bytes(2, &sample));
        message.extend(bytes(1, &written));
    }
    Ok(snap::raw::Encoder::new().compress_vec(&message)?)
}

fn otlp(client: usize, time_ns: i64) -> Outcome<Vec<u8>> {
    let mut points = Vec::new();
    for series in 0..SERIES {
        let mut point = Vec::new();
        for (name, text) in [
            ("host", format!("web-{series:04}")),
            ("rack", format!("r{}", series % 20)),
        ] {
            let any = bytes(1, text.as_bytes());
            point.extend(bytes(7, &[bytes(1, name.as_bytes()), bytes(2, &any)].concat()));
        }
        point.extend(fixed(3, time_ns.cast_unsigned()));
        point.extend(fixed(4, value(series, time_ns).to_bits()));
        points.extend(bytes(1, &point));
    }
    let metric = [bytes(1, format!("otlp{client}").as_bytes()), bytes(5, &points)].concat();
    let scope = bytes(2, &metric);
    let resource = bytes(2, &scope);
    Ok(bytes(1, &resource))
}

/// A field of protobuf with bytes.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    varint(value.len() as u64, &mut out);
    out.extend_from_slice(value);
    out
}

/// A field of protobuf with eight bytes.
fn fixed(field: u8, value: u64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend_from_slice(&value.to_le_bytes());
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
