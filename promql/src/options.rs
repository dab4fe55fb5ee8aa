//! What an evaluation may be told beside its question.

use crate::pattern::Newlines;

/// How far an instant selector looks back unless told otherwise: Prometheus's five minutes.
pub const LOOKBACK_MS: i64 = 300_000;

/// The step of subqueries that name none: Prometheus's default interval of evaluation.
pub const SUBQUERY_STEP_MS: i64 = 60_000;

/// The most steps that Prometheus lets a range query have. The caller checks it, before the question is evaluated.
pub const STEPS_MAX: i64 = 11_000;

/// Which version of Prometheus gives the meaning where versions differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semantics {
    /// Prometheus 3: ranges and look-back are open on their left, `.` matches newlines. What users get.
    #[default]
    V3,
    /// Prometheus 2, which exists only so that tests can compare answers with the 2.42 that Debian packages. Never offer
    /// it to users.
    V2,
}

impl Semantics {
    pub(crate) fn newlines(self) -> Newlines {
        match self {
            Semantics::V3 => Newlines::Matched,
            Semantics::V2 => Newlines::NotMatched,
        }
    }
}

/// The parameters of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How far an instant selector looks back, in milliseconds.
    pub lookback_ms: i64,
    /// The step of subqueries that name none, in milliseconds.
    pub subquery_step_ms: i64,
    /// Which version gives the meaning.
    pub semantics: Semantics,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            lookback_ms: LOOKBACK_MS,
            subquery_step_ms: SUBQUERY_STEP_MS,
            semantics: Semantics::default(),
        }
    }
}

/// What an evaluation may use.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// The most bytes of values and labels that are held at a time.
    pub memory_bytes_max: usize,
    /// Asked between series and between steps; after `true` the evaluation ends with `timeout`.
    pub is_interrupted: &'a dyn Fn() -> bool,
}
