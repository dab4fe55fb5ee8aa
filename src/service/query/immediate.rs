//! The immediate turn of a query, on the thread of its request: answers small queries, and leaves all others, faults
//! included, to the query pool. It must neither take long nor wait: not for the bucket's actor, and not for another machine.

use std::sync::Arc;

use engine::SeriesSnapshot;

use super::dimensions::looks_at_few;
use super::plan::{self, FoundSeries, Plan, QuerySources, SERIES_BETWEEN_STOPS};
use super::{AnswerBytes, Piece, QueryInput, Rest, Selected, WriteResult};
use crate::bucket::Buckets;
use crate::error::ServiceError;
use crate::query_pool::{QueryPool, Step, Stop, Turn};

/// Number of series at which an immediate turn gives up.
pub(super) const IMMEDIATE_SERIES_MAX: usize = 256;
const _: () = assert!(IMMEDIATE_SERIES_MAX.is_multiple_of(SERIES_BETWEEN_STOPS));
/// Maximum number of blocks in the range.
const BLOCKS_MAX: usize = 1_024;
/// Maximum number of pages of sources, whose schemas may have to be collected.
const PAGES_MAX: usize = 16;

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
        if needs_more(sources, input) || plan::is_long(sources, input, Turn::Immediate) {
            return None;
        }
        let indexed = self.buckets.try_indexed_view(bucket)?;
        if !looks_at_few(sources, input, &indexed) {
            return None;
        }
        let (plan, faults) =
            Plan::with_faults(Arc::clone(bucket), sources.clone(), input.clone(), self.now_ns);
        if !faults.is_empty() {
            return None;
        }
        let whole = Rest::whole(self, Arc::new(plan), indexed);
        match whole.piece(stop, Turn::Immediate, finish) {
            Ok(Step::Answer(piece)) => Some(piece),
            Ok(Step::Long) | Err(_) => None,
        }
    }
}

/// Whether a query needs what is not estimated: `fill` makes rows of steps without points, a comparison reads other series
/// than those that are found, and a bucket may have many sources.
fn needs_more(sources: &QuerySources, input: &QueryInput) -> bool {
    let has_many = matches!(sources, QuerySources::All(pages) if pages.page_count() > PAGES_MAX);
    has_many || input.fill.is_some() || input.compare.is_some()
}

impl Plan {
    /// Whether the query may be answered from these series in an immediate turn: they have few blocks, all of which are on
    /// this machine, and none of which has to be encoded again without expired rows. If the query names dimensions, a live
    /// point has to show that they exist.
    pub(super) fn is_immediate(&self, reached: &FoundSeries) -> bool {
        let mut series = reached.series.iter().map(|it| &it.series);
        let is_live =
            |it: &SeriesSnapshot| it.bounds_ns().is_some_and(|(_, newest)| newest >= self.cutoff_ns);
        series.clone().all(|it| it.is_here() && it.none_expired())
            && series
                .clone()
                .map(|it| it.blocks_within(self.range_ns))
                .sum::<usize>()
                <= BLOCKS_MAX
            && (self.input.dimensions.is_empty() || series.any(is_live))
    }
}
