//! `/api/alerts/{id}/history`: the verdicts and triggers of a rule.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::catalog::{EntryKey, HistoryEntry, HistoryKind, Outcome, RuleState};
use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Call, Endpoint, Pagination, Reader, Reply, get};
use crate::http::shape::HistoryKindDoc;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

/// A verdict, or the trigger that it caused.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntryView<'a> {
    /// ID of the entry.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// When the entry was recorded.
    pub at: Timestamp,
    /// Whether the entry is a verdict or a trigger.
    #[schema(value_type = HistoryKindDoc)]
    pub kind: &'static str,
    /// Outcome of the verdict.
    #[schema(value_type = Outcome)]
    pub outcome: &'static str,
    /// State of the rule before the verdict.
    #[schema(value_type = RuleState)]
    pub previous_state: &'static str,
    /// State of the rule after the verdict.
    #[schema(value_type = RuleState)]
    pub state: &'static str,
    /// Evidence as the evaluator sent it; null when it sent none.
    #[schema(value_type = Option<Object>)]
    pub evidence: Option<&'a RawValue>,
    /// ID of the API key or user that sent the verdict.
    pub key_id: ObjectId,
}

/// A page of a rule's history.
#[derive(Serialize, ToSchema)]
pub struct HistoryAnswer<'a> {
    /// Entries, newest first.
    pub history: Vec<HistoryEntryView<'a>>,
    /// Position of this page in the list.
    pub pagination: Pagination,
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/alerts/{id}/history", "listRuleHistory", list)]
}

async fn list(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<HistoryAnswer<'static>> {
    let (id, page_request) = call.params;
    let page = call.service.rule_history(&call.caller, id, page_request)?;
    let views = page.entries.iter().map(HistoryEntryView::of);
    Answer::of(&HistoryAnswer {
        history: views.collect::<Result<_, _>>()?,
        pagination: Pagination::of(page_request, &page),
    })
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
