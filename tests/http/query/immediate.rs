//! Small questions are answered on the threads of their requests, everything else on query threads.
//! `tidewatch_queries_immediate_total` says which it was.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::operation::metrics::Metrics;
use crate::scene;
use crate::support::given::Bucket;
use crate::support::process::Server;
use crate::support::time::{SECOND, now_ns, timestamp};
use crate::support::waiting::until;

/// More than may be selected one by one in a short turn.
const SERIES: i64 = 5_000;
/// Points of each series.
const POINTS: i64 = 3;

/// A bucket with one source of many series; the value of each point is its series' number. Returns the first time.
fn filled() -> (Server, Bucket, i64) {
    let (server, _, bucket) = scene::bucket();
    let first_ns = now_ns() / SECOND * SECOND - 10 * SECOND;
    for at_ns in (0..POINTS).map(|place| first_ns + place * SECOND) {
        let mut lines = String::new();
        for series in 0..SERIES {
            let rack = series % 4;
            writeln!(lines, "cpu,host=h{series},rack=r{rack} v={series} {at_ns}").unwrap();
        }
        let request = bucket.client.post(&format!("/write?bucket={}", bucket.id));
        let answer = request.key(&bucket.admin).bytes(lines.as_bytes()).send();
        assert_eq!(answer.status, 204, "{answer}");
    }
    (server, bucket, first_ns)
}

fn immediate(server: &Server) -> f64 {
    Metrics::of(&server.client).value("tidewatch_queries_immediate_total")
}

/// Asks until the answer came from the thread of the request: a turn is queued after all if the thread was interrupted
/// for a millisecond.
#[track_caller]
fn immediately(server: &Server, bucket: &Bucket, question: &Value) -> Value {
    until("an immediate answer", || {
        let before = immediate(server);
        let answer = bucket.query(question);
        (immediate(server) > before).then_some(answer)
    })
}

#[test]
fn a_question_about_few_series_is_answered_at_once_however_many_there_are() {
    let (mut server, bucket, first_ns) = filled();
    // New series are compared one by one until a checkpoint.
    server.stop();
    server.launch();
    let mean = |host: &Value| json!({"aggregation": "avg", "groupBy": "all", "filters": {"dimensions": {"host": host}}});
    let answer = immediately(&server, &bucket, &mean(&json!("h4321")));
    assert_eq!(answer["data"][0]["values"]["v"], json!(4_321), "{answer}");
    let pattern = bucket.query(&mean(&json!({"matches": "h4321"})));
    assert_eq!(answer, pattern, "a query thread answers the same");
    let newest = json!({"sort": "desc", "limit": 2, "filters": {"dimensions": {"host": ["h7", "h9"]}}});
    let answer = immediately(&server, &bucket, &newest);
    let rows = scene::array(&answer, "/data");
    let times: Vec<_> = rows.iter().map(|row| row["timestamp"].clone()).collect();
    let last = timestamp(first_ns + (POINTS - 1) * SECOND);
    assert_eq!(times, [last.as_str(), &last], "{answer}");
}

/// Whatever takes more than an immediate turn, and whatever has to be refused.
#[test]
fn all_other_questions_wait_for_a_query_thread() {
    let (mut server, bucket, _) = filled();
    server.stop();
    server.launch();
    let hosts = |names: &Value| json!({"dimensions": {"host": names}});
    let count = |filters: Value| json!({"aggregation": "count", "groupBy": "all", "filters": filters});
    let ten: Value = (0..10).map(|series| format!("h{series}")).collect();
    let range = |more: Value| {
        let body = json!({"aggregation": "count", "groupBy": "hour", "filters": {
            "dimensions": {"host": "h1"}, "startTime": scene::in_days(-1), "endTime": scene::in_days(1),
        }});
        scene::with_members(body, &more)
    };
    let by_rack = json!({"aggregation": "count", "groupBy": "all", "groupByDimensions": ["rack"],
        "filters": hosts(&json!("h1"))});
    for (why, status, question) in [
        ("all series", 200, count(json!({}))),
        (
            "a quarter of them",
            200,
            count(json!({"dimensions": {"rack": "r1"}})),
        ),
        (
            "each value is compared",
            200,
            count(hosts(&json!({"matches": "h432."}))),
        ),
        ("many values are looked up", 200, count(hosts(&ten))),
        (
            "no point shows that the dimension exists",
            200,
            count(hosts(&json!("h"))),
        ),
        ("neither here", 400, count(json!({"dimensions": {"hosts": "h1"}}))),
        ("groups by dimensions", 200, by_rack),
        ("steps without points", 200, range(json!({"fill": "null"}))),
        ("another range", 200, range(json!({"compare": {"offset": "1d"}}))),
    ] {
        // Shows that there is no pause.
        immediately(&server, &bucket, &count(hosts(&json!("h1"))));
        let before = immediate(&server);
        let mut body = question;
        body["bucketId"] = json!(bucket.id);
        let request = bucket.client.post("/api/data/query").key(&bucket.admin);
        let answer = request.json(&body).send();
        assert_eq!(answer.status, status, "{why}: {answer}");
        assert_eq!(immediate(&server), before, "{why}");
    }
}
