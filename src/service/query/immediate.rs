//! The immediate turn of a query, on the thread of its request: answers small queries, and leaves all others, faults
//! included, to the query pool. It must neither take long nor wait: not for the bucket's actor, and not for another machine.

use std::sync::Arc;

use super::dimensions::looks_at_few;
use super::plan::{self, FoundSeries, Plan};
use super::{AnswerBytes, Piece, QueryInput, Rest, Selected, WriteResult};
use crate::bucket::Buckets;
use crate::error::ServiceError;
use crate::query_pool::{QueryPool, Step, Stop, Turn};

/// Number of series that an immediate turn may find.
pub(super) const IMMEDIATE_SERIES_MAX: usize = 256;

/// What turns need besides the query.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) queries: QueryPool,
    pub(super) buckets: Buckets,
    pub(super) now_ns: i64,
    pub(super) write: WriteResult,
}

impl Context {
    /// The answer, if an immediate turn suffices for it.
    pub(super) fn immediately<R>(
        &self,
        selected: &Selected,
        stop: &Stop,
        finish: &impl Fn(AnswerBytes, bool) -> Result<R, ServiceError>,
    ) -> Option<Piece<R>> {
        let Selected {
            bucket,
            sources,
            input,
        } = selected;
        if needs_more(input) || plan::is_long(sources, input, Turn::Immediate) {
            return None;
        }
        let indexed = self.buckets.try_indexed_view(bucket)?;
        if !looks_at_few(sources, input, &indexed) {
            return None;
        }
        let plan = Plan::without_dimensions(Arc::clone(bucket), sources.clone(), input.clone(), self.now_ns);
        let whole = Rest::whole(self, Arc::new(plan.ok()?), indexed);
        match whole.piece(stop, Turn::Immediate, finish) {
            Ok(Step::Answer(piece)) => Some(piece),
            Ok(Step::Long) | Err(_) => None,
        }
    }
}

/// Whether the work or the waiting for a query cannot be estimated: `fill` makes rows of steps without points, and a
/// comparison reads other series than those that are found.
fn needs_more(input: &QueryInput) -> bool {
    input.fill.is_some() || input.compare.is_some()
}

impl Plan {
    /// Whether the query may be answered from these series in an immediate turn. If it names dimensions, a live point has
    /// to show that they exist.
    pub(super) fn is_immediate(&self, reached: &FoundSeries) -> bool {
        let mut series = reached.series.iter().map(|it| &it.series);
        let names_dimensions = !self.input.dimensions.is_empty();
        series.clone().all(|it| it.is_here())
            && (!names_dimensions || series.any(|it| it.newest_is_live(self.cutoff_ns)))
    }
}
