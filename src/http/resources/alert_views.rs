//! Alert rules as JSON.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::evaluation_body::Parameters;
use super::views::Resource;
use crate::catalog::{
    Evaluation, Input, Operator, Outcome, Parameter, ParsedCondition, Rule, RuleState, RuleStatus,
};
use crate::http::shape::{GroupBy, Mode, OperatorDoc, RuleStateDoc, shown_number};
use crate::ids::ObjectId;
use crate::service::evaluations::standing_of;
use crate::service::query::Aggregation;
use crate::timestamp::Timestamp;

/// An alert rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleView<'a> {
    /// ID of the rule.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// ID of the rule's bucket.
    pub bucket_id: ObjectId,
    /// ID of the data source that the rule watches.
    pub data_source_id: ObjectId,
    /// Name of the rule.
    pub name: &'a str,
    /// The condition as text.
    pub condition: &'a str,
    /// Same text as `condition`.
    pub natural_language_query: &'a str,
    /// The condition as parsed by the server; null when only the evaluator can interpret it.
    pub parsed_condition: Option<ParsedConditionView<'a>>,
    /// URL that receives triggers, in addition to the webhooks.
    pub webhook_url: Option<&'a str>,
    /// `active`, `paused` or `inactive`.
    #[schema(value_type = RuleStatus)]
    pub status: &'static str,
    /// Stored and returned, but has no effect.
    #[schema(value_type = f64)]
    pub cooldown_minutes: Value,
    /// How external evaluators evaluate the rule.
    pub evaluation: Option<EvaluationView<'a>>,
    /// `armed`, `firing`, `clearing`; `unevaluated` for a rule without an evaluation block.
    #[schema(value_type = RuleStateDoc)]
    pub state: &'static str,
    /// Outcome of the last verdict: `met`, `not_met` or `inconclusive`.
    #[schema(value_type = Option<Outcome>)]
    pub last_outcome: Option<&'static str>,
    /// When the last verdict was recorded.
    pub last_evaluated_at: Option<Timestamp>,
    /// Since when the condition has not been met; null while it is met or before the first `not_met`.
    pub condition_cleared_at: Option<Timestamp>,
    /// When the next verdict is due; null for rules that are not evaluated.
    pub next_due_at: Option<Timestamp>,
    /// When the rule last fired.
    pub last_triggered_at: Option<Timestamp>,
    /// When the rule was created.
    pub created_at: Timestamp,
    /// When the settings last changed.
    pub updated_at: Timestamp,
}

/// How external evaluators evaluate a rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Evaluation)]
pub struct EvaluationView<'a> {
    /// Always `external`.
    #[schema(value_type = Mode)]
    pub mode: &'static str,
    /// Label by which evaluators select the rules that they handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<&'a str>,
    /// Interval between evaluations, in seconds.
    #[schema(value_type = f64)]
    pub interval_seconds: Value,
    /// Length of the time window to evaluate, in seconds.
    #[schema(value_type = f64)]
    pub window_seconds: Value,
    /// Inputs of the evaluation, 1 to 10.
    pub inputs: Vec<InputView<'a>>,
    /// Parameters passed to the evaluator.
    #[schema(value_type = Parameters)]
    pub parameters: Value,
    /// Time after `not_met` until the rule is armed again, in seconds.
    #[schema(value_type = f64)]
    pub dwell_seconds: Value,
}

/// A series that the evaluator reads.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Input)]
pub struct InputView<'a> {
    /// Name of the input, unique within the rule.
    pub key: &'a str,
    /// A field of the data source.
    pub field: &'a str,
    /// Data source; that of the rule when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub data_source_id: Option<ObjectId>,
    /// Aggregate computed for each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Aggregation>, nullable = false)]
    pub aggregation: Option<&'a str>,
    /// Calendar unit of a group, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<GroupBy>, nullable = false)]
    pub group_by: Option<&'a str>,
    /// Overrides the window of the rule, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub window_seconds: Option<Value>,
}

impl Resource for RuleView<'_> {
    const ONE: &'static str = "alertRule";
    const MANY: &'static str = "alertRules";
}

/// A condition as parsed by the server.
#[derive(Serialize, ToSchema)]
#[schema(as = ParsedCondition)]
pub struct ParsedConditionView<'a> {
    /// A field of the data source.
    pub field: &'a str,
    /// Comparison operator.
    #[schema(value_type = OperatorDoc)]
    pub operator: Operator,
    /// Operand: a number, a string or a boolean; `[low, high]` for ranges.
    pub value: Value,
    /// True when the condition compares a change in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub percent: Option<bool>,
}

impl<'a> RuleView<'a> {
    /// The rule with its state at `now_ns`.
    pub fn of(rule: &'a Rule, now_ns: i64) -> Self {
        let (settings, runtime) = (&rule.settings, &rule.runtime);
        let standing = standing_of(rule, now_ns);
        Self {
            id: rule.id,
            bucket_id: rule.bucket_id,
            data_source_id: rule.source_id,
            name: &settings.name,
            condition: &settings.text,
            natural_language_query: &settings.text,
            parsed_condition: settings.parsed.as_ref().map(ParsedConditionView::of),
            webhook_url: settings.webhook_url.as_deref(),
            status: settings.status.name(),
            cooldown_minutes: shown_number(settings.cooldown_minutes),
            evaluation: settings.evaluation.as_ref().map(EvaluationView::of),
            state: standing.map_or("unevaluated", |standing| RuleState::name(standing.state)),
            last_outcome: runtime.last_outcome.map(Outcome::name),
            last_evaluated_at: runtime.last_evaluated_at_ns.map(Timestamp),
            condition_cleared_at: runtime.condition_cleared_at_ns.map(Timestamp),
            next_due_at: standing
                .and_then(|standing| standing.next_due_at_ns)
                .map(Timestamp),
            last_triggered_at: runtime.last_triggered_at_ns.map(Timestamp),
            created_at: Timestamp(rule.created_at_ns),
            updated_at: Timestamp(rule.updated_at_ns),
        }
    }
}

impl<'a> ParsedConditionView<'a> {
    fn of(condition: &'a ParsedCondition) -> Self {
        Self {
            field: &condition.field,
            operator: condition.operator,
            value: condition.value.to_json(),
            percent: condition.percent.then_some(true),
        }
    }
}

impl<'a> EvaluationView<'a> {
    fn of(evaluation: &'a Evaluation) -> Self {
        Self {
            mode: "external",
            kind: evaluation.kind.as_deref(),
            interval_seconds: shown_number(evaluation.interval_seconds),
            window_seconds: shown_number(evaluation.window_seconds),
            inputs: evaluation.inputs.iter().map(InputView::of).collect(),
            parameters: parameters(evaluation),
            dwell_seconds: shown_number(evaluation.dwell_seconds),
        }
    }
}

impl<'a> InputView<'a> {
    fn of(input: &'a Input) -> Self {
        let (aggregation, unit) = input
            .grouping
            .as_ref()
            .map(|(one, other)| (&**one, &**other))
            .unzip();
        Self {
            key: &input.key,
            field: &input.field,
            data_source_id: input.source_id,
            aggregation,
            group_by: unit,
            window_seconds: input.window_seconds.map(shown_number),
        }
    }
}

/// The parameters as the client sent them.
pub fn parameters(evaluation: &Evaluation) -> Value {
    let shown = evaluation.parameters.iter().map(|(name, parameter)| {
        let value = match parameter {
            Parameter::Number(value) => shown_number(*value),
            Parameter::Boolean(value) => json!(value),
            Parameter::Text(text) => json!(text),
        };
        (String::from(&**name), value)
    });
    Value::Object(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ConditionValue;

    #[test]
    fn a_shown_condition_means_the_stored_one() {
        for operator in Operator::ALL {
            for percent in [false, true] {
                let condition = ParsedCondition {
                    field: "Füllstand 2".into(),
                    operator,
                    value: ConditionValue::Range([0.0, 1.5]),
                    percent,
                };
                let shown = serde_json::to_value(ParsedConditionView::of(&condition)).unwrap();
                let stored = serde_json::to_value(&condition).unwrap();
                assert_eq!(shown["operator"], stored["operator"]);
                assert_eq!(shown.get("percent"), stored.get("percent"));
                assert_eq!(
                    serde_json::from_value::<ParsedCondition>(shown).unwrap(),
                    condition
                );
            }
        }
    }
}
