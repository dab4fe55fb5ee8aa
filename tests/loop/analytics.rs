//! Analytics as days pass: each answer compared with one computed from a list of all points, with ends of periods and
//! expiry exactly at points; and counts of triggers during their retention.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::given::{Bucket, point};
use crate::time::{DAY, HOUR, SECOND, timestamp};
use crate::world::{START, Scene, scene};

const PERIODS: [(&str, i64); 4] = [("24h", 1), ("7d", 7), ("30d", 30), ("90d", 90)];
const RETENTION_DAYS: i64 = 50;
const HOUR_SECONDS: i64 = HOUR / SECOND;
const DAY_SECONDS: i64 = DAY / SECOND;

/// A point of the test's model.
struct Sample {
    source: usize,
    at: i64,
    level: Option<f64>,
    flow: Option<f64>,
}

#[track_caller]
fn analytics(scene: &Scene, bucket: &Bucket, period: &str) -> Value {
    let path = format!("/api/analytics/buckets/{}?period={period}", bucket.id);
    let answer = scene.call("GET", &path, &Value::Null);
    answer.expect(200, "spec: GET /api/analytics/buckets/:bucketId")["analytics"].clone()
}

#[track_caller]
fn overview(scene: &Scene) -> Value {
    let answer = scene.call("GET", "/api/analytics/overview", &Value::Null);
    answer.expect(200, "spec: GET /api/analytics/overview")["overview"].clone()
}

/// Count, mean, least and greatest of the present values.
fn aggregate<'a>(values: impl Iterator<Item = &'a Option<f64>>) -> Option<(f64, f64, f64)> {
    let values: Vec<f64> = values.flatten().copied().collect();
    let least = values.iter().copied().reduce(f64::min)?;
    let greatest = values.iter().copied().reduce(f64::max)?;
    Some((values.iter().sum::<f64>() / values.len() as f64, least, greatest))
}

#[track_caller]
fn check(scene: &Scene, bucket: &Bucket, sources: &[String], samples: &[Sample], now: i64, context: &str) {
    let live = |sample: &&Sample| sample.at >= now - RETENTION_DAYS * DAY;
    for (period, days) in PERIODS {
        let context = format!("{context}, {period}");
        let shown = analytics(scene, bucket, period);
        let within: Vec<&Sample> = samples
            .iter()
            .filter(live)
            .filter(|sample| (now - days * DAY..=now).contains(&sample.at))
            .collect();
        let summary = &shown["summary"];
        assert_eq!(
            (&summary["totalDataPoints"], &summary["dataPointsInPeriod"]),
            (&json!(samples.iter().filter(live).count()), &json!(within.len())),
            "contract 8, 10: expired points are gone, the others count by their timestamps ({context})"
        );
        let mut hours = BTreeMap::new();
        for sample in &within {
            *hours.entry(sample.at.div_euclid(HOUR)).or_insert(0) += 1;
        }
        let hours: Vec<Value> = hours
            .iter()
            .map(|(hour, count)| json!({"hour": timestamp(hour * HOUR), "count": count}))
            .collect();
        assert_eq!(
            shown["ingestionRate"]["dataPointsPerHour"],
            json!(hours),
            "contract 8: UTC hours, those without points left out ({context})"
        );
        for (index, id) in sources.iter().enumerate() {
            let stats = &shown["dataSourceStats"][index];
            let own: Vec<&&Sample> = within.iter().filter(|sample| sample.source == index).collect();
            let of_all_time = samples
                .iter()
                .filter(live)
                .filter(|sample| sample.source == index);
            let last = of_all_time.map(|sample| sample.at).max();
            assert_eq!(
                (&stats["_id"], &stats["dataPointCount"], &stats["lastDataPoint"]),
                (&json!(id), &json!(own.len()), &json!(last.map(timestamp))),
                "contract 10: the period's points, the last of all time ({context})"
            );
            let fields = [
                ("level", aggregate(own.iter().map(|sample| &sample.level))),
                ("flow", aggregate(own.iter().map(|sample| &sample.flow))),
            ];
            for (field, aggregate) in fields {
                let shown =
                    ["avgValues", "minValues", "maxValues"].map(|values| stats[values][field].as_f64());
                let Some((mean, least, greatest)) = aggregate else {
                    assert_eq!(shown, [None; 3], "fields without values are left out ({context})");
                    continue;
                };
                assert_eq!(
                    shown[1..],
                    [Some(least), Some(greatest)],
                    "least and greatest of {field} ({context})"
                );
                assert!(
                    shown[0].is_some_and(|shown| (shown - mean).abs() <= 1e-9 * mean.abs().max(1.0)),
                    "contract 5: exact averages: {shown:?} for {mean} of {field} ({context})"
                );
            }
        }
    }
    let shown = overview(scene);
    let of_a_day = samples
        .iter()
        .filter(live)
        .filter(|sample| (now - DAY..=now).contains(&sample.at));
    assert_eq!(
        (
            &shown["recentActivity"]["dataPointsLast24h"],
            &shown["totals"]["dataPoints"]
        ),
        (
            &json!(of_a_day.count()),
            &json!(samples.iter().filter(live).count())
        ),
        "spec: `dataPointsLast24h`; contract 10: expired points are gone ({context})"
    );
}

/// Points early and late, of sources without some fields in some points, with restarts that seal them.
#[test]
fn analytics_follow_points_in_any_order_and_as_they_expire() {
    let seed = std::env::var("LOOP_SEED")
        .ok()
        .map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("LOOP_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut scene = scene();
    let bucket = scene
        .account
        .bucket_with(&json!({"name": "kept", "retentionDays": RETENTION_DAYS}));
    let schema = json!({
        "level": {"type": "number"}, "flow": {"type": "number"}, "valve": {"type": "string"},
    });
    let sources: Vec<String> = (0..3)
        .map(|nth| bucket.source_with(&json!({"name": format!("gauge {nth}"), "schema": schema})))
        .collect();
    let mut samples: Vec<Sample> = Vec::new();
    let mut now = *START;
    for round in 0..14 {
        // Sometimes dense enough that blocks have rollups.
        let dense = random
            .bool()
            .then(|| now - random.i64(0..20) * DAY - random.i64(0..DAY));
        let fresh: Vec<Sample> = (0..random.i64(1..1_000))
            .map(|nth| {
                // Periods end, and points expire, at whole hours.
                let whole_hour = now - random.i64(-30..30 * 24) * HOUR;
                let at = match (dense, random.u8(0..3)) {
                    (Some(from), 0..2) => (from + nth * 20 * SECOND).min(now),
                    (_, 0) => (whole_hour + random.i64(-1..2)).max(now - 30 * DAY),
                    _ => whole_hour,
                };
                let with_level = random.bool();
                Sample {
                    source: random.usize(0..2),
                    at,
                    level: with_level.then(|| f64::from(random.i32(-900..900)) / 10.0),
                    flow: (!with_level && random.bool()).then(|| random.f64()),
                }
            })
            .collect();
        let entries: Vec<Value> = fresh
            .iter()
            .map(|sample| {
                let mut values = json!({"valve": "open"});
                for (name, value) in [("level", sample.level), ("flow", sample.flow)] {
                    if let Some(value) = value {
                        values[name] = json!(value);
                        // Without this, the field would be in all points.
                        values.as_object_mut().unwrap().remove("valve");
                    }
                }
                point(&sources[sample.source], sample.at, &values)
            })
            .collect();
        let body = json!({"bucketId": bucket.id, "dataPoints": entries});
        let answer = scene.call("POST", "/api/data/batch", &body);
        answer.expect(201, "contract 4: a batch as old as 30 days");
        samples.extend(fresh);
        let context = format!("seed {seed}, round {round}");
        check(&scene, &bucket, &sources, &samples, now, &context);
        let pass = random.i64(0..200);
        now += pass * HOUR;
        scene.world.advance(pass * HOUR_SECONDS);
        if random.u8(0..3) == 0 {
            scene.world.restart(0);
        }
        check(&scene, &bucket, &sources, &samples, now, &context);
    }
}

#[test]
fn triggers_of_a_period_count_across_restarts_and_merges() {
    let mut scene = scene();
    let rules = [scene.rule("often", 60, 0), scene.rule("seldom", 60, 0)];
    let mut fired: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
    let mut now = *START;
    for day in 0..100 {
        for (nth, rule) in rules.iter().enumerate() {
            // Verdicts between triggers, which outnumber them.
            for outcome in ["inconclusive", "not_met"] {
                scene.evaluator.evaluate(rule, outcome);
                scene.world.advance(60);
                now += 60 * SECOND;
            }
            if nth == 0 || day % 10 == 0 {
                scene.evaluator.evaluate(rule, "met");
                fired[nth].push(now);
            }
        }
        if day % 17 == 0 {
            scene.world.restart(0);
        }
        if day % 9 == 8 {
            for (period, days) in PERIODS {
                let count = |nth: usize| fired[nth].iter().filter(|at| **at >= now - days * DAY).count();
                let mut by_rule = vec![json!({"name": "often", "count": count(0)})];
                if count(1) > 0 {
                    by_rule.push(json!({"name": "seldom", "count": count(1)}));
                }
                assert_eq!(
                    analytics(&scene, &scene.bucket, period)["alertActivity"],
                    json!({"totalTriggered": count(0) + count(1), "byRule": by_rule}),
                    "contract 8: triggers in the period ({period} on day {day})"
                );
            }
        }
        let activity = &overview(&scene)["recentActivity"];
        let last_day = fired.iter().flatten().filter(|at| **at >= now - DAY).count();
        assert_eq!(
            (
                &activity["alertsTriggeredLast24h"],
                &activity["lastAlertTriggered"]
            ),
            (
                &json!(last_day),
                &json!(fired.iter().flatten().max().map(|at| timestamp(*at)))
            ),
            "spec: `recentActivity` on day {day}"
        );
        scene.world.advance(DAY_SECONDS - 240);
        now += DAY - 240 * SECOND;
    }
    scene.world.advance(91 * DAY_SECONDS);
    assert_eq!(
        analytics(&scene, &scene.bucket, "90d")["alertActivity"],
        json!({"totalTriggered": 0, "byRule": []}),
        "contract 6: triggers are kept 90 days"
    );
}
