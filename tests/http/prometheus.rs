//! Contract 16: Prometheus's HTTP API, and its small print (N).

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID};
use crate::support::client::Answer;
use crate::support::given::{Bucket, text};

/// 2023-11-14T22:13:20Z, in seconds.
const START: i64 = 1_700_000_000;

fn encoded(pairs: &[(&str, &str)]) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let text = |text: &str| text.bytes().map(byte).collect::<String>();
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", text(name), text(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Asks by GET, with the admin key.
fn ask(bucket: &Bucket, route: &str, parameters: &[(&str, &str)]) -> Answer {
    let path = format!("/prometheus/{}/api/v1/{route}?{}", bucket.id, encoded(parameters));
    bucket.client.get(&path).key(&bucket.admin).send()
}

#[track_caller]
fn data(bucket: &Bucket, route: &str, parameters: &[(&str, &str)]) -> Value {
    let answered = ask(bucket, route, parameters).expect(200, "contract 16: a question has an answer");
    assert_eq!(answered["status"], "success");
    answered["data"].clone()
}

#[track_caller]
fn write(bucket: &Bucket, lines: &str) {
    let path = format!("/write?precision=s&bucket={}", bucket.id);
    let request = bucket.client.post(&path).key(&bucket.admin).body(lines);
    assert_eq!(request.send().status, 204);
}

/// A counter of two hosts that grows by 1 and 2 a second, every 15 s for 10 minutes.
fn counters(bucket: &Bucket) {
    let lines = (0..=40).map(|number| {
        let (at, count) = (START + number * 15, number * 15);
        format!(
            "http.requests,host=a,job=web value={count} {at}\nhttp.requests,host=b,job=web value={} {at}\n",
            count * 2
        )
    });
    write(bucket, &lines.collect::<String>());
}

#[test]
fn metrics_are_fields_and_labels_are_dimensions() {
    let (_server, _account, bucket) = scene::bucket();
    counters(&bucket);
    write(
        &bucket,
        &format!("cpu,host=a usage=0.5,7up=1,is_on=true,text=\"x\" {START}"),
    );
    let time = (START + 600).to_string();
    let found = data(
        &bucket,
        "query",
        &[("query", "sort(http_requests)"), ("time", &time)],
    );
    assert_eq!(
        found,
        json!({"resultType": "vector", "result": [
            {"metric": {"__name__": "http_requests", "host": "a", "job": "web"}, "value": [START + 600, "600"]},
            {"metric": {"__name__": "http_requests", "host": "b", "job": "web"}, "value": [START + 600, "1200"]},
        ]}),
        "contract 16: the metric of `value` is named like its source, `.` is `_`, dimensions are labels"
    );
    let range = [("start", START.to_string()), ("end", (START + 60).to_string())];
    let range: Vec<(&str, &str)> = range
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let names = data(&bucket, "label/__name__/values", &range);
    assert_eq!(
        names,
        json!(["cpu_7up", "cpu_is_on", "cpu_usage", "http_requests"]),
        "small print N4: `<source>_<field>`; booleans are samples, texts are not metrics"
    );
    let at = START.to_string();
    let is_on = data(&bucket, "query", &[("query", "cpu_is_on"), ("time", &at)]);
    assert_eq!(is_on["result"][0]["value"], json!([START, "1"]), "small print N4");
}

#[test]
fn ranges_are_evaluated_at_their_steps() {
    let (_server, _account, bucket) = scene::bucket();
    counters(&bucket);
    let (start, end) = ((START + 300).to_string(), (START + 600).to_string());
    let found = data(
        &bucket,
        "query_range",
        &[
            ("query", "sum by (host) (rate(http_requests[5m]))"),
            ("start", &start),
            ("end", &end),
            ("step", "1m"),
        ],
    );
    assert_eq!(found["resultType"], "matrix");
    let rates: Vec<(&Value, Vec<(i64, i64)>)> = found["result"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|series| (&series["metric"], series["values"].as_array().unwrap()))
        .map(|(metric, values)| {
            let value = |point: &Value| point[1].as_str().unwrap().parse::<f64>().unwrap();
            let rounded = |point: &Value| (point[0].as_i64().unwrap(), (value(point) * 1e9).round() as i64);
            (metric, values.iter().map(rounded).collect())
        })
        .collect();
    let values = |rate: i64| (0..=5).map(move |step| (START + 300 + step * 60, rate * 1_000_000_000));
    assert_eq!(
        rates,
        [
            (&json!({"host": "a"}), values(1).collect::<Vec<_>>()),
            (&json!({"host": "b"}), values(2).collect()),
        ],
        "contract 16: PromQL whole; small print N5: a matrix is in order of its labels"
    );
}

#[test]
fn each_way_to_ask_has_the_same_answer() {
    let (_server, account, bucket) = scene::bucket();
    counters(&bucket);
    let time = (START + 600).to_string();
    let parameters = encoded(&[("query", "sum(http_requests)"), ("time", &time)]);
    let name = text(&bucket.call("GET", "", &Value::Null).json(), "/bucket/name");
    let of_name = encoded(&[("", &name)]).split_off(1);
    let expected = data(
        &bucket,
        "query",
        &[("query", "sum(http_requests)"), ("time", &time)],
    );
    assert_eq!(expected["result"][0]["value"][1], "1800");
    for path in [
        format!("/prometheus/{}/api/v1/query", bucket.id),
        format!("/prometheus/{of_name}/api/v1/query"),
        "/prometheus/api/v1/query".to_owned(),
    ] {
        let named = match path.contains("/prometheus/api") {
            true => format!("&bucket={}", bucket.id),
            false => String::new(),
        };
        let got = bucket
            .client
            .get(&format!("{path}?{parameters}{named}"))
            .key(&account.admin);
        let form = bucket
            .client
            .post(&format!("{path}?{}", named.trim_start_matches('&')))
            .key(&account.admin)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .bytes(parameters.as_bytes());
        let whole = bucket
            .client
            .post(&path)
            .key(&account.admin)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .bytes(format!("{parameters}{named}").as_bytes());
        for (way, request) in [("GET", got), ("POST", form), ("all by form", whole)] {
            let answered = request
                .send()
                .expect(200, "contract 16: GET and POST, the bucket in the path or named");
            assert_eq!(answered["data"], expected, "{way} {path}");
        }
    }
    let unnamed = bucket
        .client
        .get(&format!("/prometheus/api/v1/query?{parameters}"));
    unnamed
        .key(&account.admin)
        .send()
        .expect(400, "contract 13: an admin key has to name the bucket");
    let unknown = bucket
        .client
        .get(&format!("/prometheus/{UNKNOWN_ID}/api/v1/query?{parameters}"));
    unknown
        .key(&account.admin)
        .send()
        .expect(404, "small print N1: 404 is the house's");
}

#[test]
fn an_answer_has_as_many_series_as_its_limit_and_says_so() {
    let (_server, _account, bucket) = scene::bucket();
    counters(&bucket);
    let [start, end] = [START, START + 600].map(|at| at.to_string());
    let truncated = json!(["results truncated due to limit"]);
    for (limit, count, warnings) in [
        ("1", 1, &truncated),
        ("2", 2, &Value::Null),
        ("0", 2, &Value::Null),
    ] {
        for (route, times) in [
            ("query", vec![("time", end.as_str())]),
            (
                "query_range",
                vec![("start", start.as_str()), ("end", end.as_str()), ("step", "60")],
            ),
        ] {
            let asked = [times, vec![("query", "http_requests"), ("limit", limit)]].concat();
            let answered = ask(&bucket, route, &asked).expect(200, "contract 16: Prometheus's own answer");
            let result = answered["data"]["result"].as_array().unwrap();
            assert_eq!(
                (result.len(), &answered["warnings"]),
                (count, warnings),
                "{route} {limit}"
            );
            assert_eq!(result[0]["metric"]["host"], "a");
        }
    }
    let sum = ask(&bucket, "query", &[("query", "1"), ("limit", "1")]);
    assert_eq!(sum.json()["warnings"], Value::Null, "a number is no series");
}

#[test]
fn readers_ask_and_evaluators_do_not() {
    let (_server, account, bucket) = scene::bucket();
    counters(&bucket);
    let path = format!("/prometheus/api/v1/query?query=1&bucket={}", bucket.id);
    for kind in ["read", "write"] {
        let authorization = format!("Bearer {}", bucket.key(kind));
        let request = bucket.client.get(&path).header("Authorization", authorization);
        request
            .send()
            .expect(200, "contract 13: the key as agents send it");
    }
    let by_token = bucket.client.get(&path).bearer(&account.token);
    by_token.send().expect(200, "contract 16: people ask");
    let request = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let created = request
        .json(&json!({"name": "evaluator", "type": "integration"}))
        .send();
    let key = text(
        &created.expect(201, "an integration key is created"),
        "/apiKey/key",
    );
    bucket
        .client
        .get(&path)
        .key(&key)
        .send()
        .expect(403, "small print N: integration keys are refused");
    let nobody = bucket.client.get(&path).send();
    nobody.expect(401, "small print N1: 401 is the house's");
}

#[test]
fn wrong_questions_are_told_as_prometheus_does() {
    let (_server, _account, bucket) = scene::bucket();
    counters(&bucket);
    let range = |step: &'static str, end: &'static str| {
        vec![
            ("query", "http_requests"),
            ("start", "0"),
            ("end", end),
            ("step", step),
        ]
    };
    let wrong = [
        ("query", vec![("query", "sum(")], 400, "bad_data"),
        ("query", vec![], 400, "bad_data"),
        (
            "query",
            vec![("query", "1"), ("time", "yesterday")],
            400,
            "bad_data",
        ),
        (
            "query",
            vec![("query", "1"), ("timeout", "soon")],
            400,
            "bad_data",
        ),
        ("query_range", range("0", "10"), 400, "bad_data"),
        ("query_range", range("1", "11001"), 400, "bad_data"),
        ("query_range", range("1", "-1"), 400, "bad_data"),
        ("query_range", vec![("query", "1")], 400, "bad_data"),
        ("series", vec![], 400, "bad_data"),
        ("labels", vec![("match[]", "{")], 400, "bad_data"),
        ("labels", vec![("limit", "-1")], 400, "bad_data"),
    ];
    for (route, parameters, status, kind) in wrong {
        let answered = ask(&bucket, route, &parameters).expect(status, "small print N1: Prometheus's codes");
        assert_eq!(answered["status"], "error", "{route} {parameters:?}");
        assert_eq!(answered["errorType"], kind, "{route} {parameters:?}");
        assert!(answered["error"].as_str().is_some_and(|text| !text.is_empty()));
    }
    ask(&bucket, "query_range", &range("1", "11000")).expect(200, "small print N2: 11,000 steps");
    let time = (START + 600).to_string();
    let many = [
        ("query", "http_requests + on (job) http_requests"),
        ("time", time.as_str()),
    ];
    let answered = ask(&bucket, "query", &many).expect(422, "small print N1: 422 execution");
    assert_eq!(answered["errorType"], "execution");
}

#[test]
fn labels_and_series_heed_time_and_selectors() {
    let (_server, _account, bucket) = scene::bucket();
    counters(&bucket);
    write(&bucket, &format!("cpu,rack.id=1 usage=0.5 {}", START + 3_600));
    assert_eq!(
        data(&bucket, "labels", &[]),
        json!(["__name__", "host", "job", "rack_id"]),
        "contract 16: labels are dimensions, `_` for what names have not"
    );
    let late = (START + 3_000).to_string();
    assert_eq!(
        data(&bucket, "labels", &[("start", &late)]),
        json!(["__name__", "rack_id"]),
        "small print N6: start is heeded"
    );
    assert_eq!(data(&bucket, "label/host/values", &[]), json!(["a", "b"]));
    assert_eq!(
        data(&bucket, "label/host/values", &[("match[]", r#"{host=~"b.*"}"#)]),
        json!(["b"]),
        "small print N6: match[] is heeded"
    );
    let all = [("match[]", "http_requests"), ("match[]", r#"{rack_id!=""}"#)];
    assert_eq!(
        data(&bucket, "series", &all),
        json!([
            {"__name__": "cpu_usage", "rack_id": "1"},
            {"__name__": "http_requests", "host": "a", "job": "web"},
            {"__name__": "http_requests", "host": "b", "job": "web"},
        ]),
        "small print N5: series are in order of their labels"
    );
    let few = ask(&bucket, "series", &[("match[]", "http_requests"), ("limit", "1")]);
    let few = few.expect(200, "the answer is cut at its limit");
    assert_eq!(few["data"].as_array().map(Vec::len), Some(1));
    assert!(few["warnings"][0].is_string(), "{few}");
}

#[test]
fn absent_labels_are_empty() {
    let (_server, _account, bucket) = scene::bucket();
    write(
        &bucket,
        &format!("up value=1 {START}\nup,host=a value=2 {START}\nup,host=b value=3 {START}"),
    );
    for (selector, sum) in [
        (r#"up{host=""}"#, "1"),
        (r#"up{host!="a"}"#, "4"),
        (r#"up{host=~".*"}"#, "6"),
        (r#"up{host=~".+"}"#, "5"),
        (r#"up{host!~"a|b"}"#, "1"),
        (r#"up{nothing=""}"#, "6"),
    ] {
        let at = START.to_string();
        let found = data(
            &bucket,
            "query",
            &[("query", &format!("sum({selector})")), ("time", &at)],
        );
        assert_eq!(
            found["result"][0]["value"][1], sum,
            "small print, matchers 3: {selector}"
        );
    }
}

#[test]
fn equal_names_are_one_metric() {
    let (_server, _account, bucket) = scene::bucket();
    write(
        &bucket,
        &format!("a.b,host=x value=1 {START}\na.b,host=x value=1 {}", START + 60),
    );
    write(
        &bucket,
        &format!("a_b,host=x value=5 {}\na_b,host=y value=7 {START}", START + 60),
    );
    let at = (START + 60).to_string();
    let found = data(
        &bucket,
        "query",
        &[("query", r#"a_b{host="x"}[5m]"#), ("time", &at)],
    );
    assert_eq!(
        found["result"],
        json!([{"metric": {"__name__": "a_b", "host": "x"}, "values": [[START, "1"], [START + 60, "5"]]}]),
        "small print N3: the union of samples, the later arrival wins"
    );
    let count = data(&bucket, "query", &[("query", "count(a_b)"), ("time", &at)]);
    assert_eq!(count["result"][0]["value"][1], "2");
}

#[test]
fn metadata_and_version_are_told() {
    let (_server, _account, bucket) = scene::bucket();
    bucket.source_with(&json!({
        "name": "boiler",
        "description": "In the cellar.",
        "schema": {"value": {"type": "number", "unit": "°C"}, "note": {"type": "string"}},
    }));
    let told = data(&bucket, "metadata", &[]);
    assert_eq!(
        told,
        json!({"boiler": [{"type": "unknown", "help": "In the cellar.", "unit": "°C"}]}),
        "small print N6: metadata shows HELP and UNIT"
    );
    assert_eq!(data(&bucket, "metadata", &[("metric", "kettle")]), json!({}));
    let version = data(&bucket, "status/buildinfo", &[]);
    let version = version["version"].as_str().unwrap().to_owned();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap());
    assert!(
        (parts.next(), parts.next()) >= (Some(2), Some(42)),
        "small print N6: 2.42 or higher: {version}"
    );
}
