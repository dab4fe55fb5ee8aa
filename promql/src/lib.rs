//! PromQL over samples that a caller selects: parsing, evaluation, Prometheus's JSON.
//!
//! The caller gives series by [`Storage`]; this crate does no I/O, reads no clock and starts no thread. Answers are those
//! of Prometheus 3; `DIFFERENCES.md` lists the exceptions. Native histograms do not exist here.
//!
//! Sources: the [documentation of PromQL](https://prometheus.io/docs/prometheus/latest/querying/basics/) and of the
//! [HTTP API](https://prometheus.io/docs/prometheus/latest/querying/api/).

mod error;
mod eval;
mod expr;
mod functions;
pub mod json;
mod labels;
mod matcher;
mod memory;
mod options;
pub mod params;
mod parse;
mod pattern;
mod storage;
mod value;

pub use error::{Error, ErrorKind};
pub use labels::{Label, Labels, METRIC_NAME};
pub use matcher::{MatchOp, Matcher};
pub use memory::MemoryStorage;
pub use options::{LOOKBACK_MS, Limits, Options, STEPS_MAX, SUBQUERY_STEP_MS, Semantics};
pub use parse::{NESTING_MAX, OPERATORS_MAX, QUERY_BYTES_MAX};
pub use pattern::{Newlines, PATTERN_BYTES_MAX};
pub use storage::{
    Answered, Hints, STALE_MARKER, STALE_MARKER_BITS, Samples, Storage, TimeRange, VisitSamples,
    VisitWindows, WindowFunction, Windows, is_stale_marker,
};
pub use value::{Point, Sample, Series, Value};

/// A question that can be asked of any storage, at any time.
#[derive(Clone, Debug)]
pub struct Query {
    expr: expr::Expr,
    options: Options,
}

impl Query {
    /// Reads a question. What is not PromQL, or of the wrong types, is `bad_data`.
    pub fn parse(text: &str, options: Options) -> Result<Query, Error> {
        let expr = parse::expression(text, options.semantics.newlines())?;
        Ok(Query { expr, options })
    }

    /// The answer at an instant, in milliseconds since 1970.
    pub fn instant(&self, storage: &dyn Storage, time_ms: i64, limits: Limits<'_>) -> Result<Value, Error> {
        eval::instant(&self.expr, storage, time_ms, &self.options, limits)
    }

    /// The answers from a start up to an end, in milliseconds since 1970, at distances of a step: a matrix.
    ///
    /// The caller has checked that there are at most [`STEPS_MAX`] steps.
    pub fn range(
        &self,
        storage: &dyn Storage,
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
        limits: Limits<'_>,
    ) -> Result<Value, Error> {
        eval::range(
            &self.expr,
            storage,
            (start_ms, end_ms, step_ms),
            &self.options,
            limits,
        )
    }
}
