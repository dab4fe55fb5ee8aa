//! The evaluator against a scripted service.

mod backtest;
mod failures;
mod fake;
mod keys;
mod pages;
mod stopping;
mod verdicts;

use std::time::Duration;

use actix_web::rt::System;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Backoff, EvaluatorError, Options, run};
use fake::{Fake, World};

const KEY: &str = "svc_i_a-key-that-nobody-else-may-see";
/// The time limit of a test, so that one that hangs ends.
const DEADLINE: Duration = Duration::from_secs(60);

/// Ends when nothing more is due, with short delays between attempts.
fn options() -> Options {
    Options {
        limit: 100,
        claim: Duration::from_secs(60),
        poll: Duration::from_millis(5),
        concurrency: 4,
        once: true,
        backoff: Backoff {
            first: Duration::from_millis(1),
            max: Duration::from_millis(20),
        },
    }
}

/// Runs an evaluator to its end against a service in this state.
fn evaluate(world: World, options: Options) -> (Fake, Result<(), EvaluatorError>) {
    block_on(async move {
        let fake = Fake::start(world);
        let outcome = run(&fake.url, KEY, options, CancellationToken::new()).await;
        fake.shut().await;
        (fake, outcome)
    })
}

/// The same; the evaluator must succeed.
#[track_caller]
fn evaluate_well(world: World) -> Fake {
    let (fake, outcome) = evaluate(world, options());
    outcome.unwrap();
    fake
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    let within = async { tokio::time::timeout(DEADLINE, test).await };
    System::new()
        .block_on(within)
        .unwrap_or_else(|_| panic!("still running after {DEADLINE:?}"))
}

/// The id of the `number`-th rule.
fn id(number: u64) -> String {
    format!("{number:024x}")
}

/// A query as the service makes them.
fn query(field: &str) -> Value {
    json!({
        "bucketId": id(0xb),
        "filters": {
            "dataSourceIds": [id(0xd)],
            "startTime": "2026-01-01T00:00:00Z",
            "endTime": "2026-01-01T01:00:00.250Z",
            "fields": [field],
        },
        "limit": 10000,
        "sort": "asc",
        "downsampling": false,
    })
}

/// An entry of the due list: is any `field` above 80?
fn rule(number: u64, field: &str) -> Value {
    json!({
        "ruleId": id(number),
        "name": format!("rule {number}"),
        "kind": "threshold",
        "parameters": {"operator": "gt", "value": 80},
        "inputs": [{"key": "a", "field": field, "query": query(field)}],
        "dueAt": "2026-01-01T00:59:00Z",
        "missedIntervals": 0,
    })
}

/// Rows of `hot` rise to 90, rows of `cold` to 50, a minute apart; every other field has none.
fn rows() -> World {
    let series = |top: usize| (0..=4).map(|step| json!(top - 4 + step)).collect();
    World::default()
        .with_rows("hot", series(90))
        .with_rows("cold", series(50))
}
