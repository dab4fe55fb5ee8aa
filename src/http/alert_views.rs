//! How an alert rule is shown, and what a body that makes or changes one may say.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::docs::{AggregationDoc, EvaluationModeDoc, GroupByDoc, OperatorDoc, ParameterDoc, RuleStateDoc};
use super::values::shown_number;
use crate::catalog::{Evaluation, Outcome, Parameter, Rule, RuleState, RuleStatus};
use crate::ids::ObjectId;
use crate::service::evaluations::standing_of;
use crate::timestamp::Timestamp;

/// An alert rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// What it watches.
    pub data_source_id: ObjectId,
    /// Its name.
    pub name: &'a str,
    /// The condition in words.
    pub condition: &'a str,
    /// The same words.
    pub natural_language_query: &'a str,
    /// What the words were understood to say; null where only the evaluator understands them.
    #[schema(value_type = Option<ParsedConditionDoc>)]
    pub parsed_condition: Option<Value>,
    /// Where triggers are delivered, besides the webhooks.
    pub webhook_url: Option<&'a str>,
    /// `active`, `paused` or `inactive`.
    #[schema(value_type = RuleStatus)]
    pub status: &'static str,
    /// Kept and shown, without effect.
    #[schema(value_type = f64)]
    pub cooldown_minutes: Value,
    /// How external evaluators judge it.
    #[schema(value_type = Option<EvaluationBody>)]
    pub evaluation: Option<Value>,
    /// `armed`, `firing`, `clearing`; `unevaluated` for a rule without an evaluation block.
    #[schema(value_type = RuleStateDoc)]
    pub state: &'static str,
    /// `met`, `not_met` or `inconclusive`.
    #[schema(value_type = Option<Outcome>)]
    pub last_outcome: Option<&'static str>,
    /// When the last verdict came.
    pub last_evaluated_at: Option<Timestamp>,
    /// Since when the condition is not met.
    pub condition_cleared_at: Option<Timestamp>,
    /// When the next verdict is due; null for rules that are not judged.
    pub next_due_at: Option<Timestamp>,
    /// When it last fired.
    pub last_triggered_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub updated_at: Timestamp,
}

/// What a condition's words were understood to say.
#[derive(ToSchema)]
#[schema(as = ParsedCondition)]
pub struct ParsedConditionDoc {
    /// A field of the source.
    pub field: String,
    /// How it is compared.
    pub operator: OperatorDoc,
    /// What it is compared with: a number, a string or a boolean; `[low, high]` for ranges.
    pub value: Value,
    /// True for changes in percent.
    #[schema(nullable = false)]
    pub percent: Option<bool>,
}

/// Body of a creation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RuleBody {
    /// The bucket of the source.
    pub bucket_id: ObjectId,
    /// What it watches.
    pub data_source_id: ObjectId,
    /// Its name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// The condition in words; this or `naturalLanguageQuery`.
    #[schema(min_length = 1, max_length = 1000)]
    pub condition: Option<String>,
    /// The condition in words; this or `condition`.
    #[schema(min_length = 1, max_length = 1000)]
    pub natural_language_query: Option<String>,
    /// Where triggers are delivered, besides the webhooks; required of a creation with `condition`.
    #[schema(min_length = 1, max_length = 2048)]
    pub webhook_url: Option<String>,
    /// 5 when absent.
    #[schema(minimum = 0)]
    pub cooldown_minutes: Option<f64>,
    /// `active` when absent.
    pub status: Option<RuleStatus>,
    /// How external evaluators judge it.
    pub evaluation: Option<EvaluationBody>,
}

/// Body of a change; what is left out stays.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RulePatchBody {
    /// Its name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// The condition in words.
    #[schema(min_length = 1, max_length = 1000)]
    pub condition: Option<String>,
    /// The condition in words, by its other name.
    #[schema(min_length = 1, max_length = 1000)]
    pub natural_language_query: Option<String>,
    /// Where triggers are delivered, besides the webhooks; null removes it.
    #[schema(min_length = 1, max_length = 2048)]
    pub webhook_url: Option<String>,
    /// Kept and shown.
    #[schema(minimum = 0)]
    pub cooldown_minutes: Option<f64>,
    /// `active`, `paused` or `inactive`.
    pub status: Option<RuleStatus>,
    /// The whole block; null removes it.
    pub evaluation: Option<EvaluationBody>,
}

/// An evaluation block. Members that are not named here are refused.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct EvaluationBody {
    /// May be left out.
    pub mode: Option<EvaluationModeDoc>,
    /// For evaluators to pick by.
    #[schema(min_length = 1, max_length = 64)]
    pub kind: Option<String>,
    /// How often the rule becomes due.
    #[schema(minimum = 60, maximum = 86400)]
    pub interval_seconds: f64,
    /// What is observed.
    #[schema(minimum = 60, maximum = 31_536_000)]
    pub window_seconds: f64,
    /// 1 to 10.
    #[schema(min_items = 1, max_items = 10)]
    pub inputs: Vec<InputBody>,
    /// For the evaluator: at most 256, flat.
    #[schema(value_type = BTreeMap<String, ParameterDoc>)]
    pub parameters: Map<String, Value>,
    /// How long after `not_met` the rule is armed again; the window when absent.
    #[schema(minimum = 0)]
    pub dwell_seconds: Option<f64>,
}

/// What an evaluator reads.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct InputBody {
    /// A letter, then letters, digits and underscores; unique within the rule.
    #[schema(max_length = 128, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub key: String,
    /// A field of the source.
    #[schema(min_length = 1, max_length = 128)]
    pub field: String,
    /// The rule's own when absent.
    pub data_source_id: Option<ObjectId>,
    /// What is told of each group; together with `groupBy`.
    pub aggregation: Option<AggregationDoc>,
    /// The calendar unit of a group, UTC; together with `aggregation`.
    pub group_by: Option<GroupByDoc>,
    /// In place of the rule's window.
    #[schema(minimum = 60, maximum = 31_536_000)]
    pub window_seconds: Option<f64>,
}

impl<'a> RuleView<'a> {
    /// The rule as it stands at that moment.
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
            parsed_condition: settings.parsed.as_ref().map(|parsed| parsed.to_json()),
            webhook_url: settings.webhook_url.as_deref(),
            status: settings.status.name(),
            cooldown_minutes: shown_number(settings.cooldown_minutes),
            evaluation: settings.evaluation.as_ref().map(evaluation),
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

fn evaluation(evaluation: &Evaluation) -> Value {
    let mut block = Map::new();
    let mut put = |name: &str, value: Value| block.insert(name.to_owned(), value);
    put("mode", json!("external"));
    if let Some(kind) = &evaluation.kind {
        put("kind", json!(kind));
    }
    put("intervalSeconds", shown_number(evaluation.interval_seconds));
    put("windowSeconds", shown_number(evaluation.window_seconds));
    put("inputs", evaluation.inputs.iter().map(input).collect());
    put("parameters", parameters(evaluation));
    put("dwellSeconds", shown_number(evaluation.dwell_seconds));
    Value::Object(block)
}

fn input(input: &crate::catalog::Input) -> Value {
    let mut view = json!({"key": input.key, "field": input.field});
    if let Some(source_id) = input.source_id {
        view["dataSourceId"] = json!(source_id);
    }
    if let Some((aggregation, unit)) = &input.grouping {
        view["aggregation"] = json!(aggregation);
        view["groupBy"] = json!(unit);
    }
    if let Some(window_seconds) = input.window_seconds {
        view["windowSeconds"] = shown_number(window_seconds);
    }
    view
}

/// The parameters as they were sent.
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
