//! What clients asked and were answered, as the checker reads it. Times are microseconds since the load began.

use std::collections::BTreeSet;
use std::ops::Range;

/// When a request was sent, and when its answer was there or its sender gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub began: u64,
    pub ended: u64,
}

impl Span {
    /// Whether this was over when the other one began.
    pub fn is_before(self, other: Span) -> bool {
        self.ended < other.began
    }
}

/// What a client knows of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Acknowledged,
    /// No answer, or 503: it may be there or not.
    Unknown,
}

/// Points that were sent in one request. Points have numbers, which no other point of the organization has, and times by
/// their numbers ([`time_of`]).
#[derive(Clone, Debug)]
pub struct Write {
    pub numbers: Range<u64>,
    /// From the first attempt to the end of the last one.
    pub span: Span,
    pub outcome: Outcome,
    /// How often they may be there: once, or without an idempotency key as often as they were sent.
    pub copies_max: usize,
}

/// Points with the same time: what was acknowledged first is shown first.
pub const POINTS_OF_A_TIME: u64 = 4;

/// The time of a point, in steps from the first.
pub fn time_of(number: u64) -> u64 {
    number / POINTS_OF_A_TIME
}

/// A query for all points of a range.
#[derive(Clone, Debug)]
pub struct Read {
    pub numbers: Range<u64>,
    pub span: Span,
    /// In the order shown.
    pub rows: Vec<Row>,
    /// Whether it is the audit's, after all faults.
    pub is_last: bool,
}

/// A point as it was shown.
#[derive(Clone, Debug)]
pub struct Row {
    pub number: u64,
    pub id: String,
}

/// A key of a bucket.
#[derive(Clone, Debug)]
pub struct KeyLife {
    pub name: String,
    pub creation: (Span, Outcome),
    pub deletion: Option<(Span, Outcome)>,
    /// Requests with the key, and whether it was taken.
    pub uses: Vec<(Span, bool)>,
    /// How often the audit has found it.
    pub listed: usize,
}

/// A rule, which is due once.
#[derive(Clone, Debug)]
pub struct RuleLife {
    pub name: String,
    pub creation: (Span, Outcome),
    pub verdicts: Vec<(Span, Verdict)>,
    /// Lists of due rules, and whether it was in them.
    pub due: Vec<(Span, bool)>,
    /// How often the audit has found it.
    pub listed: usize,
    /// The outcomes of the verdicts in its history.
    pub history: Vec<String>,
    /// The triggers in its history.
    pub triggers: usize,
    /// The ids of the deliveries that its receiver got.
    pub deliveries: BTreeSet<String>,
}

/// A verdict that was posted, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 200.
    Accepted(String),
    /// 409, with the outcome that is recorded.
    Refused(Option<String>),
    Unknown,
}

/// All that happened to an organization.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub writes: Vec<Write>,
    pub reads: Vec<Read>,
    pub keys: Vec<KeyLife>,
    pub rules: Vec<RuleLife>,
    /// Answers that no fault explains.
    pub unexpected: Vec<String>,
}
