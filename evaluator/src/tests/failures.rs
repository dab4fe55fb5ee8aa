//! Transient failures are retried; permanent ones are reported.

use std::time::Duration;

use actix_web::rt::spawn;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fake::{Endpoint, Fake, Script};
use super::{KEY, block_on, evaluate, evaluate_well, id, options, query, rows, rule, run};
use crate::{EvaluatorError, Options};

/// Deadlines of a few seconds: half of them for the queries, and enough left for a verdict on a busy machine.
fn impatient() -> Options {
    Options {
        claim: Duration::from_secs(4),
        ..options()
    }
}

#[test]
fn transient_failures_are_retried_at_every_endpoint() {
    let script = || {
        [
            Script::Status(500),
            Script::Breaks,
            Script::Status(502),
            Script::Status(503),
            Script::Status(429),
        ]
    };
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_script(Endpoint::Due, script())
        .with_script(Endpoint::Query, script())
        .with_script(Endpoint::Verdict, script());
    let fake = evaluate_well(world);
    assert_eq!(fake.outcome(&id(1)), "met");
    fake.read(|world| {
        assert_eq!(world.count(Endpoint::Query), 6);
        assert_eq!(world.count(Endpoint::Verdict), 6);
    });
}

#[test]
fn a_retry_waits_as_long_as_the_service_asks() {
    for status in [429, 503] {
        let world = rows()
            .with_due([rule(1, "hot")])
            .with_script(Endpoint::Query, [Script::RetryAfter(status, 1)]);
        let fake = evaluate_well(world);
        assert_eq!(fake.outcome(&id(1)), "met");
        fake.read(|world| {
            let at: Vec<_> = world.of(Endpoint::Query).map(|seen| seen.at).collect();
            assert_eq!(at.len(), 2);
            assert!(at[1] - at[0] >= Duration::from_secs(1), "{:?}", at[1] - at[0]);
        });
    }
}

#[test]
fn a_permanent_query_failure_is_inconclusive_and_affects_one_rule_only() {
    let too_large = Script::Says(vec![b' '; (64 << 20) + 1]);
    for (script, words) in [
        (Script::Status(400), "400 Bad Request: as told"),
        (Script::Status(404), "404 Not Found: as told"),
        (Script::Status(302), "302 Found: as told"),
        (
            Script::Says("<html>".into()),
            "the answer to the query cannot be read",
        ),
        (too_large, "the answer is larger than 64 MiB"),
    ] {
        let world = rows()
            .with_due([rule(1, "hot"), rule(2, "hot"), rule(3, "cold")])
            .with_script(Endpoint::Query, [script]);
        let one_at_a_time = Options {
            concurrency: 1,
            ..options()
        };
        let (fake, outcome) = evaluate(world, one_at_a_time);
        outcome.unwrap();
        let (outcome, evidence) = fake.verdict(&id(1));
        assert_eq!(outcome, "inconclusive");
        let reason = evidence["inputs"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        assert_eq!(fake.outcome(&id(2)), "met");
        assert_eq!(fake.outcome(&id(3)), "not_met");
    }
}

#[test]
fn a_failed_input_does_not_block_the_others() {
    for (top, outcome) in [("hot", "met"), ("cold", "inconclusive")] {
        let mut two = rule(1, top);
        let good = two["inputs"][0].clone();
        two["inputs"] = json!([{"key": "gone", "field": "gone", "query": query("gone")}, good]);
        let world = rows()
            .with_due([two])
            .with_script(Endpoint::Query, [Script::Status(404)]);
        assert_eq!(evaluate_well(world).outcome(&id(1)), outcome);
    }
}

#[test]
fn a_query_that_keeps_failing_is_inconclusive_within_the_claim() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_always(Endpoint::Query, 503);
    let (fake, outcome) = evaluate(world, impatient());
    outcome.unwrap();
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!(outcome, "inconclusive");
    let reason = evidence["inputs"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("503 Service Unavailable: as told"), "{reason}");
    assert!(fake.read(|world| world.count(Endpoint::Query)) > 3);
}

#[test]
fn an_unanswered_query_is_inconclusive() {
    let world = rows().with_due([rule(1, "hot")]).with_held(Endpoint::Query);
    let (fake, outcome) = evaluate(world, impatient());
    outcome.unwrap();
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!(outcome, "inconclusive");
    let reason = evidence["inputs"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no answer within"), "{reason}");
}

#[test]
fn a_rule_stays_due_while_the_service_is_out_of_reach() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_script(Endpoint::Query, (0..10_000).map(|_| Script::Breaks));
    let (fake, outcome) = evaluate(world, impatient());
    outcome.unwrap();
    fake.read(|world| {
        assert!(world.count(Endpoint::Query) > 3);
        assert_eq!((world.count(Endpoint::Verdict), world.verdicts.len()), (0, 0));
    });
}

/// Regression: the last attempt had a millisecond left, timed out, and was counted as an overloaded service.
#[test]
fn an_attempt_cut_short_by_the_deadline_does_not_count() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_script(Endpoint::Query, (0..10_000).map(|_| Script::Breaks));
    block_on(async {
        let fake = Fake::start(world);
        let url = fake.url.clone();
        let running = spawn(async move { run(&url, KEY, impatient(), CancellationToken::new()).await });
        fake.until(|world| world.count(Endpoint::Query) >= 2).await;
        fake.change(|world| _ = world.held.insert(Endpoint::Query));
        running.await.unwrap().unwrap();
        assert_eq!(fake.read(|world| world.count(Endpoint::Verdict)), 0);
        fake.shut().await;
    });
}

#[test]
fn a_verdict_that_cannot_be_delivered_is_dropped_with_its_claim() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_always(Endpoint::Verdict, 500);
    let (fake, outcome) = evaluate(world, impatient());
    outcome.unwrap();
    fake.read(|world| assert!(world.count(Endpoint::Verdict) > 3 && world.verdicts.is_empty()));
}

#[test]
fn a_refused_key_stops_the_evaluator_at_any_endpoint() {
    for endpoint in [Endpoint::Due, Endpoint::Query, Endpoint::Verdict] {
        for status in [401, 403] {
            let world = rows()
                .with_due((1..=20).map(|number| rule(number, "hot")))
                .with_always(endpoint, status);
            let (fake, outcome) = evaluate(world, options());
            let error = outcome.unwrap_err();
            assert!(matches!(error, EvaluatorError::Refused(_)), "{error}");
            let text = error.to_string();
            assert!(
                text.contains("as told") && text.contains("integration key"),
                "{text}"
            );
            // At most those that were being evaluated.
            assert!(fake.read(|world| world.count(endpoint)) <= options().concurrency);
        }
    }
}

#[test]
fn a_malformed_due_list_stops_the_evaluator() {
    for script in [
        Script::Status(404),
        Script::Status(301),
        Script::Says("<html>".into()),
    ] {
        let (_, outcome) = evaluate(rows().with_script(Endpoint::Due, [script]), options());
        let error = outcome.unwrap_err();
        assert!(matches!(error, EvaluatorError::Poll(_)), "{error}");
    }
}

#[test]
fn once_gives_up_on_an_unreachable_service() {
    // A port that no test uses.
    let url = "http://127.0.0.1:1";
    let error = block_on(async {
        run(url, KEY, impatient(), CancellationToken::new())
            .await
            .unwrap_err()
    });
    assert!(matches!(error, EvaluatorError::Poll(_)), "{error}");
}

#[test]
fn an_invalid_address_or_key_is_refused_at_once() {
    let refusal = |url: &str, key: &str| {
        block_on(async {
            run(url, key, options(), CancellationToken::new())
                .await
                .unwrap_err()
                .to_string()
        })
    };
    for url in [
        "",
        "localhost:8080",
        "ftp://localhost",
        "http://",
        "http://ada:secret@localhost",
        "http://localhost?x=1",
        "/api",
    ] {
        let text = refusal(url, KEY);
        assert!(
            text.contains("address") && !text.contains("secret"),
            "{url}: {text}"
        );
    }
    for key in ["", "svc_i_a\nb", "svc_i_\u{7f}"] {
        let text = refusal("http://localhost", key);
        assert!(text.contains("key") && !text.contains("svc_i_a"), "{text}");
    }
}
