//! Questions beyond sums: quantiles, counters, local days, filled and compared steps. Over HTTP.

use serde_json::{Value, json};
use tidewatch::timestamp::format_timestamp_ns;

use crate::Outcome;
use crate::client::{alternate, drive};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement, significant};

pub const MONTH: Experiment = Experiment {
    figures: &[
        Figure {
            what: "95th percentile by hour over a month at 1 Hz",
            required: Requirement::AtMost(300.0),
            unit: "ms",
        },
        Figure {
            what: "95th percentile by hour, 10× more points in the range",
            required: Requirement::AtMost(13.0),
            unit: "× time",
        },
        Figure {
            what: "rate, time-weighted average, spread, first and last by hour over a month at 1 Hz",
            required: Requirement::Shown,
            unit: "ms",
        },
        Figure {
            what: "95th percentile of three days, 10× more points outside of the range",
            required: Requirement::AtMost(1.3),
            unit: "× time",
        },
        Figure {
            what: "newest value of a data source, 10× more points before it",
            required: Requirement::AtMost(1.5),
            unit: "× time",
        },
    ],
    run: month,
};

pub const YEAR: Experiment = Experiment {
    figures: &[
        Figure {
            what: "daily averages over a year in America/New_York, against UTC",
            required: Requirement::AtMost(1.5),
            unit: "× time",
        },
        Figure {
            what: "hourly averages over a year, filled, against without",
            required: Requirement::Shown,
            unit: "× time",
        },
        Figure {
            what: "hourly averages over a year, compared with the week before, against without",
            required: Requirement::AtMost(3.0),
            unit: "× time",
        },
        Figure {
            what: "the greatest of 1,000 data sources over a day, against 100",
            required: Requirement::AtMost(13.0),
            unit: "× time",
        },
    ],
    run: year,
};

const DAY_POINTS: usize = 86_400;
const MONTH_POINTS: usize = 30 * DAY_POINTS;
/// One point a minute.
const YEAR_POINTS: usize = 365 * 1_440;
const ROUNDS: usize = 11;

/// Median times of queries in milliseconds, and the sizes of their answers.
fn asked<const N: usize>(
    server: &Server,
    account: &Account,
    bodies: [Value; N],
) -> Outcome<[(f64, usize); N]> {
    let requests = bodies.map(|body| account.query(&body));
    alternate(server.address, ROUNDS, requests.each_ref().map(Vec::as_slice))
}

/// A source with points from a time on.
fn filled(
    server: &Server,
    account: &mut Account,
    bucket: &str,
    (name, points): (&str, usize),
    (first_ns, interval_ns): (i64, i64),
) -> Outcome<String> {
    let source = account.source(bucket, name)?;
    let mut series = Series::new(1, first_ns, interval_ns);
    let batches = (0..points.div_ceil(BATCH)).map(|nth| BATCH.min(points - nth * BATCH));
    let requests = batches.map(|count| account.batch(&series.batch(bucket, &source, count)));
    drive(server.address, &[requests.collect()])?;
    Ok(source)
}

fn moment(at_ns: i64) -> String {
    String::from_utf8_lossy(format_timestamp_ns(at_ns).as_bytes()).into_owned()
}

fn against(one: f64, other: f64) -> String {
    format!("{} against {} ms", significant(one), significant(other))
}

fn month() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("questions")?;
    // Batches take points of at most 30 days ago, and later ones.
    let first_ns = days_ago_ns(20)?;
    let many = filled(
        &server,
        &mut account,
        &bucket,
        ("month", MONTH_POINTS),
        (first_ns, SECOND_NS),
    )?;
    let few = filled(
        &server,
        &mut account,
        &bucket,
        ("few", MONTH_POINTS / 10),
        (first_ns, SECOND_NS),
    )?;
    server.settle()?;
    let ask = |source: &str, aggregation: Value, points: usize| {
        json!({
            "bucketId": bucket, "aggregation": aggregation, "groupBy": "hour",
            "filters": {
                "dataSourceIds": [source], "fields": ["temperature"], "startTime": moment(first_ns),
                "endTime": moment(first_ns + (points as i64 - 1) * SECOND_NS),
            },
        })
    };
    let ordered = json!(["rate", "timeAvg", "stddev", "first", "last"]);
    let newest = |source: &str| {
        json!({
            "bucketId": bucket, "aggregation": "last", "groupBy": "all",
            "filters": {"dataSourceIds": [source], "fields": ["temperature"]},
        })
    };
    let [quantile, tenth, all, within, newest_of_many, newest_of_few] = asked(
        &server,
        &account,
        [
            ask(&many, json!("p95"), MONTH_POINTS),
            ask(&few, json!("p95"), MONTH_POINTS),
            ask(&many, ordered, MONTH_POINTS),
            ask(&many, json!("p95"), MONTH_POINTS / 10),
            newest(&many),
            newest(&few),
        ],
    )?;
    let per_point = |ms: f64| format!("{} ns a point", significant(ms * 1e6 / MONTH_POINTS as f64));
    Ok(vec![
        Measured {
            value: quantile.0,
            note: format!("720 rows, {MONTH_POINTS} points, {}", per_point(quantile.0)),
        },
        Measured {
            value: quantile.0 / tenth.0,
            note: against(quantile.0, tenth.0),
        },
        Measured {
            value: all.0,
            note: per_point(all.0),
        },
        Measured {
            value: within.0 / tenth.0,
            note: against(within.0, tenth.0),
        },
        Measured {
            value: newest_of_many.0 / newest_of_few.0,
            note: against(newest_of_many.0, newest_of_few.0),
        },
    ])
}

fn year() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let bucket = account.bucket("year")?;
    let (first_ns, minute_ns) = (days_ago_ns(20)?, 60 * SECOND_NS);
    filled(
        &server,
        &mut account,
        &bucket,
        ("year", YEAR_POINTS),
        (first_ns, minute_ns),
    )?;
    let [few, many] = [100, 1_000].map(|count| -> Outcome<String> {
        let bucket = account.bucket(&format!("{count} sources"))?;
        let sources = account.sources(&bucket, count)?;
        let series = sources.iter().map(|source| {
            let mut series = Series::new(1, first_ns, 600 * SECOND_NS);
            let entries: Vec<Vec<u8>> = (0..144).map(|_| series.entry(source)).collect();
            account.batch(&Series::batch_of(&bucket, &entries))
        });
        drive(server.address, &[series.collect()])?;
        Ok(bucket)
    });
    let (few, many) = (few?, many?);
    server.settle()?;
    let ask = |more: Value| {
        let mut body = json!({
            "bucketId": bucket, "aggregation": "avg", "groupBy": "hour",
            "filters": {
                "fields": ["temperature"], "startTime": moment(first_ns),
                "endTime": moment(first_ns + (YEAR_POINTS as i64 - 1) * minute_ns),
            },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    };
    let top = |bucket: &str| {
        json!({
            "bucketId": bucket, "aggregation": "avg", "groupBy": "all", "filters": {"fields": ["temperature"]},
            "top": {"n": 10, "by": "max"},
        })
    };
    let [utc, local, plain, filled, compared, of_few, of_many] = asked(
        &server,
        &account,
        [
            ask(json!({"groupBy": "day"})),
            ask(json!({"groupBy": "day", "timezone": "America/New_York"})),
            ask(json!({})),
            ask(json!({"fill": "linear"})),
            ask(json!({"compare": {"offset": "7d"}})),
            top(&few),
            top(&many),
        ],
    )?;
    Ok([
        (local, utc),
        (filled, plain),
        (compared, plain),
        (of_many, of_few),
    ]
    .map(|((one, _), (other, _))| Measured {
        value: one / other,
        note: against(one, other),
    })
    .into())
}
