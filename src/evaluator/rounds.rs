//! Polls for due rules and evaluates them concurrently. Claims only as many rules as it can start at once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::Instrument;

use super::calls::{Calls, DueRule, Failure};
use super::rule::{Refused, evaluate};
use super::stop::Stop;
use super::{EvaluatorError, Options};
use crate::ids::ObjectId;

/// The polling loop and its tasks.
pub struct Rounds {
    calls: Rc<Calls>,
    options: Options,
    stop: Stop,
    tasks: JoinSet<Result<(), Refused>>,
    /// The rule of each task.
    in_work: HashMap<Id, ObjectId>,
    /// The rules started with `once`. A rule whose verdict failed is listed again, but is not started twice.
    started: HashSet<ObjectId>,
}

impl Rounds {
    pub fn new(calls: Calls, options: Options, stop: Stop) -> Self {
        Self {
            calls: Rc::new(calls),
            options,
            stop,
            tasks: JoinSet::new(),
            in_work: HashMap::new(),
            started: HashSet::new(),
        }
    }

    /// Runs until stopped, or with `once` until nothing new is due. Then finishes the rules in progress.
    ///
    /// # Errors
    /// The service rejects the key, or a poll fails.
    pub async fn run(mut self) -> Result<(), EvaluatorError> {
        let mut outcome = self.poll().await;
        while let Some(finished) = self.tasks.join_next_with_id().await {
            outcome = outcome.and(self.task_ended(finished));
        }
        outcome
    }

    async fn poll(&mut self) -> Result<(), EvaluatorError> {
        loop {
            while let Some(finished) = self.tasks.try_join_next_with_id() {
                self.task_ended(finished)?;
            }
            if self.stop.is_told() {
                return Ok(());
            }
            let free = self.options.concurrency.saturating_sub(self.tasks.len());
            if free == 0 {
                if let Some(finished) = self.tasks.join_next_with_id().await {
                    self.task_ended(finished)?;
                }
                continue;
            }
            let asked = free.min(self.options.limit);
            // With `once` a caller waits for the end; otherwise wait for the service indefinitely.
            let until = self.options.once.then(|| Instant::now() + self.options.claim);
            let due = match self.calls.due(asked, self.options.claim, until).await {
                Ok(due) => due,
                Err(Failure::Refused(message)) => return Err(EvaluatorError::Refused(message)),
                Err(Failure::Stopped) => return Ok(()),
                Err(Failure::Rejected(cause) | Failure::Overloaded(cause) | Failure::Unreachable(cause)) => {
                    return Err(EvaluatorError::Poll(cause));
                }
            };
            let listed = due.len();
            let begun = due.into_iter().filter_map(|rule| self.begin(rule)).count();
            if begun == 0 && self.options.once {
                return Ok(());
            }
            let more = listed == asked && begun > 0;
            if !more && !self.options.once && self.stop.told_within(self.options.poll).await {
                return Ok(());
            }
        }
    }

    /// Starts a rule, unless it is in progress: its claim may have ended or been lost in a restart of the service.
    fn begin(&mut self, rule: DueRule) -> Option<()> {
        let id = rule.rule_id;
        if self.in_work.values().any(|other| *other == id) || (self.options.once && !self.started.insert(id))
        {
            return None;
        }
        let span = tracing::info_span!("rule", %id, name = rule.name);
        let (calls, claim) = (Rc::clone(&self.calls), self.options.claim);
        let task = async move { evaluate(&calls, rule, Instant::now(), claim).await };
        let handle = self.tasks.spawn_local(task.instrument(span));
        self.in_work.insert(handle.id(), id);
        Some(())
    }

    fn task_ended(
        &mut self,
        finished: Result<(Id, Result<(), Refused>), JoinError>,
    ) -> Result<(), EvaluatorError> {
        match finished {
            Ok((id, outcome)) => {
                self.in_work.remove(&id);
                outcome.map_err(|Refused(message)| EvaluatorError::Refused(message))
            }
            Err(panic) => {
                let rule = self.in_work.remove(&panic.id());
                tracing::error!(?rule, %panic, "BUG: evaluating a rule panicked; it stays due");
                Ok(())
            }
        }
    }
}
