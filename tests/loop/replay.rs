//! Real series, replayed in steps of the rules' interval, with an evaluator that uses only the service's answers: due
//! rules, their parameters, and results of its queries.

use serde_json::{Value, json};

use crate::given::point;
use crate::receiver::Receiver;
use crate::series::{Point, Reading, Watch, series};
use crate::time::{SECOND, timestamp};
use crate::watch::Evaluator;
use crate::world::{Scene, receiver, scene};
use tidewatch::clock::Clock;

const INTERVAL_SECONDS: i64 = 300;

/// Evaluates all due rules: each query unchanged, one outcome and one verdict for each rule.
fn evaluate(evaluator: &Evaluator) -> usize {
    let due = evaluator.due("?claim=60&limit=100");
    for rule in &due {
        let mut outcome = "inconclusive";
        let mut evidence = json!({});
        for input in rule["inputs"].as_array().unwrap() {
            let request = evaluator.client.post("/api/data/query").key(&evaluator.key);
            let answer = request.json(&input["query"]).send();
            let answer = answer.expect(200, "spec: `query` is a ready-made body for POST /api/data/query");
            assert_eq!(answer["metadata"]["hasMore"], false, "a window fits one answer");
            let rows = answer["data"].as_array().unwrap();
            let field = input["field"].as_str().unwrap();
            let value = rows.last().and_then(|row| row["values"][field].as_f64());
            if let Some(value) = value {
                let parameters = &rule["parameters"];
                let met = match rule["kind"].as_str() {
                    Some("above") => value > parameters["threshold"].as_f64().unwrap(),
                    Some("below") => value < parameters["threshold"].as_f64().unwrap(),
                    kind => panic!("this test's rules are above and below, not {kind:?}"),
                };
                outcome = if met { "met" } else { "not_met" };
                evidence = json!({"currentValue": value, "threshold": parameters["threshold"]});
            }
        }
        let id = rule["ruleId"].as_str().unwrap();
        let body = json!({"outcome": outcome, "evidence": evidence});
        evaluator
            .verdict(id, &body)
            .expect(200, "contract 6: a verdict is accepted once per due interval");
    }
    due.len()
}

fn create(scene: &Scene, watch: &Watch, receiver: &Receiver) -> String {
    let mut input = json!({"key": "value", "field": "level", "dataSourceId": scene.source});
    let aggregation = match watch.reading {
        Reading::Last => None,
        Reading::HourlyMax => Some("max"),
        Reading::HourlyMean => Some("avg"),
    };
    if let Some(aggregation) = aggregation {
        input["aggregation"] = json!(aggregation);
        input["groupBy"] = json!("hour");
    }
    scene.bucket.rule(&json!({
        "dataSourceId": scene.source, "name": watch.name, "condition": "as the evaluator sees it",
        "webhookUrl": receiver.url(&format!("/{}", watch.name)),
        "evaluation": {
            "kind": if watch.below { "below" } else { "above" },
            "intervalSeconds": INTERVAL_SECONDS, "windowSeconds": watch.window_seconds, "inputs": [input],
            "parameters": {"threshold": watch.threshold}, "dwellSeconds": watch.dwell_seconds,
        },
    }))
}

/// Points in `silent` are not sent: windows there are inconclusive.
fn replay(points: &[Point], silent: std::ops::Range<usize>, watches: &[Watch], least: usize) {
    let mut scene = scene();
    let receiver = receiver();
    scene
        .account
        .webhook(&json!({"url": receiver.url("/all"), "events": ["alert.triggered"]}));
    let rules: Vec<String> = watches
        .iter()
        .map(|watch| create(&scene, watch, &receiver))
        .collect();
    for (nth, Point { at, value }) in points.iter().enumerate() {
        scene.world.clock.advance(at - scene.world.clock.now_ns());
        if !silent.contains(&nth) {
            let mut body = point(&scene.source, *at, &json!({"level": value}));
            body["bucketId"] = json!(scene.bucket.id);
            let answer = scene.call("POST", "/api/data", &body);
            answer.expect(201, "spec: POST /api/data");
        }
        let judged = evaluate(&scene.evaluator);
        assert_eq!(
            judged,
            rules.len(),
            "contract 6: every rule is due at every interval (point {nth})"
        );
        assert_eq!(
            evaluate(&scene.evaluator),
            0,
            "spec: extra polls just return an empty list (point {nth})"
        );
        if nth == points.len() / 2 {
            scene.world.restart(0);
        }
    }
    let stored =
        json!({"filters": {"dataSourceIds": [scene.source]}, "limit": 10_000, "downsampling": false});
    assert_eq!(
        scene.bucket.query(&stored)["metadata"]["count"],
        points.len() - silent.len(),
        "every point that was sent is there"
    );
    let sent: Vec<Point> = points
        .iter()
        .enumerate()
        .filter(|(nth, _)| !silent.contains(nth))
        .map(|(_, point)| *point)
        .collect();
    let moments: Vec<i64> = points.iter().map(|point| point.at).collect();
    let mut total = 0;
    for (watch, rule) in watches.iter().zip(&rules) {
        let expected = watch.crossings(&sent, &moments);
        let name = watch.name;
        println!("{name}: {} excursions", expected.len());
        assert!(
            expected.len() >= least,
            "{name}: the series crosses often enough to mean something"
        );
        total += expected.len();
        let expected: Vec<String> = expected.into_iter().map(timestamp).collect();
        let received = receiver.wait(&format!("/{name}"), expected.len());
        let observed: Vec<Value> = received
            .iter()
            .map(|request| request.json()["triggeredAt"].clone())
            .collect();
        let mut observed: Vec<&str> = observed.iter().map(|at| at.as_str().unwrap()).collect();
        observed.sort_unstable();
        assert_eq!(
            observed, expected,
            "rules fire where the data crosses, exactly once per excursion, and again after it ({name})"
        );
        let shown = scene.bucket.show(rule);
        assert_eq!(
            shown["lastTriggeredAt"],
            json!(expected.last()),
            "contract 6: `lastTriggeredAt` ({name})"
        );
        assert_history(&scene, rule, moments.len(), &expected);
    }
    let received = receiver.wait("/all", total);
    assert_eq!(
        received.len(),
        total,
        "the webhook is notified of every trigger once"
    );
    for request in received {
        let data = &request.json()["data"];
        let watch = watches
            .iter()
            .find(|watch| data["alertName"] == watch.name)
            .unwrap();
        let (value, beyond) = (data["currentValue"].as_f64().unwrap(), watch.threshold);
        assert!(
            if watch.below {
                value < beyond
            } else {
                value > beyond
            },
            "contract 6: `currentValue` comes from the evidence: {data}"
        );
    }
}

/// Asserts one verdict for each interval, and the expected triggers.
#[track_caller]
fn assert_history(scene: &Scene, rule: &str, verdicts: usize, triggered_at: &[String]) {
    let mut history = Vec::new();
    for offset in (0..).step_by(1000) {
        let path = format!("/api/alerts/{rule}/history?limit=1000&offset={offset}");
        let answer = scene.call("GET", &path, &Value::Null);
        let answer = answer.expect(200, "contract 6: GET /api/alerts/:id/history");
        history.extend(answer["history"].as_array().unwrap().iter().cloned());
        if answer["pagination"]["hasMore"] == false {
            break;
        }
    }
    let of_kind = |kind: &str| -> Vec<&str> {
        let of_kind = history.iter().rev().filter(|entry| entry["kind"] == kind);
        of_kind.map(|entry| entry["at"].as_str().unwrap()).collect()
    };
    assert_eq!(
        of_kind("verdict").len(),
        verdicts,
        "contract 6: every verdict is in the history"
    );
    assert_eq!(of_kind("trigger"), triggered_at, "contract 6: and every trigger");
}

#[test]
fn replaying_a_failing_machine_fires_as_expected() {
    let points = series("machine_temperature_system_failure.csv", 5_898..6_900);
    assert!(
        points
            .windows(2)
            .all(|pair| pair[1].at - pair[0].at >= INTERVAL_SECONDS * SECOND)
    );
    let watch = |name, reading, window_seconds, (below, threshold), dwell_seconds| Watch {
        name,
        reading,
        window_seconds,
        threshold,
        below,
        dwell_seconds,
    };
    let watches = [
        watch("hot", Reading::Last, 300, (false, 87.0), 0),
        watch("hot-for-long", Reading::Last, 300, (false, 75.0), 3_600),
        watch("cold", Reading::HourlyMean, 7_200, (true, 70.0), 900),
    ];
    // Three hours without points, in the middle of the failure.
    replay(&points, 400..436, &watches, 2);
}

#[test]
fn replaying_nightly_peaks_of_a_server_fires_as_expected() {
    let points = series("ec2_cpu_utilization_24ae8d.csv", 0..1_632);
    let watches = [
        Watch {
            name: "peak",
            reading: Reading::Last,
            window_seconds: 60,
            threshold: 1.0,
            below: false,
            dwell_seconds: 600,
        },
        Watch {
            name: "busy-hour",
            reading: Reading::HourlyMax,
            window_seconds: 3_600,
            threshold: 0.5,
            below: false,
            dwell_seconds: 1_800,
        },
    ];
    replay(&points, 100..130, &watches, 5);
}
