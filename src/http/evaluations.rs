//! `/api/evaluations`: for external evaluators.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::alert_views;
use super::docs::ParameterDoc;
use super::faults::{Faults, Members};
use super::query_docs::QueryBodyDoc;
use super::{auth, body, params, respond, values};
use crate::catalog::{Outcome, RuleState};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{CLAIM_SECONDS, EVIDENCE_BYTES_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};
use crate::service::evaluations::DueEvaluation;
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

const ACCESS: Access = Access::ADMIN.or(Access::INTEGRATION);

/// The rules that are due.
#[derive(Serialize, ToSchema)]
pub struct DueAnswer<'a> {
    /// How many are listed.
    pub count: usize,
    /// Most overdue first.
    pub evaluations: Vec<DueView<'a>>,
}

/// A rule that is due.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DueView<'a> {
    /// Where its verdict goes.
    pub rule_id: ObjectId,
    /// Its name.
    pub name: &'a str,
    /// What to judge it by.
    pub kind: Option<&'a str>,
    /// For the evaluator.
    #[schema(value_type = BTreeMap<String, ParameterDoc>)]
    pub parameters: Value,
    /// What to read.
    pub inputs: Vec<DueInputView<'a>>,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// Whole intervals that have passed beyond the one that is due.
    pub missed_intervals: i64,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// What it watches.
    pub data_source_id: ObjectId,
    /// The condition in words.
    pub condition: &'a str,
}

/// What to read.
#[derive(Serialize, ToSchema)]
pub struct DueInputView<'a> {
    /// Names it within the rule.
    pub key: &'a str,
    /// The field in the rows' `values`.
    pub field: &'a str,
    /// A body for `POST /api/data/query`.
    #[schema(value_type = QueryBodyDoc)]
    pub query: &'a Value,
}

/// A verdict.
#[derive(ToSchema)]
pub struct VerdictBody {
    /// What the evaluator found.
    pub outcome: Outcome,
    /// Why; at most 65,536 bytes.
    #[schema(value_type = Option<Object>)]
    pub evidence: Option<Map<String, Value>>,
}

/// An answer to a verdict.
#[derive(Serialize, ToSchema)]
pub struct VerdictAnswer {
    /// What was done.
    pub message: &'static str,
    /// Where the rule stands now.
    #[schema(value_type = AcceptedVerdictDoc)]
    pub evaluation: Value,
}

/// Where a rule stands after a verdict.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = AcceptedVerdict)]
pub struct AcceptedVerdictDoc {
    /// The rule.
    pub rule_id: ObjectId,
    /// Of the verdict.
    pub outcome: Outcome,
    /// Where it stands now.
    pub state: RuleState,
    /// Where it stood.
    pub previous_state: RuleState,
    /// Whether the verdict fired it.
    pub triggered: bool,
    /// When this verdict came.
    pub last_evaluated_at: Option<Timestamp>,
    /// Since when the condition is not met.
    pub condition_cleared_at: Option<Timestamp>,
    /// When the next verdict is due.
    pub next_due_at: Option<Timestamp>,
}

/// Where a rule stands that takes no verdict now.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = Standing)]
pub struct StandingDoc {
    /// The rule.
    pub rule_id: ObjectId,
    /// Of the last verdict; null when there was none.
    pub outcome: Option<Outcome>,
    /// Where it stands.
    pub state: RuleState,
    /// When the last verdict came.
    pub last_evaluated_at: Option<Timestamp>,
    /// Since when the condition is not met.
    pub condition_cleared_at: Option<Timestamp>,
    /// When the next verdict is due; null when the rule is not active.
    pub next_due_at: Option<Timestamp>,
}

/// A verdict that came too late, too early, or for a rule that is not active.
#[derive(ToSchema)]
#[schema(as = VerdictConflict)]
pub struct VerdictConflictDoc {
    /// `Conflict`.
    pub error: String,
    /// Why.
    pub message: String,
    /// Where the rule stands: a retry can tell that its first try had succeeded.
    pub evaluation: StandingDoc,
}

/// Which rules, and for how long they are the caller's.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DueParams {
    /// Most rules; 100 when absent.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u64>,
    /// Seconds for which the listed rules are left out of other polls; absent: they are not claimed.
    #[param(minimum = 5, maximum = 3_600)]
    pub claim: Option<u64>,
}

/// Lists the rules that are due.
///
/// For each input, post its `query` unchanged to `/api/data/query`, judge, and post one verdict for the rule. Polling
/// changes nothing: a rule is listed until its verdict is in. With `claim`, the listed rules are left out of other polls
/// for so many seconds, so that several evaluators share the work. Fewer than `limit` are listed where the rules are
/// large, 4 MiB of texts at most and one rule more.
#[utoipa::path(get, path = "/api/evaluations/due", operation_id = "listDueEvaluations", tag = "evaluations",
    security(("apiKey" = ["admin", "integration"]), ("bearer" = [])),
    params(DueParams),
    responses(
        (status = 200, body = DueAnswer, description = "The rules that are due.")))]
pub async fn due(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let mut faults = Faults::default();
    let pairs = params::query_pairs(&request, &mut faults).unwrap_or_default();
    let limit = params::integer(
        &pairs,
        "limit",
        LIST_LIMIT_DEFAULT,
        1,
        LIST_LIMIT_MAX,
        &mut faults,
    );
    let claimed = pairs.iter().any(|(name, _)| name == "claim");
    let (least, most) = CLAIM_SECONDS;
    let claim = params::integer(&pairs, "claim", least, least, most, &mut faults);
    let (Some(limit), Some(claim), true) = (limit, claim, faults.none()) else {
        return Err(faults.into_error());
    };
    let due = service
        .due_evaluations(&caller, limit, claimed.then_some(claim))
        .await?;
    let answer = DueAnswer {
        count: due.len(),
        evaluations: due.iter().filter_map(DueView::of).collect(),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Records the verdict of a rule that is due.
///
/// One is accepted for each interval. `met` fires an armed rule; `not_met` lets a firing one clear; `inconclusive`, for
/// whatever does not tell, changes nothing. Of two that arrive together exactly one wins.
#[utoipa::path(post, path = "/api/evaluations/{ruleId}/verdict", operation_id = "recordVerdict", tag = "evaluations",
    security(("apiKey" = ["admin", "integration"]), ("bearer" = [])),
    params(("ruleId" = ObjectId, Path, description = "The alert rule.")),
    request_body = VerdictBody,
    responses(
        (status = 200, body = VerdictAnswer, description = "Recorded; when `triggered` is true, the trigger and its deliveries are on disk."),
        (status = 409, body = VerdictConflictDoc, description = "The rule is not due, or not active; `evaluation` says where it stands, so a retry can tell that it had succeeded."),
        (status = 413, description = "The body is larger than 1 MiB, or its evidence than 65,536 bytes.")))]
pub async fn verdict(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let (body, evidence) = body::read_json_with_raw(&request, payload, "evidence").await?;
    let mut faults = Faults::default();
    let rule_id = params::id(&request, "ruleId", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let outcomes = Outcome::ALL.map(|outcome| (outcome.name(), outcome));
    let outcome = members.required("outcome", &mut faults, |v| values::one_of(v, &outcomes));
    let sent = members.nullable("evidence", &mut faults, |value| match value {
        Value::Object(_) => Ok(()),
        other => Err(format!(
            "must be an object, not {}",
            super::faults::kind_of(other)
        )),
    });
    let (Some(rule_id), Some(outcome), true) = (rule_id, outcome, faults.none()) else {
        return Err(faults.into_error());
    };
    let evidence = evidence.filter(|_| sent == Some(Some(())));
    if evidence
        .as_ref()
        .is_some_and(|evidence| evidence.len() > EVIDENCE_BYTES_MAX)
    {
        return Err(ServiceError::new(
            crate::error::ErrorKind::PayloadTooLarge,
            format!("evidence is larger than {EVIDENCE_BYTES_MAX} bytes; send what the verdict rests on"),
        ));
    }
    let accepted = service
        .record_verdict(&caller, rule_id, outcome, evidence)
        .await?;
    let mut evaluation = accepted.standing.json();
    evaluation["previousState"] = accepted.previous_state.name().into();
    evaluation["triggered"] = accepted.triggered.into();
    let answer = VerdictAnswer {
        message: "verdict recorded",
        evaluation,
    };
    respond::json(&request, StatusCode::OK, &answer).await
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
                    query,
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
