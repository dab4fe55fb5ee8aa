//! Every due rule gets exactly one verdict.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fake::{Endpoint, Script, World};
use super::{evaluate, evaluate_well, id, options, query, rows, rule};
use crate::api::{Api, Posted};
use crate::condition::{Outcome, Verdict};
use crate::{Client, Credential};

#[test]
fn each_due_rule_gets_one_verdict_on_its_own_rows() {
    let fake = evaluate_well(rows().with_due([rule(1, "hot"), rule(2, "cold"), rule(3, "nothing")]));
    assert_eq!(fake.outcome(&id(1)), "met");
    assert_eq!(fake.outcome(&id(2)), "not_met");
    assert_eq!(fake.outcome(&id(3)), "inconclusive");
    fake.read(|world| {
        assert_eq!(world.count(Endpoint::Query), 3);
        assert_eq!(world.count(Endpoint::Verdict), 3);
    });
    let (_, evidence) = fake.verdict(&id(1));
    assert_eq!(
        evidence,
        json!({
            "kind": "threshold",
            "currentValue": 90,
            "threshold": 80,
            "operator": "gt",
            "dataPoint": {
                "timestamp": "2026-01-01T00:04:00Z",
                "values": {"hot": 90},
                "metadata": {"row": 4},
            },
            "inputs": [{"key": "a", "field": "hot", "outcome": "met", "rows": 5, "matched": 5,
                        "row": {"timestamp": "2026-01-01T00:04:00Z", "value": 90}}],
        })
    );
}

#[test]
fn queries_are_sent_byte_for_byte_and_every_request_has_the_key() {
    // Spaces, an order of members and spellings of numbers that a serializer would change.
    let odd = r#"{ "limit" : 1e4,"bucketId":"b" ,"filters":{"fields":["hot"],"x":1.50, "y":"\u00e9"} }"#;
    let entry = format!(
        r#"{{"ruleId":"{}","name":"odd","kind":"absence","parameters":{{}},
            "inputs":[{{"key":"a","field":"hot","query":{odd}}}]}}"#,
        id(1)
    );
    let fake = evaluate_well(rows().with_due_text(&entry));
    assert_eq!(fake.outcome(&id(1)), "not_met");
    fake.read(|world| {
        let bodies: Vec<&str> = world.of(Endpoint::Query).map(|seen| seen.body.as_str()).collect();
        assert_eq!(bodies, [odd]);
        assert!(world.seen.iter().all(|seen| seen.key == super::KEY));
    });
}

#[test]
fn polls_claim_no_more_rules_than_can_be_begun() {
    let fake = evaluate_well(rows().with_due((1..=10).map(|number| rule(number, "hot"))));
    fake.read(|world| {
        assert_eq!(world.verdicts.len(), 10);
        assert_eq!(world.count(Endpoint::Verdict), 10);
        for poll in world.of(Endpoint::Due) {
            let (limit, claim) = poll.query_string.split_once('&').unwrap();
            let limit: usize = limit.strip_prefix("limit=").unwrap().parse().unwrap();
            assert!((1..=options().concurrency).contains(&limit), "{limit}");
            assert_eq!(claim, "claim=60");
        }
    });
}

#[test]
fn unsupported_kinds_and_parameters_are_inconclusive_without_a_query() {
    let with = |number, member: &str, value| {
        let mut rule = rule(number, "hot");
        rule[member] = value;
        rule
    };
    let fake = evaluate_well(rows().with_due([
        with(1, "kind", json!("forecast")),
        with(2, "kind", Value::Null),
        with(3, "parameters", json!({"operator": "gt"})),
        with(
            4,
            "parameters",
            json!({"operator": "gt", "value": 80, "matsh": "all"}),
        ),
    ]));
    for (number, reason) in [
        (1, "the kind `forecast` is not known here"),
        (2, "the rule has no kind"),
        (3, "parameter `value` is missing"),
        (
            4,
            "parameter `matsh` is not one of inputs, operator, value, match, minCount",
        ),
    ] {
        let (outcome, evidence) = fake.verdict(&id(number));
        assert_eq!(
            (outcome.as_str(), evidence["reason"].as_str()),
            ("inconclusive", Some(reason))
        );
    }
    assert_eq!(fake.read(|world| world.count(Endpoint::Query)), 0);
}

#[test]
fn several_inputs_make_one_verdict() {
    let two = |number, parameters: Value| {
        let mut rule = rule(number, "hot");
        rule["parameters"] = parameters;
        rule["inputs"] = json!([
            {"key": "cold", "field": "cold", "query": query("cold")},
            {"key": "hot", "field": "hot", "query": query("hot")},
        ]);
        rule
    };
    let fake = evaluate_well(rows().with_due([
        two(1, json!({"operator": "gt", "value": 80})),
        two(2, json!({"operator": "gt", "value": 80, "inputs": "all"})),
    ]));
    let (outcome, evidence) = fake.verdict(&id(1));
    assert_eq!(
        (outcome.as_str(), &evidence["dataPoint"]["values"]),
        ("met", &json!({"hot": 90}))
    );
    assert_eq!(evidence["inputs"][0]["outcome"], "not_met");
    assert_eq!(fake.outcome(&id(2)), "not_met");
}

#[test]
fn a_409_recovers_a_lost_answer_to_a_verdict() {
    let script = [Script::DoesThen(503), Script::Breaks];
    let fake = evaluate_well(
        rows()
            .with_due([rule(1, "hot")])
            .with_script(Endpoint::Verdict, script),
    );
    assert_eq!(fake.outcome(&id(1)), "met");
    fake.read(|world| {
        let bodies: HashSet<&str> = world
            .of(Endpoint::Verdict)
            .map(|seen| seen.body.as_str())
            .collect();
        assert_eq!((world.count(Endpoint::Verdict), bodies.len()), (3, 1));
    });
}

/// The meaning of a 409 depends on the recorded verdict and on whether an earlier attempt may have succeeded.
#[test]
fn a_409_is_success_only_after_an_attempt_with_the_same_outcome() {
    let posted = |recorded: Option<&str>, script: Vec<Script>| {
        let mut world = rows()
            .with_due([rule(1, "hot")])
            .with_script(Endpoint::Verdict, script);
        if let Some(outcome) = recorded {
            world = world.with_verdict(&id(1), outcome);
        }
        super::block_on(async move {
            let fake = super::Fake::start(world);
            let client = Client::new(&fake.url, Credential::Key(super::KEY)).unwrap();
            let api = Api::new(client, options().backoff, CancellationToken::new());
            let verdict = Verdict {
                outcome: Outcome::Met,
                evidence: json!({}),
            };
            let until = Instant::now() + options().claim;
            let rule = id(1).try_into().unwrap();
            let posted = api.verdict(&rule, &verdict, until).await.unwrap();
            fake.shut().await;
            posted
        })
    };
    let again = || vec![Script::Status(503)];
    assert!(matches!(posted(None, vec![]), Posted::Recorded(answer) if answer["triggered"] == true));
    assert!(matches!(
        posted(None, vec![Script::DoesThen(503)]),
        Posted::Recorded(Value::Null)
    ));
    assert!(matches!(
        posted(None, vec![Script::Status(404)]),
        Posted::RuleGone
    ));
    assert!(matches!(
        posted(Some("met"), again()),
        Posted::Recorded(Value::Null)
    ));
    assert!(matches!(posted(Some("met"), vec![]), Posted::TooLate(_)));
    assert!(matches!(posted(Some("not_met"), again()), Posted::TooLate(_)));
}

#[test]
fn a_verdict_of_another_evaluator_is_kept() {
    for (script, posts) in [(vec![], 1), (vec![Script::Status(500)], 2)] {
        let world = rows()
            .with_due([rule(1, "hot"), rule(2, "cold")])
            .with_forgotten_claims()
            .with_held(Endpoint::Query)
            .with_script(Endpoint::Verdict, script);
        let fake = super::block_on(async move {
            let fake = super::Fake::start(world);
            let stop = CancellationToken::new();
            let url = fake.url.clone();
            let running =
                actix_web::rt::spawn(async move { super::run(&url, super::KEY, options(), stop).await });
            fake.until(|world| world.queries_in_work == 2).await;
            fake.change(|world| {
                *world = std::mem::take(world).with_verdict(&id(1), "not_met");
                world.held.clear();
            });
            running.await.unwrap().unwrap();
            fake.shut().await;
            fake
        });
        assert_eq!(fake.outcome(&id(1)), "not_met");
        assert_eq!(fake.outcome(&id(2)), "not_met");
        assert_eq!(fake.read(|world| world.count(Endpoint::Verdict)), 1 + posts);
    }
}

#[test]
fn a_deleted_rule_or_refused_verdict_is_dropped() {
    for status in [404, 400, 409, 413] {
        let world = rows()
            .with_due([rule(1, "hot"), rule(2, "cold")])
            .with_script(Endpoint::Verdict, [Script::Status(status)]);
        let fake = evaluate_well(world);
        let (verdicts, posts) = fake.read(|world| (world.verdicts.len(), world.count(Endpoint::Verdict)));
        assert_eq!((verdicts, posts), (1, 2), "{status}");
    }
}

#[test]
fn a_malformed_entry_does_not_block_the_others() {
    let fake = evaluate_well(rows().with_due([
        json!({"ruleId": "not an id", "inputs": []}),
        json!({"ruleId": id(7), "inputs": "none"}),
        rule(1, "hot"),
    ]));
    assert_eq!(fake.outcome(&id(1)), "met");
    assert_eq!(fake.read(|world| world.verdicts.len()), 1);
}

#[test]
fn concurrent_evaluations_are_bounded() {
    let world = World::default()
        .with_due((1..=13).map(|number| rule(number, "hot")))
        .with_held(Endpoint::Query);
    super::block_on(async move {
        let fake = super::Fake::start(world);
        let stop = CancellationToken::new();
        let url = fake.url.clone();
        let running =
            actix_web::rt::spawn(async move { super::run(&url, super::KEY, options(), stop).await });
        fake.until(|world| world.queries_in_work == 4).await;
        fake.change(|world| world.held.clear());
        running.await.unwrap().unwrap();
        let (verdicts, most) = fake.read(|world| (world.verdicts.len(), world.queries_in_work_max));
        assert_eq!((verdicts, most), (13, 4));
        fake.shut().await;
    });
}

#[test]
fn a_service_without_claims_gets_one_verdict_per_rule() {
    let world = rows()
        .with_due((1..=6).map(|number| rule(number, "hot")))
        .with_forgotten_claims();
    let (fake, outcome) = evaluate(world, options());
    outcome.unwrap();
    fake.read(|world| {
        let posts = world.count(Endpoint::Verdict);
        assert!(posts == world.verdicts.len() && posts >= 4, "{posts}");
    });
}
