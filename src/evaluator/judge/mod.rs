//! Judging: what a rule's kind and parameters say about the rows of its windows. Pure: no request is made and no
//! clock is read here. Called by the evaluator for every due rule.
//!
//! A judge sees the rows of one input once, oldest first, and keeps of them only what its finding needs, so that a
//! window of a million rows costs no memory. What it cannot tell for sure it calls inconclusive, never not met.

mod absence;
mod change;
mod evidence;
mod matching;
mod parameters;
mod range;
mod row;
#[cfg(test)]
mod tests;
mod threshold;
mod zscore;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use evidence::{InputFinding, Verdict, clip, inconclusive, verdict};
pub use row::{Row, Scalar, Window, number};

use absence::Absence;
use change::Change;
use parameters::Parameters;
use range::Range;
use threshold::Threshold;
use zscore::ZScore;

/// What a rule's condition is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Met,
    /// It does not.
    NotMet,
    /// The window does not tell.
    Inconclusive,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::NotMet => "not_met",
            Self::Inconclusive => "inconclusive",
        })
    }
}

impl Outcome {
    fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }
}

/// What the rows of one input say.
#[derive(Debug)]
pub struct Finding {
    /// The outcome for this input alone.
    pub outcome: Outcome,
    /// Why it is inconclusive.
    pub reason: Option<String>,
    /// The row that decided, the newest of them.
    pub row: Option<Row>,
    /// What an alert says about it; present when met.
    pub alert: Option<Alert>,
    /// Further figures of the kind, for the evidence.
    pub figures: Map<String, Value>,
}

/// The members of the evidence that the service passes on in `alert.triggered`.
#[derive(Debug, PartialEq)]
pub struct Alert {
    /// What was seen.
    pub current_value: Value,
    /// What it was held against.
    pub threshold: Value,
    /// How the two compare.
    pub operator: &'static str,
}

impl Finding {
    /// A finding of an uninformative window.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::of(Outcome::Inconclusive)
        }
    }

    fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            reason: None,
            row: None,
            alert: None,
            figures: Map::new(),
        }
    }

    fn with(mut self, name: &str, figure: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), figure.into());
        self
    }
}

/// Sees the rows of one input, oldest first, and says what they mean.
pub trait Judge {
    /// The next row.
    fn see(&mut self, row: Row);
    /// What all the rows seen mean.
    fn conclude(self: Box<Self>, window: &Window) -> Finding;
}

/// How the findings of several inputs make one outcome: parameter `inputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Met when one is met; the default.
    Any,
    /// Met when each is met.
    All,
}

impl Inputs {
    /// The outcome of the whole. An inconclusive input leaves it open, unless another one decides it alone.
    pub fn combine(self, outcomes: &[Outcome]) -> Outcome {
        let (decisive, otherwise) = match self {
            Self::Any => (Outcome::Met, Outcome::NotMet),
            Self::All => (Outcome::NotMet, Outcome::Met),
        };
        if outcomes.contains(&decisive) {
            decisive
        } else if outcomes.is_empty() || outcomes.contains(&Outcome::Inconclusive) {
            Outcome::Inconclusive
        } else {
            otherwise
        }
    }
}

/// A rule's condition, read from its kind and parameters.
#[derive(Debug)]
pub struct Condition {
    kind: Kind,
    /// How its inputs come together.
    pub inputs: Inputs,
}

#[derive(Clone, Debug)]
enum Kind {
    Threshold(Threshold),
    Range(Range),
    Change(Change),
    Absence(Absence),
    ZScore(ZScore),
}

impl Condition {
    /// The condition that `kind` and `parameters` state.
    ///
    /// # Errors
    /// The kind is absent or unknown, a parameter is missing, wrong or not one of the kind's: the text says which. A
    /// parameter nobody reads is refused as well, or a misspelt one would be lost silently.
    pub fn read(kind: Option<&str>, parameters: &Map<String, Value>) -> Result<Self, String> {
        let kind = kind.ok_or("the rule has no kind")?;
        let mut parameters = Parameters::new(parameters);
        let inputs = parameters.one_of("inputs", &[("any", Inputs::Any), ("all", Inputs::All)])?;
        let read = match kind {
            "threshold" => Kind::Threshold(Threshold::read(&mut parameters)?),
            "range" => Kind::Range(Range::read(&mut parameters)?),
            "change" => Kind::Change(Change::read(&mut parameters)?),
            "absence" => Kind::Absence(Absence::read(&mut parameters)?),
            "zscore" => Kind::ZScore(ZScore::read(&mut parameters)?),
            _ => return Err(format!("the kind `{}` is not known here", clip(kind))),
        };
        parameters.finish()?;
        Ok(Self {
            kind: read,
            inputs: inputs.unwrap_or(Inputs::Any),
        })
    }

    /// A judge for the rows of one input.
    pub fn judge(&self) -> Box<dyn Judge> {
        match self.kind.clone() {
            Kind::Threshold(threshold) => Box::new(threshold.judge()),
            Kind::Range(range) => Box::new(range.judge()),
            Kind::Change(change) => Box::new(change.judge()),
            Kind::Absence(absence) => Box::new(absence.judge()),
            Kind::ZScore(zscore) => Box::new(zscore.judge()),
        }
    }
}
