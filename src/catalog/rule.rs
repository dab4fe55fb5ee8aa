//! Alert rules: their settings, their evaluation, their state and their history.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ParsedCondition, json_number, names};
use crate::clock::SECOND_NS;
use crate::ids::ObjectId;

/// Whether a rule is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleStatus {
    /// Evaluated when due.
    Active,
    /// Not evaluated for now.
    Paused,
    /// Not evaluated.
    Inactive,
}

names!(RuleStatus: Active => "active", Paused => "paused", Inactive => "inactive");

/// The member under which the rule's text was sent.
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
    pub id: ObjectId,
    /// Position in the order of creation, among all rules; never reused.
    pub ordinal: u64,
    /// The bucket of the rule's source.
    pub bucket_id: ObjectId,
    /// The source that the rule watches.
    pub source_id: ObjectId,
    pub settings: Arc<RuleSettings>,
    pub runtime: RuleRuntime,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds; verdicts do not change it.
    pub updated_at_ns: i64,
    /// The last one; it counts until the rule is armed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<Acknowledgement>,
    /// The due time for which webhooks have heard that the rule is overdue, UTC nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_told_ns: Option<i64>,
}

/// Somebody knows that a rule has fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// The key or the user.
    pub by: ObjectId,
    pub note: Option<Box<str>>,
}

/// The settings of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleSettings {
    /// Display name; not unique.
    pub name: Box<str>,
    /// The condition in words.
    pub text: Box<str>,
    /// The member under which the text was sent.
    pub form: RuleForm,
    /// The parsed text; `None` if only the evaluator understands it.
    pub parsed: Option<ParsedCondition>,
    /// Where triggers are delivered, in addition to the organization's webhooks.
    pub webhook_url: Option<Box<str>>,
    /// Stored and shown, without effect: it was replaced by the dwell.
    pub cooldown_minutes: f64,
    /// Whether the rule is evaluated.
    pub status: RuleStatus,
    /// How external evaluators evaluate the rule; `None` for a plain rule, which nobody evaluates.
    pub evaluation: Option<Evaluation>,
}

/// The validated evaluation block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// For evaluators to select rules by; never interpreted here.
    pub kind: Option<Box<str>>,
    pub interval_seconds: f64,
    /// The time range that is evaluated of each input.
    pub window_seconds: f64,
    /// 1 to 10.
    pub inputs: Vec<Input>,
    /// Names and values in the order sent; never interpreted here.
    pub parameters: Vec<(Box<str>, Parameter)>,
    /// How long after `not_met` the rule is armed again.
    pub dwell_seconds: f64,
}

/// An input that an evaluator reads for a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Identifies the input within the rule.
    pub key: Box<str>,
    /// A field of the source's schema.
    pub field: Box<str>,
    /// Another source of the bucket; `None` for the rule's own.
    pub source_id: Option<ObjectId>,
    /// How rows are aggregated: names of an aggregation and of a calendar unit, as in a query.
    pub grouping: Option<(Box<str>, Box<str>)>,
    /// Overrides the rule's window.
    pub window_seconds: Option<f64>,
    /// What stands in steps without values: a word or a number, as in a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Parameter>,
    /// The time zone of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Box<str>>,
    /// Conditions on dimensions, as in a query: a JSON object as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Box<str>>,
    /// The dimensions by whose values series are grouped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by_dimensions: Vec<Box<str>>,
}

impl Input {
    /// The conditions on dimensions.
    pub fn dimensions_to_json(&self) -> Option<Value> {
        // It was JSON when it was stored.
        self.dimensions
            .as_ref()
            .and_then(|text| serde_json::from_str(text).ok())
    }

    /// The names of all dimensions that it uses, each with its path within the input.
    pub fn dimension_names(&self) -> Vec<(String, Vec<String>)> {
        let filters = self.dimensions_to_json();
        let filters = filters.as_ref().and_then(Value::as_object);
        let filters = filters.into_iter().flat_map(|members| members.keys());
        let filters = filters.map(|name| (name.clone(), vec!["dimensions".to_owned(), name.clone()]));
        let groups = self.group_by_dimensions.iter().enumerate();
        let groups = groups.map(|(index, name)| {
            let path = vec!["groupByDimensions".to_owned(), index.to_string()];
            (name.to_string(), path)
        });
        filters.chain(groups).collect()
    }
}

/// The state of a rule as of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub rule_id: ObjectId,
    /// Outcome of the last verdict; `None` if the rule was never evaluated.
    pub outcome: Option<Outcome>,
    pub state: RuleState,
    /// All timestamps of the state.
    pub runtime: RuleRuntime,
    /// When the rule is due next, in UTC nanoseconds; `None` if it is not active.
    pub next_due_at_ns: Option<i64>,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// Finite.
    Number(f64),
    Boolean(bool),
    Text(Box<str>),
}

impl Parameter {
    /// The parameter as the client sent it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(value) => json_number(*value),
            Self::Boolean(value) => Value::from(*value),
            Self::Text(text) => Value::from(&**text),
        }
    }
}

/// The state of a rule between two `met` verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// The next `met` fires.
    Armed,
    /// Has fired; unchanged while `met`.
    Firing,
    /// No longer met; armed again after the dwell.
    Clearing,
}

names!(RuleState: Armed => "armed", Firing => "firing", Clearing => "clearing");

/// The outcome of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The condition holds.
    Met,
    /// The condition does not hold.
    NotMet,
    /// The window does not contain enough data to decide.
    Inconclusive,
}

names!(Outcome: Met => "met", NotMet => "not_met", Inconclusive => "inconclusive");

/// The state of a rule as of its last verdict or change. Times are UTC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRuntime {
    /// The state at that time: the dwell may have armed the rule since (`alerts::transition`).
    pub state: RuleState,
    /// When the evaluation block was added: a rule that was never evaluated is due from then on.
    pub due_from_ns: i64,
    /// Time of the last verdict.
    pub last_evaluated_at_ns: Option<i64>,
    /// Since when the condition is not met; `None` while it is.
    pub condition_cleared_at_ns: Option<i64>,
    /// Outcome of the last verdict.
    pub last_outcome: Option<Outcome>,
    pub last_triggered_at_ns: Option<i64>,
}

impl RuleRuntime {
    /// The state of a rule that was never evaluated.
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
    /// The parameters as the client sent them.
    pub fn parameters_to_json(&self) -> Value {
        let parameters = self.parameters.iter();
        let shown = parameters.map(|(name, parameter)| (name.to_string(), parameter.to_json()));
        Value::Object(shown.collect())
    }

    /// How often the rule becomes due, in nanoseconds.
    pub fn interval_ns(&self) -> i64 {
        nanoseconds(self.interval_seconds)
    }

    /// How long the rule stays clearing, in nanoseconds.
    pub fn dwell_ns(&self) -> i64 {
        nanoseconds(self.dwell_seconds)
    }

    /// The time range that is evaluated of an input, in nanoseconds.
    pub fn window_ns(&self, input: &Input) -> i64 {
        nanoseconds(input.window_seconds.unwrap_or(self.window_seconds))
    }
}

/// Saturates: a dwell may exceed the range of timestamps.
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * SECOND_NS as f64) as i64
}

/// A verdict, or the trigger that it caused. Id and time are in the entry's key in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub kind: HistoryKind,
    pub outcome: Outcome,
    /// The rule's state before.
    pub previous_state: RuleState,
    /// The rule's state after.
    pub state: RuleState,
    /// JSON, as the evaluator sent it.
    pub evidence: Option<Box<str>>,
    /// The key or the user that sent the verdict.
    pub key_id: ObjectId,
    /// The silence that was in force, for a trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_id: Option<ObjectId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// A verdict was accepted.
    Verdict,
    /// The verdict fired the rule.
    Trigger,
}

impl HistoryEntry {
    /// Decodes a record of the ledger.
    ///
    /// # Errors
    /// The bytes are not an entry, or one of a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}
