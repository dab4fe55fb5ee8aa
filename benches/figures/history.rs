//! Points that arrive in any order: after merges, a query reads as few blocks as for points that arrived in order.

use fastrand::Rng;
use serde_json::json;
use tidewatch::timestamp::format_timestamp_ns;

use crate::Outcome;
use crate::client::{Connection, drive};
use crate::fleet::Filler;
use crate::metrics::{CHECKPOINTS, MERGES, Metrics, SEGMENTS, metric, wait_for_merges};
use crate::points::{BATCH, SECOND_NS, Series, days_ago_ns};
use crate::server::{Account, NAME, Server, data_root};
use crate::table::{Experiment, Figure, Measured, Requirement};

pub const HISTORY: Experiment = Experiment {
    figures: &[
        // Each file may have a block that the range cuts at either end.
        Figure {
            what: "additional blocks read by a grouped query if points arrived out of order",
            required: Requirement::AtMost(2.0),
            unit: "blocks",
        },
    ],
    run: history,
};

const POINTS: usize = 500_000;
const CHECKPOINT_BYTES: (&str, &str) = ("storage.checkpoint_bytes", "1048576");
const CHECKPOINTS_WITH_POINTS: usize = 16;
const CHECKPOINTS_WITHOUT: usize = 16;
const OPENED: &str = "tidewatch_query_blocks_opened_total";
/// The second of nearly six days, with both ends within an hour.
const FROM_S: i64 = 86_400 + 1_234;
const TO_S: i64 = 2 * 86_400 + 1_234;

fn history() -> Outcome<Vec<Measured>> {
    let dir = data_root()?;
    let server = Server::start(&dir.path().join("data"), &[CHECKPOINT_BYTES])?;
    let mut account = Account::sign_up(&server, NAME)?;
    let first_ns = days_ago_ns(20)?;
    let (ordered, shuffled) = (account.bucket("ordered")?, account.bucket("shuffled")?);
    let sources = [account.source(&ordered, "a")?, account.source(&shuffled, "a")?];
    let mut filler = Filler::of(&server, &mut account)?;
    let [entries, mut others] = [0, 1].map(|place| {
        let mut series = Series::new(1, first_ns, SECOND_NS);
        (0..POINTS)
            .map(|_| series.entry(&sources[place]))
            .collect::<Vec<_>>()
    });
    Rng::with_seed(1).shuffle(&mut others);
    let each = POINTS / CHECKPOINTS_WITH_POINTS;
    for (entries, others) in entries.chunks(each).zip(others.chunks(each)) {
        // Sent in alternation, so that both sources are in the same segments.
        let (one, other) = (
            requests(&account, &ordered, entries),
            requests(&account, &shuffled, others),
        );
        let in_turns = one.into_iter().zip(other).flat_map(|(one, other)| [one, other]);
        drive(server.address, &[in_turns.collect()])?;
        filler.until_checkpoint(&server, metric(&server, CHECKPOINTS)?)?;
    }
    // Segments with points are merged once enough of similar size exist.
    for _ in 0..CHECKPOINTS_WITHOUT {
        filler.until_checkpoint(&server, metric(&server, CHECKPOINTS)?)?;
    }
    wait_for_merges(&server)?;
    let queried = [(&ordered, &sources[0]), (&shuffled, &sources[1])];
    let [in_order, in_disorder] = queried.map(|(bucket, source)| -> Outcome<(f64, Vec<u8>)> {
        let moment = |seconds: i64| {
            format_timestamp_ns(first_ns + seconds * SECOND_NS)
                .as_bytes()
                .to_vec()
        };
        let range = [
            String::from_utf8(moment(FROM_S))?,
            String::from_utf8(moment(TO_S))?,
        ];
        let query = account.query(
            &json!({"bucketId": bucket, "aggregation": "avg", "groupBy": "hour",
            "filters": {"dataSourceIds": [source], "startTime": range[0], "endTime": range[1]}}),
        );
        let before = metric(&server, OPENED)?;
        let answer = Connection::open(server.address)?.send_ok(&query)?.to_vec();
        Ok((metric(&server, OPENED)? - before, answer))
    });
    let (in_order, in_disorder) = (in_order?, in_disorder?);
    let metrics = Metrics::of(&server)?;
    let note = format!(
        "{} against {} blocks for the hours of one day of 5.8 ({POINTS} points, one a second, in batches of {BATCH}, \
         shuffled with seed 1 over all of it), after {} checkpoints and {} merges; {} segments, of which the smaller ones may contain neither",
        in_disorder.0,
        in_order.0,
        metrics.get(CHECKPOINTS)?,
        metrics.get(MERGES)?,
        metrics.get(SEGMENTS)?
    );
    Ok(vec![Measured {
        value: in_disorder.0 - in_order.0,
        note,
    }])
}

fn requests(account: &Account, bucket: &str, entries: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let batches = entries.chunks(BATCH);
    batches
        .map(|entries| account.batch(&Series::batch_of(bucket, entries)))
        .collect()
}
