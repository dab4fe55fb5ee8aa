//! SIGKILL between verdicts and their deliveries, and between attempts: every acknowledged event is delivered under
//! one id, and no verdict counts twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::rounds::from_environment;
use crate::support::client::Answer;
use crate::support::given::{Account, Bucket, text};
use crate::support::process::{Server, Setup};
use crate::support::receiver::{Received, Receiver, answer, status};
use crate::support::waiting::until;
use crate::support::watch::{Evaluator, evaluation};

const ROUNDS: u64 = 20;
const RULES_PER_ROUND: usize = 6;
/// Each evaluator evaluates every rule of the round.
const EVALUATORS: usize = 4;
const OUTCOMES: [&str; 4] = ["met", "met", "not_met", "inconclusive"];

/// The answers to the only verdict of a rule.
#[derive(Default)]
struct RuleAnswers {
    /// The answer of the accepted verdict, if it was received.
    accepted: Option<Value>,
    /// Outcomes that 409 answers named as recorded.
    recorded: HashSet<String>,
}

#[derive(Default)]
struct Ledger {
    /// Answers by rule.
    answers: BTreeMap<String, RuleAnswers>,
    /// Numbers of acknowledged changes of the bucket.
    changes: Vec<u64>,
}

impl Ledger {
    #[track_caller]
    fn record(&mut self, rule: &str, answer: &Answer, context: &str) {
        let answers = self.answers.entry(rule.to_owned()).or_default();
        let body = answer.json();
        let evaluation = body["evaluation"].clone();
        match answer.status {
            200 => {
                let twice = answers.accepted.replace(evaluation);
                assert!(
                    twice.is_none(),
                    "contract 6: a verdict is accepted once per due interval: {answer} ({context})"
                );
            }
            409 => {
                answers.recorded.insert(text(&evaluation, "/outcome"));
            }
            _ => panic!("contract 6: a verdict is 200 or 409: {answer} ({context})"),
        }
    }
}

/// A receiver that fails the first attempts of most deliveries in different ways, which depend only on the delivery's
/// id: a repeated run has the same failures.
fn failing_first() -> Receiver {
    let seen: Mutex<HashMap<String, usize>> = Mutex::default();
    Receiver::answering(move |request, _| {
        let id = delivery_id(request);
        let last = usize::from(id.bytes().last().unwrap_or_default());
        let mut seen = seen.lock().unwrap();
        let attempts = seen.entry(id).or_default();
        *attempts += 1;
        if *attempts > last % 3 {
            return status(200);
        }
        match (last + *attempts) % 3 {
            0 => status(500),
            1 => Vec::new(),
            _ => answer(302, "Location: /elsewhere\r\n", b""),
        }
    })
}

/// The id of a delivery: in the envelope, or in the header of a rule's own URL.
fn delivery_id(request: &Received) -> String {
    match request.header("x-webhook-id") {
        Some(id) if request.path == "/rules" => id.to_owned(),
        _ => text(&request.json(), "/webhookId"),
    }
}

struct Round<'a> {
    evaluator: &'a Evaluator,
    bucket: &'a Bucket,
    rules: &'a [String],
    ledger: &'a Mutex<Ledger>,
    changes: &'a AtomicU64,
    answered: AtomicU64,
    context: String,
}

impl Round<'_> {
    /// One evaluator: posts verdicts on the rules of the round in random order, until the server is killed.
    fn evaluate(&self, mut random: fastrand::Rng) {
        let mut order: Vec<&String> = self.rules.iter().collect();
        random.shuffle(&mut order);
        for rule in order {
            let outcome = OUTCOMES[random.usize(..OUTCOMES.len())];
            let path = format!("/api/evaluations/{rule}/verdict");
            let request = self.evaluator.client.post(&path).key(&self.evaluator.key);
            let evidence = json!({"outcome": outcome, "evidence": {"currentValue": 1}});
            let Ok(answer) = request.json(&evidence).try_send() else {
                return;
            };
            if answer.status == 503 {
                return;
            }
            self.ledger.lock().unwrap().record(rule, &answer, &self.context);
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Changes the bucket, until the server is killed or enough changes are made.
    fn change(&self) {
        for _ in 0..4 {
            let number = self.changes.fetch_add(1, Ordering::SeqCst);
            let path = format!("/api/buckets/{}", self.bucket.id);
            let request = self.bucket.client.request("PATCH", &path).key(&self.bucket.admin);
            let answer = request
                .json(&json!({"description": number.to_string()}))
                .try_send();
            match answer {
                Ok(answer) if answer.status == 200 => self.ledger.lock().unwrap().changes.push(number),
                _ => return,
            }
        }
    }
}

#[test]
fn acknowledged_events_are_notified_despite_repeated_kills() {
    let seed = from_environment("CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    let rounds = from_environment("CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("CRASH_SEED={seed} CRASH_ROUNDS={rounds}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut server = Server::start_with(Setup::unlimited().set("webhooks.allow_private_networks", "true"));
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let receiver = failing_first();
    let hook = json!({"url": receiver.url("/hook"), "events": ["alert.triggered", "bucket.updated"]});
    let hook = text(&account.webhook(&hook), "/_id");
    let (ledger, changes) = (Mutex::new(Ledger::default()), AtomicU64::new(1));

    for round in 0..rounds {
        let context = format!("round {round}, CRASH_SEED={seed}");
        let rules: Vec<String> = (0..RULES_PER_ROUND)
            .map(|nth| rule(&bucket, &source, &format!("rule {round}.{nth}"), &receiver))
            .collect();
        let load = Round {
            evaluator: &evaluator,
            bucket: &bucket,
            rules: &rules,
            ledger: &ledger,
            changes: &changes,
            answered: AtomicU64::new(0),
            context: context.clone(),
        };
        let until_answered = random.u64(1..=(RULES_PER_ROUND * EVALUATORS) as u64);
        let between_attempts = random.bool();
        let seen = receiver.received("/hook").len();
        thread::scope(|scope| {
            for _ in 0..EVALUATORS {
                let (load, random) = (&load, random.fork());
                scope.spawn(move || load.evaluate(random));
            }
            scope.spawn(|| load.change());
            until(&format!("the load is answered ({context})"), || {
                let answered = load.answered.load(Ordering::SeqCst);
                (answered >= until_answered).then_some(())
            });
            if between_attempts && !ledger.lock().unwrap().changes.is_empty() {
                // At least one attempt was made; failed deliveries wait for the next one.
                receiver.wait("/hook", seen + 1);
            }
            server.kill();
        });
        for _ in 0..[0, 0, 1, 2][random.usize(..4)] {
            server.launch_and_kill(Duration::from_micros(random.u64(0..60_000)));
        }
        server.launch();
        // A client without an answer retries, and learns whether its first request had succeeded.
        for rule in &rules {
            let answer = evaluator.verdict(rule, &json!({"outcome": "met"}));
            ledger.lock().unwrap().record(rule, &answer, &context);
        }
        audit_history(&bucket, &ledger.lock().unwrap(), &rules, &context);
        assert!(
            evaluator.due_rules("?limit=1000").is_empty(),
            "contract 6: an evaluated rule is not due again, over restarts ({context})"
        );
    }

    // After all kills, a rule fires normally.
    let last = rule(&bucket, &source, "last", &receiver);
    let accepted = Some(evaluator.evaluate(&last, "met"));
    let mut ledger = ledger.into_inner().unwrap();
    ledger.answers.insert(
        last,
        RuleAnswers {
            accepted,
            ..RuleAnswers::default()
        },
    );
    let rules: Vec<String> = ledger.answers.keys().cloned().collect();
    let context = format!("at the end, CRASH_SEED={seed}");
    let triggered = audit_history(&bucket, &ledger, &rules, &context);
    println!(
        "{} rules evaluated, {} fired, {} changes",
        rules.len(),
        triggered.len(),
        ledger.changes.len()
    );
    assert!(
        triggered.len() as u64 >= rounds,
        "the test fired something ({context})"
    );
    audit_deliveries(&account, &receiver, &hook, &triggered, &ledger.changes, &context);
}

/// A rule with an interval of a day, so that it is due once in this test.
fn rule(bucket: &Bucket, source: &str, name: &str, receiver: &Receiver) -> String {
    let rule = bucket.evaluated_rule(name, source);
    let mut block = evaluation("level");
    block["intervalSeconds"] = json!(86_400);
    let request = bucket.client.request("PATCH", &format!("/api/alerts/{rule}"));
    let patch = json!({"webhookUrl": receiver.url("/rules"), "evaluation": block});
    let answer = request.key(&bucket.admin).json(&patch).send();
    answer.expect(200, "contract 6: PATCH /api/alerts/:id");
    rule
}

/// Each rule has one verdict, the answered one; returns the rules that fired.
fn audit_history(bucket: &Bucket, ledger: &Ledger, rules: &[String], context: &str) -> HashSet<String> {
    let mut triggered = HashSet::new();
    for rule in rules {
        let answers = &ledger.answers[rule];
        let history = bucket.history(rule);
        let of_kind = |kind: &str| {
            history
                .iter()
                .filter(|entry| entry["kind"] == kind)
                .collect::<Vec<_>>()
        };
        let (verdicts, triggers) = (of_kind("verdict"), of_kind("trigger"));
        assert_eq!(
            verdicts.len(),
            1,
            "contract 6: no verdict is counted twice, and none that was answered is lost ({context}): {history:?}"
        );
        let outcome = text(verdicts[0], "/outcome");
        if let Some(accepted) = &answers.accepted {
            assert_eq!(
                accepted["outcome"], outcome,
                "contract 6: what was answered 200 is what is recorded ({context})"
            );
            assert_eq!(
                accepted["triggered"],
                outcome == "met",
                "contract 6: armed, then {outcome} ({context})"
            );
        }
        for recorded in &answers.recorded {
            assert_eq!(
                *recorded, outcome,
                "contract 6: 409 carries the outcome already recorded ({context})"
            );
        }
        assert_eq!(
            triggers.len(),
            usize::from(outcome == "met"),
            "contract 6: the trigger is durable with its verdict ({context}): {history:?}"
        );
        let state = if outcome == "met" { "firing" } else { "armed" };
        assert_eq!(
            bucket.show(rule)["state"],
            state,
            "contract 6: the state is durable with its verdict ({context})"
        );
        if outcome == "met" {
            triggered.insert(rule.clone());
        }
    }
    triggered
}

/// Asserts that every trigger and acknowledged change is delivered at least once, always with the same unique id.
fn audit_deliveries(
    account: &Account,
    receiver: &Receiver,
    hook: &str,
    triggered: &HashSet<String>,
    changes: &[u64],
    context: &str,
) {
    let all_ended = |of: &str| {
        let path = format!("/api/{of}/deliveries?limit=1000");
        until(&format!("all deliveries of {of} have ended ({context})"), || {
            let listed = account.client.get(&path).key(&account.admin).send();
            let listed = listed.expect(200, "contract 7: GET deliveries")["deliveries"].clone();
            let listed = listed.as_array().cloned().unwrap_or_default();
            listed
                .iter()
                .all(|delivery| delivery["status"] != "pending")
                .then_some(listed)
        })
    };
    let mut ended = all_ended(&format!("webhooks/{hook}"));
    for rule in triggered {
        ended.extend(all_ended(&format!("alerts/{rule}")));
    }
    for delivery in &ended {
        assert_eq!(
            delivery["status"], "delivered",
            "contract 7: what fails first is delivered in the end ({context}): {delivery}"
        );
    }
    // The ids of deliveries by event and receiver.
    let mut ids: BTreeMap<(String, String), HashSet<String>> = BTreeMap::new();
    for path in ["/hook", "/rules"] {
        for request in receiver.received(path) {
            let body = request.json();
            let about = match (path, body["event"].as_str()) {
                ("/rules", _) => text(&body, "/alertId"),
                (_, Some("alert.triggered")) => text(&body, "/data/alertId"),
                _ => format!("change {}", text(&body, "/data/changes/description/new")),
            };
            ids.entry((path.to_owned(), about))
                .or_default()
                .insert(delivery_id(&request));
        }
    }
    let mut expected: Vec<(String, String)> = Vec::new();
    for rule in triggered {
        expected.push(("/hook".to_owned(), rule.clone()));
        expected.push(("/rules".to_owned(), rule.clone()));
    }
    expected.extend(
        changes
            .iter()
            .map(|number| ("/hook".to_owned(), format!("change {number}"))),
    );
    for answers in &expected {
        let found = ids.get(answers).unwrap_or_else(|| {
            panic!(
                "contract 6, 7: what was answered is durable and told at least once: {answers:?} ({context})"
            )
        });
        assert_eq!(
            found.len(),
            1,
            "contract 7: `webhookId` is the same on every attempt: {answers:?} ({context})"
        );
    }
    assert!(
        receiver.received("/elsewhere").is_empty(),
        "contract 7: redirects are not followed ({context})"
    );
    let of_triggers = ids.keys().filter(|(_, about)| !about.starts_with("change"));
    for (path, about) in of_triggers {
        assert!(
            triggered.contains(about),
            "only actual events are notified: {about} at {path} ({context})"
        );
    }
    let distinct: HashSet<&String> = ids.values().flatten().collect();
    assert_eq!(
        distinct.len(),
        ids.len(),
        "contract 7: `webhookId` is different for every event and webhook ({context})"
    );
}
