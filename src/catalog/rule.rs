//! Alert rules: what they watch, how they are judged, and where they stand.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::condition::ParsedCondition;
use crate::clock::SECOND_NS;
use crate::ids::ObjectId;

/// Whether a rule is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleStatus {
    /// Judged when due.
    Active,
    /// Not judged for now.
    Paused,
    /// Not judged.
    Inactive,
}

impl RuleStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::Active, Self::Paused, Self::Inactive];

    /// The status' name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Inactive => "inactive",
        }
    }
}

/// Under which of its two names the rule's text was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleForm {
    /// Form A: `condition`.
    Condition,
    /// Form B: `naturalLanguageQuery`.
    NaturalLanguageQuery,
}

/// An alert rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Identifies it.
    pub id: ObjectId,
    /// Its place in the order of creation, among all rules; never reused.
    pub ordinal: u64,
    /// The bucket of its source.
    pub bucket_id: ObjectId,
    /// What it watches.
    pub source_id: ObjectId,
    /// All that can be set.
    pub settings: Arc<RuleSettings>,
    /// Where it stands.
    pub runtime: RuleRuntime,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds; verdicts do not change it.
    pub updated_at_ns: i64,
}

/// What can be set of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleSettings {
    /// Shown name; not unique.
    pub name: Box<str>,
    /// The condition in words.
    pub text: Box<str>,
    /// Under which name the text was sent.
    pub form: RuleForm,
    /// What the text says; `None` where only the evaluator understands it.
    pub parsed: Option<ParsedCondition>,
    /// Where a trigger is delivered besides the organization's webhooks.
    pub webhook_url: Option<Box<str>>,
    /// Kept and shown, without effect: the dwell took its place.
    pub cooldown_minutes: f64,
    /// Whether it is judged.
    pub status: RuleStatus,
    /// How external evaluators judge it; `None` for a plain rule, which nobody does.
    pub evaluation: Option<Evaluation>,
}

/// The evaluation block, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// For evaluators to pick by; never interpreted here.
    pub kind: Option<Box<str>>,
    /// How often the rule becomes due.
    pub interval_seconds: f64,
    /// What is observed of each input.
    pub window_seconds: f64,
    /// 1 to 10.
    pub inputs: Vec<Input>,
    /// Names and values in the order sent; never interpreted here.
    pub parameters: Vec<(Box<str>, Parameter)>,
    /// How long after `not_met` the rule is armed again.
    pub dwell_seconds: f64,
}

/// What an evaluator reads for a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Names it within the rule.
    pub key: Box<str>,
    /// A field of the source's schema.
    pub field: Box<str>,
    /// Another source of the bucket; `None` for the rule's own.
    pub source_id: Option<ObjectId>,
    /// How rows are aggregated: names of an aggregation and a calendar unit, as a query takes them.
    pub grouping: Option<(Box<str>, Box<str>)>,
    /// In place of the rule's window.
    pub window_seconds: Option<f64>,
}

/// Where a rule stands, as of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub rule_id: ObjectId,
    /// Of its last verdict; `None` when it was never judged.
    pub outcome: Option<Outcome>,
    /// Where it stands.
    pub state: RuleState,
    /// All moments of it.
    pub runtime: RuleRuntime,
    /// When it is due next, in UTC nanoseconds; `None` when it is not active.
    pub next_due_at_ns: Option<i64>,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// Finite.
    Number(f64),
    /// True or false.
    Boolean(bool),
    Text(Box<str>),
}

/// Where a rule stands between `met` and `met`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// The next `met` fires.
    Armed,
    /// Has fired; stays so while `met`.
    Firing,
    /// Was not met any more; armed again after the dwell.
    Clearing,
}

impl RuleState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Armed, Self::Firing, Self::Clearing];

    /// The state's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Firing => "firing",
            Self::Clearing => "clearing",
        }
    }
}

/// What an evaluator found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The condition holds.
    Met,
    /// It does not.
    NotMet,
    /// The window does not tell.
    Inconclusive,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Met, Self::NotMet, Self::Inconclusive];

    /// The outcome's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not_met",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Where a rule stands, as of its last verdict or change. Moments are UTC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRuntime {
    /// As of then: the dwell may have armed it since (`alerts::transition`).
    pub state: RuleState,
    /// When the evaluation block was added: a rule never judged is due from then on.
    pub due_from_ns: i64,
    /// When the last verdict came.
    pub last_evaluated_at_ns: Option<i64>,
    /// Since when the condition is not met; `None` while it is.
    pub condition_cleared_at_ns: Option<i64>,
    /// Of the last verdict.
    pub last_outcome: Option<Outcome>,
    /// When it last fired.
    pub last_triggered_at_ns: Option<i64>,
}

impl RuleRuntime {
    /// Of a rule that nobody has judged.
    pub const fn new(now_ns: i64) -> Self {
        Self {
            state: RuleState::Armed,
            due_from_ns: now_ns,
            last_evaluated_at_ns: None,
            condition_cleared_at_ns: None,
            last_outcome: None,
            last_triggered_at_ns: None,
        }
    }
}

impl Evaluation {
    /// How often the rule becomes due, in nanoseconds.
    pub fn interval_ns(&self) -> i64 {
        nanoseconds(self.interval_seconds)
    }

    /// How long the rule stays clearing, in nanoseconds.
    pub fn dwell_ns(&self) -> i64 {
        nanoseconds(self.dwell_seconds)
    }

    /// What is observed of an input, in nanoseconds.
    pub fn window_ns(&self, input: &Input) -> i64 {
        nanoseconds(input.window_seconds.unwrap_or(self.window_seconds))
    }
}

/// Saturating: a dwell may be longer than time itself.
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * SECOND_NS as f64) as i64
}
