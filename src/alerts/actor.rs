//! The rule actor, one per server. A change goes `Change` → decide → journal → `Written` → reply. While it is in
//! progress, further changes of the same rule are queued.
//!
//! What time brings about in a rule goes moment → journal → `Recorded`. It is recorded before any later change of the rule
//! is decided, so that no change finds a rule in a state that webhooks have not heard of.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::moment::{self, Moment};
use super::moments::Moments;
use super::schedule::Schedule;
use super::transition::due_at_ns;
use super::{DUE_BYTES_MAX, Decision, Dependencies, DueRule};
use crate::catalog::{Command, Rule, RuleStatus, text_bytes};
use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::JournalError;

/// Half the shortest interval. If the clock is set back further, rules that are due could be missed.
const CLOCK_STEP_NS: i64 = 30 * SECOND_NS;

/// How often the actor looks whether a moment has come.
const TICK: Duration = Duration::from_secs(1);
/// Moments whose records are on their way to the log at a time.
const RECORDING_MAX: usize = 1_024;
/// After the log has refused the record of a moment, no moment is recorded for this time, except before a change.
const REFUSED_PAUSE_NS: i64 = 5 * SECOND_NS;

/// Decides a change of a rule, given the rule and the time. Returns a callback that replies to the caller, too.
pub(super) type Decide = Box<dyn FnOnce(Option<&Arc<Rule>>, i64) -> (Decision, Done) + Send>;
pub(super) type Done = Box<dyn FnOnce(Result<(), ServiceError>) + Send>;
/// The channel of an answer, and the caller's place in the queue.
pub(super) type Reply<T> = (oneshot::Sender<T>, OwnedSemaphorePermit);

/// What callers of [`super::Alerts`] request, and what the journal reports.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum RuleMessage {
    /// Changes one rule.
    Change { rule_id: ObjectId, decide: Decide },
    /// The journal accepted or refused a change, which owes these deliveries.
    Written {
        rule_id: ObjectId,
        is_verdict: bool,
        outcome: Result<(), JournalError>,
        deliveries: Vec<ObjectId>,
        done: Done,
    },
    /// The journal accepted or refused the record of a moment, which owes these deliveries. `then` is the change that
    /// waits for it.
    Recorded {
        rule_id: ObjectId,
        outcome: Result<(), JournalError>,
        deliveries: Vec<ObjectId>,
        then: Option<Decide>,
    },
    /// Requests the time and the rules that are due; see [`super::Alerts::due`].
    Due {
        organization_id: ObjectId,
        limit: usize,
        claim_seconds: Option<u32>,
        reply: Reply<(i64, Vec<DueRule>)>,
    },
    /// Requests the number of rules that are due and unclaimed.
    CountDue(Reply<usize>),
    /// All handles are gone.
    End,
}

pub(super) struct RuleActor {
    dependencies: Dependencies,
    schedule: Schedule,
    moments: Moments,
    /// Moments whose records are on their way to the log.
    recording: usize,
    /// No moment is recorded before this time, monotonic.
    paused_until_ns: i64,
    /// Changes queued behind one in progress, by rule.
    parked: HashMap<ObjectId, VecDeque<Decide>>,
    /// The latest wall-clock time seen.
    seen_ns: i64,
}

impl RuleActor {
    pub(super) fn new(dependencies: Dependencies) -> Self {
        let mut actor = Self {
            dependencies,
            schedule: Schedule::default(),
            moments: Moments::default(),
            recording: 0,
            paused_until_ns: i64::MIN,
            parked: HashMap::new(),
            seen_ns: i64::MIN,
        };
        actor.place_all();
        actor
    }

    fn place_all(&mut self) {
        self.seen_ns = self.dependencies.clock.now_ns();
        let rules: Vec<_> = self
            .dependencies
            .catalog
            .read(|catalog| catalog.rules().map(|rule| rule.id).collect());
        rules.into_iter().for_each(|id| self.place(id, false));
    }

    fn rule(&self, rule_id: ObjectId) -> Option<Arc<Rule>> {
        let catalog = &self.dependencies.catalog;
        catalog.read(|catalog| catalog.rule(rule_id).cloned())
    }

    /// Updates the rule's entries in the schedule and in the moments from the catalog. Only a verdict ends the rule's claim.
    fn place(&mut self, rule_id: ObjectId, ends_claim: bool) {
        let (moment, found) = self.dependencies.catalog.read(|catalog| {
            let rule = catalog.rule(rule_id);
            let moment = rule.and_then(|rule| moment::next(rule, self.seen_ns));
            let turn = |rule: &Arc<Rule>| {
                let bucket = catalog.bucket(rule.bucket_id)?;
                let interval_ns = rule.settings.evaluation.as_ref()?.interval_ns();
                let is_active = rule.settings.status == RuleStatus::Active;
                let due_at_ns = due_at_ns(&rule.runtime, interval_ns, self.seen_ns);
                is_active.then_some((bucket.organization_id, (due_at_ns, rule.ordinal, rule_id)))
            };
            (moment, rule.and_then(turn))
        });
        self.moments.set(rule_id, moment.map(Moment::at_ns));
        match found {
            Some((organization_id, turn)) => self.schedule.put(organization_id, turn, ends_claim),
            None => self.schedule.remove(rule_id),
        }
    }

    fn now_ns(&mut self) -> i64 {
        let now_ns = self.dependencies.clock.now_ns();
        if now_ns < self.seen_ns.saturating_sub(CLOCK_STEP_NS) {
            self.place_all();
        } else {
            self.seen_ns = self.seen_ns.max(now_ns);
        }
        now_ns
    }

    fn change(&mut self, rule_id: ObjectId, decide: Decide, context: &mut Context<Self>) {
        let now_ns = self.now_ns();
        let rule = self.rule(rule_id);
        if let Some(rule) = &rule
            && let Some(moment) = moment::reached(rule, now_ns)
        {
            return self.record(rule, moment, now_ns, Some(decide), context);
        }
        let (decision, done) = decide(rule.as_ref(), now_ns);
        let Some(command) = decision.command else {
            return done(Ok(()));
        };
        let is_verdict = matches!(command, Command::VerdictRecorded { .. });
        // From here on the rule is busy until `Written` arrives.
        self.parked.entry(rule_id).or_default();
        let (address, deliveries) = (context.address(), decision.deliveries);
        self.dependencies.journal.submit_command(command, move |outcome| {
            address.do_send(RuleMessage::Written {
                rule_id,
                is_verdict,
                outcome,
                deliveries,
                done,
            });
        });
    }

    /// Records what time has brought about, before the change that waits for it.
    fn record(
        &mut self,
        rule: &Rule,
        moment: Moment,
        now_ns: i64,
        then: Option<Decide>,
        context: &mut Context<Self>,
    ) {
        let (command, deliveries) = moment::recorded(rule, moment, now_ns, &*self.dependencies.events);
        let rule_id = rule.id;
        self.parked.entry(rule_id).or_default();
        self.recording += 1;
        let address = context.address();
        self.dependencies.journal.submit_command(command, move |outcome| {
            address.do_send(RuleMessage::Recorded {
                rule_id,
                outcome,
                deliveries,
                then,
            });
        });
    }

    /// Records the moments that have come, as many as may be on their way to the log.
    fn record_reached(&mut self, context: &mut Context<Self>) {
        let now_ns = self.now_ns();
        if self.dependencies.clock.monotonic_ns() < self.paused_until_ns {
            return;
        }
        while self.recording < RECORDING_MAX
            && let Some(rule_id) = self.moments.take(now_ns)
        {
            // A rule that is being changed comes back when that is over.
            if self.parked.contains_key(&rule_id) {
                continue;
            }
            let rule = self.rule(rule_id);
            // A rule that is gone was deleted with its bucket or source.
            let reached = rule.and_then(|rule| Some((moment::reached(&rule, now_ns)?, rule)));
            match reached {
                Some((moment, rule)) => self.record(&rule, moment, now_ns, None, context),
                None => self.place(rule_id, false),
            }
        }
    }

    fn recorded(
        &mut self,
        rule_id: ObjectId,
        outcome: Result<(), JournalError>,
        deliveries: Vec<ObjectId>,
        then: Option<Decide>,
        context: &mut Context<Self>,
    ) {
        self.recording -= 1;
        self.place(rule_id, false);
        match outcome {
            Ok(()) => {
                (self.dependencies.owed)(deliveries);
                if let Some(decide) = then {
                    self.parked.entry(rule_id).or_default().push_front(decide);
                }
            }
            Err(error) => {
                let monotonic_ns = self.dependencies.clock.monotonic_ns();
                self.paused_until_ns = monotonic_ns.saturating_add(REFUSED_PAUSE_NS);
                if let Some(decide) = then {
                    self.refuse(rule_id, decide, error);
                }
            }
        }
        self.resume(rule_id, context);
        self.record_reached(context);
    }

    /// Answers a change without making it, unless it changes nothing.
    fn refuse(&mut self, rule_id: ObjectId, decide: Decide, error: JournalError) {
        let now_ns = self.now_ns();
        let rule = self.rule(rule_id);
        let (decision, done) = decide(rule.as_ref(), now_ns);
        done(match decision.command {
            Some(_) => Err(error.into()),
            None => Ok(()),
        });
    }

    /// Applies the queued changes, up to the first that is written to the journal itself.
    fn resume(&mut self, rule_id: ObjectId, context: &mut Context<Self>) {
        let mut parked = self.parked.remove(&rule_id).unwrap_or_default();
        while let Some(decide) = parked.pop_front() {
            self.change(rule_id, decide, context);
            if let Some(busy) = self.parked.get_mut(&rule_id) {
                *busy = parked;
                break;
            }
        }
    }

    fn due(
        &mut self,
        organization_id: ObjectId,
        limit: usize,
        claim_seconds: Option<u32>,
    ) -> (i64, Vec<DueRule>) {
        let now_ns = self.now_ns();
        let monotonic_ns = self.dependencies.clock.monotonic_ns();
        let (mut listed, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        let due = self.schedule.due(organization_id, now_ns, monotonic_ns);
        self.dependencies.catalog.read(|catalog| {
            for rule_id in due {
                if listed.len() == limit || bytes > DUE_BYTES_MAX {
                    break;
                }
                match catalog.rule(rule_id) {
                    Some(rule) => {
                        bytes += text_bytes::of_rule(&rule.settings);
                        listed.push(Arc::clone(rule));
                    }
                    // Deleted with its bucket or source, of which the actor is not notified.
                    None => gone.push(rule_id),
                }
            }
        });
        gone.into_iter().for_each(|id| self.schedule.remove(id));
        if let Some(seconds) = claim_seconds {
            let until = monotonic_ns.saturating_add(i64::from(seconds) * SECOND_NS);
            listed.iter().for_each(|rule| self.schedule.claim(rule.id, until));
        }
        let due_rule = |rule: Arc<Rule>| {
            let evaluation = rule.settings.evaluation.as_ref()?;
            let due_at_ns = due_at_ns(&rule.runtime, evaluation.interval_ns(), now_ns);
            Some(DueRule { rule, due_at_ns })
        };
        (now_ns, listed.into_iter().filter_map(due_rule).collect())
    }
}

impl Actor for RuleActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.run_interval(TICK, Self::record_reached);
    }
}

impl Handler<RuleMessage> for RuleActor {
    type Result = ();

    fn handle(&mut self, message: RuleMessage, context: &mut Self::Context) {
        match message {
            RuleMessage::Change { rule_id, decide } => match self.parked.get_mut(&rule_id) {
                Some(parked) => parked.push_back(decide),
                None => self.change(rule_id, decide, context),
            },
            RuleMessage::Written {
                rule_id,
                is_verdict,
                outcome,
                deliveries,
                done,
            } => {
                self.place(rule_id, is_verdict && outcome.is_ok());
                if outcome.is_ok() && !deliveries.is_empty() {
                    (self.dependencies.owed)(deliveries);
                }
                done(outcome.map_err(ServiceError::from));
                self.resume(rule_id, context);
            }
            RuleMessage::Recorded {
                rule_id,
                outcome,
                deliveries,
                then,
            } => self.recorded(rule_id, outcome, deliveries, then, context),
            RuleMessage::Due {
                organization_id,
                limit,
                claim_seconds,
                reply: (reply, _permit),
            } => {
                // If the caller is gone, the claims simply expire.
                let _ = reply.send(self.due(organization_id, limit, claim_seconds));
            }
            RuleMessage::CountDue((reply, _permit)) => {
                let now_ns = self.dependencies.clock.now_ns();
                let _ = reply.send(self.schedule.due_count(now_ns));
            }
            RuleMessage::End => context.stop(),
        }
    }
}
