//! Requests of an open page: charts of a range, and the poll for changes. The cost of both depends on what they show.

use serde_json::json;
use tidewatch::timestamp::format_timestamp_ns;

use crate::Outcome;
use crate::client::{alternate, drive, request};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const CHARTS: Experiment = Experiment {
    figures: &[
        Figure {
            what: "chart of 1,000 steps over 100,000 points, 10× more points outside of the range",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
        // Steps between a minute and an hour are combined from minute rollups.
        Figure {
            what: "chart of 1,000 steps, 10× more points in the range",
            required: Requirement::Shown,
            unit: "× time",
        },
        // Read row by row: rollups do not record how long a state lasted.
        Figure {
            what: "chart of the share of time that a boolean was true, 10× more values",
            required: Requirement::Shown,
            unit: "× time",
        },
    ],
    run: charts,
};

pub const CHANGES: Experiment = Experiment {
    figures: &[Figure {
        what: "GET /api/changes, 10× more data sources",
        required: Requirement::AtMost(1.3),
        unit: "× time",
    }],
    run: changes,
};

const POINTS: usize = 100_000;
const TENFOLD: usize = 10 * POINTS;
/// One value every ten seconds.
const STATES: usize = 10_000;
const ROUNDS: usize = 101;

fn charts() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("charts")?;
    let first_ns = days_ago_ns(20)?;
    let [few, many] = [("few", POINTS), ("many", TENFOLD)].map(|(name, points)| -> Outcome<String> {
        let source = account.source(&bucket, name)?;
        let mut series = Series::new(1, first_ns, SECOND_NS);
        let requests = (0..points / BATCH).map(|_| account.batch(&series.batch(&bucket, &source, BATCH)));
        drive(server.address, &[requests.collect()])?;
        Ok(source)
    });
    let [states, more_states] = [STATES, 10 * STATES].map(|count| -> Outcome<String> {
        let source = account.states(&bucket, &format!("{count} states"))?;
        let entries: Vec<Vec<u8>> = (0..count as i64)
            .map(|nth| state(&source, first_ns + nth * 10 * SECOND_NS, nth % 7 < 3))
            .collect();
        let requests = entries
            .chunks(BATCH)
            .map(|entries| account.batch(&Series::batch_of(&bucket, entries)));
        drive(server.address, &[requests.collect()])?;
        Ok(source)
    });
    server.settle()?;
    let chart = |source: &str, points: usize| {
        let end = format_timestamp_ns(first_ns + (points as i64 - 1) * SECOND_NS);
        let filters = json!({"dataSourceIds": [source], "endTime": String::from_utf8_lossy(end.as_bytes())});
        account
            .query(&json!({"bucketId": bucket, "filters": filters, "maxPoints": 1_000, "layout": "columns"}))
    };
    let (few, many, states, more_states) = (few?, many?, states?, more_states?);
    let charts = [
        chart(&few, POINTS),
        chart(&many, POINTS),
        chart(&many, TENFOLD),
        chart(&states, TENFOLD),
        chart(&more_states, TENFOLD),
    ];
    let [alone, concurrent, tenfold, true_time, more_true_time] =
        alternate(server.address, ROUNDS, charts.each_ref().map(Vec::as_slice))?.map(|(ms, _)| ms);
    Ok(vec![
        Measured {
            value: concurrent / alone,
            note: format!(
                "{} against {} ms, over HTTP",
                significant(concurrent),
                significant(alone)
            ),
        },
        Measured {
            value: tenfold / alone,
            note: format!(
                "{} against {} ms, over HTTP",
                significant(tenfold),
                significant(alone)
            ),
        },
        Measured {
            value: more_true_time / true_time,
            note: format!(
                "{} against {} ms, {} against {STATES} values",
                significant(more_true_time),
                significant(true_time),
                10 * STATES
            ),
        },
    ])
}

fn state(source: &str, at_ns: i64, on: bool) -> Vec<u8> {
    let at = format_timestamp_ns(at_ns);
    let at = String::from_utf8_lossy(at.as_bytes());
    format!(r#"{{"dataSourceId":"{source}","timestamp":"{at}","values":{{"on":{on}}}}}"#).into_bytes()
}

fn changes() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let polls = [("small", 100), ("large", 1_000)].map(|(name, sources)| -> Outcome<Vec<u8>> {
        let mut account = Account::sign_up(&server, name)?;
        let bucket = account.bucket("sources")?;
        account.sources(&bucket, sources)?;
        Ok(request("GET", "/api/changes", &account.bearer, b""))
    });
    let [small, large] = polls;
    let (small, large) = (small?, large?);
    let [small, large] = alternate(server.address, ROUNDS, [&small, &large])?.map(|(ms, _)| ms);
    Ok(vec![Measured {
        value: large / small,
        note: format!(
            "{} against {} ms, 1,000 against 100 data sources",
            significant(large),
            significant(small)
        ),
    }])
}
