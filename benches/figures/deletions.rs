//! Deletions of points: the cost of a small one by the number of points in the bucket.

use std::time::Instant;

use serde_json::json;

use crate::Outcome;
use crate::client::Connection;
use crate::points::{Series, days_ago_ns};
use crate::server::{Account, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const DELETIONS: Experiment = Experiment {
    figures: &[
        Figure {
            what: "server CPU per deletion of a minute of one of 3 sources, 300,000 points",
            required: Requirement::Shown,
            unit: "ms",
        },
        Figure {
            what: "deletion of a minute, 10× the points",
            required: Requirement::AtMost(1.3),
            unit: "× CPU",
        },
    ],
    run: deletions,
};

const SOURCES: [usize; 2] = [3, 30];
const POINTS_OF_SOURCE: usize = 100_000;
const BATCH: usize = 1_000;
/// Deletions that are measured, each of another minute.
const DELETIONS_MEASURED: u32 = 24;
/// So that all of them, for both numbers of sources, are within the points.
const MINUTES_BETWEEN: i64 = 30;
const SECOND_NS: i64 = 1_000_000_000;

fn deletions() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, "plant")?;
    let bucket = account.bucket("plant")?;
    let mut connection = Connection::open(server.address)?;
    let first_ns = days_ago_ns(3)?;
    let (mut sources, mut next_minute, mut measured) = (Vec::new(), 0, Vec::new());
    for count in SOURCES {
        while sources.len() < count {
            let source = account.source(&bucket, &format!("boiler {}", sources.len()))?;
            let mut series = Series::new(7, first_ns, SECOND_NS);
            for _ in 0..POINTS_OF_SOURCE / BATCH {
                connection.send_ok(&account.batch(&series.batch(&bucket, &source, BATCH)))?;
            }
            sources.push(source);
        }
        server.settle()?;
        let mut slowest = 0.0_f64;
        let before = server.cpu_seconds()?;
        for _ in 0..DELETIONS_MEASURED {
            let start_ns = first_ns + next_minute * 60 * SECOND_NS;
            next_minute += MINUTES_BETWEEN;
            let time =
                |at_ns: i64| jiff::Timestamp::from_nanosecond(i128::from(at_ns)).map(|at| at.to_string());
            let body = json!({"bucketId": bucket, "filters": {
                "dataSourceIds": [sources[0]],
                "startTime": time(start_ns)?, "endTime": time(start_ns + 59 * SECOND_NS)?,
            }});
            let started = Instant::now();
            let answer = connection.json("POST", "/api/data/delete", &account.credential, &body)?;
            slowest = slowest.max(started.elapsed().as_secs_f64());
            if answer["deletedCount"] != 60 {
                return Err(format!("not 60 points: {answer}").into());
            }
        }
        let cpu_ms = (server.cpu_seconds()? - before) * 1e3 / f64::from(DELETIONS_MEASURED);
        measured.push(Measured {
            value: cpu_ms,
            note: format!(
                "{DELETIONS_MEASURED} of them, checkpoints and merges included; the slowest took {} ms",
                significant(slowest * 1e3)
            ),
        });
    }
    measured[1] = Measured {
        value: measured[1].value / measured[0].value,
        note: format!("{} ms each; {}", significant(measured[1].value), measured[1].note),
    };
    Ok(measured)
}
