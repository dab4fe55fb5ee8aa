//! How many rows of a window must pass a test: parameter `match`, shared by the kinds that test rows one by one.

use super::parameters::{Parameters, missing};
use super::row::nothing_to_judge;
use super::{Alert, Finding, Judge, Outcome, Row, Scalar, Window};

/// Parameter `match`, with `minCount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// At least one row passes; the default.
    Any,
    /// Every row passes.
    All,
    /// The newest row passes.
    Last,
    /// At least this many rows pass.
    Count(u64),
}

impl Match {
    pub fn read(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let words = [
            ("any", Self::Any),
            ("all", Self::All),
            ("last", Self::Last),
            ("count", Self::Count(0)),
        ];
        let chosen = parameters.one_of("match", &words)?.unwrap_or(Self::Any);
        let count = parameters.optional_count("minCount", 1)?;
        match (chosen, count) {
            (Self::Count(_), None) => Err(missing("minCount")),
            (Self::Count(_), Some(count)) => Ok(Self::Count(count)),
            (_, Some(_)) => Err("parameter `minCount` goes with `match` = `count`".to_owned()),
            (chosen, None) => Ok(chosen),
        }
    }
}

/// A test of a row's value.
pub trait Test {
    /// The type of value that can be tested.
    fn wanted(&self) -> &'static str;
    /// Whether the value passes; `None` if it has another type.
    fn passes(&self, value: &Scalar) -> Option<bool>;
    /// The alert for a value that passed.
    fn alert(&self, value: &Scalar) -> Alert;
}

/// Tests each row and counts the results.
pub struct Matching<T> {
    test: T,
    rule: Match,
    rows: u64,
    tested: u64,
    passed: u64,
    newest: Option<(Row, bool)>,
    /// The newest row whose result differs from that of the newest row.
    newest_other: Option<Row>,
}

impl<T: Test> Matching<T> {
    pub fn new(test: T, rule: Match) -> Self {
        Self {
            test,
            rule,
            rows: 0,
            tested: 0,
            passed: 0,
            newest: None,
            newest_other: None,
        }
    }
}

impl<T: Test> Judge for Matching<T> {
    fn see(&mut self, row: Row) {
        self.rows += 1;
        let Some(passes) = row.value.as_ref().and_then(|value| self.test.passes(value)) else {
            return;
        };
        self.tested += 1;
        self.passed += u64::from(passes);
        if let Some((before, passed)) = self.newest.replace((row, passes))
            && passed != passes
        {
            self.newest_other = Some(before);
        }
    }

    fn conclude(self: Box<Self>, _: &Window) -> Finding {
        let Self {
            test,
            rule,
            rows,
            tested,
            passed,
            newest,
            newest_other,
        } = *self;
        let Some((newest, newest_passes)) = newest else {
            return Finding::inconclusive(nothing_to_judge(rows, test.wanted()));
        };
        let met = match rule {
            Match::Any => passed > 0,
            Match::All => passed == tested,
            Match::Last => newest_passes,
            Match::Count(count) => passed >= count,
        };
        // The newest row whose result equals the outcome, or the newest row if there is none.
        let row = match newest_other {
            Some(other) if newest_passes != met => other,
            _ => newest,
        };
        let alert = match &row.value {
            Some(value) if met => Some(test.alert(value)),
            _ => None,
        };
        Finding {
            row: Some(row),
            alert,
            ..Finding::of(Outcome::of(met))
        }
        .with("matched", passed)
    }
}
