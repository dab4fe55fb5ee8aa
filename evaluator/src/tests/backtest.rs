//! Backtests of a rule: which cycles are evaluated, and what is printed.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fake::{Endpoint, Fake, Script, World};
use super::{KEY, block_on, id, options, query, rows};
use crate::{Backtest, EvaluatorError, backtest};

const FROM: &str = "2026-01-01T00:00:00Z";
const TO: &str = "2026-01-08T00:00:00Z";

fn tested(kind: &str) -> Value {
    json!({
        "name": "too\u{1b}[31m hot", "condition": "above 80",
        "evaluation": {"mode": "external", "kind": kind, "intervalSeconds": 60, "windowSeconds": 600,
                       "inputs": [], "parameters": {"operator": "gt", "value": 80}, "dwellSeconds": 60},
    })
}

/// The `number`-th cycle: is this field above 80?
fn cycle(number: usize, field: &str) -> Value {
    json!({"at": at(number), "inputs": [{"key": "a", "field": field, "query": query(field)}]})
}

fn at(number: usize) -> String {
    let (hours, minutes) = (number / 60, number % 60);
    format!("2026-01-{:02}T{:02}:{minutes:02}:00Z", 1 + hours / 24, hours % 24)
}

fn of_rule(rule: &str) -> Backtest {
    Backtest {
        rule: rule.to_owned(),
        from: FROM.to_owned(),
        to: TO.to_owned(),
    }
}

fn test(world: World, rule: &str) -> (Fake, Result<String, EvaluatorError>) {
    let test = of_rule(rule);
    block_on(async move {
        let fake = Fake::start(world);
        let outcome = backtest(&fake.url, KEY, test, options(), CancellationToken::new()).await;
        fake.shut().await;
        (fake, outcome)
    })
}

fn bodies(fake: &Fake, endpoint: Endpoint) -> Vec<Value> {
    fake.read(|world| {
        let seen = world.of(endpoint);
        seen.map(|seen| serde_json::from_str(&seen.body).unwrap())
            .collect()
    })
}

#[test]
fn the_rule_is_printed_with_a_line_for_each_entry() {
    let cycles = [cycle(0, "cold"), cycle(1, "hot"), cycle(2, "nothing")];
    let (fake, printed) = test(rows().with_cycles(tested("threshold"), cycles), &id(1));
    let expected = [
        "too\u{fffd}[31m hot: above 80",
        "2026-01-01T00:00:00Z  not_met       armed -> firing",
        "2026-01-01T00:01:00Z  met           armed -> firing, triggered",
        "2026-01-01T00:02:00Z  inconclusive  armed -> firing, not accepted",
        "2027-01-01T00:00:00Z  dwell ended   clearing -> armed",
    ];
    assert_eq!(printed.unwrap().lines().collect::<Vec<_>>(), expected);
    let asked = bodies(&fake, Endpoint::Cycles);
    assert_eq!(
        asked,
        [json!({"startTime": FROM, "endTime": TO, "limit": 1000, "offset": 0})]
    );
    let queries = bodies(&fake, Endpoint::Query);
    assert!(queries.contains(&query("hot")), "unchanged: {queries:?}");
    assert_eq!(queries.len(), 3);
    fake.read(|world| {
        assert_eq!(world.count(Endpoint::Due) + world.count(Endpoint::Verdict), 0);
        assert!(world.seen.iter().all(|seen| seen.key == KEY));
    });
}

#[test]
fn cycles_come_page_by_page_and_each_is_evaluated_once() {
    let cycles = (0..2_345).map(|number| cycle(number, ["hot", "cold"][number % 2]));
    let (fake, printed) = test(rows().with_cycles(tested("threshold"), cycles), &id(1));
    assert_eq!(printed.unwrap().lines().count(), 2_347);
    let offsets: Vec<Value> = bodies(&fake, Endpoint::Cycles)
        .iter()
        .map(|body| body["offset"].clone())
        .collect();
    assert_eq!(offsets, [0, 1_000, 2_000]);
    let mut verdicts = bodies(&fake, Endpoint::Timeline).remove(0)["verdicts"]
        .as_array()
        .unwrap()
        .clone();
    verdicts.sort_by_key(|verdict| verdict["at"].to_string());
    let expected: Vec<Value> = (0..2_345)
        .map(|number| json!({"at": at(number), "outcome": (["met", "not_met"][number % 2])}))
        .collect();
    assert_eq!(verdicts, expected);
}

#[test]
fn as_many_cycles_are_evaluated_at_once_as_permitted() {
    let cycles = (0..13).map(|number| cycle(number, "hot"));
    let world = rows()
        .with_cycles(tested("threshold"), cycles)
        .with_held(Endpoint::Query);
    block_on(async move {
        let fake = Fake::start(world);
        let url = fake.url.clone();
        let running = actix_web::rt::spawn(async move {
            backtest(&url, KEY, of_rule(&id(1)), options(), CancellationToken::new()).await
        });
        fake.until(|world| world.queries_in_work == 4).await;
        fake.change(|world| world.held.clear());
        assert_eq!(running.await.unwrap().unwrap().lines().count(), 15);
        assert_eq!(
            fake.read(|world| world.queries_in_work_max),
            options().concurrency
        );
        fake.shut().await;
    });
}

#[test]
fn too_many_cycles_are_refused_before_any_is_evaluated() {
    let most = |count: usize| {
        rows().with_cycles(
            tested("no-such-kind"),
            (0..count).map(|number| cycle(number, "hot")),
        )
    };
    let (fake, printed) = test(most(10_001), &id(1));
    let message = printed.unwrap_err().to_string();
    assert!(message.contains("10001 times, every 60 s"), "{message}");
    assert!(
        message.contains("--from and --to at most 6.9 days apart"),
        "{message}"
    );
    fake.read(|world| {
        assert_eq!(world.count(Endpoint::Cycles), 1);
        assert_eq!(world.count(Endpoint::Query) + world.count(Endpoint::Timeline), 0);
    });
    let (fake, printed) = test(most(10_000), &id(1));
    assert_eq!(printed.unwrap().lines().count(), 10_002);
    let verdicts = bodies(&fake, Endpoint::Timeline).remove(0)["verdicts"].clone();
    let verdicts = verdicts.as_array().unwrap();
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict["outcome"] == "inconclusive"),
        "an unknown kind"
    );
}

#[test]
fn a_failure_ends_the_backtest_with_a_message() {
    let ready = || rows().with_cycles(tested("threshold"), [cycle(0, "hot")]);
    let (fake, printed) = test(ready(), "not-an-id");
    let message = printed.unwrap_err().to_string();
    assert!(message.contains("--backtest must be an id"), "{message}");
    assert!(fake.read(|world| world.seen.is_empty()));
    let (_, printed) = test(ready().with_always(Endpoint::Cycles, 404), &id(1));
    let message = printed.unwrap_err().to_string();
    assert!(message.contains("404 Not Found: as told"), "{message}");
    for endpoint in [Endpoint::Cycles, Endpoint::Query, Endpoint::Timeline] {
        let (_, printed) = test(ready().with_always(endpoint, 403), &id(1));
        assert!(matches!(printed, Err(EvaluatorError::Refused(_))), "{endpoint:?}");
    }
    let strange = Script::Says(b"{}".to_vec());
    let (_, printed) = test(ready().with_script(Endpoint::Timeline, [strange]), &id(1));
    let message = printed.unwrap_err().to_string();
    assert!(message.contains("cannot be read"), "{message}");
}

#[test]
fn a_failure_that_passes_does_not_end_the_backtest() {
    let ready = rows().with_cycles(tested("threshold"), [cycle(0, "hot")]);
    let ready = [Endpoint::Cycles, Endpoint::Query, Endpoint::Timeline]
        .into_iter()
        .fold(ready, |world, endpoint| {
            world.with_script(endpoint, [Script::Status(503), Script::Breaks])
        });
    let (_, printed) = test(ready, &id(1));
    assert!(printed.unwrap().contains("met"));
}

#[test]
fn a_rule_that_changes_meanwhile_is_not_mixed_with_its_former_self() {
    let page = |kind: &str, from: usize, to: usize| {
        let cycles: Vec<Value> = (from..to).map(|number| cycle(number, "hot")).collect();
        let page = json!({"rule": tested(kind), "cycles": cycles, "pagination": {"total": 1_001}});
        Script::Says(page.to_string().into_bytes())
    };
    let pages = [page("no-such-kind", 0, 1_000), page("threshold", 1_000, 1_001)];
    let (fake, printed) = test(World::default().with_script(Endpoint::Cycles, pages), &id(1));
    let message = printed.unwrap_err().to_string();
    assert!(message.contains("the rule was changed meanwhile"), "{message}");
    assert_eq!(fake.read(|world| world.count(Endpoint::Timeline)), 0);
}

#[test]
fn a_stop_ends_the_backtest() {
    let world = rows().with_cycles(tested("threshold"), [cycle(0, "hot")]);
    let outcome = block_on(async move {
        let fake = Fake::start(world);
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome = backtest(&fake.url, KEY, of_rule(&id(1)), options(), stop).await;
        assert_eq!(fake.read(|world| world.count(Endpoint::Query)), 0);
        fake.shut().await;
        outcome
    });
    assert!(outcome.unwrap_err().to_string().contains("it was stopped"));
}
