//! Tests a rule on the past: evaluates the instants at which it would have been due as if it were due, and asks the
//! service what its interval and its dwell would have made of the outcomes. Changes nothing.

use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, DueInput, Failure, RuleId};
use crate::client::{Client, Credential};
use crate::condition::Outcome;
use crate::rule::evaluate_inputs;
use crate::{EvaluatorError, Options};

/// The service takes as many verdicts at once.
const CYCLES_MAX: u64 = 10_000;
/// The service's largest page.
const PAGE_CYCLES: u64 = 1_000;
const DAY_SECONDS: f64 = 86_400.0;

/// What to test.
#[derive(Clone, Debug)]
pub struct Backtest {
    /// Id of the rule.
    pub rule: String,
    /// The first instant, ISO 8601.
    pub from: String,
    /// End of the range, ISO 8601, inclusive.
    pub to: String,
}

#[derive(Deserialize)]
struct Page {
    rule: Value,
    cycles: Vec<Cycle>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    total: u64,
}

/// An instant at which the rule would have been due.
#[derive(Deserialize)]
struct Cycle {
    at: String,
    inputs: Vec<DueInput>,
}

/// What the service shows of a rule that is tested.
#[derive(Deserialize)]
struct TestedRule {
    name: String,
    condition: String,
    evaluation: Evaluation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    kind: Option<String>,
    #[serde(default)]
    parameters: Map<String, Value>,
    interval_seconds: f64,
}

#[derive(Deserialize)]
struct Timeline {
    timeline: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    at: String,
    outcome: Option<Outcome>,
    previous_state: String,
    state: String,
    triggered: bool,
    accepted: bool,
}

/// Tests a rule of the service at `url`. Returns what is to be printed: a line for the rule, and one for each entry of
/// the timeline. Of the options, `claim` limits the time for a cycle as for a rule that is due, and `concurrency` is the
/// number of cycles evaluated at once.
///
/// # Errors
/// The address, the key, the rule or the range is not valid; the range has too many cycles, which is found before any is
/// evaluated; the service is not reachable; or `stop` was cancelled.
pub async fn backtest(
    url: &str,
    key: &str,
    test: Backtest,
    options: Options,
    stop: CancellationToken,
) -> Result<String, EvaluatorError> {
    let client = Client::new(url, Credential::Key(key)).map_err(EvaluatorError::Service)?;
    let id = RuleId::try_from(test.rule.clone())
        .map_err(|fault| EvaluatorError::Backtest(format!("--backtest {fault}")))?;
    let run = Run {
        api: Rc::new(Api::new(client, options.backoff, stop.clone())),
        path: format!("/api/alerts/{id}/backtest"),
        test,
        options,
        stop,
    };
    run.to_end().await.map_err(|failure| match failure {
        Failure::Refused(answer) => EvaluatorError::Refused(answer),
        Failure::Stopped => EvaluatorError::Backtest("it was stopped".to_owned()),
        Failure::Rejected(cause) | Failure::Overloaded(cause) | Failure::Unreachable(cause) => {
            EvaluatorError::Backtest(cause)
        }
    })
}

/// A backtest under way.
struct Run {
    api: Rc<Api>,
    path: String,
    test: Backtest,
    options: Options,
    stop: CancellationToken,
}

impl Run {
    async fn to_end(&self) -> Result<String, Failure> {
        let mut page = self.page(0).await?;
        let shown = page.rule;
        let rule = TestedRule::deserialize(&shown)
            .map_err(|cause| Failure::Rejected(format!("the rule cannot be read: {cause}")))?;
        let total = page.pagination.total;
        check_count(total, rule.evaluation.interval_seconds)?;
        let rule = Rc::new(rule);
        let mut verdicts = Vec::new();
        loop {
            if page.cycles.is_empty() {
                return Err(Failure::Rejected("a page has no cycles".to_owned()));
            }
            verdicts.extend(self.evaluate(&rule, page.cycles).await?);
            tracing::info!(evaluated = verdicts.len(), total, "testing");
            if verdicts.len() as u64 >= total {
                break;
            }
            page = self.page(verdicts.len() as u64).await?;
            if page.rule != shown || page.pagination.total != total {
                return Err(Failure::Rejected(
                    "the rule was changed meanwhile; start again".to_owned(),
                ));
            }
        }
        let body = json!({"verdicts": verdicts}).to_string();
        let path = format!("{}/verdicts", self.path);
        let answer = self.api.post(path, body, self.until(self.options.claim)).await?;
        let Timeline { timeline } = parse(&answer)?;
        let lines = timeline.iter().map(Entry::line);
        Ok([rule.line()].into_iter().chain(lines).collect())
    }

    async fn page(&self, offset: u64) -> Result<Page, Failure> {
        let Backtest { from, to, .. } = &self.test;
        let body = json!({"startTime": from, "endTime": to, "limit": PAGE_CYCLES, "offset": offset});
        let until = self.until(self.options.claim);
        let answer = self.api.post(self.path.clone(), body.to_string(), until).await?;
        parse(&answer)
    }

    /// Evaluates cycles concurrently. Returns their verdicts in any order.
    async fn evaluate(&self, rule: &Rc<TestedRule>, cycles: Vec<Cycle>) -> Result<Vec<Value>, Failure> {
        let mut verdicts = Vec::with_capacity(cycles.len());
        let mut tasks = JoinSet::new();
        let mut cycles = cycles.into_iter();
        loop {
            if self.stop.is_cancelled() {
                return Err(Failure::Stopped);
            }
            let free = self.options.concurrency.max(1) - tasks.len();
            for Cycle { at, inputs } in cycles.by_ref().take(free) {
                let (api, rule, until) = (
                    Rc::clone(&self.api),
                    Rc::clone(rule),
                    self.until(self.options.claim / 2),
                );
                tasks.spawn_local(async move {
                    let Evaluation { kind, parameters, .. } = &rule.evaluation;
                    let verdict = evaluate_inputs(&api, kind.as_deref(), parameters, inputs, until).await?;
                    Ok(json!({"at": at, "outcome": verdict.outcome}))
                });
            }
            match tasks.join_next().await {
                Some(Ok(verdict)) => verdicts.push(verdict?),
                Some(Err(panic)) => {
                    return Err(Failure::Rejected(format!(
                        "BUG: evaluating a cycle panicked: {panic}"
                    )));
                }
                None => return Ok(verdicts),
            }
        }
    }

    fn until(&self, within: Duration) -> Instant {
        Instant::now() + within
    }
}

fn parse<T: for<'a> Deserialize<'a>>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer)
        .map_err(|cause| Failure::Rejected(format!("the answer cannot be read: {cause}")))
}

fn check_count(cycles: u64, interval_seconds: f64) -> Result<(), Failure> {
    if cycles <= CYCLES_MAX {
        return Ok(());
    }
    let days = (CYCLES_MAX - 1) as f64 * interval_seconds / DAY_SECONDS;
    // Rounded down.
    let days = (days * 10.0).floor() / 10.0;
    Err(Failure::Rejected(format!(
        "the rule would have been due {cycles} times, every {interval_seconds} s; a backtest has at most {CYCLES_MAX} \
         cycles: choose --from and --to at most {days} days apart"
    )))
}

impl TestedRule {
    fn line(&self) -> String {
        // A name must not control the terminal.
        let visible = |text: &str| text.replace(char::is_control, "\u{fffd}");
        format!("{}: {}\n", visible(&self.name), visible(&self.condition))
    }
}

impl Entry {
    fn line(&self) -> String {
        let outcome = self
            .outcome
            .map_or_else(|| "dwell ended".to_owned(), |it| it.to_string());
        let remark = match (self.accepted, self.triggered) {
            (false, _) => ", not accepted",
            (true, true) => ", triggered",
            (true, false) => "",
        };
        let Self {
            at,
            previous_state,
            state,
            ..
        } = self;
        format!("{at}  {outcome:<12}  {previous_state} -> {state}{remark}\n")
    }
}
