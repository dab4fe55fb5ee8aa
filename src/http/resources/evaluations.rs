//! `/api/evaluations`: due rules and verdicts, for external evaluators.

use actix_web::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::alert_views;
use super::evaluation_body::Parameters;
use super::query_body::QueryBody;
use crate::catalog::{Outcome, RuleState};
use crate::error::{ErrorKind, ServiceError};
use crate::http::docs::VerdictConflictDoc;
use crate::http::endpoint::{Answer, Call, DueParams, Endpoint, Evaluator, Exact, Reply, get, post};
use crate::http::shape::{AnyObject, body};
use crate::ids::ObjectId;
use crate::limits::{EVIDENCE_BYTES_MAX, QUERY_LIMIT_MAX};
use crate::service::evaluations::{Accepted, DueEvaluation, DueQuery, Standing};
use crate::timestamp::Timestamp;

/// The rules that are due.
#[derive(Serialize, ToSchema)]
pub struct DueAnswer<'a> {
    /// Number of rules listed.
    pub count: usize,
    /// Rules, most overdue first.
    pub evaluations: Vec<DueView<'a>>,
}

/// A rule that is due.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DueView<'a> {
    /// ID of the rule, for the path of its verdict.
    pub rule_id: ObjectId,
    /// Name of the rule.
    pub name: &'a str,
    /// Label by which evaluators select the rules that they handle.
    pub kind: Option<&'a str>,
    /// Parameters passed to the evaluator.
    #[schema(value_type = Parameters)]
    pub parameters: Value,
    /// Series to read.
    pub inputs: Vec<DueInputView<'a>>,
    /// Since when the rule is due.
    pub due_at: Timestamp,
    /// Number of whole intervals that have passed since the due one.
    pub missed_intervals: i64,
    /// ID of the rule's bucket.
    pub bucket_id: ObjectId,
    /// ID of the data source that the rule watches.
    pub data_source_id: ObjectId,
    /// The condition as text.
    pub condition: &'a str,
}

/// A series to read.
#[derive(Serialize, ToSchema)]
pub struct DueInputView<'a> {
    /// Name of the input, unique within the rule.
    pub key: &'a str,
    /// Field to read from the rows' `values`.
    pub field: &'a str,
    /// Body to post unchanged to `POST /api/data/query`.
    #[schema(value_type = QueryBody)]
    pub query: DueQueryView<'a>,
}

/// A body for `POST /api/data/query`. It disables automatic downsampling of raw queries.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DueQueryView<'a> {
    bucket_id: ObjectId,
    filters: DueFiltersView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    downsampling: Option<bool>,
    limit: u64,
    sort: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DueFiltersView<'a> {
    data_source_ids: [ObjectId; 1],
    start_time: Timestamp,
    end_time: Timestamp,
    fields: [&'a str; 1],
}

body! {
    /// A verdict on a rule.
    pub struct VerdictBody {
        /// Outcome of the evaluation.
        outcome: Outcome,
        /// Evidence for the outcome, any object of at most 65,536 bytes.
        #[schema(value_type = Option<Object>)]
        evidence: Option<AnyObject>,
    }
}

/// The response to a verdict.
#[derive(Serialize, ToSchema)]
pub struct VerdictAnswer {
    /// Result in words.
    pub message: &'static str,
    /// State of the rule after the verdict.
    pub evaluation: AcceptedView,
}

/// State of a rule after a verdict.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AcceptedVerdict)]
pub struct AcceptedView {
    /// The recorded outcome and the new state.
    #[serde(flatten)]
    pub standing: StandingView,
    /// State of the rule before the verdict.
    #[schema(value_type = RuleState)]
    pub previous_state: &'static str,
    /// Whether the verdict fired the rule.
    pub triggered: bool,
}

/// State and timers of a rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Standing)]
pub struct StandingView {
    /// ID of the rule.
    pub rule_id: ObjectId,
    /// Outcome of the last verdict; null when there was none.
    #[schema(value_type = Option<Outcome>)]
    pub outcome: Option<&'static str>,
    /// State of the rule.
    #[schema(value_type = RuleState)]
    pub state: &'static str,
    /// When the last verdict was recorded.
    pub last_evaluated_at: Option<Timestamp>,
    /// Since when the condition has not been met; null while it is met or before the first `not_met`.
    pub condition_cleared_at: Option<Timestamp>,
    /// When the next verdict is due; null when the rule is not active.
    pub next_due_at: Option<Timestamp>,
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/evaluations/due", "listDueEvaluations", due),
        post("/api/evaluations/{ruleId}/verdict", "recordVerdict", verdict)
            .answers::<VerdictConflictDoc>(StatusCode::CONFLICT),
    ]
}

async fn due(call: Call<Evaluator, DueParams>) -> Reply<DueAnswer<'static>> {
    let DueParams { limit, claim } = call.params;
    let due = call.service.due_evaluations(&call.caller, limit, claim).await?;
    Answer::of(&DueAnswer {
        count: due.len(),
        evaluations: due.iter().filter_map(DueView::of).collect(),
    })
}

async fn verdict(call: Call<Evaluator, ObjectId, Exact<VerdictBody>>) -> Reply<VerdictAnswer> {
    let VerdictBody { outcome, evidence } = &call.body.body;
    let evidence = match evidence {
        Some(AnyObject) => call.body.member("evidence")?,
        None => None,
    };
    if evidence
        .as_ref()
        .is_some_and(|evidence| evidence.len() > EVIDENCE_BYTES_MAX)
    {
        return Err(ServiceError::new(
            ErrorKind::PayloadTooLarge,
            format!("evidence is larger than {EVIDENCE_BYTES_MAX} bytes; send what the verdict rests on"),
        ));
    }
    let accepted = call
        .service
        .record_verdict(&call.caller, call.params, *outcome, evidence)
        .await?;
    Answer::of(&VerdictAnswer {
        message: "verdict recorded",
        evaluation: AcceptedView::of(accepted),
    })
}

impl AcceptedView {
    fn of(accepted: Accepted) -> Self {
        Self {
            standing: StandingView::of(accepted.standing),
            previous_state: accepted.previous_state.name(),
            triggered: accepted.triggered,
        }
    }
}

impl StandingView {
    /// Converts the state for responses and errors.
    pub fn of(standing: Standing) -> Self {
        let runtime = standing.runtime;
        Self {
            rule_id: standing.rule_id,
            outcome: standing.outcome.map(Outcome::name),
            state: standing.state.name(),
            last_evaluated_at: runtime.last_evaluated_at_ns.map(Timestamp),
            condition_cleared_at: runtime.condition_cleared_at_ns.map(Timestamp),
            next_due_at: standing.next_due_at_ns.map(Timestamp),
        }
    }
}

impl<'a> DueView<'a> {
    fn of(due: &'a DueEvaluation) -> Option<Self> {
        let settings = &due.rule.settings;
        let evaluation = settings.evaluation.as_ref()?;
        let inputs = evaluation.inputs.iter().zip(&due.queries);
        Some(Self {
            rule_id: due.rule.id,
            name: &settings.name,
            kind: evaluation.kind.as_deref(),
            parameters: alert_views::parameters(evaluation),
            inputs: inputs
                .map(|(input, query)| DueInputView {
                    key: &input.key,
                    field: &input.field,
                    query: DueQueryView::of(due.rule.bucket_id, &input.field, query, input.grouping.as_ref()),
                })
                .collect(),
            due_at: Timestamp(due.due_at_ns),
            missed_intervals: due.missed_intervals,
            bucket_id: due.rule.bucket_id,
            data_source_id: due.rule.source_id,
            condition: &settings.text,
        })
    }
}

impl<'a> DueQueryView<'a> {
    fn of(
        bucket_id: ObjectId,
        field: &'a str,
        query: &DueQuery,
        grouping: Option<&'a (Box<str>, Box<str>)>,
    ) -> Self {
        Self {
            bucket_id,
            filters: DueFiltersView {
                data_source_ids: [query.source_id],
                start_time: Timestamp(query.start_ns),
                end_time: Timestamp(query.end_ns),
                fields: [field],
            },
            aggregation: grouping.map(|(aggregation, _)| &**aggregation),
            group_by: grouping.map(|(_, unit)| &**unit),
            downsampling: grouping.is_none().then_some(false),
            limit: QUERY_LIMIT_MAX,
            sort: "asc",
        }
    }
}
