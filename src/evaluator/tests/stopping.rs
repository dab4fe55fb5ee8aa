//! Told to stop: what is in work is finished, nothing more is begun.

use std::time::Duration;

use actix_web::rt::task::JoinHandle;

use super::fake::{Endpoint, Fake, World};
use super::{EvaluatorError, KEY, block_on, id, options, rows, rule, run};
use crate::evaluator::{Options, Pace, Stop, Stopper};

/// Polls until told to stop.
fn lasting() -> Options {
    Options {
        once: false,
        ..options()
    }
}

fn start(world: World, options: Options) -> (Fake, Stopper, JoinHandle<Result<(), EvaluatorError>>) {
    let fake = Fake::start(world);
    let (stopper, stop) = Stop::new();
    let url = fake.url.clone();
    let running = actix_web::rt::spawn(async move { run(&url, KEY, options, stop).await });
    (fake, stopper, running)
}

#[test]
fn rules_in_work_get_their_verdicts_and_no_other_is_begun() {
    let world = rows()
        .with_due((1..=20).map(|number| rule(number, "hot")))
        .with_held(Endpoint::Query);
    block_on(async {
        let (fake, stopper, running) = start(world, lasting());
        fake.until(|world| world.queries_in_work == 4).await;
        stopper.tell();
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
        pace: Pace {
            first: Duration::from_secs(600),
            longest: Duration::from_secs(600),
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
            let (fake, stopper, running) = start(world, patient);
            fake.until(|world| world.count(endpoint) == 1).await;
            stopper.tell();
            running.await.unwrap().unwrap();
            fake.read(|world| assert!(world.verdicts.is_empty()));
            fake.shut().await;
        });
    }
}

#[test]
fn it_polls_on_until_told_to_stop() {
    block_on(async {
        let (fake, stopper, running) = start(rows(), lasting());
        fake.until(|world| world.count(Endpoint::Due) > 2).await;
        fake.change(|world| *world = std::mem::take(world).with_due([rule(1, "hot")]));
        fake.until(|world| world.verdicts.contains_key(&id(1))).await;
        stopper.tell();
        running.await.unwrap().unwrap();
        assert_eq!(fake.outcome(&id(1)), "met");
        fake.shut().await;
    });
}

#[test]
fn a_rule_listed_again_while_in_work_is_not_begun_again() {
    let world = rows()
        .with_due([rule(1, "hot")])
        .with_forgotten_claims()
        .with_held(Endpoint::Query);
    block_on(async {
        let (fake, stopper, running) = start(world, lasting());
        fake.until(|world| world.count(Endpoint::Due) > 5).await;
        fake.change(|world| world.held.clear());
        fake.until(|world| !world.verdicts.is_empty()).await;
        stopper.tell();
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
