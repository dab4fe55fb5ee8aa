//! The same questions to a real Prometheus and to this crate.
//!
//! The packaged Prometheus is a 2.42, so the evaluation is told to follow version 2. `DIFFERENCES.md` lists what is not
//! asked. A run prints its seed; `PROMQL_SEED=… cargo test -p promql` asks other questions. The seed is fixed, because a rare
//! question amplifies the last digits, in which sums of windows may differ.

use std::time::{Duration, Instant};

use fastrand::Rng;
use promql::{Error, Labels, Limits, MemoryStorage, Options, Query, Samples, Semantics, json};
use serde_json::Value;

use crate::questions;
use crate::remote_write;
use crate::samples::{self, LENGTH_MS, START_MS};
use crate::server::Prometheus;

const SEED: u64 = 16;

const QUESTIONS: usize = 20_000;

/// The questions end after this time, however many were asked.
const TIME_MAX: Duration = Duration::from_secs(45);

const RELATIVE: f64 = 1e-9;

/// Deviations depend on the order of the values, which Prometheus leaves to chance, where values are large and close.
const RELATIVE_OF_DEVIATIONS: f64 = 1e-4;

/// Differences of values of no more than this are rounding errors around zero.
const ABSOLUTE: f64 = 1e-9;

/// How much of the samples one request of remote write carries.
const WRITE_MS: i64 = 30 * 60_000;

#[test]
fn answers_are_those_of_prometheus() {
    let seed = std::env::var("PROMQL_SEED")
        .ok()
        .map(|seed| seed.parse().expect("PROMQL_SEED is a number"));
    let seed: u64 = seed.unwrap_or(SEED);
    println!("PROMQL_SEED={seed}");
    let Some(prometheus) = comparable() else {
        return;
    };
    let mut rng = Rng::with_seed(seed);
    let storage = samples::generated(&mut rng);
    feed(&prometheus, &storage);
    let begun = Instant::now();
    let mut asked = 0;
    let mut differences = Vec::new();
    let mut refused = 0;
    while asked < QUESTIONS && begun.elapsed() < TIME_MAX {
        let asking = Asking::generated(&mut rng);
        let expected = asking.of(&prometheus);
        refused += usize::from(expected["status"] == "error");
        let answer = asking.here(&storage);
        let difference = compare(&expected, &answer, &asking)
            .err()
            .filter(|_| !is_listed(&asking.query, [&expected, &answer]));
        if let Some(difference) = difference {
            differences.push(format!("{asking:?}: {difference}"));
        }
        asked += 1;
    }
    println!(
        "{asked} questions in {:?}, {refused} of them refused",
        begun.elapsed()
    );
    let shown: Vec<String> = differences.iter().take(20).cloned().collect();
    assert!(
        differences.is_empty(),
        "PROMQL_SEED={seed}: {} of {asked} answers differ:\n{}",
        differences.len(),
        shown.join("\n")
    );
    assert!(asked > QUESTIONS / 10, "only {asked} questions were asked");
    assert!(
        refused < asked / 2,
        "{refused} of {asked} questions have no answer to compare"
    );
}

/// Whether `DIFFERENCES.md` lists it: version 3 has other deviations of what is not finite.
fn is_listed(query: &str, answers: [&Value; 2]) -> bool {
    let is_not_finite = |answer: &Value| {
        let text = answer.to_string();
        text.contains("\"NaN\"") || text.contains("Inf\"]")
    };
    (query.contains("stddev") || query.contains("stdvar")) && answers.into_iter().any(is_not_finite)
}

/// A question and when it is asked.
#[derive(Debug)]
pub struct Asking {
    pub query: String,
    pub start_ms: i64,
    /// None for an instant query.
    pub range: Option<(i64, i64)>,
}

impl Asking {
    fn generated(rng: &mut Rng) -> Asking {
        let margin_ms = 20 * 60_000;
        let mut start_ms = START_MS + rng.i64(-margin_ms..LENGTH_MS + margin_ms);
        if rng.bool() {
            start_ms -= start_ms % 15_000;
        }
        let range = rng.bool().then(|| {
            let steps = [1_000, 7_000, 15_000, 30_000, 60_000, 97_531, 300_000];
            let step_ms = steps[rng.usize(0..steps.len())];
            (start_ms + step_ms * rng.i64(0..60) + rng.i64(0..step_ms), step_ms)
        });
        Asking {
            query: questions::question(rng, (START_MS, START_MS + LENGTH_MS)),
            start_ms,
            range,
        }
    }

    fn relative(&self) -> f64 {
        let is_deviation = self.query.contains("stddev") || self.query.contains("stdvar");
        if is_deviation {
            RELATIVE_OF_DEVIATIONS
        } else {
            RELATIVE
        }
    }

    /// Whether both answer the series in an order that is defined. Prometheus sorts the matrix of a range by labels and
    /// the vector of a `sort`, but answers the matrix of a single moment in the order of a hash map: `sort(up)[5m:]`.
    fn is_ordered(&self, result_type: &str) -> bool {
        self.range.is_some() || result_type == "vector" && self.query.starts_with("sort")
    }

    pub fn of(&self, prometheus: &Prometheus) -> Value {
        let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
        let start = seconds(self.start_ms);
        let answer = match self.range {
            None => prometheus.ask("query", &[("query", &self.query), ("time", &start)]),
            Some((end_ms, step_ms)) => {
                let (end, step) = (seconds(end_ms), seconds(step_ms));
                let params = [
                    ("query", &*self.query),
                    ("start", &start),
                    ("end", &end),
                    ("step", &step),
                ];
                prometheus.ask("query_range", &params)
            }
        };
        assert!(
            matches!(answer.status, 200 | 400 | 422),
            "{self:?}: {}",
            answer.status
        );
        answer.body
    }

    pub fn here(&self, storage: &MemoryStorage) -> Value {
        let mut body = Vec::new();
        match self.evaluated(storage) {
            Ok(value) => json::write_success(&value, usize::MAX, &mut body),
            Err(error) => json::write_error(&error, &mut body),
        }
        serde_json::from_slice(&body).unwrap()
    }

    fn evaluated(&self, storage: &MemoryStorage) -> Result<promql::Value, Error> {
        let options = Options {
            semantics: Semantics::V2,
            ..Options::default()
        };
        let limits = Limits {
            memory_bytes_max: 1 << 30,
            is_interrupted: &|| false,
        };
        let query = Query::parse(&self.query, options)?;
        match self.range {
            None => query.instant(storage, self.start_ms, limits),
            Some((end_ms, step_ms)) => query.range(storage, self.start_ms, end_ms, step_ms, limits),
        }
    }
}

/// A Prometheus of the versions with which answers can be compared; none, with a message, when there is no such.
pub fn comparable() -> Option<Prometheus> {
    let prometheus = Prometheus::start()?;
    let version = prometheus.version();
    if !version.starts_with("2.") {
        println!("skipped: answers are compared with those of Prometheus 2.42, this is {version}");
        return None;
    }
    Some(prometheus)
}

/// Writes the samples slice by slice, since a fresh database takes only what is not much older than its newest sample.
pub fn feed(prometheus: &Prometheus, storage: &MemoryStorage) {
    let mut from_ms = START_MS;
    while from_ms < START_MS + LENGTH_MS + WRITE_MS {
        let slices: Vec<(&Labels, Samples<'_>)> = storage
            .series()
            .map(|(labels, samples)| {
                let from = samples.times.partition_point(|time| *time < from_ms);
                let to = samples.times.partition_point(|time| *time < from_ms + WRITE_MS);
                let samples = Samples {
                    times: &samples.times[from..to],
                    values: &samples.values[from..to],
                };
                (labels, samples)
            })
            .filter(|(_, samples)| !samples.times.is_empty())
            .collect();
        if !slices.is_empty() {
            prometheus.write(&remote_write::body(slices.into_iter()));
        }
        from_ms += WRITE_MS;
    }
}

pub fn compare(expected: &Value, answer: &Value, asking: &Asking) -> Result<(), String> {
    let differ = || Err(format!("expected {}, got {}", brief(expected), brief(answer)));
    if expected["status"] != answer["status"] || expected["errorType"] != answer["errorType"] {
        return differ();
    }
    if expected["status"] == "error" {
        return Ok(());
    }
    let (expected, answer) = (&expected["data"], &answer["data"]);
    if expected["resultType"] != answer["resultType"] {
        return differ();
    }
    match expected["resultType"].as_str() {
        Some("scalar") => compare_points(&expected["result"], &answer["result"], asking.relative()),
        Some("string") if expected["result"] == answer["result"] => Ok(()),
        Some("vector" | "matrix") => compare_series(expected, answer, asking),
        _ => differ(),
    }
}

fn compare_series(expected: &Value, answer: &Value, asking: &Asking) -> Result<(), String> {
    let sorted = |data: &Value| {
        let mut list = data["result"].as_array().cloned().unwrap_or_default();
        // `absent_over_time` in a subquery that holds no step gives a series without values.
        list.retain(|series| {
            series.get("value").is_some()
                || series["values"]
                    .as_array()
                    .is_some_and(|points| !points.is_empty())
        });
        if !asking.is_ordered(data["resultType"].as_str().unwrap_or_default()) {
            list.sort_by_key(|series| series["metric"].to_string());
        }
        list
    };
    let relative = asking.relative();
    let (expected, answer) = (sorted(expected), sorted(answer));
    let metrics = |list: &[Value]| {
        list.iter()
            .map(|series| series["metric"].to_string())
            .collect::<Vec<_>>()
    };
    if metrics(&expected) != metrics(&answer) {
        return Err(format!(
            "expected series {:?}, got {:?}",
            metrics(&expected),
            metrics(&answer)
        ));
    }
    for (expected, answer) in expected.iter().zip(&answer) {
        let of = |error| format!("{}: {error}", expected["metric"]);
        match expected.get("values").and_then(Value::as_array) {
            None => compare_points(&expected["value"], &answer["value"], relative).map_err(of)?,
            Some(points) => {
                let answered = answer["values"].as_array().cloned().unwrap_or_default();
                let times = |points: &[Value]| {
                    points
                        .iter()
                        .map(|point| point[0].to_string())
                        .collect::<Vec<_>>()
                };
                if times(points) != times(&answered) {
                    return Err(of(format!(
                        "expected at {:?}, got at {:?}",
                        times(points),
                        times(&answered)
                    )));
                }
                for (expected, answer) in points.iter().zip(&answered) {
                    compare_points(expected, answer, relative).map_err(of)?;
                }
            }
        }
    }
    Ok(())
}

fn compare_points(expected: &Value, answer: &Value, relative: f64) -> Result<(), String> {
    let number = |point: &Value| point[1].as_str().and_then(|text| text.parse::<f64>().ok());
    let (Some(left), Some(right)) = (number(expected), number(answer)) else {
        return Err(format!("expected {expected}, got {answer}"));
    };
    let is_near = (left - right).abs() <= (relative * left.abs().max(right.abs())).max(ABSOLUTE);
    if left.to_bits() == right.to_bits() && expected[1] != answer[1] {
        return Err(format!(
            "expected the number as {}, got {}",
            expected[1], answer[1]
        ));
    }
    let is_same_time = expected[0].as_f64() == answer[0].as_f64();
    if is_same_time && (left == right || is_near || left.is_nan() && right.is_nan()) {
        return Ok(());
    }
    Err(format!("expected {expected}, got {answer}"))
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(300).collect()
}
