//! Polls for due rules and evaluates them concurrently. Claims only as many rules as it can start at once.

use std::collections::HashSet;
use std::rc::Rc;

use tokio::task::JoinError;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use tracing::Instrument;

use crate::api::{Api, DueRule, Failure, RuleId};
use crate::rule::evaluate;
use crate::{EvaluatorError, Options};

/// The polling loop and its tasks.
pub struct Poller {
    api: Rc<Api>,
    options: Options,
    stop: CancellationToken,
    tasks: JoinMap<RuleId, Result<(), EvaluatorError>>,
    /// The rules started with `once`. A rule whose verdict failed is listed again, but is not started twice.
    started: HashSet<RuleId>,
}

impl Poller {
    pub fn new(api: Api, options: Options, stop: CancellationToken) -> Self {
        Self {
            api: Rc::new(api),
            options,
            stop,
            tasks: JoinMap::new(),
            started: HashSet::new(),
        }
    }

    /// Runs until stopped, or with `once` until nothing new is due. Then finishes the rules in progress.
    ///
    /// # Errors
    /// The service rejects the key, or a poll fails.
    pub async fn run(mut self) -> Result<(), EvaluatorError> {
        let mut outcome = self.poll().await;
        while let Some((rule, result)) = self.tasks.join_next().await {
            outcome = outcome.and(task_outcome(&rule, result));
        }
        outcome
    }

    async fn poll(&mut self) -> Result<(), EvaluatorError> {
        loop {
            while let Some((rule, result)) = self.tasks.try_join_next() {
                task_outcome(&rule, result)?;
            }
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let free = self.options.concurrency.saturating_sub(self.tasks.len());
            if free == 0 {
                if let Some((rule, result)) = self.tasks.join_next().await {
                    task_outcome(&rule, result)?;
                }
                continue;
            }
            let limit = free.min(self.options.limit);
            // With `once` a caller waits for the end; otherwise wait for the service indefinitely.
            let until = self.options.once.then(|| Instant::now() + self.options.claim);
            let due = match self.api.due(limit, self.options.claim, until).await {
                Ok(due) => due,
                Err(Failure::Refused(message)) => return Err(EvaluatorError::Refused(message)),
                Err(Failure::Stopped) => return Ok(()),
                Err(Failure::Rejected(cause) | Failure::Overloaded(cause) | Failure::Unreachable(cause)) => {
                    return Err(EvaluatorError::Poll(cause));
                }
            };
            let listed = due.len();
            let started = due.into_iter().filter_map(|rule| self.start(rule)).count();
            if self.options.once {
                if started == 0 {
                    return Ok(());
                }
            } else if listed < limit || started == 0 {
                // Nothing more is due. The loop ends if this is interrupted by a stop.
                self.stop.run_until_cancelled(sleep(self.options.poll)).await;
            }
        }
    }

    /// Starts a rule, unless it is in progress: its claim may have ended or been lost in a restart of the service.
    fn start(&mut self, rule: DueRule) -> Option<()> {
        let id = rule.rule_id.clone();
        if self.tasks.contains_key(&id) || (self.options.once && !self.started.insert(id.clone())) {
            return None;
        }
        let span = tracing::info_span!("rule", %id, name = rule.name);
        let (api, claim) = (Rc::clone(&self.api), self.options.claim);
        let task = async move { evaluate(&api, rule, Instant::now(), claim).await };
        self.tasks.spawn_local(id, task.instrument(span));
        Some(())
    }
}

/// The result of a task. A panic concerns only its rule.
fn task_outcome(
    rule: &RuleId,
    result: Result<Result<(), EvaluatorError>, JoinError>,
) -> Result<(), EvaluatorError> {
    result.unwrap_or_else(|panic| {
        tracing::error!(%rule, %panic, "BUG: evaluating a rule panicked; it stays due");
        Ok(())
    })
}
