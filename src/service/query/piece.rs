//! The pieces of an answer. Each is produced in a turn of the query; all come from the same snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::query::{Budget, Estimate, Held};

use super::choice::Grouping;
use super::immediate::{Context, IMMEDIATE_SERIES_MAX};
use super::plan::{Plan, Reached};
use super::raw::Progress;
use super::{SHORT_VALUES_MAX, WriteResult};
use crate::bucket::{DamagedBlocks, IndexedView};
use crate::catalog::Source;
use crate::error::{ErrorKind, ServiceError};
use crate::query_pool::{QueryPool, Step, Stop, Turn};

/// Longer answers are compressed in a long turn.
const SHORT_ANSWER_BYTES_MAX: u64 = 1 << 20;
/// How long the next piece of a started answer waits for a place in the pool, and how often it retries.
const PIECE_PATIENCE: Duration = Duration::from_secs(20);
const PIECE_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// An answer, or a piece of one.
pub type AnswerBytes = Vec<u8>;

/// A piece as it was written, where the next one begins, and the memory that it holds.
pub(super) type Written<'b> = (AnswerBytes, Option<Progress>, Held<'b>);

/// A piece of an answer.
pub struct Piece<R, S = Rest> {
    /// The bytes, as the caller has processed them.
    pub content: R,
    /// Produces the following pieces; `None` if this is the last.
    pub rest: Option<S>,
}

/// Produces the pieces of an answer one after the other, all from the same snapshot.
pub trait PieceSource: Sized + 'static {
    /// Produces the next piece. `finish` processes it while still on the query pool; its flag says whether more follow.
    fn next<R: Send + 'static>(
        self,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Clone + Send + 'static,
    ) -> impl Future<Output = Result<Piece<R, Self>, ServiceError>>;
}

/// The rest of an answer, which has not been read yet. All pieces come from the same snapshot.
#[derive(Clone)]
pub struct Rest {
    queries: QueryPool,
    damaged: DamagedBlocks,
    plan: Arc<Plan>,
    indexed: IndexedView,
    progress: Progress,
    write: WriteResult,
}

impl PieceSource for Rest {
    /// Produces the next piece.
    ///
    /// # Errors
    /// 503 if the pool stays full for too long, and all errors of a query.
    async fn next<R: Send + 'static>(
        self,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Clone + Send + 'static,
    ) -> Result<Piece<R>, ServiceError> {
        let until = Instant::now() + PIECE_PATIENCE;
        let rest = Arc::new(self);
        loop {
            let (this, finish) = (Arc::clone(&rest), finish.clone());
            let answer = move |stop: &Stop, turn: Turn| this.piece(stop, turn, &finish);
            let organization = rest.plan.bucket.organization_id;
            match rest.queries.run(organization, answer).await {
                // The pool is busy. Retry, because the client has the first piece already, and an error would truncate
                // the answer.
                Err(error) if error.kind == ErrorKind::Unavailable && Instant::now() < until => {
                    tokio::time::sleep(PIECE_RETRY_PERIOD).await;
                }
                answered => return answered.map_err(|error| rest.damaged.explain(error)),
            }
        }
    }
}

impl Rest {
    /// All of an answer.
    pub(super) fn whole(context: &Context, plan: Arc<Plan>, indexed: IndexedView) -> Self {
        Rest {
            queries: context.queries.clone(),
            damaged: context.buckets.damaged().clone(),
            plan,
            indexed,
            progress: Progress::new(),
            write: context.write,
        }
    }

    /// Produces the piece that begins here.
    pub(super) fn piece<R>(
        &self,
        stop: &Stop,
        turn: Turn,
        finish: &impl Fn(AnswerBytes, bool) -> Result<R, ServiceError>,
    ) -> Result<Step<Piece<R>>, ServiceError> {
        let (plan, is_bounded) = (&*self.plan, turn != Turn::Long);
        // The memory of the named sources, whether they are read or not.
        let mut held = stop.budget().hold();
        held.grow(plan.sources.named_len() * size_of::<Arc<Source>>())?;
        if turn == Turn::Short && plan.selects_many(&self.indexed.view) {
            return Ok(Step::Long);
        }
        let is_immediate = turn == Turn::Immediate;
        let stops = |visited: usize| (is_immediate && visited >= IMMEDIATE_SERIES_MAX) || stop.now();
        let mut reached = plan.find(&self.indexed, plan.range_ns, stop.budget(), &stops)?;
        if is_immediate && !plan.is_immediate(&reached) {
            return Ok(Step::Long);
        }
        let is_long = |grouping: Option<&Grouping>, reached: &Reached<'_>| match is_bounded {
            true => plan.is_long(grouping, reached, &self.progress, stop.budget(), turn),
            false => Ok(false),
        };
        // To assign series to groups reads the values of dimensions, so a requested grouping is estimated before.
        let requested = plan.requested_grouping(&reached, stop)?;
        if requested.is_some() && is_long(requested.as_ref(), &reached)? {
            // The selection is repeated in the long turn, so that no memory of the store is held while waiting.
            return Ok(Step::Long);
        }
        plan.group(&mut reached, &self.indexed)?;
        let grouping = match requested {
            Some(requested) => Some(requested),
            // Groups are always a single piece.
            None if !self.progress.is_at_beginning() => None,
            None if plan.counts_many(&reached, turn) => return Ok(Step::Long),
            None => plan.grouping(&reached, stop)?,
        };
        if plan.input.grouping.is_none() && is_long(grouping.as_ref(), &reached)? {
            return Ok(Step::Long);
        }
        let (bytes, progress, _answer_held) = match &grouping {
            Some(grouping) => {
                plan.keep_top(&mut reached, stop)?;
                plan.keep_occurring(&mut reached, grouping, stop)?;
                plan.grouped(&self.indexed, &reached, grouping, self.write, stop)?
            }
            None => plan.raw(&reached, self.progress, self.write, stop)?,
        };
        drop(reached);
        if (turn == Turn::Short && stop.turn_is_over())
            || bytes.len() as u64 > turn.max(SHORT_ANSWER_BYTES_MAX)
        {
            // Compressing it would take as long again.
            return Ok(Step::Long);
        }
        let content = finish(bytes, progress.is_some())?;
        let rest = progress.map(|progress| Rest {
            progress,
            ..self.clone()
        });
        Ok(Step::Answer(Piece { content, rest }))
    }
}

impl Plan {
    /// Whether the cost exceeds a turn, estimated without reading blocks.
    fn is_long(
        &self,
        grouping: Option<&Grouping>,
        reached: &Reached<'_>,
        progress: &Progress,
        budget: &Budget,
        turn: Turn,
    ) -> Result<bool, ServiceError> {
        let mut estimate = Estimate::new(turn.max(SHORT_VALUES_MAX));
        estimate.add((self.sources.named_len() + reached.series.len()) as u64);
        match grouping {
            Some(grouping) => self.estimate_grouped(grouping, reached, &mut estimate, budget)?,
            None => self.estimate_raw(reached, progress, &mut estimate)?,
        }
        if turn == Turn::Immediate {
            estimate.add(estimate.page_values());
        }
        Ok(estimate.is_over())
    }
}
