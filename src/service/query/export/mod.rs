//! `POST /api/data/export`: all rows of a query in a table, written in pieces as the client takes them.
//!
//! An export holds a snapshot of the sources that it reads, for as long as the client takes. Points are read in pages of
//! bounded size, as in any scan, and groups in windows of steps, so memory does not grow with the answer. An export has no
//! deadline, but its turns on the pool are short: between two pieces, other queries have theirs.

mod groups;
mod points;
mod shape;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::plan::{self, FoundSeries, Plan};
use super::{Answer, AnswerBytes, Piece, PieceSource, QueryInput, QueryResult, Service};
use crate::bucket::{DamagedBlocks, IndexedView};
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::query_pool::{QueryPool, Stop};
use crate::service::Caller;
use crate::service::concurrency::Place;
use groups::GroupsProgress;
use points::PointsProgress;
pub use shape::{ColumnType, ExportField, ExportShape, GroupShape};

/// Memory that an export holds while its client takes a piece, at most: a page of rows, what a writer keeps, and pieces.
/// Points that no file has yet are shared with the store and not counted.
pub const EXPORT_BYTES: u64 = 12 << 20;

/// How long the next piece waits while the server is busy or the points cannot be reached, and how often it tries again.
const PIECE_PATIENCE: Duration = Duration::from_secs(300);
const PIECE_RETRY_PERIOD: Duration = Duration::from_millis(200);

/// Writes the table of an export. What it returns is a piece of the file; it may keep some rows for the next one.
pub trait WriteExport: Send {
    /// Writes what stands before the first row.
    ///
    /// # Errors
    /// 400 if the query exceeds its memory limit; 500.
    fn begin(&mut self, answer: &mut Answer<'_>) -> Result<(), ServiceError>;

    /// Writes rows until the answer is full. Returns the number of rows written, which is at least one if there are any.
    ///
    /// # Errors
    /// As [`WriteExport::begin`].
    fn write(&mut self, rows: &QueryResult<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError>;

    /// Writes what stands behind the last row.
    ///
    /// # Errors
    /// As [`WriteExport::begin`].
    fn end(&mut self, answer: &mut Answer<'_>) -> Result<(), ServiceError>;
}

/// Makes the writer of a table of this shape.
pub type NewWriter = Box<dyn FnOnce(ExportShape) -> Result<Box<dyn WriteExport>, ServiceError> + Send>;

/// What an export is called.
#[derive(Clone, Debug)]
pub struct ExportName {
    /// Name of the bucket.
    pub bucket: String,
    /// Start of the range, UTC nanoseconds: as requested, or as far back as the bucket keeps points.
    pub start_ns: i64,
}

/// The rest of an export, which has not been read yet.
#[derive(Clone)]
pub struct Export(Arc<Shared>);

struct Shared {
    queries: QueryPool,
    damaged: DamagedBlocks,
    plan: Plan,
    /// The snapshot.
    found: FoundSeries,
    /// For what stood there before; no other rows need it, and while it exists, writers copy pages of the store.
    indexed: Option<IndexedView>,
    state: Mutex<State>,
    /// Held until the export has ended, even if its client is gone.
    _place: Place,
}

struct State {
    writer: Box<dyn WriteExport>,
    is_begun: bool,
    /// Whether a piece is being written, or its writing has panicked.
    is_writing: bool,
    progress: Progress,
}

enum Progress {
    Points(PointsProgress),
    Groups(GroupsProgress),
}

/// A planned export that has not read anything.
struct Planned {
    export: Export,
    name: ExportName,
}

impl Service {
    /// Exports the rows of a query. `writer` makes the writer of the table, and `finish` processes a piece while still on
    /// the query pool (compression); its flag says whether more pieces follow. `admit` says whether there is room for an
    /// answer of [`EXPORT_BYTES`].
    ///
    /// # Errors
    /// 404, 403; 400 for faults that depend on the sources and for queries that exceed the memory limit; 503.
    pub async fn export<R: Send + 'static>(
        &self,
        caller: &Caller,
        input: QueryInput,
        admit: impl FnOnce() -> Result<(), ServiceError>,
        writer: NewWriter,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<(ExportName, Piece<R, Export>), ServiceError> {
        let (bucket, sources) = self
            .catalog
            .read(|catalog| plan::select(catalog, caller, &input))?;
        let place = self.exports.enter(caller.organization_id)?;
        admit()?;
        let (queries, buckets, now_ns) = (
            self.resources.queries.clone(),
            self.buckets.clone(),
            self.now_ns(),
        );
        let answer = move |stop: &Stop| {
            let indexed = buckets.indexed_view(&bucket)?;
            let plan = Plan::of(bucket, sources, input, now_ns, &indexed)?;
            let context = (queries, buckets.damaged().clone(), place);
            let Planned { name, export } = Planned::of(plan, indexed, writer, context, stop)?;
            let piece = export.piece(stop, &finish)?;
            Ok((name, piece))
        };
        let queries = &self.resources.queries;
        let begun = queries.run_to_the_end(caller.organization_id, answer).await;
        begun.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl Planned {
    fn of(
        plan: Plan,
        indexed: IndexedView,
        writer: NewWriter,
        (queries, damaged, place): (QueryPool, DamagedBlocks, Place),
        stop: &Stop,
    ) -> Result<Self, ServiceError> {
        let mut reached = plan.reach(&indexed, plan.range_ns, stop.budget(), &|_| stop.now())?;
        let grouping = plan.grouping(&reached, stop)?;
        if let Some(grouping) = &grouping {
            plan.keep_top(&mut reached, stop)?;
            plan.keep_occurring(&mut reached, grouping, stop)?;
        }
        let shape = ExportShape::of(&plan, grouping.as_ref(), stop)?;
        let name = ExportName {
            bucket: plan.bucket.name.to_string(),
            start_ns: plan.input.start_ns.unwrap_or(plan.range_ns.0),
        };
        let shared = Shared {
            queries,
            damaged,
            found: reached.into_found(),
            indexed: plan.input.compare.map(|_| indexed),
            state: Mutex::new(State {
                writer: writer(shape)?,
                is_begun: false,
                is_writing: false,
                progress: match grouping {
                    Some(grouping) => Progress::Groups(GroupsProgress::new(grouping)),
                    None => Progress::Points(PointsProgress::new()),
                },
            }),
            plan,
            _place: place,
        };
        let export = Export(Arc::new(shared));
        Ok(Planned { export, name })
    }
}

impl Export {
    fn piece<R>(
        &self,
        stop: &Stop,
        finish: &impl Fn(AnswerBytes, bool) -> Result<R, ServiceError>,
    ) -> Result<Piece<R, Export>, ServiceError> {
        let mut state = self.0.state.lock();
        if std::mem::replace(&mut state.is_writing, true) {
            // The file cannot go on: nobody knows which rows were written.
            return Err(ServiceError::internal("an earlier piece of the export panicked"));
        }
        let mut answer = Answer::new(stop.budget());
        let written = self.0.write_piece(&mut state, &mut answer, stop);
        state.is_writing = false;
        let is_over = written?;
        let (bytes, _held) = answer.finish()?;
        Ok(Piece {
            content: finish(bytes, !is_over)?,
            rest: (!is_over).then(|| self.clone()),
        })
    }
}

impl Shared {
    /// Writes the next piece. Returns whether it is the last one.
    fn write_piece(
        &self,
        state: &mut State,
        answer: &mut Answer<'_>,
        stop: &Stop,
    ) -> Result<bool, ServiceError> {
        let writer = &mut *state.writer;
        if !std::mem::replace(&mut state.is_begun, true) {
            writer.begin(answer)?;
        }
        let is_over = match &mut state.progress {
            Progress::Points(progress) => self.write_points(progress, writer, answer, stop)?,
            Progress::Groups(progress) => self.write_groups(progress, writer, answer, stop)?,
        };
        if is_over {
            writer.end(answer)?;
        }
        Ok(is_over)
    }
}

impl PieceSource for Export {
    /// Produces the next piece.
    ///
    /// # Errors
    /// 503 if the pool stays full for too long or the points cannot be reached, and all errors of a query.
    async fn next<R: Send + 'static>(
        self,
        finish: impl Fn(AnswerBytes, bool) -> Result<R, ServiceError> + Clone + Send + 'static,
    ) -> Result<Piece<R, Self>, ServiceError> {
        let until = Instant::now() + PIECE_PATIENCE;
        let organization: ObjectId = self.0.plan.bucket.organization_id;
        loop {
            let (this, finish) = (self.clone(), finish.clone());
            let answer = move |stop: &Stop| this.piece(stop, &finish);
            match self.0.queries.run_to_the_end(organization, answer).await {
                // Nothing that was written is lost: a turn that fails like this has written nothing.
                Err(error) if error.kind == ErrorKind::Unavailable && Instant::now() < until => {
                    tokio::time::sleep(PIECE_RETRY_PERIOD).await;
                }
                answered => return answered.map_err(|error| self.0.damaged.explain(error)),
            }
        }
    }
}
