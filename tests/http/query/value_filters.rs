//! `filters.values`: conditions on the values of points.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

/// Fields of all types, any of which a point may lack.
fn mixed(bucket: &Bucket, name: &str) -> String {
    let schema =
        json!({"level": {"type": "number"}, "state": {"type": "string"}, "open": {"type": "boolean"}});
    bucket.source_with(&json!({"name": name, "schema": schema}))
}

/// Whether a point's values meet the conditions, as the contract says.
fn meets(values: &Value, conditions: &Value) -> bool {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    members(conditions).iter().all(|(field, tests)| {
        let value = &values[field];
        !value.is_null()
            && members(tests).iter().all(|(operator, wanted)| {
                let numbers = value.as_f64().zip(wanted.as_f64());
                let same = |wanted: &Value| match value.as_f64().zip(wanted.as_f64()) {
                    Some((one, other)) => one == other,
                    None => value == wanted,
                };
                match (operator.as_str(), numbers) {
                    ("gt", Some((value, bound))) => value > bound,
                    ("gte", Some((value, bound))) => value >= bound,
                    ("lt", Some((value, bound))) => value < bound,
                    ("lte", Some((value, bound))) => value <= bound,
                    ("eq", _) => same(wanted),
                    ("neq", _) => !same(wanted),
                    ("in", _) => wanted.as_array().unwrap().iter().any(same),
                    _ => panic!("{operator}"),
                }
            })
    })
}

fn random_conditions(random: &mut fastrand::Rng) -> Value {
    let number = |random: &mut fastrand::Rng| json!(f64::from(random.i32(-10..110)) / 2.0);
    let level = match random.u8(..7) {
        0 => json!({"gt": number(random)}),
        1 => json!({"gte": number(random), "lt": number(random)}),
        2 => json!({"lte": number(random)}),
        3 => json!({"eq": number(random)}),
        4 => json!({"neq": number(random), "lt": number(random)}),
        _ => json!({"in": [number(random), number(random), number(random)]}),
    };
    let state = match random.u8(..3) {
        0 => json!({"eq": "on"}),
        1 => json!({"neq": "off"}),
        _ => json!({"in": ["off", "standby", "never"]}),
    };
    let open = if random.bool() {
        json!({"eq": true})
    } else {
        json!({"neq": true})
    };
    let mut conditions = json!({});
    for (field, tests) in [("level", level), ("state", state), ("open", open)] {
        if random.bool() {
            conditions[field] = tests;
        }
    }
    conditions
}

#[test]
fn points_that_do_not_match_are_gone_whole() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (_server, _, bucket) = scene::sealing_bucket();
    let sources = [mixed(&bucket, "one"), mixed(&bucket, "other")];
    // Its points do not match conditions on fields that it does not declare.
    let narrow = bucket.source("narrow", &["level"]);
    let start = now_ns() / DAY * DAY - 3 * DAY;
    let mut points: Vec<(i64, String, Value)> = Vec::new();
    for minute in 0..2_000 {
        let source = &[&sources[0], &sources[1], &narrow][random.usize(..3)];
        let mut values = json!({"level": f64::from(random.i32(0..100)) / 2.0});
        if **source != narrow {
            if random.u8(..4) > 0 {
                values["state"] = json!(["on", "off", "standby"][random.usize(..3)]);
            }
            if random.u8(..4) > 0 {
                values["open"] = json!(random.bool());
            }
            if random.u8(..4) == 0 {
                values.as_object_mut().unwrap().remove("level");
            }
        }
        if !values.as_object().unwrap().is_empty() {
            points.push((start + minute * MINUTE, (*source).clone(), values));
        }
    }
    let entries: Vec<Value> = points
        .iter()
        .map(|(at, source, values)| point(source, *at, values))
        .collect();
    bucket.send(&entries);
    for _ in 0..150 {
        let conditions = random_conditions(&mut random);
        let matching: Vec<&(i64, String, Value)> = points
            .iter()
            .filter(|(_, _, values)| meets(values, &conditions))
            .collect();
        let rows = bucket.rows(&json!({"values": conditions}));
        let found: Vec<(Value, Value, Value)> = rows
            .iter()
            .map(|row| {
                (
                    row["timestamp"].clone(),
                    row["dataSourceId"].clone(),
                    row["values"].clone(),
                )
            })
            .collect();
        let wanted: Vec<(Value, Value, Value)> = matching
            .iter()
            .map(|(at, source, values)| (json!(timestamp(*at)), json!(source), values.clone()))
            .collect();
        assert_eq!(found.len(), wanted.len(), "{conditions}");
        for ((at, source, values), (wanted_at, wanted_source, wanted_values)) in found.iter().zip(&wanted) {
            assert_eq!((at, source), (wanted_at, wanted_source), "{conditions}");
            for field in ["level", "state", "open"] {
                let same = match values[field].as_f64().zip(wanted_values[field].as_f64()) {
                    Some((one, other)) => one == other,
                    None => values[field] == wanted_values[field],
                };
                assert!(same, "{conditions}: {values} is not {wanted_values}");
            }
        }
        let body = json!({
            "filters": {"values": conditions}, "aggregation": "sum", "groupBy": "6h", "mergeSources": true
        });
        let groups = array(&bucket.query(&body), "/data");
        let mut sums: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
        for (at, _, values) in &matching {
            if let Some(level) = values["level"].as_f64() {
                *sums.entry(at.div_euclid(6 * HOUR) * 6 * HOUR).or_default() += level;
            }
        }
        let starts: Vec<Value> = sums.keys().map(|start| json!(timestamp(*start))).collect();
        assert_eq!(column(&groups, "/timestamp"), starts, "{conditions}");
        for (group, sum) in groups.iter().zip(sums.values()) {
            let found = group["values"]["level"].as_f64().unwrap();
            assert!(
                (found - sum).abs() <= 1e-9 * sum.abs(),
                "{conditions}: {found} is not {sum}"
            );
        }
    }
}

#[test]
fn conditions_stand_beside_other_filters_and_bind_a_cursor() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level", "other"]);
    let start = now_ns() / SECOND * SECOND - HOUR;
    let entries: Vec<Value> = (0..60)
        .map(|nth| {
            let mut entry = point(
                &source,
                start + nth * SECOND,
                &json!({"level": nth, "other": -nth}),
            );
            entry["metadata"] = json!({"even": nth % 2 == 0});
            entry
        })
        .collect();
    bucket.send(&entries);
    let filters = json!({
        "values": {"level": {"gte": 10, "lt": 40}}, "metadata": {"even": true}, "fields": ["other"],
        "startTime": timestamp(start + 20 * SECOND)
    });
    let rows = bucket.rows(&filters);
    let found: Vec<i64> = rows
        .iter()
        .map(|row| row["values"]["other"].as_i64().unwrap())
        .collect();
    let wanted: Vec<i64> = (20..40).step_by(2).map(|nth: i64| -nth).collect();
    assert_eq!(found, wanted, "a condition's field need not be among `fields`");
    assert!(rows.iter().all(|row| row["values"].get("level").is_none()));

    let page = |values: Value, cursor: Option<&Value>| {
        let mut body = json!({"filters": {"values": values}, "limit": 7, "downsampling": false});
        if let Some(cursor) = cursor {
            body["cursor"] = cursor.clone();
        }
        bucket.post_query(&body)
    };
    let low = json!({"level": {"lt": 20, "in": (0..100).collect::<Vec<_>>()}});
    let first = page(low.clone(), None).expect(200, "a page");
    let cursor = &first["metadata"]["nextCursor"];
    let low = json!({"level": {"in": (0..100).collect::<Vec<_>>(), "lt": 20}});
    let second = page(low, Some(cursor)).expect(200, "small print G3: the same conditions");
    assert_eq!(second["data"][0]["values"]["level"], 7);
    assert_faults(
        &page(json!({"level": {"lt": 21}}), Some(cursor)),
        &["cursor"],
        "small print G3",
    );
    // Neither the estimate of downsampling nor the count of maxPoints is by conditions.
    let chart = bucket.query(&json!({"filters": {"values": {"level": {"lt": 5}}}, "maxPoints": 100}));
    assert_eq!(array(&chart, "/data").len(), 5, "60 points fit into 100");
}

#[test]
fn conditions_enter_no_estimate() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() / DAY * DAY - 2 * DAY;
    let entries: Vec<Value> = (0..900)
        .map(|nth| point(&source, start + nth * MINUTE, &json!({"level": nth})))
        .collect();
    bucket.send(&entries);
    let values = json!({"level": {"lt": 3}});
    let auto = bucket.query(&json!({"filters": {"values": values}}));
    assert_eq!(auto["metadata"]["downsamplingApplied"], true, "small print G3");
    let chart = bucket.query(&json!({"filters": {"values": values}, "maxPoints": 100}));
    assert_eq!(
        chart["metadata"]["downsampling"]["expectedPoints"], 900,
        "small print G3"
    );
    assert_eq!(
        chart["data"][0]["stats"]["level"],
        json!({"min": 0, "max": 2, "count": 3})
    );
}

#[test]
fn conditions_that_cannot_be_met_by_their_form_are_refused() {
    let (_server, _, bucket) = scene::bucket();
    mixed(&bucket, "one");
    let many = |count: usize| json!((0..count).collect::<Vec<_>>());
    let at = |values: Value| bucket.post_query(&json!({"filters": {"values": values}}));
    for (values, path) in [
        (json!({"level": {}}), "filters/values/level"),
        (json!({"level": 5}), "filters/values/level"),
        (json!({"nothing": {"gt": 5}}), "filters/values/nothing"),
        (json!({"level": {"gt": "5"}}), "filters/values/level/gt"),
        (json!({"level": {"gt": null}}), "filters/values/level/gt"),
        (json!({"level": {"over": 5}}), "filters/values/level/over"),
        (json!({"state": {"gt": 5}}), "filters/values/state/gt"),
        (json!({"open": {"lte": 0}}), "filters/values/open/lte"),
        (json!({"level": {"eq": "5"}}), "filters/values/level/eq"),
        (json!({"state": {"neq": 5}}), "filters/values/state/neq"),
        (json!({"state": {"eq": ["on"]}}), "filters/values/state/eq"),
        (json!({"level": {"in": []}}), "filters/values/level/in"),
        (json!({"level": {"in": 5}}), "filters/values/level/in"),
        (json!({"level": {"in": many(1_001)}}), "filters/values/level/in"),
        (json!({"level": {"in": [1, "2", 3]}}), "filters/values/level/in/1"),
        (json!({"level": {"in": [1, 2, {}]}}), "filters/values/level/in/2"),
    ] {
        assert_faults(&at(values), &[path], "small print G1");
    }
    at(json!({"level": {"in": many(1_000)}})).expect(200, "small print G1: up to 1,000");
    at(json!({})).expect(200, "no condition");
    at(Value::Null).expect(200, "small print A1: null is as if absent");
    let unknown =
        json!({"filters": {"values": {"level": {"eq": "x"}}, "dataSourceIds": ["0123456789abcdef01234567"]}});
    assert_eq!(
        bucket.post_query(&unknown).status,
        404,
        "small print A4: after the 404"
    );
    let both = at(json!({"nothing": {"gt": 5}, "level": {"eq": true}}));
    assert_faults(
        &both,
        &["filters/values/nothing", "filters/values/level/eq"],
        "contract 1: all faults",
    );
}
