//! `/api/shared`: a board and what its panels show, for the holder of a link.

use super::board_views::BoardView;
use super::boards::tagged;
use super::panel_query::{bucket_of_rules, query_of};
use super::query::respond_to_query;
use super::query_body::start_is_before_end;
use super::views::{Many, One, Resource, view};
use crate::catalog::{BoardRange, Outcome, Panel, PanelKind, Rule, RuleState, RuleStatus};
use crate::clock::SECOND_NS;
use crate::error::{Detail, ServiceError};
use crate::http::docs::rows::PanelAnswerDoc;
use crate::http::endpoint::{
    Answer, Call, Endpoint, HandlerAnswer, Link, LinkToken, Optional, PanelIndex, Reply, Written, get, post,
};
use crate::http::shape::{Moment, Rule as BodyRule, RuleStateDoc, body};
use crate::ids::ObjectId;
use crate::limits::LIST_LIMIT_MAX;
use crate::service::evaluations::{overdue_since_ns, standing_of};
use crate::service::page::PageRequest;
use crate::service::query::length_seconds;
use crate::timestamp::Timestamp;
use actix_web::http::StatusCode;

view! {
    /// An alert rule as a shared board shows it: where it stands, without what is done when it fires.
    pub struct SharedRuleView<'a> of(
        rule: &'a Rule, now_ns: i64;
        settings = &rule.settings, runtime = &rule.runtime, standing = standing_of(rule, now_ns)
    ) {
        /// ID of the rule.
        #[serde(rename = "_id")]
        id: ObjectId = rule.id,
        /// ID of the data source that the rule watches.
        data_source_id: ObjectId = rule.source_id,
        /// Name of the rule.
        name: &'a str = &settings.name,
        /// The condition as text.
        condition: &'a str = &settings.text,
        /// `active`, `paused` or `inactive`.
        status: RuleStatus = settings.status,
        /// `armed`, `firing`, `clearing`; `unevaluated` for a rule without an evaluation block.
        #[schema(value_type = RuleStateDoc)]
        state: &'static str = standing.map_or("unevaluated", |standing| RuleState::name(standing.state)),
        /// Outcome of the last verdict: `met`, `not_met` or `inconclusive`.
        last_outcome: Option<Outcome> = runtime.last_outcome,
        /// When the last verdict was recorded.
        last_evaluated_at: Option<Timestamp> = runtime.last_evaluated_at_ns.map(Timestamp),
        /// Whether no evaluator has judged the rule for two intervals, at least five minutes, since it became due.
        overdue: bool = overdue_since_ns(rule, now_ns).is_some(),
        /// When the rule last fired.
        last_triggered_at: Option<Timestamp> = runtime.last_triggered_at_ns.map(Timestamp),
    }
}

impl Resource for SharedRuleView<'_> {
    const ONE: &'static str = "alertRule";
    const MANY: &'static str = "alertRules";
}

body! {
    /// Body of a request for what a panel of a shared board shows; may be absent.
    pub struct SharedPanelBody {
        /// Start of the range, in place of that of the board's range.
        start_time: Option<Moment>,
        /// End of the range, in place of that of the board's range.
        end_time: Option<Moment>,
    }
    rules [BodyRule::Values(start_is_before_end)]
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/shared/{token}", "showSharedBoard", show),
        post(
            "/api/shared/{token}/panels/{index}",
            "showSharedPanel",
            show_panel,
        )
        .only_reads(),
    ]
}

async fn show(call: Call<Link, LinkToken>) -> Reply<One<BoardView<'static>>> {
    let board = &call.caller.board;
    tagged(board, Answer::one(BoardView::of(board)))
}

async fn show_panel(
    call: Call<Link, (LinkToken, PanelIndex), Optional<SharedPanelBody>>,
) -> Result<Written<PanelAnswerDoc>, ServiceError> {
    let settings = &call.caller.board.settings;
    let (_, PanelIndex(index)) = call.params;
    let panel = settings
        .panels
        .get(index)
        .ok_or_else(|| ServiceError::not_found("panel"))?;
    if panel.kind == PanelKind::Rules {
        let rules = rules_of(&call, panel)?;
        return Ok(rules.respond(&call.request, StatusCode::OK).await?.into());
    }
    let range_ns = range_of(&settings.range, call.body.0.as_ref(), call.service.now_ns())?;
    let input = query_of(&panel.query, settings, range_ns)?;
    let caller = &call.caller.caller;
    let answer = respond_to_query(&call.service, caller, &call.request, input).await?;
    Ok(answer.into())
}

type PanelCall = Call<Link, (LinkToken, PanelIndex), Optional<SharedPanelBody>>;

fn rules_of(call: &PanelCall, panel: &Panel) -> Reply<Many<SharedRuleView<'static>>> {
    let bucket_id = bucket_of_rules(&panel.query, &call.caller.board.settings)?;
    let all = PageRequest {
        limit: LIST_LIMIT_MAX,
        offset: 0,
    };
    let page = call.service.list_rules(&call.caller.caller, bucket_id, all)?;
    let now_ns = call.service.now_ns();
    Answer::page(all, &page, |rule| SharedRuleView::of(rule, now_ns))
}

/// The range that a reader asks for; what is not said is that of the board.
fn range_of(
    range: &BoardRange,
    asked: Option<&SharedPanelBody>,
    now_ns: i64,
) -> Result<(i64, i64), ServiceError> {
    let (start_ns, end_ns) = match *range {
        BoardRange::Between { start_ns, end_ns } => (start_ns, end_ns),
        BoardRange::Last(ref length) => {
            // Lengths are at most 52 weeks.
            let seconds = length_seconds(length).unwrap_or_default() as i64;
            (now_ns.saturating_sub(seconds * SECOND_NS), now_ns)
        }
    };
    let start = asked.and_then(|body| body.start_time);
    let end = asked.and_then(|body| body.end_time);
    let range_ns = (start.map_or(start_ns, |it| it.0), end.map_or(end_ns, |it| it.0));
    if range_ns.0 < range_ns.1 {
        return Ok(range_ns);
    }
    let (member, message) = match start {
        Some(_) => (
            "startTime",
            "must be before endTime, which is that of the board's range",
        ),
        None => (
            "endTime",
            "must be after startTime, which is that of the board's range",
        ),
    };
    Err(ServiceError::faults(vec![Detail::at(&[member], message)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600 * SECOND_NS;

    fn asked(start_ns: Option<i64>, end_ns: Option<i64>) -> SharedPanelBody {
        SharedPanelBody {
            start_time: start_ns.map(Moment),
            end_time: end_ns.map(Moment),
        }
    }

    #[test]
    fn a_reader_replaces_either_bound_of_the_boards_range() {
        let last = BoardRange::Last("2h".into());
        let between = BoardRange::Between {
            start_ns: 5,
            end_ns: 9,
        };
        let now_ns = 10 * HOUR_NS;
        let range = |range, body: SharedPanelBody| range_of(range, Some(&body), now_ns);
        assert_eq!(range_of(&last, None, now_ns).unwrap(), (8 * HOUR_NS, now_ns));
        assert_eq!(range_of(&between, None, now_ns).unwrap(), (5, 9));
        assert_eq!(range(&between, asked(Some(7), None)).unwrap(), (7, 9));
        assert_eq!(range(&between, asked(None, Some(7))).unwrap(), (5, 7));
        for (body, member) in [
            (asked(Some(9), None), "startTime"),
            (asked(None, Some(5)), "endTime"),
        ] {
            let refused = range(&between, body).unwrap_err();
            assert_eq!(refused.details[0].path, [member]);
        }
    }
}
