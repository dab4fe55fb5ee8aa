//! The rule actor, one per server. A change goes `Change` → decide → journal → `Written` → reply. While it is in
//! progress, further changes of the same rule are queued.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

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

/// The decision of a change, and the callback that replies to the caller.
pub(super) struct Step {
    pub(super) decision: Decision,
    pub(super) done: Done,
}

/// How a rule is entered into the schedule.
type Put = fn(&mut Schedule, ObjectId, ObjectId, u64, i64);

type Done = Box<dyn FnOnce(Result<(), ServiceError>) + Send>;
type Decide = Box<dyn FnOnce(Option<&Arc<Rule>>, i64) -> Step + Send>;

/// Changes one rule.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Change {
    pub(super) rule_id: ObjectId,
    pub(super) decide: Decide,
    pub(super) _waits: OwnedSemaphorePermit,
}

/// The journal accepted or refused a change.
#[derive(Message)]
#[rtype(result = "()")]
struct Written {
    rule_id: ObjectId,
    /// How to reschedule the rule; only a verdict ends its claim.
    put: Put,
    outcome: Result<(), JournalError>,
    deliveries: Vec<ObjectId>,
    done: Done,
}

/// Requests the rules that are due.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Due {
    pub(super) organization_id: ObjectId,
    pub(super) limit: usize,
    pub(super) claim_seconds: Option<u32>,
    pub(super) reply: oneshot::Sender<(i64, Vec<DueRule>)>,
    pub(super) _waits: OwnedSemaphorePermit,
}

/// Requests the number of rules that are due.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct CountDue {
    pub(super) reply: oneshot::Sender<usize>,
    pub(super) _waits: OwnedSemaphorePermit,
}

pub(super) struct RuleActor {
    dependencies: Dependencies,
    schedule: Schedule,
    /// Changes queued behind one in progress, by rule.
    parked: HashMap<ObjectId, VecDeque<Change>>,
    /// The latest wall-clock time seen.
    seen_ns: i64,
}

impl RuleActor {
    pub(super) fn new(dependencies: Dependencies) -> Self {
        let mut actor = Self {
            dependencies,
            schedule: Schedule::default(),
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
        rules
            .into_iter()
            .for_each(|id| self.place(id, Schedule::postpone));
    }

    /// Updates the rule's entry in the schedule from the catalog.
    fn place(&mut self, rule_id: ObjectId, put: Put) {
        let found = self.dependencies.catalog.read(|catalog| {
            let rule = catalog.rule(rule_id)?;
            let bucket = catalog.bucket(rule.bucket_id)?;
            Some((bucket.organization_id, Arc::clone(rule)))
        });
        let is_active = |(_, rule): &(ObjectId, Arc<Rule>)| rule.settings.status == RuleStatus::Active;
        let Some((organization_id, rule)) = found.filter(is_active) else {
            return self.schedule.remove(rule_id);
        };
        match &rule.settings.evaluation {
            None => self.schedule.remove(rule_id),
            Some(evaluation) => {
                let due_at_ns = due_at_ns(&rule.runtime, evaluation.interval_ns(), self.seen_ns);
                put(
                    &mut self.schedule,
                    organization_id,
                    rule_id,
                    rule.ordinal,
                    due_at_ns,
                );
            }
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

    fn change(&mut self, change: Change, context: &mut Context<Self>) {
        let now_ns = self.now_ns();
        let rule_id = change.rule_id;
        let rule = self
            .dependencies
            .catalog
            .read(|catalog| catalog.rule(rule_id).cloned());
        let Step { decision, done } = (change.decide)(rule.as_ref(), now_ns);
        let Some(command) = decision.command else {
            return done(Ok(()));
        };
        let put = match command {
            Command::VerdictRecorded { .. } => Schedule::put,
            _ => Schedule::postpone,
        };
        // From here on the rule is busy until `Written` arrives.
        self.parked.entry(rule_id).or_default();
        let (address, deliveries) = (context.address(), decision.deliveries);
        self.dependencies.journal.submit_command(command, move |outcome| {
            address.do_send(Written {
                rule_id,
                put,
                outcome,
                deliveries,
                done,
            });
        });
    }

    fn due(&mut self, organization_id: ObjectId, limit: usize, claim_seconds: Option<u32>) -> Vec<DueRule> {
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
        listed.into_iter().filter_map(due_rule).collect()
    }
}

impl Actor for RuleActor {
    type Context = Context<Self>;
}

impl Handler<Change> for RuleActor {
    type Result = ();

    fn handle(&mut self, change: Change, context: &mut Self::Context) {
        match self.parked.get_mut(&change.rule_id) {
            Some(parked) => parked.push_back(change),
            None => self.change(change, context),
        }
    }
}

impl Handler<Written> for RuleActor {
    type Result = ();

    fn handle(&mut self, written: Written, context: &mut Self::Context) {
        let Written {
            rule_id,
            put,
            outcome,
            deliveries,
            done,
        } = written;
        if outcome.is_ok() {
            self.place(rule_id, put);
            if !deliveries.is_empty() {
                (self.dependencies.owed)(deliveries);
            }
        }
        done(outcome.map_err(ServiceError::from));
        // Apply the queued changes, up to the first that is written to the journal itself.
        let mut parked = self.parked.remove(&rule_id).unwrap_or_default();
        while let Some(change) = parked.pop_front() {
            self.change(change, context);
            if let Some(busy) = self.parked.get_mut(&rule_id) {
                *busy = parked;
                break;
            }
        }
    }
}

impl Handler<Due> for RuleActor {
    type Result = ();

    fn handle(&mut self, due: Due, _: &mut Self::Context) {
        let now_ns = self.dependencies.clock.now_ns();
        let listed = self.due(due.organization_id, due.limit, due.claim_seconds);
        // If the caller is gone, the claims simply expire.
        let _ = due.reply.send((now_ns, listed));
    }
}

impl Handler<CountDue> for RuleActor {
    type Result = ();

    fn handle(&mut self, count: CountDue, _: &mut Self::Context) {
        let _ = count
            .reply
            .send(self.schedule.due_count(self.dependencies.clock.now_ns()));
    }
}
