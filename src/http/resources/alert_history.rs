//! `/api/alerts/{id}/history`: the verdicts and triggers of a rule.

use serde_json::value::RawValue;

use super::views::view;
use crate::catalog::{EntryKey, HistoryEntry, HistoryKind, Outcome, RuleState};
use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Call, Endpoint, Pagination, Reader, Reply, get};
use crate::http::shape::HistoryKindDoc;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

view! {
    /// A verdict, or the trigger that it caused.
    pub struct HistoryEntryView<'a> of(key: &EntryKey, entry: &HistoryEntry, evidence: Option<&'a RawValue>) {
        /// ID of the entry.
        #[serde(rename = "_id")]
        id: ObjectId = key.id,
        /// When the entry was recorded.
        at: Timestamp = Timestamp(key.at_ns),
        /// Whether the entry is a verdict or a trigger.
        #[schema(value_type = HistoryKindDoc)]
        kind: HistoryKind = entry.kind,
        /// Outcome of the verdict.
        outcome: Outcome = entry.outcome,
        /// State of the rule before the verdict.
        previous_state: RuleState = entry.previous_state,
        /// State of the rule after the verdict.
        state: RuleState = entry.state,
        /// Evidence as the evaluator sent it; null when it sent none.
        #[schema(value_type = Option<Object>)]
        evidence: Option<&'a RawValue> = evidence,
        /// ID of the API key or user that sent the verdict.
        key_id: ObjectId = entry.key_id,
        /// ID of the silence that kept the trigger from being delivered, or null; absent for verdicts.
        #[serde(skip_serializing_if = "Option::is_none")]
        silence_id: Option<Option<ObjectId>> =
            (entry.kind == HistoryKind::Trigger).then_some(entry.silence_id),
    }
}

view! {
    /// A page of a rule's history.
    pub struct HistoryAnswer<'a> of(history: Vec<HistoryEntryView<'a>>, pagination: Pagination) {
        /// Entries, newest first.
        history: Vec<HistoryEntryView<'a>> = history,
        /// Position of this page in the list.
        pagination: Pagination = pagination,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/alerts/{id}/history", "listRuleHistory", list)]
}

async fn list(call: Call<Reader, (ObjectId, PageRequest)>) -> Reply<HistoryAnswer<'static>> {
    let (id, page_request) = call.params;
    let page = call.service.rule_history(&call.caller, id, page_request)?;
    let views = page.entries.iter().map(|(key, entry)| {
        let evidence = entry.evidence.as_deref().map(serde_json::from_str).transpose();
        let evidence = evidence.map_err(ServiceError::internal)?;
        Ok(HistoryEntryView::of(key, entry, evidence))
    });
    let history = views.collect::<Result<_, ServiceError>>()?;
    let pagination = Pagination::of(page_request, &page);
    Answer::of(&HistoryAnswer::of(history, pagination))
}
