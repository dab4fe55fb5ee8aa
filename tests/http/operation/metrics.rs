//! `/metrics`: the whole text, parsed as Prometheus parses it.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;

use crate::scene::{self, UNKNOWN_ID};
use crate::support::client::Client;
use crate::support::given::point;
use crate::support::time::{SECOND, now_ns};

/// A parsed text: samples by name and labels.
pub struct Metrics {
    pub text: String,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// Requests and parses the text; fails if a line violates the format.
    #[track_caller]
    pub fn of(client: &Client) -> Self {
        let answer = client.get("/metrics").send();
        assert_eq!(answer.status, 200, "contract 9: /metrics: no key: {answer}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8"),
            "contract 9: Prometheus text"
        );
        Self::read(answer.text())
    }

    fn read(text: String) -> Self {
        let (mut kinds, mut helped, mut samples) = (HashMap::new(), HashSet::new(), BTreeMap::new());
        let mut current = String::new();
        assert!(text.ends_with('\n'), "the last line ends like all others");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').unwrap();
                assert!(!words.is_empty(), "no help: {line}");
                assert!(helped.insert(name.to_owned()), "HELP twice: {line}");
                name.clone_into(&mut current);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(name, current, "TYPE follows HELP of the same metric");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
                assert_eq!(
                    kind == "counter",
                    name.ends_with("_total"),
                    "counters, and only they, end in _total: {line}"
                );
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                let family = match kinds.get(&current).map(String::as_str) {
                    Some("histogram") => ["_bucket", "_sum", "_count"]
                        .iter()
                        .find_map(|suffix| name.strip_suffix(suffix)),
                    Some(_) => Some(name),
                    None => None,
                };
                assert_eq!(
                    family,
                    Some(current.as_str()),
                    "a sample follows its TYPE: {line}"
                );
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(name.chars().all(word), "{line}");
                assert!(
                    name.starts_with("tidewatch_") || name.starts_with("process_"),
                    "{line}"
                );
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert_eq!(samples.insert(series.to_owned(), value), None, "twice: {line}");
            }
        }
        let described: HashSet<_> = kinds.into_keys().collect();
        assert_eq!(described, helped, "each metric has HELP and TYPE");
        let metrics = Self { text, samples };
        metrics.assert_histograms_add_up();
        metrics
    }

    fn assert_histograms_add_up(&self) {
        for (series, count) in &self.samples {
            let Some((name, labels)) = series.split_once("_count") else {
                continue;
            };
            let labels = labels.trim_start_matches('{').trim_end_matches('}');
            let inf = if labels.is_empty() {
                format!("{name}_bucket{{le=\"+Inf\"}}")
            } else {
                format!("{name}_bucket{{{labels},le=\"+Inf\"}}")
            };
            assert_eq!(self.samples.get(&inf), Some(count), "{series}");
            let of_it = inf.replace("le=\"+Inf\"}", "le=\"");
            let below = self.samples.iter().filter(|(other, _)| other.starts_with(&of_it));
            assert!(below.clone().count() > 3, "{series} has buckets");
            assert!(below.into_iter().all(|(_, below)| below <= count), "{series}");
        }
    }

    /// The value of a sample; 0 if it is absent.
    pub fn value(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or(0.0)
    }
}

#[test]
fn the_text_is_compressed_as_accepted() {
    let server = scene::server();
    for coding in ["gzip", "zstd"] {
        let answer = server
            .client
            .get("/metrics")
            .header("Accept-Encoding", coding)
            .send();
        assert_eq!(
            (answer.status, answer.header("Content-Encoding")),
            (200, Some(coding)),
            "contract 1: answers are compressed when Accept-Encoding allows it"
        );
        assert_eq!(
            answer.header("Content-Type"),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
    }
}

#[test]
fn requests_and_points_are_counted() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let before = Metrics::of(&server.client);
    let at = now_ns();
    assert_eq!(
        bucket.single(&point(&source, at, &json!({"level": 1}))).status,
        201
    );
    let entries = [
        point(&source, at + SECOND, &json!({"level": 2})),
        point(&source, at + 2 * SECOND, &json!({"level": 3})),
        point(&source, at, &json!({"level": "high"})),
        point(UNKNOWN_ID, at, &json!({"level": 4})),
    ];
    assert_eq!(bucket.batch(&entries).status, 207);
    assert_eq!(bucket.batch(&entries[2..]).status, 400);
    assert_eq!(bucket.rows(&json!({})).len(), 3);
    assert_eq!(
        server.client.get("/api/buckets").key("svc_a_wrong").send().status,
        401
    );
    assert_eq!(server.client.get("/nowhere/at/all").send().status, 404);
    assert_eq!(server.client.request("PUT", "/api/buckets").send().status, 405);
    let unknown = format!("/api/buckets/{UNKNOWN_ID}");
    assert_eq!(server.client.get(&unknown).key(&account.admin).send().status, 404);
    let after = Metrics::of(&server.client);
    let grown = |series: &str| after.value(series) - before.value(series);
    let request = |route: &str, method: &str, status: u16| {
        grown(&format!(
            "tidewatch_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}"
        ))
    };
    for (count, route, method, status) in [
        (1.0, "/api/data", "POST", 201),
        (1.0, "/api/data/batch", "POST", 207),
        (1.0, "/api/data/batch", "POST", 400),
        (1.0, "/api/data/query", "POST", 200),
        (1.0, "/api/buckets", "GET", 401),
        (1.0, "/api/buckets", "other", 405),
        (1.0, "/api/buckets/{id}", "GET", 404),
        (1.0, "none", "GET", 404),
        (1.0, "/metrics", "GET", 200),
    ] {
        assert_eq!(
            request(route, method, status),
            count,
            "{method} {route} {status}\n{}",
            after.text
        );
    }
    let duration = "tidewatch_http_request_duration_seconds_count{route=\"/api/data/batch\",method=\"POST\"}";
    assert_eq!(grown(duration), 2.0);
    assert_eq!(grown("tidewatch_ingest_points_total"), 3.0);
    assert_eq!(grown("tidewatch_ingest_entry_errors_total"), 4.0);
    assert!(grown("tidewatch_ingest_bytes_total") > 100.0);
    assert_eq!(grown("tidewatch_query_duration_seconds_count"), 1.0);
    assert_eq!(grown("tidewatch_query_rows_touched_total"), 3.0);
    assert_eq!(
        grown("tidewatch_query_blocks_opened_total"),
        0.0,
        "all points are in memory"
    );
    assert!(grown("tidewatch_log_records_total") >= 2.0);
    assert!(grown("tidewatch_log_syncs_total") >= 2.0);
    assert!(grown("tidewatch_log_bytes_total") > 100.0);
    assert!(after.value("tidewatch_log_sync_seconds_total") > 0.0);
    assert_eq!(after.value("tidewatch_bucket_actors"), 1.0);
    assert_eq!(after.value("tidewatch_ready"), 1.0);
    assert!(after.value("tidewatch_unsaved_bytes") > 0.0);
    assert!(after.value("tidewatch_http_connections") >= 1.0);
    let now = now_ns() as f64 / 1e9;
    let started = after.value("process_start_time_seconds");
    assert!(started <= now && now - started < 600.0, "{started}, now {now}");
    assert!(after.text.contains("tidewatch_build_info{version=\""));
}

#[test]
fn due_rules_are_counted() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    assert_eq!(Metrics::of(&server.client).value("tidewatch_rules_due"), 0.0);
    let body = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level exceeds 5",
        "evaluation": {"kind": "threshold", "intervalSeconds": 60, "windowSeconds": 600, "dwellSeconds": 0,
            "inputs": [{"key": "l", "field": "level"}], "parameters": {}},
    });
    let created = server
        .client
        .post("/api/alerts")
        .key(&account.admin)
        .json(&body)
        .send();
    assert_eq!(created.status, 201, "{created}");
    assert_eq!(
        Metrics::of(&server.client).value("tidewatch_rules_due"),
        1.0,
        "contract 6: a new rule is due at once"
    );
}

#[test]
fn the_size_of_the_metrics_does_not_depend_on_user_data() {
    let (server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let at = now_ns();
    let send = || {
        assert_eq!(
            bucket.single(&point(&source, at, &json!({"level": 1}))).status,
            201
        )
    };
    let lines = |metrics: &Metrics| metrics.text.lines().count();
    send();
    // The following requests use the routes once before the comparison.
    let account = crate::support::given::Account::sign_up(&server.client);
    account.bucket("first").source("first", &["level"]);
    Metrics::of(&server.client);
    let before = lines(&Metrics::of(&server.client));
    for number in 0..5 {
        let account = crate::support::given::Account::sign_up(&server.client);
        let bucket = account.bucket(&format!("bucket {number}"));
        let source = bucket.source("gauge", &["level"]);
        assert_eq!(
            bucket.single(&point(&source, at, &json!({"level": 1}))).status,
            201
        );
    }
    assert_eq!(lines(&Metrics::of(&server.client)), before);
}
