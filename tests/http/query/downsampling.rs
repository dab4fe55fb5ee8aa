//! Automatic downsampling: when it applies, its unit, and the stats of averaged points.

use serde_json::{Value, json};

use crate::calendar::Unit;
use crate::model::{Grouping, Sample, assert_rows};
use crate::scene::{self, array, column, members};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

/// `count` evenly spaced points of one source, from the start of a day.
fn series(source: &str, interval: i64, count: i64) -> Vec<Sample> {
    let start = now_ns() / DAY * DAY;
    (0..count)
        .map(|nth| Sample::number(source, start + nth * interval, "level", (nth * 37 % 101) as f64))
        .collect()
}

fn send(bucket: &Bucket, samples: &[Sample]) {
    bucket.send(&samples.iter().map(Sample::entry).collect::<Vec<_>>());
}

fn applied(answer: &Value) -> bool {
    answer["metadata"]["downsamplingApplied"] == true
}

#[track_caller]
fn assert_raw(answer: &Value, sentence: &str) {
    assert!(!applied(answer), "{sentence}: {}", answer["metadata"]);
    assert!(
        answer["data"][0].get("_id").is_some(),
        "{sentence}: rows are raw, with `_id`: {}",
        answer["data"][0]
    );
}

/// Asserts that the answer has averages by this unit with stats.
#[track_caller]
fn assert_downsampled(answer: &Value, samples: &[Sample], unit: Unit, expected_points: f64, context: &str) {
    let metadata = &answer["metadata"];
    assert_eq!(
        metadata["downsamplingApplied"], true,
        "spec: metadata.downsamplingApplied ({context}): {metadata}"
    );
    assert_eq!(
        metadata["aggregation"], "avg",
        "spec: it applies avg ({context}): {metadata}"
    );
    let sentence = "contract 10: the unit is the finest whose expected row count is at most 500, else month";
    assert_eq!(
        metadata["groupBy"],
        unit.name(),
        "{sentence} ({context}): {metadata}"
    );
    assert_eq!(
        metadata["downsampling"]["groupBy"],
        unit.name(),
        "contract 5: metadata.downsampling.groupBy ({context})"
    );
    let estimate = metadata["downsampling"]["expectedPoints"]
        .as_f64()
        .unwrap_or(f64::NAN);
    let near = (estimate - expected_points).abs() <= 2.0 + expected_points * 0.01;
    assert!(
        near,
        "contract 5: metadata.downsampling.expectedPoints is about {expected_points} ({context}): {metadata}"
    );
    let rows = array(answer, "/data");
    assert_eq!(
        metadata["count"],
        rows.len(),
        "contract 5: count is the number of rows ({context})"
    );
    assert_rows(&rows, &Grouping::new(unit, "avg").rows(samples), context);
    let of = |aggregation| Grouping::new(unit, aggregation).rows(samples);
    for (((row, min), max), count) in rows.iter().zip(of("min")).zip(of("max")).zip(of("count")) {
        assert_eq!(
            members(&row["stats"]),
            members(&row["values"]),
            "contract 5: stats: {{f: …}} ({context}): {row}"
        );
        for (field, value) in row["stats"].as_object().into_iter().flatten() {
            let field = field.as_str();
            let right = min.values[field].equals(&value["min"])
                && max.values[field].equals(&value["max"])
                && count.values[field].equals(&value["count"]);
            assert!(
                right,
                "contract 5: stats: {{f: {{min, max, count}}}} of what was smoothed ({context}): {row}"
            );
            assert_eq!(
                members(value),
                ["count", "max", "min"],
                "contract 5: stats: {{f: {{min, max, count}}}} ({context})"
            );
        }
    }
}

#[test]
fn the_unit_is_the_finest_of_at_most_500_rows() {
    let (mut server, _, bucket) = scene::bucket();
    let cases = [
        ("seconds", SECOND, 1500, Unit::Minute),
        ("ten seconds", 10 * SECOND, 2900, Unit::Minute),
        ("ten seconds, longer", 10 * SECOND, 3200, Unit::Hour),
        ("minutes", MINUTE, 600, Unit::Hour),
        ("hours", HOUR, 600, Unit::Day),
        ("days", DAY, 600, Unit::Week),
        ("weeks", 7 * DAY, 600, Unit::Month),
        ("months", 31 * DAY, 600, Unit::Month),
    ];
    let sent: Vec<(&str, Vec<Sample>, Unit)> = cases
        .into_iter()
        .map(|(name, interval, count, unit)| {
            let samples = series(&bucket.source(name, &["level"]), interval, count);
            send(&bucket, &samples);
            (name, samples, unit)
        })
        .collect();
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        for (name, samples, unit) in &sent {
            let answer = bucket.query(&json!({"filters": {"dataSourceIds": [samples[0].source]}}));
            let context = format!("a point each {name}, after a stop: {restarted}");
            assert_downsampled(&answer, samples, *unit, samples.len() as f64, &context);
            assert_eq!(
                answer["metadata"]["bucketId"], bucket.id,
                "spec: metadata.bucketId ({context})"
            );
            assert_eq!(
                answer["metadata"]["hasMore"], false,
                "contract 5: all rows up to 10000 ({context})"
            );
        }
    }
}

#[test]
fn the_threshold_is_500_expected_points_in_the_range() {
    let (_server, _, bucket) = scene::bucket();
    let samples = series(&bucket.source("gauge", &["level"]), MINUTE, 2000);
    send(&bucket, &samples);
    let between = |from: i64, until: i64| {
        let start = samples[0].at;
        bucket.query(
            &json!({"filters": {"startTime": timestamp(start + from), "endTime": timestamp(start + until)}}),
        )
    };
    let sentence = "contract 5: it applies when the expected points are more than 500";
    assert_raw(&between(0, 480 * MINUTE), sentence);
    assert_raw(&between(1000 * MINUTE, 1400 * MINUTE + 1), sentence);
    assert!(applied(&between(0, 520 * MINUTE)), "{sentence}");
    assert!(applied(&between(0, 1999 * MINUTE)), "{sentence}");
    // The range is clipped to the points that exist.
    let sentence = "contract 5: the range is clipped to the points that exist";
    assert_raw(&between(-9000 * DAY, 480 * MINUTE), sentence);
    assert_raw(&between(1540 * MINUTE, 9000 * DAY), sentence);
    let answer = between(-9000 * DAY, 9000 * DAY);
    assert_downsampled(&answer, &samples, Unit::Hour, 2000.0, sentence);
    let none = between(5000 * DAY, 9000 * DAY);
    assert_eq!(
        (&none["data"], applied(&none)),
        (&json!([]), false),
        "{sentence}: no point in it, nothing expected"
    );
}

#[test]
fn a_partial_range_shows_only_its_own_points() {
    let (_server, _, bucket) = scene::bucket();
    let samples = series(&bucket.source("gauge", &["level"]), MINUTE, 3000);
    send(&bucket, &samples);
    let (from, until) = (samples[37].at, samples[2222].at);
    let answer =
        bucket.query(&json!({"filters": {"startTime": timestamp(from), "endTime": timestamp(until)}}));
    assert_downsampled(
        &answer,
        &samples[37..=2222],
        Unit::Hour,
        2186.0,
        "a range that cuts hours",
    );
    let descending = bucket.query(&json!({
        "filters": {"startTime": timestamp(from), "endTime": timestamp(until)}, "sort": "desc",
    }));
    let mut reversed = array(&answer, "/data");
    reversed.reverse();
    assert_eq!(array(&descending, "/data"), reversed, "contract 5: desc reverses");
}

#[test]
fn downsampling_is_disabled_by_query_source_and_explicit_grouping() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let samples = series(&source, MINUTE, 900);
    send(&bucket, &samples);
    assert!(
        applied(&bucket.query(&json!({}))),
        "spec: more than 500 expected points are downsampled"
    );
    let raw = bucket.query(&json!({"downsampling": false}));
    assert_raw(
        &raw,
        "contract 5: `downsampling: false` in the query body turns it off for that query",
    );
    assert_eq!(
        array(&raw, "/data").len(),
        100,
        "contract 5: 100 raw rows by default"
    );
    let grouped = bucket.query(&json!({"aggregation": "max", "groupBy": "minute"}));
    assert!(
        !applied(&grouped),
        "spec: explicit aggregation and groupBy are always respected"
    );
    assert_eq!(
        array(&grouped, "/data").len(),
        900,
        "spec: explicit aggregation and groupBy are always respected"
    );
    assert!(
        grouped["data"][0].get("stats").is_none(),
        "contract 5: stats are of auto-downsampled rows"
    );

    let path = format!("/sources/{source}");
    bucket
        .call("PATCH", &path, &json!({"downsampling": false}))
        .expect(200, "contract 3: PATCH downsampling");
    assert_raw(
        &bucket.query(&json!({})),
        "spec: downsampling false on the data source returns raw points",
    );
    bucket
        .call("PATCH", &path, &json!({"downsampling": true}))
        .expect(200, "contract 3: PATCH downsampling");
    assert!(
        applied(&bucket.query(&json!({}))),
        "spec: downsampling true on the data source applies it again"
    );
}

#[test]
fn limit_offset_and_metadata_filter_keep_downsampling() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let mut samples = series(&source, MINUTE, 900);
    for (sample, nth) in samples.iter_mut().zip(0..) {
        sample.metadata = Some(json!({"zone": i64::from(nth % 100 == 0)}));
    }
    send(&bucket, &samples);
    let all = array(&bucket.query(&json!({})), "/data");
    assert_eq!(all.len(), 15, "900 minutes are 15 hours");
    let sentence = "contract 5: limit and offset do not switch it off";
    for (limit, offset) in [(5, 0), (5, 5), (4, 12), (100, 0), (1, 14), (10, 20)] {
        let answer = bucket.query(&json!({"limit": limit, "offset": offset}));
        assert!(applied(&answer), "{sentence}");
        let end = (offset + limit).min(all.len());
        assert_eq!(
            array(&answer, "/data"),
            all.get(offset..end).unwrap_or_default(),
            "{sentence}: they page its rows"
        );
        assert_eq!(
            answer["metadata"]["hasMore"],
            offset + limit < all.len(),
            "{sentence}: hasMore of its rows"
        );
    }
    let filtered = bucket.query(&json!({"filters": {"metadata": {"zone": 1}}}));
    let matching: Vec<Sample> = samples.iter().step_by(100).cloned().collect();
    let sentence = "contract 5: the metadata filter does not enter the estimate";
    assert_downsampled(&filtered, &matching, Unit::Hour, 900.0, sentence);
}

#[test]
fn several_sources_add_up_and_all_must_enable_downsampling() {
    let (_server, _, bucket) = scene::bucket();
    let sources = [
        bucket.source("a", &["level"]),
        bucket.source("b", &["level"]),
        bucket.source("c", &["level"]),
    ];
    let mut samples = Vec::new();
    for source in &sources {
        samples.extend(series(source, MINUTE, 300));
    }
    send(&bucket, &samples);
    let of = |sources: &[String]| bucket.query(&json!({"filters": {"dataSourceIds": sources}}));
    assert_raw(&of(&sources[..1]), "contract 5: 300 expected points are raw");
    let both = of(&sources[..2]);
    let sentence = "contract 5: the expected points of all selected sources add up";
    // Two sources of 300 minutes: 600 rows by minute, 10 by hour.
    assert_downsampled(&both, &samples[..600], Unit::Hour, 600.0, sentence);
    assert_downsampled(&bucket.query(&json!({})), &samples, Unit::Hour, 900.0, sentence);
    let merged = bucket.query(&json!({"mergeSources": true}));
    assert!(applied(&merged), "{sentence}");
    let ids = column(&array(&merged, "/data"), "/dataSourceId");
    assert!(
        ids.iter().all(Value::is_string),
        "contract 10: mergeSources does not apply to auto-downsampling"
    );

    let path = format!("/sources/{}", sources[1]);
    bucket
        .call("PATCH", &path, &json!({"downsampling": false}))
        .expect(200, "contract 3: PATCH downsampling");
    let sentence = "contract 5: it applies when all selected sources have it on";
    assert_raw(&of(&sources[..2]), sentence);
    assert_raw(&bucket.query(&json!({})), sentence);
    assert!(
        applied(&of(&[sources[0].clone(), sources[2].clone()])),
        "{sentence}"
    );
}

#[test]
fn sources_without_number_fields_are_not_downsampled() {
    let (_server, _, bucket) = scene::bucket();
    let texts = bucket.source_with(&json!({
        "name": "texts", "schema": {"state": {"type": "string"}, "valid": {"type": "boolean"}},
    }));
    let source = bucket.source_with(&json!({
        "name": "mixed", "schema": {"state": {"type": "string"}, "level": {"type": "number"}},
    }));
    let start = now_ns() / HOUR * HOUR;
    let of = |source: &str, values: Value| -> Vec<Value> {
        (0..700)
            .map(|nth| point(source, start + nth * MINUTE, &values))
            .collect()
    };
    bucket.send(&of(&texts, json!({"state": "ebb", "valid": true})));
    bucket.send(&of(&source, json!({"state": "ebb", "level": 2})));
    let sentence = "contract 10: no number field selected: raw";
    assert_raw(
        &bucket.query(&json!({"filters": {"dataSourceIds": [texts]}})),
        sentence,
    );
    assert_raw(
        &bucket.query(&json!({"filters": {"dataSourceIds": [source], "fields": ["state"]}})),
        sentence,
    );
    let averaged = bucket.query(&json!({"filters": {"dataSourceIds": [source]}}));
    assert!(applied(&averaged), "a source with a number field is downsampled");
    assert_eq!(
        members(&averaged["data"][0]["values"]),
        ["level"],
        "contract 5: avg covers number fields"
    );
}
