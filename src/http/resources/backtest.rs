//! `/api/alerts/{id}/backtest` and `/api/alerts/backtest`: when a rule would have been due, and what its dwell and
//! interval would have made of the outcomes.

use super::alert_views::EvaluationView;
use super::alerts::{RuleBody, read_rule};
use super::backtest_body::{CyclesBody, Draft, TimelineBody};
use super::evaluations::{DueInputView, due_inputs};
use super::views::view;
use crate::catalog::{Outcome, RuleState};
use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Call, Endpoint, Pagination, Querier, Reply, Unread, post};
use crate::ids::ObjectId;
use crate::service::backtest::{Cycle, TestedRule, TimelineEntry};
use crate::service::page::{Page, PageRequest};
use crate::service::{Caller, Service};
use crate::timestamp::Timestamp;

view! {
    /// An instant at which the rule would have been due.
    #[schema(as = Cycle)]
    pub struct CycleView<'a> of(rule: &'a TestedRule, cycle: &Cycle) {
        /// The instant.
        at: Timestamp = Timestamp(cycle.at_ns),
        /// Series to read; the windows end at the instant.
        inputs: Vec<DueInputView<'a>> = due_inputs(rule.bucket_id, &rule.evaluation, &cycle.queries),
    }
}

view! {
    /// A page of the instants at which the rule would have been due.
    pub struct CyclesAnswer<'a> of(rule: &'a TestedRule, request: PageRequest, page: &Page<Cycle>) {
        /// What an evaluator has to know of the rule.
        rule: TestedRuleView<'a> = TestedRuleView::of(rule),
        /// Oldest first.
        cycles: Vec<CycleView<'a>> = page.entries.iter().map(|cycle| CycleView::of(rule, cycle)).collect(),
        /// Position of this page in the range.
        pagination: Pagination = Pagination::of(request, page),
    }
}

view! {
    /// A rule that is tested.
    #[schema(as = TestedRule)]
    pub struct TestedRuleView<'a> of(rule: &'a TestedRule) {
        /// Name of the rule.
        name: &'a str = &rule.name,
        /// The condition as text.
        condition: &'a str = &rule.text,
        /// How the rule is evaluated.
        evaluation: EvaluationView<'a> = EvaluationView::of(&rule.evaluation),
    }
}

view! {
    /// The timeline of a backtest.
    pub struct TimelineAnswer of(entries: &[TimelineEntry]) {
        /// One entry for each verdict, and one where a dwell ends; ordered by time.
        timeline: Vec<TimelineEntryView> = entries.iter().map(TimelineEntryView::of).collect(),
    }
}

view! {
    /// A verdict, or the end of a dwell.
    #[schema(as = TimelineEntry)]
    pub struct TimelineEntryView of(entry: &TimelineEntry) {
        /// When.
        at: Timestamp = Timestamp(entry.at_ns),
        /// Outcome of the verdict; null for the end of a dwell.
        outcome: Option<Outcome> = entry.outcome,
        /// State of the rule before.
        previous_state: RuleState = entry.previous_state,
        /// State of the rule after.
        state: RuleState = entry.state,
        /// Whether the rule would have fired.
        triggered: bool = entry.triggered,
        /// False for a verdict within an interval of the last accepted one, which changes nothing.
        accepted: bool = entry.accepted,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        post("/api/alerts/{id}/backtest", "listCycles", cycles).only_reads(),
        post("/api/alerts/{id}/backtest/verdicts", "testVerdicts", verdicts).only_reads(),
        post("/api/alerts/backtest", "listCyclesOfDraft", cycles_of_draft).only_reads(),
        post(
            "/api/alerts/backtest/verdicts",
            "testVerdictsOfDraft",
            verdicts_of_draft,
        )
        .only_reads(),
    ]
}

async fn cycles(call: Call<Querier, ObjectId, CyclesBody>) -> Reply<CyclesAnswer<'static>> {
    let rule = call.service.tested_rule(&call.caller, call.params)?;
    cycles_of(&rule, &call.body)
}

async fn verdicts(call: Call<Querier, ObjectId, TimelineBody>) -> Reply<TimelineAnswer> {
    let rule = call.service.tested_rule(&call.caller, call.params)?;
    timeline_of(&rule, call.body)
}

async fn cycles_of_draft(call: Call<Querier, (), Unread<Draft<CyclesBody>>>) -> Reply<CyclesAnswer<'static>> {
    let draft = read_rule(&call.body, &call.service, &call.caller)?;
    let rule = tested(draft.rule, &call.service, &call.caller).await?;
    cycles_of(&rule, &draft.backtest)
}

async fn verdicts_of_draft(call: Call<Querier, (), Unread<Draft<TimelineBody>>>) -> Reply<TimelineAnswer> {
    let draft = read_rule(&call.body, &call.service, &call.caller)?;
    let rule = tested(draft.rule, &call.service, &call.caller).await?;
    timeline_of(&rule, draft.backtest)
}

async fn tested(rule: RuleBody, service: &Service, caller: &Caller) -> Result<TestedRule, ServiceError> {
    let (bucket_id, source_id) = (rule.bucket_id, rule.data_source_id);
    let settings = rule.into_settings()?;
    service
        .tested_draft(caller, bucket_id, source_id, &settings)
        .await
}

fn cycles_of(rule: &TestedRule, body: &CyclesBody) -> Reply<CyclesAnswer<'static>> {
    let request = body.page();
    let page = rule.cycles(body.start_time.0, body.end_time.0, request);
    Answer::of(&CyclesAnswer::of(rule, request, &page))
}

fn timeline_of(rule: &TestedRule, body: TimelineBody) -> Reply<TimelineAnswer> {
    let verdicts = body.verdicts.0.into_iter().map(Into::into).collect();
    Answer::of(&TimelineAnswer::of(&rule.timeline(verdicts)))
}
