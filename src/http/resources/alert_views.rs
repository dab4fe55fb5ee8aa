//! Alert rules as JSON.

use serde_json::Value;

use super::dimension_filters::DimensionFilters;
use super::evaluation_body::Parameters;
use super::query_members::FillValue;
use super::views::{Resource, given, view};
use crate::catalog::{
    Acknowledgement, Evaluation, Input, Operator, Outcome, Parameter, ParsedCondition, Rule, RuleState,
    RuleStatus, json_number,
};
use crate::http::shape::{Mode, OperatorDoc, RuleStateDoc};
use crate::ids::ObjectId;
use crate::service::evaluations::{acknowledgement_of, overdue_since_ns, standing_of};
use crate::service::query::Aggregation;
use crate::timestamp::Timestamp;

view! {
    /// An alert rule.
    pub struct RuleView<'a> of(
        rule: &'a Rule, now_ns: i64;
        settings = &rule.settings, runtime = &rule.runtime, standing = standing_of(rule, now_ns)
    ) {
        /// ID of the rule.
        #[serde(rename = "_id")]
        id: ObjectId = rule.id,
        /// ID of the rule's bucket.
        bucket_id: ObjectId = rule.bucket_id,
        /// ID of the data source that the rule watches.
        data_source_id: ObjectId = rule.source_id,
        /// Name of the rule.
        name: &'a str = &settings.name,
        /// The condition as text.
        condition: &'a str = &settings.text,
        /// Same text as `condition`.
        natural_language_query: &'a str = &settings.text,
        /// The condition as parsed by the server; null when only the evaluator can interpret it.
        parsed_condition: Option<ParsedConditionView<'a>> = settings.parsed.as_ref().map(ParsedConditionView::of),
        /// URL that receives triggers, in addition to the webhooks.
        webhook_url: Option<&'a str> = settings.webhook_url.as_deref(),
        /// `active`, `paused` or `inactive`.
        status: RuleStatus = settings.status,
        /// Stored and returned, but has no effect.
        #[schema(value_type = f64)]
        cooldown_minutes: Value = json_number(settings.cooldown_minutes),
        /// How external evaluators evaluate the rule.
        evaluation: Option<EvaluationView<'a>> = settings.evaluation.as_ref().map(EvaluationView::of),
        /// `armed`, `firing`, `clearing`; `unevaluated` for a rule without an evaluation block.
        #[schema(value_type = RuleStateDoc)]
        state: &'static str = standing.map_or("unevaluated", |standing| RuleState::name(standing.state)),
        /// Outcome of the last verdict: `met`, `not_met` or `inconclusive`.
        last_outcome: Option<Outcome> = runtime.last_outcome,
        /// When the last verdict was recorded.
        last_evaluated_at: Option<Timestamp> = runtime.last_evaluated_at_ns.map(Timestamp),
        /// Since when the condition has not been met; null while it is met or before the first `not_met`.
        condition_cleared_at: Option<Timestamp> = runtime.condition_cleared_at_ns.map(Timestamp),
        /// When the next verdict is due; null for rules that are not evaluated.
        next_due_at: Option<Timestamp> = standing.and_then(|standing| standing.next_due_at_ns).map(Timestamp),
        /// Whether no evaluator has judged the rule for two intervals, at least five minutes, since it became due.
        overdue: bool = overdue_since_ns(rule, now_ns).is_some(),
        /// Who knows that the rule has fired; null until somebody says so, and when it is armed again.
        acknowledgement: Option<AcknowledgementView<'a>> =
            acknowledgement_of(rule, now_ns).map(AcknowledgementView::of),
        /// When the rule last fired.
        last_triggered_at: Option<Timestamp> = runtime.last_triggered_at_ns.map(Timestamp),
        /// When the rule was created.
        created_at: Timestamp = Timestamp(rule.created_at_ns),
        /// When the settings last changed.
        updated_at: Timestamp = Timestamp(rule.updated_at_ns),
    }
}

view! {
    /// Somebody knows that a rule has fired.
    #[schema(as = Acknowledgement)]
    pub struct AcknowledgementView<'a> of(acknowledgement: &'a Acknowledgement) {
        /// When it was acknowledged.
        at: Timestamp = Timestamp(acknowledgement.at_ns),
        /// ID of the key or the user.
        by: ObjectId = acknowledgement.by,
        /// What was noted.
        note: Option<&'a str> = acknowledgement.note.as_deref(),
    }
}

view! {
    /// How external evaluators evaluate a rule.
    #[schema(as = Evaluation)]
    pub struct EvaluationView<'a> of(evaluation: &'a Evaluation) {
        /// Always `external`.
        #[schema(value_type = Mode)]
        mode: &'static str = "external",
        /// Label by which evaluators select the rules that they handle.
        kind?: &'a str = evaluation.kind.as_deref(),
        /// Interval between evaluations, in seconds.
        #[schema(value_type = f64)]
        interval_seconds: Value = json_number(evaluation.interval_seconds),
        /// Length of the time window to evaluate, in seconds.
        #[schema(value_type = f64)]
        window_seconds: Value = json_number(evaluation.window_seconds),
        /// Inputs of the evaluation, 1 to 10.
        inputs: Vec<InputView<'a>> = evaluation.inputs.iter().map(InputView::of).collect(),
        /// Parameters passed to the evaluator.
        #[schema(value_type = Parameters)]
        parameters: Value = evaluation.parameters_to_json(),
        /// Time after `not_met` until the rule is armed again, in seconds.
        #[schema(value_type = f64)]
        dwell_seconds: Value = json_number(evaluation.dwell_seconds),
    }
}

view! {
    /// A series that the evaluator reads.
    #[schema(as = Input)]
    pub struct InputView<'a> of(input: &'a Input) {
        /// Name of the input, unique within the rule.
        key: &'a str = &input.key,
        /// A field of the data source.
        field: &'a str = &input.field,
        /// Data source; that of the rule when absent.
        data_source_id?: ObjectId = input.source_id,
        /// Aggregate computed for each group.
        #[schema(value_type = Option<Aggregation>)]
        aggregation?: &'a str = input.grouping.as_ref().map(|(aggregation, _)| &**aggregation),
        /// Step of a group.
        group_by?: &'a str = input.grouping.as_ref().map(|(_, unit)| &**unit),
        /// Overrides the window of the rule, in seconds.
        #[schema(value_type = Option<f64>)]
        window_seconds?: Value = input.window_seconds.map(json_number),
        /// What stands in steps without values.
        #[schema(value_type = Option<FillValue>)]
        fill?: Value = input.fill.as_ref().map(Parameter::to_json),
        /// Time zone of the steps.
        timezone?: &'a str = input.timezone.as_deref(),
        /// Conditions on dimensions.
        #[schema(value_type = Option<DimensionFilters>)]
        dimensions?: Value = input.dimensions_to_json(),
        /// Dimensions by whose values series are grouped.
        group_by_dimensions?: &'a [Box<str>] = given(&input.group_by_dimensions),
    }
}

impl Resource for RuleView<'_> {
    const ONE: &'static str = "alertRule";
    const MANY: &'static str = "alertRules";
}

view! {
    /// A condition as parsed by the server.
    #[schema(as = ParsedCondition)]
    pub struct ParsedConditionView<'a> of(condition: &'a ParsedCondition) {
        /// A field of the data source.
        field: &'a str = &condition.field,
        /// Comparison operator.
        #[schema(value_type = OperatorDoc)]
        operator: Operator = condition.operator,
        /// Operand: a number, a string or a boolean; `[low, high]` for ranges.
        value: Value = condition.value.to_json(),
        /// True when the condition compares a change in percent.
        percent?: bool = condition.percent.then_some(true),
    }
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
