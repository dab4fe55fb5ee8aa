//! Stale markers: invisible end marks of series (small print, "What collides" 1). PromQL answers as Prometheus does, and
//! nobody else sees them.

use serde_json::{Value, json};

use super::samples::{AT_MS, STALE, V1, assert_written, sample, send, series};
use super::{bucket, rows_of, source};
use crate::scene::{self, call, column};
use crate::support::given::{Account, Bucket, text};
use crate::support::receiver::{Receiver, status};
use crate::support::time::timestamp;

const MARKS: &str =
    "small print: stale markers are kept as invisible end marks, and PromQL answers as Prometheus does";
/// From one scrape to the next.
const SCRAPE_MS: i64 = 15_000;

fn stale(at_ms: i64) -> Vec<u8> {
    sample(f64::from_bits(STALE), at_ms)
}

fn up(job: &str, samples: &[Vec<u8>]) -> Vec<u8> {
    series(&[("__name__", "up"), ("job", job)], samples)
}

#[track_caller]
fn write(bucket: &Bucket, message: &[u8], samples: &str) {
    assert_written(&send(bucket, V1, message), 204, samples);
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[track_caller]
fn ask(bucket: &Bucket, route: &str, parameters: &str) -> Value {
    let path = format!("/prometheus/{}/api/v1/{route}?{parameters}", bucket.id);
    let answer = bucket.client.get(&path).key(&bucket.admin).send();
    answer.expect(200, "contract 16")["data"].clone()
}

/// The values at an instant, by the job that they belong to.
#[track_caller]
fn at(bucket: &Bucket, query: &str, at_ms: i64) -> Vec<(String, String)> {
    let time = at_ms as f64 / 1e3;
    let found = ask(bucket, "query", &format!("query={}&time={time}", encoded(query)));
    let result = found["result"].as_array().into_iter().flatten();
    let mut found: Vec<(String, String)> = result
        .map(|found| (text(found, "/metric/job"), text(found, "/value/1")))
        .collect();
    found.sort();
    found
}

fn of(values: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(job, value): &(&str, &str)| ((*job).to_owned(), (*value).to_owned());
    values.iter().map(own).collect()
}

/// What every route says of the points, and what must not change by an end.
fn seen(bucket: &Bucket, account: &Account) -> Vec<Value> {
    let id = text(&source(bucket, "up").unwrap(), "/_id");
    let shown = |below: &str| bucket.call("GET", below, &Value::Null).expect(200, "a list");
    let mut seen = vec![
        shown("/sources"),
        shown(&format!("/sources/{id}")),
        shown(&format!("/sources/{id}/series")),
        shown(&format!("/sources/{id}/dimensions")),
        shown(&format!("/sources/{id}/dimensions/job")),
        bucket.query(&json!({})),
        bucket.query(&json!({"aggregation": "count", "groupBy": "all"})),
        bucket.query(&json!({"aggregation": "last", "groupBy": "hour", "groupByDimensions": ["job"]})),
        bucket.query(&json!({"maxPoints": 100})),
    ];
    let range = format!("start={}&end={}", AT_MS / 1_000 - 60, AT_MS / 1_000 + 600);
    seen.push(ask(bucket, "series", &format!("match[]=up&{range}")));
    seen.push(ask(bucket, "label/job/values", &range));
    let with_key = |method: &str, path: &str, body: &Value| {
        call(&bucket.client, &bucket.admin, method, path, body).expect(200, "an answer")
    };
    let dry_run = json!({"bucketId": bucket.id, "filters": {"startTime": timestamp(0)}, "dryRun": true});
    seen.push(with_key("POST", "/api/data/delete", &dry_run)["deletedCount"].clone());
    let of_bucket = with_key(
        "GET",
        &format!("/api/analytics/buckets/{}", bucket.id),
        &Value::Null,
    );
    seen.push(of_bucket["analytics"].clone());
    let overview = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/analytics/overview",
        &Value::Null,
    );
    let overview = overview.expect(200, "the overview")["overview"].clone();
    seen.push(overview["totals"].clone());
    seen.push(overview["recentActivity"].clone());
    let export = json!({"bucketId": bucket.id, "format": "ndjson"});
    let export = call(&bucket.client, &bucket.admin, "POST", "/api/data/export", &export);
    seen.push(json!(export.text()));
    seen
}

#[test]
fn a_series_that_has_ended_is_gone_for_promql_and_all_else_is_as_before() {
    let (_server, account, bucket) = bucket();
    let samples = [sample(1.0, AT_MS), sample(2.0, AT_MS + SCRAPE_MS)];
    write(
        &bucket,
        &[up("a", &samples[..1]), up("b", &samples)].concat(),
        "3",
    );
    let before = seen(&bucket, &account);
    assert_eq!(
        at(&bucket, "up", AT_MS + 20_000),
        of(&[("a", "1"), ("b", "2")]),
        "the look-back of five minutes"
    );
    for round in 0..2 {
        write(&bucket, &up("a", &[stale(AT_MS + SCRAPE_MS)]), "1");
        assert_eq!(seen(&bucket, &account), before, "{MARKS}: round {round}");
        let ask = |query: &str, at_ms: i64| at(&bucket, query, at_ms);
        assert_eq!(
            ask("up", AT_MS + 14_000),
            of(&[("a", "1"), ("b", "1")]),
            "{MARKS}"
        );
        assert_eq!(ask("up", AT_MS + 15_000), of(&[("b", "2")]), "{MARKS}: at once");
        assert_eq!(ask("up", AT_MS + 200_000), of(&[("b", "2")]), "{MARKS}");
        assert_eq!(
            ask("count_over_time(up[1m])", AT_MS + 20_000),
            of(&[("a", "1"), ("b", "2")]),
            "{MARKS}: in a range a mark is no sample"
        );
        assert_eq!(
            ask("up offset 10s", AT_MS + 20_000),
            of(&[("a", "1"), ("b", "1")]),
            "{MARKS}"
        );
    }
    let start = AT_MS / 1_000;
    let steps = ask(
        &bucket,
        "query_range",
        &format!(
            "query={}&start={start}&end={}&step=10",
            encoded("up{job=\"a\"}"),
            start + 60
        ),
    );
    assert_eq!(
        steps["result"][0]["values"],
        json!([[start, "1"], [start + 10, "1"]]),
        "{MARKS}"
    );
    write(&bucket, &up("a", &[sample(7.0, AT_MS + 4 * SCRAPE_MS)]), "1");
    assert_eq!(
        at(&bucket, "up", AT_MS + 59_000),
        of(&[("b", "2")]),
        "{MARKS}: until it comes back"
    );
    assert_eq!(at(&bucket, "up", AT_MS + 60_000), of(&[("a", "7"), ("b", "2")]));
    assert_eq!(
        at(&bucket, "changes(up[5m])", AT_MS + 60_000),
        of(&[("a", "1"), ("b", "1")])
    );
}

#[test]
fn the_end_of_nothing_creates_nothing() {
    let (_server, _account, bucket) = bucket();
    write(&bucket, &up("a", &[sample(1.0, AT_MS)]), "1");
    let unknown = series(&[("__name__", "gone"), ("job", "a")], &[stale(AT_MS)]);
    write(&bucket, &[unknown, up("z", &[stale(AT_MS)])].concat(), "2");
    assert!(source(&bucket, "gone").is_none(), "small print K1");
    assert_eq!(source(&bucket, "up").unwrap()["stats"]["seriesCount"], 1);
    write(&bucket, &up("z", &[sample(3.0, AT_MS - 1_000)]), "1");
    assert_eq!(
        at(&bucket, "up", AT_MS + 1_000),
        of(&[("a", "1"), ("z", "3")]),
        "it did not exist when it ended"
    );
    let message = up("new", &[sample(1.0, AT_MS), stale(AT_MS + SCRAPE_MS)]);
    write(&bucket, &message, "2");
    assert_eq!(
        at(&bucket, "up{job=\"new\"}", AT_MS + 20_000),
        [],
        "{MARKS}: also of one that begins in the same request"
    );
    assert_eq!(at(&bucket, "up{job=\"new\"}", AT_MS), of(&[("new", "1")]));
}

#[test]
fn ends_outlive_kills_and_stops() {
    let (mut server, _account, bucket) = scene::sealing_bucket();
    let samples = [sample(1.0, AT_MS)];
    write(&bucket, &[up("a", &samples), up("b", &samples)].concat(), "2");
    write(&bucket, &up("a", &[stale(AT_MS + SCRAPE_MS)]), "1");
    for (round, stop) in [false, true, false, true].into_iter().enumerate() {
        match stop {
            false => server.kill(),
            true => drop(server.stop()),
        }
        server.launch();
        assert_eq!(
            at(&bucket, "up", AT_MS + 20_000),
            of(&[("b", "1")]),
            "{MARKS}: durable like points"
        );
        assert_eq!(rows_of(&bucket, "up").len(), 2);
        // Enough for a checkpoint, and for merges later.
        let filled = (0..2_000).map(|number| sample(f64::from(number).sin(), AT_MS + i64::from(number)));
        let name = format!("filler_{round}");
        let filled = series(&[("__name__", &name)], &filled.collect::<Vec<_>>());
        write(&bucket, &filled, "2000");
    }
}

#[test]
fn ends_go_with_their_time_and_their_source() {
    let (_server, _account, bucket) = bucket();
    let samples = [sample(1.0, AT_MS)];
    let write_all = || {
        write(&bucket, &[up("a", &samples), up("b", &samples)].concat(), "2");
        let end = [stale(AT_MS + SCRAPE_MS)];
        write(&bucket, &[up("a", &end), up("b", &end)].concat(), "2");
        assert_eq!(at(&bucket, "up", AT_MS + 20_000), []);
    };
    write_all();
    let delete = |filters: &Value| {
        let body = json!({"bucketId": bucket.id, "filters": filters});
        let answer = call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &body);
        answer.expect(200, "contract 11: delete")["deletedCount"].clone()
    };
    let from = timestamp((AT_MS + 10_000) * 1_000_000);
    assert_eq!(delete(&json!({"startTime": from})), 0, "an end is no point");
    assert_eq!(
        at(&bucket, "up", AT_MS + 20_000),
        of(&[("a", "1"), ("b", "1")]),
        "a deletion of a time takes the ends of that time along"
    );
    write_all();
    let id = text(&source(&bucket, "up").unwrap(), "/_id");
    let of_a = json!({"dataSourceIds": [id], "dimensions": {"job": "a"}});
    assert_eq!(delete(&of_a), 1, "an end is no point");
    write(&bucket, &up("a", &samples), "1");
    assert_eq!(
        at(&bucket, "up", AT_MS + 20_000),
        of(&[("a", "1")]),
        "one of a series the ends of this series"
    );
    let gone = bucket.call("DELETE", &format!("/sources/{id}"), &Value::Null);
    let gone = gone.expect(200, "contract 3: delete");
    assert_eq!(gone["deletedResources"]["dataPoints"], 2, "an end is no point");
    write(&bucket, &[up("a", &samples), up("b", &samples)].concat(), "2");
    assert_eq!(
        at(&bucket, "up", AT_MS + 20_000),
        of(&[("a", "1"), ("b", "1")]),
        "a new source has no ends"
    );
}

#[test]
fn a_source_without_dimensions_ends_as_a_whole() {
    let (_server, _account, bucket) = bucket();
    bucket.source("up", &["value", "text"]);
    write(&bucket, &up("a", &[stale(AT_MS - 1)]), "1");
    write(&bucket, &up("a", &[sample(1.0, AT_MS)]), "1");
    let values = |at_ms: i64| {
        let time = at_ms as f64 / 1e3;
        let found = ask(&bucket, "query", &format!("query=up&time={time}"));
        let rows = found["result"].as_array().cloned().unwrap_or_default();
        column(&rows, "/value/1")
    };
    assert_eq!(values(AT_MS + 1_000), ["1"]);
    write(&bucket, &up("a", &[stale(AT_MS + SCRAPE_MS)]), "1");
    assert_eq!(values(AT_MS + 20_000), [] as [Value; 0], "{MARKS}");
    assert_eq!(rows_of(&bucket, "up").len(), 1);
}

#[test]
fn webhooks_do_not_hear_of_ends() {
    let server = scene::server_with("webhooks.allow_private_networks", "true");
    let (_server, account, bucket) = scene::bucket_on(server);
    let receiver = Receiver::answering(|_, _| status(200));
    let hook = account.webhook(&json!({"url": receiver.url("/"), "events": ["data.received"]}));
    write(&bucket, &up("a", &[sample(1.0, AT_MS)]), "1");
    receiver.wait("/", 1);
    write(&bucket, &up("a", &[stale(AT_MS + SCRAPE_MS)]), "1");
    write(
        &bucket,
        &up(
            "a",
            &[sample(2.0, AT_MS + 2 * SCRAPE_MS), stale(AT_MS + 3 * SCRAPE_MS)],
        ),
        "2",
    );
    let received = receiver.wait("/", 2);
    assert_eq!(
        received[1].json()["data"]["dataPointCount"],
        1,
        "{MARKS}: {}",
        received[1].json()
    );
    let path = format!("/api/webhooks/{}/deliveries", text(&hook, "/_id"));
    let listed = call(&account.client, &account.admin, "GET", &path, &Value::Null);
    let listed = listed.expect(200, "contract 7: deliveries");
    assert_eq!(listed["pagination"]["total"], 2, "{MARKS}");
}
