//! `/api/alerts/{id}/history`.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::docs::HistoryKindDoc;
use super::faults::Faults;
use super::params::{self, PageParams, Pagination};
use super::{auth, respond};
use crate::catalog::{EntryKey, HistoryEntry, HistoryKind, Outcome, RuleState};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// A verdict, or the trigger it caused.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntryView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// When it was recorded.
    pub at: Timestamp,
    /// What happened.
    #[schema(value_type = HistoryKindDoc)]
    pub kind: &'static str,
    /// Of the verdict.
    #[schema(value_type = Outcome)]
    pub outcome: &'static str,
    /// State before.
    #[schema(value_type = RuleState)]
    pub previous_state: &'static str,
    /// State after.
    #[schema(value_type = RuleState)]
    pub state: &'static str,
    /// As the evaluator sent it; null when it sent none.
    #[schema(value_type = Option<Object>)]
    pub evidence: Option<&'a RawValue>,
    /// The key, or the user, that sent it.
    pub key_id: ObjectId,
}

/// A page of a rule's history.
#[derive(Serialize, ToSchema)]
pub struct HistoryAnswer<'a> {
    /// Newest first.
    pub history: Vec<HistoryEntryView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// Lists a rule's verdicts and triggers of the last 90 days.
///
/// Newest first, each with the evidence that the evaluator sent.
#[utoipa::path(get, path = "/api/alerts/{id}/history", operation_id = "listRuleHistory", tag = "alert rules",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("id" = ObjectId, Path, description = "The alert rule."),
        PageParams),
    responses(
        (status = 200, body = HistoryAnswer, description = "A page of the history.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let readers = Access::ADMIN.or(Access::WRITE).or(Access::READ);
    let caller = auth::authenticate(&request, &service, readers)?;
    let mut faults = Faults::default();
    let id = params::id(&request, "id", &mut faults);
    let asked = params::page(&request, &mut faults);
    let (Some(id), Some(asked)) = (id, asked) else {
        return Err(faults.into_error());
    };
    let page = service.rule_history(&caller, id, asked)?;
    let views = page.entries.iter().map(HistoryEntryView::of);
    let answer = HistoryAnswer {
        history: views.collect::<Result<_, _>>()?,
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

impl<'a> HistoryEntryView<'a> {
    fn of((key, entry): &'a (EntryKey, HistoryEntry)) -> Result<Self, ServiceError> {
        let evidence = entry.evidence.as_deref();
        Ok(Self {
            id: key.id,
            at: Timestamp(key.at_ns),
            kind: match entry.kind {
                HistoryKind::Verdict => "verdict",
                HistoryKind::Trigger => "trigger",
            },
            outcome: entry.outcome.name(),
            previous_state: entry.previous_state.name(),
            state: entry.state.name(),
            evidence: evidence
                .map(serde_json::from_str)
                .transpose()
                .map_err(ServiceError::internal)?,
            key_id: entry.key_id,
        })
    }
}
