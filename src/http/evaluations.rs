//! `/api/evaluations`: for external evaluators.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::alert_views;
use super::docs::ErrorDoc;
use super::faults::{Faults, Members};
use super::{auth, body, params, respond, values};
use crate::catalog::Outcome;
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
    #[schema(value_type = Object)]
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
    #[schema(value_type = Object)]
    pub query: &'a Value,
}

/// A verdict.
#[derive(ToSchema)]
pub struct VerdictBody {
    /// `met`, `not_met` or `inconclusive`.
    pub outcome: String,
    /// Why; at most 65,536 bytes.
    pub evidence: Option<Map<String, Value>>,
}

/// An answer to a verdict.
#[derive(Serialize, ToSchema)]
pub struct VerdictAnswer {
    /// What was done.
    pub message: &'static str,
    /// Where the rule stands now: `ruleId`, `outcome`, `state`, `previousState`, `triggered`, `lastEvaluatedAt`,
    /// `conditionClearedAt`, `nextDueAt`.
    #[schema(value_type = Object)]
    pub evaluation: Value,
}

/// The rules that are due, with the queries to ask; `claim` keeps them from other evaluators for so many seconds.
#[utoipa::path(get, path = "/api/evaluations/due", tag = "evaluations", security(("apiKey" = []), ("bearer" = [])),
    params(("limit" = Option<u64>, Query), ("claim" = Option<u64>, Query)),
    responses((status = 200, body = DueAnswer), (status = "default", body = ErrorDoc)))]
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

/// Records the verdict of a rule that is due: one for each interval.
#[utoipa::path(post, path = "/api/evaluations/{ruleId}/verdict", tag = "evaluations",
    security(("apiKey" = []), ("bearer" = [])), params(("ruleId" = String, Path)), request_body = VerdictBody,
    responses((status = 200, body = VerdictAnswer),
    (status = 409, body = ErrorDoc, description = "the rule is not due, or not active; `evaluation` says where it stands"),
    (status = "default", body = ErrorDoc)))]
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
