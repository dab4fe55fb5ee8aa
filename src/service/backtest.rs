//! Backtests: what a rule, stored or not, would have done in a time range. They change nothing.

use super::evaluations::DueQuery;
use super::page::{Page, PageRequest};
use super::{Caller, Service};
use crate::alerts::backtest::{Cycles, timeline};
pub use crate::alerts::backtest::{TestedVerdict, TimelineEntry};
use crate::catalog::{Evaluation, RuleSettings};
use crate::error::ServiceError;
use crate::ids::ObjectId;

/// What a backtest takes from a rule.
pub struct TestedRule {
    pub name: Box<str>,
    /// The condition in words.
    pub text: Box<str>,
    pub bucket_id: ObjectId,
    /// The source that the rule watches.
    pub source_id: ObjectId,
    pub evaluation: Evaluation,
}

/// An instant at which the rule would have been due.
pub struct Cycle {
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// One query for each input, in the order of the inputs. Their windows end at that instant.
    pub queries: Vec<DueQuery>,
}

impl Service {
    /// Finds a stored rule to test. Its status and its past play no part.
    ///
    /// # Errors
    /// 404, 403; 400 for a plain rule.
    pub fn tested_rule(&self, caller: &Caller, rule_id: ObjectId) -> Result<TestedRule, ServiceError> {
        let rule = self.rule(caller, rule_id)?;
        TestedRule::of(rule.bucket_id, rule.source_id, &rule.settings)
    }

    /// Checks a rule that is not stored.
    ///
    /// # Errors
    /// As [`Service::check_rule`]; 400 for a plain rule.
    pub async fn tested_draft(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        settings: &RuleSettings,
    ) -> Result<TestedRule, ServiceError> {
        self.check_rule(caller, bucket_id, source_id, settings).await?;
        TestedRule::of(bucket_id, source_id, settings)
    }
}

impl TestedRule {
    fn of(bucket_id: ObjectId, source_id: ObjectId, settings: &RuleSettings) -> Result<Self, ServiceError> {
        let Some(evaluation) = settings.evaluation.clone() else {
            let message = "the rule has no evaluation block, so it is never due: there is nothing to test";
            return Err(ServiceError::validation(message));
        };
        Ok(Self {
            name: settings.name.clone(),
            text: settings.text.clone(),
            bucket_id,
            source_id,
            evaluation,
        })
    }

    /// A page of the instants from `start_ns` up to and including `end_ns` at which the rule would have been due. The
    /// cost is that of the page.
    pub fn cycles(&self, start_ns: i64, end_ns: i64, request: PageRequest) -> Page<Cycle> {
        let cycles = Cycles::of(&self.evaluation, start_ns, end_ns);
        let page = cycles.page(request.offset, request.limit);
        Page {
            entries: page
                .map(|at_ns| Cycle {
                    at_ns,
                    queries: DueQuery::all_of(&self.evaluation, self.source_id, at_ns),
                })
                .collect(),
            total: cycles.count(),
        }
    }

    /// The states and triggers that these verdicts would have caused.
    pub fn timeline(&self, verdicts: Vec<TestedVerdict>) -> Vec<TimelineEntry> {
        timeline(&self.evaluation, verdicts)
    }
}
