//! `/api/evaluations`: due rules and verdicts, for external evaluators.

use actix_web::http::StatusCode;
use serde_json::Value;

use super::evaluation_body::Parameters;
use super::query_body::QueryBody;
use super::views::{given, view};
use crate::catalog::{Evaluation, Input, Outcome, Parameter, RuleState};
use crate::error::{ErrorKind, ServiceError};
use crate::http::docs::VerdictConflictDoc;
use crate::http::endpoint::{Answer, Call, DueParams, Endpoint, Evaluator, Exact, Reply, get, post};
use crate::http::shape::{AnyObject, body};
use crate::ids::ObjectId;
use crate::limits::{EVIDENCE_BYTES_MAX, QUERY_LIMIT_MAX};
use crate::service::evaluations::{Accepted, DueEvaluation, DueQuery, Standing};
use crate::timestamp::Timestamp;

view! {
    /// The rules that are due.
    pub struct DueAnswer<'a> of(due: &'a [DueEvaluation]) {
        /// Number of rules listed.
        count: usize = due.len(),
        /// Rules, most overdue first.
        evaluations: Vec<DueView<'a>> = due.iter().filter_map(due_view).collect(),
    }
}

fn due_view(due: &DueEvaluation) -> Option<DueView<'_>> {
    let evaluation = due.rule.settings.evaluation.as_ref()?;
    Some(DueView::of(due, evaluation))
}

view! {
    /// A rule that is due.
    pub struct DueView<'a> of(due: &'a DueEvaluation, evaluation: &'a Evaluation; rule = &due.rule) {
        /// ID of the rule, for the path of its verdict.
        rule_id: ObjectId = rule.id,
        /// Name of the rule.
        name: &'a str = &rule.settings.name,
        /// Label by which evaluators select the rules that they handle.
        kind: Option<&'a str> = evaluation.kind.as_deref(),
        /// Parameters passed to the evaluator.
        #[schema(value_type = Parameters)]
        parameters: Value = evaluation.parameters_to_json(),
        /// Series to read.
        inputs: Vec<DueInputView<'a>> = due_inputs(rule.bucket_id, evaluation, &due.queries),
        /// Since when the rule is due.
        due_at: Timestamp = Timestamp(due.due_at_ns),
        /// Number of whole intervals that have passed since the due one.
        missed_intervals: i64 = due.missed_intervals,
        /// ID of the rule's bucket.
        bucket_id: ObjectId = rule.bucket_id,
        /// ID of the data source that the rule watches.
        data_source_id: ObjectId = rule.source_id,
        /// The condition as text.
        condition: &'a str = &rule.settings.text,
    }
}

/// The inputs of a rule with their queries.
pub fn due_inputs<'a>(
    bucket_id: ObjectId,
    evaluation: &'a Evaluation,
    queries: &[DueQuery],
) -> Vec<DueInputView<'a>> {
    let inputs = evaluation.inputs.iter().zip(queries);
    inputs
        .map(|(input, query)| DueInputView::of(bucket_id, input, query))
        .collect()
}

view! {
    /// A series to read.
    pub struct DueInputView<'a> of(bucket_id: ObjectId, input: &'a Input, query: &DueQuery) {
        /// Name of the input, unique within the rule.
        key: &'a str = &input.key,
        /// Field to read from the rows' `values`.
        field: &'a str = &input.field,
        /// Body to post unchanged to `POST /api/data/query`.
        #[schema(value_type = QueryBody)]
        query: DueQueryView<'a> = DueQueryView::of(bucket_id, input, query),
    }
}

view! {
    /// A body for `POST /api/data/query`. It disables automatic downsampling of raw queries.
    pub struct DueQueryView<'a> of(
        bucket_id: ObjectId, input: &'a Input, query: &DueQuery;
        grouping = input.grouping.as_ref()
    ) {
        bucket_id: ObjectId = bucket_id,
        filters: DueFiltersView<'a> = DueFiltersView::of(input, query),
        aggregation?: &'a str = grouping.map(|(aggregation, _)| &**aggregation),
        group_by?: &'a str = grouping.map(|(_, unit)| &**unit),
        fill?: Value = input.fill.as_ref().map(Parameter::to_json),
        timezone?: &'a str = input.timezone.as_deref(),
        group_by_dimensions?: &'a [Box<str>] = given(&input.group_by_dimensions),
        downsampling?: bool = grouping.is_none().then_some(false),
        limit: u64 = QUERY_LIMIT_MAX,
        sort: &'static str = "asc",
    }
}

view! {
    /// The filters of that body.
    pub struct DueFiltersView<'a> of(input: &'a Input, query: &DueQuery) {
        data_source_ids: [ObjectId; 1] = [query.source_id],
        start_time: Timestamp = Timestamp(query.start_ns),
        end_time: Timestamp = Timestamp(query.end_ns),
        fields: [&'a str; 1] = [&input.field],
        dimensions?: Value = input.dimensions_to_json(),
    }
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

view! {
    /// The response to a verdict.
    pub struct VerdictAnswer of(accepted: &Accepted) {
        /// Result in words.
        message: &'static str = "verdict recorded",
        /// State of the rule after the verdict.
        evaluation: AcceptedView = AcceptedView::of(accepted),
    }
}

view! {
    /// State of a rule after a verdict.
    #[schema(as = AcceptedVerdict)]
    pub struct AcceptedView of(accepted: &Accepted) {
        /// The recorded outcome and the new state.
        #[serde(flatten)]
        standing: StandingView = StandingView::of(&accepted.standing),
        /// State of the rule before the verdict.
        previous_state: RuleState = accepted.previous_state,
        /// Whether the verdict fired the rule.
        triggered: bool = accepted.triggered,
    }
}

view! {
    /// State and timers of a rule.
    #[schema(as = Standing)]
    pub struct StandingView of(standing: &Standing) {
        /// ID of the rule.
        rule_id: ObjectId = standing.rule_id,
        /// Outcome of the last verdict; null when there was none.
        outcome: Option<Outcome> = standing.outcome,
        /// State of the rule.
        state: RuleState = standing.state,
        /// When the last verdict was recorded.
        last_evaluated_at: Option<Timestamp> = standing.runtime.last_evaluated_at_ns.map(Timestamp),
        /// Since when the condition has not been met; null while it is met or before the first `not_met`.
        condition_cleared_at: Option<Timestamp> = standing.runtime.condition_cleared_at_ns.map(Timestamp),
        /// When the next verdict is due; null when the rule is not active.
        next_due_at: Option<Timestamp> = standing.next_due_at_ns.map(Timestamp),
    }
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
    Answer::of(&DueAnswer::of(&due))
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
    Answer::of(&VerdictAnswer::of(&accepted))
}
