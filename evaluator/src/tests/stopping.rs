//! A stop: rules in progress are finished, and no more are started.

use std::time::Duration;

use actix_web::rt::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fake::{Endpoint, Fake, World};
use super::{EvaluatorError, KEY, block_on, id, options, rows, rule, run};
use crate::{Backoff, Options};

/// Polls until stopped.
fn lasting() -> Options {
    Options {
        once: false,
        ..options()
    }
}

fn start(
    world: World,
    options: Options,
) -> (Fake, CancellationToken, JoinHandle<Result<(), EvaluatorError>>) {
    let fake = Fake::start(world);
    let stop = CancellationToken::new();
    let (url, token) = (fake.url.clone(), stop.clone());
    let running = actix_web::rt::spawn(async move { run(&url, KEY, options, token).await });
    (fake, stop, running)
}

#[test]
fn stopping_finishes_started_rules_and_begins_no_others() {
    let world = rows()
        .with_due((1..=20).map(|number| rule(number, "hot")))
        .with_held(Endpoint::Query);
    block_on(async {
        let (fake, stop, running) = start(world, lasting());
        fake.until(|world| world.queries_in_work == 4).await;
        stop.cancel();
        fake.change(|world| world.held.clear());
        running.await.unwrap().unwrap();
        fake.read(|world| assert_eq!((world.verdicts.len(), world.count(Endpoint::Query)), (4, 4)));
        fake.shut().await;
    });
}

#[test]
fn a_wait_for_the_next_poll_or_attempt_is_cut_short() {
    let patient = Options {
        poll: Duration::from_secs(3_600),
        claim: Duration::from_secs(3_600),
        backoff: Backoff {
            first: Duration::from_secs(600),
            max: Duration::from_secs(600),
        },
        ..lasting()
    };
    let due = || rows().with_due([rule(1, "hot")]);
    for (world, endpoint) in [
        (World::default(), Endpoint::Due),
        (due().with_always(Endpoint::Due, 503), Endpoint::Due),
        (due().with_always(Endpoint::Query, 503), Endpoint::Query),
        (due().with_always(Endpoint::Verdict, 503), Endpoint::Verdict),
    ] {
        block_on(async {
            let (fake, stop, running) = start(world, patient);
            fake.until(|world| world.count(endpoint) == 1).await;
            stop.cancel();
            running.await.unwrap().unwrap();
            fake.read(|world| assert!(world.verdicts.is_empty()));
            fake.shut().await;
        });
    }
}

#[test]
fn the_evaluator_polls_until_stopped() {
    block_on(async {
        let (fake, stop, running) = start(rows(), lasting());
        fake.until(|world| world.count(Endpoint::Due) > 2).await;
        fake.change(|world| *world = std::mem::take(world).with_due([rule(1, "hot")]));
        fake.until(|world| world.verdicts.contains_key(&id(1))).await;
        stop.cancel();
        running.await.unwrap().unwrap();
        assert_eq!(fake.outcome(&id(1)), "met");
        fake.shut().await;
    });
}

#[test]
fn a_rule_listed_again_during_its_evaluation_is_not_begun_twice() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_forgotten_claims()
        .with_held(Endpoint::Query);
    block_on(async {
        let (fake, stop, running) = start(world, lasting());
        fake.until(|world| world.count(Endpoint::Due) > 5).await;
        fake.change(|world| world.held.clear());
        fake.until(|world| !world.verdicts.is_empty()).await;
        stop.cancel();
        running.await.unwrap().unwrap();
        fake.read(|world| {
            assert_eq!(
                (world.count(Endpoint::Query), world.count(Endpoint::Verdict)),
                (1, 1)
            )
        });
        fake.shut().await;
    });
}
