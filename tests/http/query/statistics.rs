//! Aggregations that need the points themselves. `tests/pandas` compares them with an independent computation.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, with_members};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

const ALL: [&str; 8] = [
    "first", "last", "delta", "increase", "rate", "timeAvg", "distinct", "median",
];

fn start() -> i64 {
    now_ns() / DAY * DAY - 2 * DAY
}

/// The values of the first row.
fn values(bucket: &Bucket, body: &Value) -> Value {
    bucket.query(body)["data"][0]["values"].clone()
}

#[test]
fn a_step_of_one_value_has_null_where_nothing_can_be_computed() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("one", &["level"]);
    bucket.send(&[point(&source, start(), &json!({"level": 5}))]);
    let all = [
        "stddev", "rate", "increase", "delta", "range", "median", "distinct", "timeAvg",
    ];
    assert_eq!(
        values(&bucket, &json!({"aggregation": all, "groupBy": "hour"})),
        json!({"level": {
            "stddev": null, "rate": null, "increase": null, "delta": 0, "range": 0, "median": 5, "distinct": 1, "timeAvg": 5
        }}),
        "small print D5, D9, D11"
    );
    let alone = bucket.query(&json!({"aggregation": "stddev", "groupBy": "hour"}));
    let row = &alone["data"][0];
    assert_eq!(
        (&row["values"], &row["level"]),
        (&json!({"level": null}), &Value::Null),
        "small print D5"
    );
}

#[test]
fn growth_belongs_to_the_step_of_the_later_value() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("counter", &["count"]);
    let start = start();
    // 10 in the first hour; 30 to the next one, a restart that adds 5, and 15.
    let points = [(0, 100), (30, 110), (90, 140), (100, 5), (110, 20)];
    let points: Vec<Value> = points
        .iter()
        .map(|(minute, count)| point(&source, start + minute * MINUTE, &json!({"count": count})))
        .collect();
    bucket.send(&points);
    let body = json!({"aggregation": ["increase", "rate"], "groupBy": "hour"});
    let rows = array(&bucket.query(&body), "/data");
    let of_row = |row: usize, name: &str| rows[row]["values"]["count"][name].as_f64().unwrap();
    assert_eq!(
        [of_row(0, "increase"), of_row(1, "increase")],
        [10.0, 50.0],
        "small print D6, D7"
    );
    assert!(
        (of_row(0, "rate") - 10.0 / 1_800.0).abs() < 1e-12,
        "since the step's first value"
    );
    assert!(
        (of_row(1, "rate") - 50.0 / 4_800.0).abs() < 1e-12,
        "small print D8: since the predecessor"
    );
    let later = json!({
        "aggregation": "increase", "groupBy": "hour", "filters": {"startTime": timestamp(start + HOUR)}
    });
    assert_eq!(
        values(&bucket, &later)["count"],
        20,
        "small print D6: nothing before startTime counts"
    );
    let filtered = json!({
        "aggregation": "increase", "groupBy": "all", "filters": {"values": {"count": {"neq": 140}}}
    });
    assert_eq!(values(&bucket, &filtered)["count"], 30, "small print D12");
}

#[test]
fn merged_sources_are_added_weighed_or_ordered() {
    let (_server, _, bucket) = scene::bucket();
    let (one, other) = (bucket.source("one", &["v"]), bucket.source("other", &["v"]));
    let start = start();
    let at =
        |source: &str, second: i64, value: i64| point(source, start + second * SECOND, &json!({"v": value}));
    // The same instant in both: the order of arrival decides.
    bucket.send(&[at(&other, 0, 7)]);
    bucket.send(&[at(&one, 0, 1), at(&one, 10, 4), at(&one, 40, 4)]);
    bucket.send(&[at(&other, 40, 9)]);
    let body = json!({
        "aggregation": ALL, "groupBy": "all", "mergeSources": true,
    });
    let found = values(&bucket, &body);
    // 10 s of 1 and 30 s of 4; 40 s of 7.
    let time_avg = (10.0 + 120.0 + 280.0) / 80.0;
    let rate = 3.0 / 40.0 + 2.0 / 40.0;
    assert_eq!(
        found["v"],
        json!({
            "first": 7, "last": 9, "delta": 2, "increase": 5, "rate": rate, "timeAvg": time_avg, "distinct": 4, "median": 4
        }),
        "small print D10, D11, B6"
    );
}

#[test]
fn a_value_holds_through_steps_in_which_only_other_sources_have_values() {
    let (_server, _, bucket) = scene::bucket();
    let (often, rarely) = (bucket.source("often", &["v"]), bucket.source("rarely", &["v"]));
    let start = start();
    let hours = |hour: i64| start + hour * HOUR;
    let mut points: Vec<Value> = (0..4)
        .map(|hour| point(&often, hours(hour), &json!({"v": 1})))
        .collect();
    points.extend([0, 3].map(|hour| point(&rarely, hours(hour), &json!({"v": 4}))));
    bucket.send(&points);
    let ask = |more: &Value| {
        let body = json!({"aggregation": "timeAvg", "groupBy": "hour", "mergeSources": true});
        let rows = array(&bucket.query(&with_members(body, more)), "/data");
        rows.iter().map(|row| row["v"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ask(&json!({})), vec![json!(2.5); 4], "small print D9, D10");
    assert_eq!(
        ask(&json!({"sort": "desc", "limit": 3})),
        vec![json!(2.5); 3],
        "the window changes nothing"
    );
    let half = ask(&json!({"groupBy": "30m"}));
    assert_eq!(
        half,
        vec![json!(2.5); 4],
        "small print D9: an empty step has no row"
    );
}

#[test]
fn a_value_holds_until_the_next_of_its_field_however_rows_arrive_and_whatever_is_asked_for() {
    let (_server, _, bucket) = scene::bucket();
    let often = bucket.source("often", &["v"]);
    let rarely = bucket.source("rarely", &["v", "w"]);
    let start = start();
    let hours = |hour: i64| start + hour * HOUR;
    for hour in 0..7 {
        bucket.send(&[point(&often, hours(hour), &json!({"v": 1}))]);
    }
    // The last row before the second value lacks the field, and both arrive in another order.
    bucket.send(&[point(&rarely, hours(6), &json!({"v": 4}))]);
    bucket.send(&[point(&rarely, hours(0), &json!({"v": 4}))]);
    bucket.send(&[point(&rarely, hours(5), &json!({"w": 1}))]);
    let ask = |more: &Value| {
        let body = json!({
            "aggregation": "timeAvg", "groupBy": "hour", "mergeSources": true,
            "filters": {"startTime": timestamp(start), "endTime": timestamp(hours(20))},
        });
        array(&bucket.query(&with_members(body, more)), "/data")
    };
    let values = |rows: &[Value]| rows.iter().map(|row| row["v"].clone()).collect::<Vec<_>>();
    assert_eq!(values(&ask(&json!({}))), vec![json!(2.5); 7], "small print D9");
    for limit in 1..7 {
        for sort in ["asc", "desc"] {
            let page = ask(&json!({"sort": sort, "limit": limit}));
            assert_eq!(
                values(&page),
                vec![json!(2.5); limit],
                "{sort} {limit}: a page changes nothing"
            );
        }
    }
    let page = ask(&json!({"limit": 1, "offset": 2}));
    assert_eq!(values(&page), [json!(2.5)]);
    let compared = ask(&json!({
        "compare": {"offset": "2h"},
        "filters": {"startTime": timestamp(hours(2)), "endTime": timestamp(hours(20))},
    }));
    let previous: Vec<_> = compared.iter().map(|row| row["previous"]["v"].clone()).collect();
    assert_eq!(
        previous,
        vec![json!(2.5); 5],
        "contract 11: what stood there before"
    );
}

#[test]
fn growth_of_extreme_counters_does_not_overflow_on_the_way() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("one", &["v"]);
    let start = start();
    let values = [1e308, 1e308, -1e308, 1e308, 0.0];
    let points: Vec<Value> = (0..)
        .zip(values)
        .map(|(minute, value)| point(&source, start + minute * MINUTE, &json!({"v": value})))
        .collect();
    bucket.send(&points);
    // 0 - 1e308 + 2e308 + 0, in four minutes.
    let body = json!({"aggregation": ["increase", "rate"], "groupBy": "all"});
    let found = self::values(&bucket, &body)["v"].clone();
    let rate = found["rate"].as_f64().unwrap();
    assert_eq!(found["increase"], json!(1e308), "small print D7");
    assert!(
        (rate / 1e308 * 240.0 - 1.0).abs() < 1e-12,
        "small print D8: {rate}"
    );
}

#[test]
fn fields_of_one_name_and_different_types_are_merged_by_what_covers_them() {
    let (_server, _, bucket) = scene::bucket();
    let number = bucket.source("number", &["v"]);
    let text = bucket.source_with(&json!({"name": "text", "schema": {"v": {"type": "string"}}}));
    let flag = bucket.source_with(&json!({"name": "flag", "schema": {"v": {"type": "boolean"}}}));
    let start = start();
    bucket.send(&[
        point(&flag, start, &json!({"v": true})),
        point(&number, start + SECOND, &json!({"v": 1})),
        point(&text, start + 2 * SECOND, &json!({"v": "1"})),
        point(&text, start + 3 * SECOND, &json!({"v": "später"})),
    ]);
    let all = ["first", "last", "count", "distinct", "avg", "trueShare", "median"];
    let merged = json!({"aggregation": all, "groupBy": "hour", "mergeSources": true});
    assert_eq!(
        values(&bucket, &merged)["v"],
        json!({"first": true, "last": "später", "count": 4, "distinct": 4, "avg": 1, "trueShare": 1, "median": 1}),
        "small print D3, D4, D10"
    );
    let apart = array(
        &bucket.query(&json!({"aggregation": all, "groupBy": "hour"})),
        "/data",
    );
    let of_text = apart
        .iter()
        .find(|row| row["dataSourceId"] == json!(text))
        .unwrap();
    assert_eq!(
        of_text["values"]["v"],
        json!({"first": "1", "last": "später", "count": 2, "distinct": 2}),
        "small print D4"
    );
    let columns = bucket.query(&json!({
        "aggregation": "last", "groupBy": "hour", "layout": "columns", "filters": {"dataSourceIds": [text]}
    }));
    assert_eq!(columns["columns"]["values"], json!({"v": ["später"]}));
}

#[test]
fn distinct_compares_numbers_by_value_and_texts_by_bytes() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source_with(&json!({
        "name": "one", "schema": {"n": {"type": "number"}, "t": {"type": "string"}}
    }));
    let entry = |second: i64, n: Value, t: &str| {
        let text = format!(
            r#"{{"dataSourceId":"{source}","timestamp":"{}","values":{{"n":{n},"t":"{t}"}}}}"#,
            timestamp(start() + second * SECOND)
        );
        serde_json::from_str::<Value>(&text).unwrap()
    };
    bucket.send(&[
        entry(0, json!(1), "é"),
        entry(1, json!(1.0), "e\u{301}"),
        entry(2, json!(-0.0), "é"),
        entry(3, json!(0), "É"),
    ]);
    let body = json!({"aggregation": "distinct", "groupBy": "hour"});
    assert_eq!(values(&bucket, &body), json!({"n": 2, "t": 3}), "small print D11");
}

#[test]
fn a_boolean_holds_until_its_next_value() {
    let (_server, _, bucket) = scene::bucket();
    let schema = json!({"open": {"type": "boolean"}, "level": {"type": "number"}});
    let source = bucket.source_with(&json!({"name": "door", "schema": schema}));
    let start = start();
    let at = |minute: i64, open: bool| {
        point(
            &source,
            start + minute * MINUTE,
            &json!({"open": open, "level": 1}),
        )
    };
    bucket.send(&[at(15, true), at(45, false), at(150, true)]);
    let share = |more: &Value| {
        let mut body = json!({"aggregation": "trueShare", "groupBy": "hour"});
        body["filters"] = more.clone();
        let rows = array(&bucket.query(&body), "/data");
        rows.iter().map(|row| row["values"].clone()).collect::<Vec<_>>()
    };
    let of = |open: f64| json!({"open": open});
    // 30 of 45 minutes; in the third hour false until 02:30, then true.
    assert_eq!(
        share(&json!({})),
        [of(2.0 / 3.0), of(0.5)],
        "small print D9: no row for the empty hour"
    );
    let ends = json!({"endTime": timestamp(start + 160 * MINUTE)});
    assert_eq!(
        share(&ends),
        [of(2.0 / 3.0), of(0.25)],
        "small print D9: until endTime"
    );
    let at_once = json!({"startTime": timestamp(start + 150 * MINUTE), "endTime": timestamp(start + 150 * MINUTE + 1_000_000)});
    assert_eq!(
        share(&at_once),
        [json!({"open": 1})],
        "small print D9: no time before the first value"
    );
}

#[test]
fn aggregations_have_names_and_types() {
    let (_server, _, bucket) = scene::bucket();
    let schema =
        json!({"open": {"type": "boolean"}, "level": {"type": "number"}, "state": {"type": "string"}});
    bucket.source_with(&json!({"name": "door", "schema": schema}));
    let ask = |aggregation: &Value, field: &str| {
        bucket
            .post_query(&json!({"aggregation": aggregation, "groupBy": "1h", "filters": {"fields": [field]}}))
    };
    for name in [
        "p1", "p50", "p99.9", "p5.0", "median", "stddev", "delta", "increase", "rate", "timeAvg", "range",
    ] {
        ask(&json!(name), "level").expect(200, "contract 11");
        assert_faults(
            &ask(&json!(name), "state"),
            &["filters/fields/0"],
            "small print D3",
        );
        assert_faults(
            &ask(&json!([name]), "open"),
            &["filters/fields/0"],
            "small print D3",
        );
    }
    for field in ["level", "open", "state"] {
        for name in ["first", "last", "count", "distinct"] {
            ask(&json!(name), field).expect(200, "small print D3");
        }
    }
    ask(&json!("trueShare"), "open").expect(200, "small print D3");
    assert_faults(
        &ask(&json!("trueShare"), "level"),
        &["filters/fields/0"],
        "small print D3",
    );
    for name in [
        "p0", "p0.5", "p05", "p100", "p99.99", "P50", "p", "mean", "Median",
    ] {
        assert_faults(&ask(&json!(name), "level"), &["aggregation"], "small print D2");
    }
    let echoed = bucket.query(&json!({"aggregation": ["p5.0", "p99.9"], "groupBy": "24h"}));
    assert_eq!(
        echoed["metadata"]["aggregation"],
        json!(["p5.0", "p99.9"]),
        "small print A5"
    );
    assert_eq!(echoed["metadata"]["groupBy"], "24h", "small print A5");
}

#[test]
fn a_quantile_over_more_than_the_budget_says_how_to_ask_and_rows_alone_need_little() {
    let server = scene::server_with("QUERY__MEMORY_BYTES_MAX", "2097152");
    let (_server, _, bucket) = scene::bucket_on(server);
    let start = start();
    let sources: Vec<String> = (0..4)
        .map(|nth| bucket.source(&format!("s{nth}"), &["v"]))
        .collect();
    for source in &sources {
        for hour in 0..10 {
            let entries: Vec<Value> = (0..10_000)
                .map(|nth| {
                    let value = f64::from(fastrand::u32(..)) / 7.0;
                    point(
                        source,
                        start + hour * HOUR + i64::from(nth) * SECOND / 10,
                        &json!({"v": value}),
                    )
                })
                .collect();
            bucket.send(&entries);
        }
    }
    // 400,000 values of 8 bytes.
    let merged = |aggregation: &str, step: &str| {
        bucket.post_query(&json!({"aggregation": aggregation, "groupBy": step, "mergeSources": true}))
    };
    for aggregation in ["median", "distinct"] {
        let refused = merged(aggregation, "all").expect(400, "contract 11: budget");
        let message = refused["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            message.contains("filters.startTime") && message.contains("groupBy"),
            "{message}"
        );
    }
    for aggregation in [
        "avg", "first", "last", "range", "delta", "stddev", "increase", "rate", "timeAvg",
    ] {
        merged(aggregation, "all").expect(200, "small print K2");
    }
    // A step of one source is complete before the next begins.
    bucket.query(&json!({"aggregation": ["p95", "distinct"], "groupBy": "hour"}));
}
