//! The bodies of backtests: of a stored rule, and of one that is sent along.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::alerts::RuleBody;
use super::evaluation_body::EvaluationBody;
use super::query_body::start_is_before_end;
use crate::catalog::Outcome;
use crate::http::shape::{FromJson, Integer, List, Moment, Place, Rule, body};
use crate::limits::{BACKTEST_VERDICTS_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};
use crate::service::backtest::TestedVerdict;
use crate::service::page::PageRequest;

type Limit = Integer<1, LIST_LIMIT_MAX>;
type Offset = Integer<0, { i64::MAX as u64 }>;
type Verdicts = List<TestedVerdictBody, 1, BACKTEST_VERDICTS_MAX>;

body! {
    /// The range of a backtest, and the page of its cycles.
    pub struct CyclesBody {
        /// The first cycle, ISO 8601.
        start_time: Moment,
        /// End of the range, ISO 8601, inclusive.
        end_time: Moment,
        /// Most cycles; 100 when absent.
        limit: Option<Limit>,
        /// Cycles to pass over; 0 when absent.
        offset: Option<Offset>,
    }
    rules [Rule::Values(start_is_before_end)]
}

impl CyclesBody {
    pub fn page(&self) -> PageRequest {
        PageRequest {
            limit: self.limit.map_or(LIST_LIMIT_DEFAULT, |limit| limit.0),
            offset: self.offset.map_or(0, |offset| offset.0),
        }
    }
}

body! {
    /// The verdicts of a backtest.
    pub struct TimelineBody {
        /// 1 to 10,000 verdicts in any order. Of verdicts at one instant the first counts.
        verdicts: Verdicts,
    }
}

body! {
    /// What an evaluation at an instant found.
    #[schema(as = TestedVerdict)]
    pub struct TestedVerdictBody {
        /// The instant, ISO 8601.
        at: Moment,
        /// Outcome of the evaluation.
        outcome: Outcome,
    }
}

impl From<TestedVerdictBody> for TestedVerdict {
    fn from(verdict: TestedVerdictBody) -> Self {
        Self {
            at_ns: verdict.at.0,
            outcome: verdict.outcome,
        }
    }
}

/// The members of a rule's creation, with an evaluation block, and beside them those of a backtest.
#[derive(Debug)]
pub struct Draft<T> {
    pub rule: RuleBody,
    pub backtest: T,
}

impl<T: FromJson + ToSchema> FromJson for Draft<T> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let members = place.object(value)?;
        if members.given("evaluation").is_none() {
            let message = "is required: a rule without it is never due, so there is nothing to test";
            place.member("evaluation").fault(message);
        }
        let rule = RuleBody::read(value, place);
        let (rule, backtest) = rule.zip(T::read(value, place))?;
        Some(Self { rule, backtest })
    }

    fn rules(all: &mut Vec<(String, &'static [Rule])>) {
        let mut found = Vec::new();
        RuleBody::rules(&mut found);
        T::rules(&mut found);
        let parts = [RuleBody::name(), T::name()];
        for (name, rules) in found {
            let is_own = parts.contains(&Cow::Borrowed(&name));
            all.push((if is_own { Self::name().into_owned() } else { name }, rules));
        }
    }
}

impl<T: ToSchema> PartialSchema for Draft<T> {
    fn schema() -> RefOr<Schema> {
        let (RefOr::T(Schema::Object(mut whole)), RefOr::T(Schema::Object(more))) =
            (RuleBody::schema(), T::schema())
        else {
            return Ref::from_schema_name(RuleBody::name()).into();
        };
        whole.description =
            Some("A rule that is not stored, with an evaluation block, and its backtest.".to_owned());
        whole.properties.extend(more.properties);
        whole.required.extend(more.required);
        let block = Ref::from_schema_name(EvaluationBody::name());
        whole.properties.insert("evaluation".to_owned(), block.into());
        whole.required.push("evaluation".to_owned());
        RefOr::T(Schema::Object(whole))
    }
}

impl<T: ToSchema> ToSchema for Draft<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("Draft{}", T::name()))
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        RuleBody::schemas(all);
        T::schemas(all);
    }
}
