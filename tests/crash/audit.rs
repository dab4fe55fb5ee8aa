//! Invariants after a restart that follows any kind of end.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use crate::ledger::{Ledger, Operation, Place, Sent};
use crate::load::send;
use crate::support::client::Client;
use crate::support::given::Account;
use crate::support::time::{HOUR, SECOND, now_ns, timestamp};

/// All raw rows of a bucket, page by page.
pub fn rows(place: &Place) -> Vec<Value> {
    let mut body = json!({"limit": 10_000, "downsampling": false});
    let mut rows = Vec::new();
    loop {
        let mut answer = place.bucket.query(&body);
        match answer["data"].take() {
            Value::Array(page) => rows.extend(page),
            other => panic!("spec: `data` is an array, not {other}"),
        }
        if answer["metadata"]["hasMore"] == false {
            return rows;
        }
        body["cursor"] = answer["metadata"]["nextCursor"].take();
    }
}

pub fn number(row: &Value) -> u64 {
    row["values"]["number"]
        .as_u64()
        .unwrap_or_else(|| panic!("every point of this test has a number: {row}"))
}

/// Every acknowledged point is present exactly once and as sent, every unanswered request completely or not at all,
/// nothing else is present, and ids are unchanged. Unanswered requests that are present count as acknowledged from now
/// on; the others are forgotten, unless they have a key and are sent again.
pub fn points(places: &[Place], ledger: &mut Ledger, context: &str) {
    let mut found: HashMap<u64, (usize, Value)> = HashMap::new();
    let mut ids: HashSet<(usize, String)> = HashSet::new();
    for (bucket, place) in places.iter().enumerate() {
        for row in rows(place) {
            let id = row["_id"].as_str().unwrap_or("?").to_owned();
            assert!(
                ids.insert((bucket, id)),
                "contract 4: `_id` of a point is unique: {row} ({context})"
            );
            let (number, row) = (number(&row), row);
            let twice = found.insert(number, (bucket, row));
            assert!(
                twice.is_none(),
                "contract 4: point {number} was sent once and is there twice ({context})"
            );
        }
    }
    for sent in ledger.acknowledged.values() {
        let Some((bucket, row)) = found.get(&sent.number) else {
            panic!(
                "contract 4: acknowledged means durable: point {} is gone ({context})",
                sent.number
            )
        };
        assert_as_sent(sent, *bucket, row, places, context);
    }
    for (operation, _) in settle(ledger, |number| found.contains_key(&number), context) {
        for sent in &operation.points {
            let (bucket, row) = &found[&sent.number];
            assert_as_sent(sent, *bucket, row, places, context);
        }
        ledger.acknowledge(&operation);
    }
    for number in found.keys() {
        let sent = ledger.acknowledged.contains_key(number);
        assert!(
            sent,
            "contract 4: nothing is there that was not sent: point {number} ({context})"
        );
    }
    for (number, (_, row)) in found {
        let id = row["_id"].as_str().unwrap_or("?").to_owned();
        let before = ledger.ids.entry(number).or_insert_with(|| id.clone());
        assert_eq!(
            *before, id,
            "contract 4: `_id` of a point never changes: point {number} ({context})"
        );
    }
}

/// Removes the unanswered requests that are present from the ledger; absent ones stay only with a key.
fn settle(ledger: &mut Ledger, is_there: impl Fn(u64) -> bool, context: &str) -> Vec<(Operation, usize)> {
    let mut there = Vec::new();
    let mut retried = Vec::new();
    for operation in ledger.unknown.drain(..) {
        let count = operation
            .points
            .iter()
            .filter(|sent| is_there(sent.number))
            .count();
        let whole = count == operation.points.len();
        assert!(
            whole || count == 0,
            "contract 4: a batch's entries appear together, or not at all: {count} of {} ({context})",
            operation.points.len()
        );
        if operation.idempotency_key.is_some() {
            retried.push(operation.clone());
        }
        if whole {
            there.push((operation, count));
        }
    }
    ledger.unknown = retried;
    there
}

fn assert_as_sent(sent: &Sent, bucket: usize, row: &Value, places: &[Place], context: &str) {
    let sentence = "contract 4: a stored point does not change";
    assert_eq!(bucket, sent.bucket, "{sentence}: the bucket of {row} ({context})");
    assert_eq!(
        row["dataSourceId"], places[bucket].sources[sent.source],
        "{sentence}: the source of {row} ({context})"
    );
    assert_eq!(
        row["timestamp"],
        timestamp(sent.at),
        "{sentence}: the timestamp of {row} ({context})"
    );
    assert_eq!(
        row["values"]["half"].as_f64(),
        Some(sent.number as f64 / 2.0),
        "{sentence}: the values of {row} ({context})"
    );
    assert_eq!(
        row.get("metadata").cloned(),
        sent.metadata(),
        "{sentence}: the metadata of {row} ({context})"
    );
}

/// Requests without an answer are retried with their key: exactly one execution is stored. Requests with an answer are
/// repeated and get the same answer.
pub fn retries(
    client: &Client,
    places: &[Place],
    ledger: &mut Ledger,
    random: &mut fastrand::Rng,
    context: &str,
) {
    for operation in std::mem::take(&mut ledger.unknown) {
        let was_there = ledger.acknowledged.contains_key(&operation.points[0].number);
        let admin = &places[operation.points[0].bucket].bucket.admin;
        let answer =
            send(client, admin, &operation).unwrap_or_else(|| panic!("no answer to a retry ({context})"));
        assert_eq!(
            answer.status,
            operation.success(),
            "contract 4: a retry with its key: {answer} ({context})"
        );
        let replayed = answer.header("idempotent-replayed") == Some("true");
        assert_eq!(
            replayed, was_there,
            "contract 4: a retry is a replay if the first was stored: {answer} ({context})"
        );
        ledger.acknowledge(&operation);
        ledger.replayable.push((operation, answer.text()));
    }
    for _ in 0..ledger.replayable.len().min(10) {
        let (operation, first) = &ledger.replayable[random.usize(..ledger.replayable.len())];
        let admin = &places[operation.points[0].bucket].bucket.admin;
        let answer =
            send(client, admin, operation).unwrap_or_else(|| panic!("no answer to a retry ({context})"));
        let sentence =
            "contract 4: the same key with the same body gives the first answer again, over restarts";
        assert_eq!(
            answer.header("idempotent-replayed"),
            Some("true"),
            "{sentence}: {answer} ({context})"
        );
        assert_eq!(answer.text(), *first, "{sentence} ({context})");
    }
}

/// Asserts that grouped counts, sums and extremes equal those of the raw rows.
pub fn groups(places: &[Place], random: &mut fastrand::Rng, context: &str) {
    for place in places {
        let rows = rows(place);
        let span = 20 * 24 * 3600;
        let from = timestamp(now_ns() / SECOND * SECOND - random.i64(0..span) * SECOND);
        for bound in [None, Some(from.as_str())] {
            for merge in [false, true] {
                let numbers = numbers_by_hour(&rows, bound, merge);
                for aggregation in ["count", "sum", "min", "max"] {
                    let mut body =
                        json!({"aggregation": aggregation, "groupBy": "hour", "mergeSources": merge});
                    if let Some(from) = bound {
                        body["filters"] = json!({"startTime": from});
                    }
                    let aggregate = |numbers: &[u64]| match aggregation {
                        "count" => numbers.len() as u64,
                        "sum" => numbers.iter().sum(),
                        "min" => numbers.iter().copied().min().unwrap_or_default(),
                        _ => numbers.iter().copied().max().unwrap_or_default(),
                    };
                    let expected: BTreeMap<&Group, u64> = numbers
                        .iter()
                        .map(|(group, numbers)| (group, aggregate(numbers)))
                        .collect();
                    let found = groups_of(&place.bucket.query(&body));
                    let found: BTreeMap<&Group, u64> =
                        found.iter().map(|(group, number)| (group, *number)).collect();
                    assert_eq!(
                        found, expected,
                        "contract 5: grouped results equal the raw points: {body} ({context})"
                    );
                }
            }
        }
    }
}

/// The start of an hour, and the source unless all are merged.
type Group = (String, String);

fn numbers_by_hour(rows: &[Value], from: Option<&str>, merge: bool) -> BTreeMap<Group, Vec<u64>> {
    let mut numbers: BTreeMap<Group, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let at = row["timestamp"].as_str().unwrap_or("?");
        if from.is_none_or(|from| instant(at) >= instant(from)) {
            let source = if merge {
                ""
            } else {
                row["dataSourceId"].as_str().unwrap_or("?")
            };
            numbers
                .entry((format!("{}:00:00Z", &at[..13]), source.to_owned()))
                .or_default()
                .push(number(row));
        }
    }
    numbers
}

fn groups_of(answer: &Value) -> Vec<(Group, u64)> {
    let group = |row: &Value| {
        let source = row["dataSourceId"].as_str().unwrap_or_default().to_owned();
        let start = row["timestamp"].as_str().unwrap_or("?").to_owned();
        (
            (start, source),
            row["values"]["number"].as_u64().unwrap_or(u64::MAX),
        )
    };
    answer["data"]
        .as_array()
        .into_iter()
        .flatten()
        .map(group)
        .collect()
}

/// Pads the fraction of a timestamp, so that timestamps of one form compare as texts.
fn instant(timestamp: &str) -> String {
    let digits = timestamp.trim_end_matches('Z');
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    format!("{seconds}.{fraction:0<9}")
}

/// Asserts that acknowledged creations and deletions of sources have taken effect.
pub fn sources(client: &Client, place: &Place, ledger: &mut Ledger, context: &str) {
    for (id, deleted) in &mut ledger.created {
        let path = format!("/api/buckets/{}/sources/{id}", place.bucket.id);
        let status = client.get(&path).key(&place.bucket.admin).send().status;
        match deleted {
            Some(false) => assert_eq!(status, 200, "an acknowledged source is gone ({context})"),
            Some(true) => assert_eq!(
                status, 404,
                "a source is back whose deletion was acknowledged ({context})"
            ),
            None => *deleted = Some(status == 404),
        }
    }
}

/// Asserts that the account is unchanged and its token valid.
pub fn account(account: &Account, context: &str) {
    let me = account.client.get("/api/auth/me").bearer(&account.token).send();
    let me = me.expect(
        200,
        &format!("contract 2: a token is good for 12 h, over restarts ({context})"),
    );
    assert_eq!(
        me["user"]["email"], account.email,
        "the user is as before ({context})"
    );
    assert_eq!(
        me["organization"]["_id"], account.organization_id,
        "the organization is as before ({context})"
    );
}

/// Number of hours of the last three weeks with points, printed to show the coverage of the test.
pub fn hours(places: &[Place]) -> usize {
    let bound = timestamp(now_ns() - 21 * 24 * HOUR);
    let body = json!({
        "filters": {"startTime": bound}, "aggregation": "count", "groupBy": "hour", "mergeSources": true,
    });
    places
        .iter()
        .filter_map(|place| place.bucket.query(&body)["metadata"]["count"].as_u64())
        .sum::<u64>() as usize
}
