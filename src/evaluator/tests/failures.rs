//! What may go better is tried again; what will not is said.

use std::time::Duration;

use actix_web::rt::spawn;
use serde_json::json;

use super::fake::{Endpoint, Fake, Script};
use super::{KEY, Stop, block_on, evaluate, evaluate_well, id, options, query, rows, rule, run};
use crate::evaluator::{EvaluatorError, Options};

/// Patience of a few seconds: half of them for the queries, and enough behind for a verdict on a busy machine.
fn impatient() -> Options {
    Options {
        claim: Duration::from_secs(4),
        ..options()
    }
}

#[test]
fn every_passing_failure_is_tried_again_at_every_endpoint() {
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
fn a_retry_does_not_come_before_what_the_service_asked_for() {
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
fn a_query_that_fails_for_good_is_inconclusive_and_stops_no_other_rule() {
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
fn an_input_that_fails_leaves_the_others_their_say() {
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
fn a_query_the_service_never_manages_is_inconclusive_within_the_claim() {
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
fn a_query_without_any_answer_is_inconclusive_too() {
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

/// Seen on a busy machine: the last attempt had a millisecond left, timed out, and passed for an overloaded service.
#[test]
fn an_attempt_cut_short_by_the_end_of_patience_does_not_count() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_script(Endpoint::Query, (0..10_000).map(|_| Script::Breaks));
    block_on(async {
        let fake = Fake::start(world);
        let url = fake.url.clone();
        let running = spawn(async move { run(&url, KEY, impatient(), Stop::new().1).await });
        fake.until(|world| world.count(Endpoint::Query) >= 2).await;
        fake.change(|world| _ = world.held.insert(Endpoint::Query));
        running.await.unwrap().unwrap();
        assert_eq!(fake.read(|world| world.count(Endpoint::Verdict)), 0);
        fake.shut().await;
    });
}

#[test]
fn a_verdict_nobody_takes_is_given_up_with_the_claim() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_always(Endpoint::Verdict, 500);
    let (fake, outcome) = evaluate(world, impatient());
    outcome.unwrap();
    fake.read(|world| assert!(world.count(Endpoint::Verdict) > 3 && world.verdicts.is_empty()));
}

#[test]
fn a_refused_key_ends_the_evaluator_wherever_it_is_refused() {
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
            // At most those that were in work.
            assert!(fake.read(|world| world.count(endpoint)) <= options().concurrency);
        }
    }
}

#[test]
fn a_poll_that_is_no_list_ends_the_evaluator() {
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
fn once_does_not_wait_forever_for_a_service_that_is_not_there() {
    // A port that no test is given.
    let url = "http://127.0.0.1:1";
    let error = block_on(async { run(url, KEY, impatient(), Stop::new().1).await.unwrap_err() });
    assert!(matches!(error, EvaluatorError::Poll(_)), "{error}");
}

#[test]
fn an_address_or_a_key_that_cannot_be_used_is_refused_at_once() {
    let refusal = |url: &str, key: &str| {
        block_on(async {
            run(url, key, options(), Stop::new().1)
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
            text.contains("--url") && !text.contains("secret"),
            "{url}: {text}"
        );
    }
    for key in ["", "svc_i_a\nb", "svc_i_\u{7f}"] {
        let text = refusal("http://localhost", key);
        assert!(text.contains("key") && !text.contains("svc_i_a"), "{text}");
    }
}
