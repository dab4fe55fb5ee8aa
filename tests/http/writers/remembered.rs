//! A server remembers the series of agents, which send the same again and again. What it remembers of a series must hold
//! for every bucket, and whatever becomes of its source.

use serde_json::{Value, json};

use super::samples::{V1, sample, send, series};
use super::{bucket, post, rows_of, source};
use crate::scene::{array, column};
use crate::support::given::Bucket;

const AT_MS: i64 = 1_700_000_000_000;
const HOSTS: usize = 3;
/// Of line protocol, of remote write and of OTLP.
const SOURCES: [&str; 3] = ["line", "sample", "gauge"];

/// Sends a value of each host in all protocols, at that second.
#[track_caller]
fn write(bucket: &Bucket, second: usize) {
    let at_ms = AT_MS + second as i64 * 1_000;
    let lines = (0..HOSTS).map(|host| format!("line,host={host},core=0 value={second} {at_ms}\n"));
    let answer = post(
        bucket,
        "/write?precision=ms",
        &[],
        lines.collect::<String>().as_bytes(),
    );
    assert_eq!(answer.status, 204, "{answer}");
    let series = (0..HOSTS).map(|host| {
        let labels = [("__name__", "sample"), ("core", "0"), ("host", &host.to_string())];
        series(&labels, &[sample(second as f64, at_ms)])
    });
    let answer = send(bucket, V1, &series.collect::<Vec<_>>().concat());
    assert_eq!(answer.status, 204, "{answer}");
    let points = (0..HOSTS).map(|host| {
        let attribute = |key, value: String| json!({"key": key, "value": {"stringValue": value}});
        json!({
            "timeUnixNano": format!("{at_ms}000000"), "asDouble": second,
            "attributes": [attribute("host", host.to_string()), attribute("core", "0".to_owned())],
        })
    });
    let gauge = json!({"name": "gauge", "gauge": {"dataPoints": points.collect::<Vec<_>>()}});
    let body = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge]}]}]}).to_string();
    let as_json = &[("Content-Type", "application/json")];
    let answer = post(bucket, "/v1/metrics", as_json, body.as_bytes());
    assert_eq!(answer.status, 200, "{answer}");
}

/// Asserts that a source has the values of these seconds, each of every host, and as many series as that.
#[track_caller]
fn assert_has(bucket: &Bucket, name: &str, seconds: &[usize], series: usize) {
    let mut expected: Vec<(Value, Value)> = Vec::new();
    for second in seconds {
        for host in 0..HOSTS {
            let metadata = json!({"host": host.to_string(), "core": "0"});
            expected.push((json!({"value": second}), metadata));
        }
    }
    let mut rows = rows_of(bucket, name);
    rows.sort_by_key(|(values, metadata)| (values["value"].as_i64(), metadata["host"].to_string()));
    assert_eq!(rows, expected, "{name}");
    let found = source(bucket, name).unwrap();
    let grouped = bucket.query(&json!({
        "aggregation": "count", "groupBy": "all", "groupByDimensions": ["host"],
        "filters": {"dataSourceIds": [found["_id"]]},
    }));
    let groups = array(&grouped, "/data");
    assert_eq!(groups.len(), series, "{name}: {grouped}");
    assert!(
        column(&groups, "/values/value")
            .iter()
            .all(|count| *count == (HOSTS * seconds.len() / series)),
        "{name}: {grouped}"
    );
}

#[test]
fn a_remembered_series_is_that_of_the_bucket_and_of_the_source_as_it_is_now() {
    let (_server, account, first) = bucket();
    let second = account.bucket_with(&json!({"name": "second", "retentionDays": 36500}));
    // Here, hosts are no dimension.
    for name in SOURCES {
        second.source_with(&json!({
            "name": name, "schema": {"value": {"type": "number"}}, "dimensions": ["core"],
        }));
    }
    // The same sources and series, with other ordinals.
    let third = account.bucket_with(&json!({"name": "third", "retentionDays": 36500}));
    let lines = (0..HOSTS)
        .rev()
        .map(|host| format!("line,host={host},core=0 value=20 {AT_MS}\n"));
    let lines = lines.collect::<String>();
    assert_eq!(
        post(&third, "/write?precision=ms", &[], lines.as_bytes()).status,
        204
    );
    for at in 0..3 {
        write(&first, at);
        write(&second, at + 10);
        write(&third, at + 21);
    }
    assert_has(&third, "line", &[20, 21, 22, 23], HOSTS);
    assert_has(&third, "sample", &[21, 22, 23], HOSTS);
    assert_has(&third, "gauge", &[21, 22, 23], HOSTS);
    for name in SOURCES {
        assert_has(&first, name, &[0, 1, 2], HOSTS);
        let rows = rows_of(&second, name);
        assert_eq!(rows.len(), 3 * HOSTS, "each host's values, in one series");
        assert!(
            rows.iter()
                .all(|(values, _)| values["value"].as_i64() >= Some(10))
        );
        let grouped = second.post_query(&json!({
            "aggregation": "count", "groupBy": "all", "groupByDimensions": ["host"],
        }));
        assert_eq!(grouped.status, 400, "no dimension of this bucket: {grouped}");
    }
    // A source that is deleted is created again by the next points, with none of its old ones.
    for name in SOURCES {
        let id = source(&first, name).unwrap()["_id"].as_str().unwrap().to_owned();
        let answer = first.call("DELETE", &format!("/sources/{id}"), &Value::Null);
        assert_eq!(answer.status, 200, "{answer}");
    }
    write(&first, 3);
    for name in SOURCES {
        assert_has(&first, name, &[3], HOSTS);
    }
    // One whose name was changed is another: the next points have the old name.
    let id = source(&first, "line").unwrap()["_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = first.call("PATCH", &format!("/sources/{id}"), &json!({"name": "renamed"}));
    assert_eq!(answer.status, 200, "{answer}");
    write(&first, 4);
    assert_has(&first, "renamed", &[3], HOSTS);
    assert_has(&first, "line", &[4], HOSTS);
    assert_has(&first, "sample", &[3, 4], HOSTS);
    assert_has(&first, "gauge", &[3, 4], HOSTS);
}
