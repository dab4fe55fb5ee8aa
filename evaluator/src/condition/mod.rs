//! Evaluates a rule's condition on the rows of its windows. Pure: makes no requests and reads no clock.
//!
//! An evaluation gets the rows of one input once, oldest first, and keeps only what it needs, so that a window of a
//! million rows takes no memory. If the rows do not allow a conclusion, the outcome is inconclusive, never not met.

mod absence;
mod change;
mod evidence;
mod matching;
mod parameters;
mod row;
mod test;
#[cfg(test)]
mod tests;
mod zscore;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use evidence::{InputFinding, Verdict, clip, inconclusive, verdict};
pub use row::{Row, Scalar, Window, number};

use absence::Absence;
use change::Change;
use matching::Matching;
use parameters::Parameters;
use test::Test;
use zscore::ZScore;

/// The result of evaluating a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The condition holds.
    Met,
    /// The condition does not hold.
    NotMet,
    /// The rows do not allow a conclusion.
    #[default]
    Inconclusive,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The result for one input.
#[derive(Debug, Default)]
pub struct Finding {
    /// The outcome of this input alone.
    pub outcome: Outcome,
    /// Why the outcome is inconclusive.
    pub reason: Option<String>,
    /// The row that determined the outcome; of several, the newest.
    pub row: Option<Row>,
    /// The values for an alert; present if met.
    pub alert: Option<Alert>,
    /// More figures for the evidence, which depend on the kind.
    pub figures: Map<String, Value>,
}

/// The members of the evidence that the service copies to `alert.triggered`.
#[derive(Debug, PartialEq)]
pub struct Alert {
    /// The measured value.
    pub current_value: Value,
    /// The value it was compared with.
    pub threshold: Value,
    /// How they were compared.
    pub operator: &'static str,
}

impl Finding {
    /// The finding for a window that allows no conclusion.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// The finding that `row` determined. `alert` is dropped if the outcome is not met.
    fn decided(met: bool, row: impl Into<Option<Row>>, alert: Option<Alert>) -> Self {
        Self {
            outcome: if met { Outcome::Met } else { Outcome::NotMet },
            row: row.into(),
            alert: alert.filter(|_| met),
            ..Self::default()
        }
    }

    fn with(mut self, name: &str, figure: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), figure.into());
        self
    }
}

/// How the outcomes of several inputs are combined: parameter `inputs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Met if at least one input is met; the default.
    Any,
    /// Met if all inputs are met.
    All,
}

impl Inputs {
    /// Combines outcomes. With an inconclusive input the result is inconclusive, unless another input decides it.
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

/// A condition, parsed from a rule's kind and parameters, and its evaluation on the rows of one input. Each input gets a
/// clone of the condition without rows.
#[derive(Clone, Debug)]
pub struct Condition {
    kind: Kind,
    /// How the outcomes of the inputs are combined.
    pub inputs: Inputs,
    /// Number of rows added.
    pub rows: u64,
}

/// The parameters of a kind, and what is known of the rows added so far.
#[derive(Clone, Debug)]
enum Kind {
    Matching(Matching),
    Change(Change),
    Absence(Absence),
    ZScore(ZScore),
}

impl Condition {
    /// Parses the condition from `kind` and `parameters`.
    ///
    /// # Errors
    /// The kind is missing or unknown, or a parameter is missing, invalid or unknown to the kind; the message says
    /// which. Unknown parameters are errors, because a misspelled one would be ignored silently.
    pub fn parse(kind: Option<&str>, parameters: &Map<String, Value>) -> Result<Self, String> {
        let kind = kind.ok_or("the rule has no kind")?;
        let mut parameters = Parameters::new(parameters);
        let inputs = parameters.one_of("inputs", &[("any", Inputs::Any), ("all", Inputs::All)])?;
        let kind = match kind {
            "threshold" => Kind::Matching(Matching::parse(Test::parse_threshold, &mut parameters)?),
            "range" => Kind::Matching(Matching::parse(Test::parse_range, &mut parameters)?),
            "change" => Kind::Change(Change::parse(&mut parameters)?),
            "absence" => Kind::Absence(Absence::parse(&mut parameters)?),
            "zscore" => Kind::ZScore(ZScore::parse(&mut parameters)?),
            _ => return Err(format!("the kind `{}` is not known here", clip(kind))),
        };
        parameters.finish()?;
        Ok(Self {
            kind,
            inputs: inputs.unwrap_or(Inputs::Any),
            rows: 0,
        })
    }

    /// Adds the next row; rows come oldest first.
    pub fn add(&mut self, row: Row) {
        self.rows += 1;
        match &mut self.kind {
            Kind::Matching(matching) => matching.add(row),
            Kind::Change(change) => change.add(row),
            Kind::Absence(absence) => absence.add(row),
            Kind::ZScore(zscore) => zscore.add(row),
        }
    }

    /// The result for all rows.
    pub fn finish(self, window: &Window) -> Finding {
        match self.kind {
            Kind::Matching(matching) => matching.finish(self.rows),
            Kind::Change(change) => change.finish(self.rows),
            Kind::Absence(absence) => absence.finish(window),
            Kind::ZScore(zscore) => zscore.finish(self.rows),
        }
    }
}
