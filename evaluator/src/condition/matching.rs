//! `threshold` and `range`: tests rows one by one, and how many of them must pass: parameter `match`.

use super::parameters::{Parameters, missing};
use super::row::no_value;
use super::test::Test;
use super::{Finding, Row};

/// Parameter `match`, with `minCount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
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
    fn parse(parameters: &mut Parameters<'_>) -> Result<Self, String> {
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

/// Tests each row and counts the results.
#[derive(Clone, Debug)]
pub struct Matching {
    test: Test,
    rule: Match,
    tested: u64,
    passed: u64,
    newest: Option<(Row, bool)>,
    /// The newest row whose result differs from that of the newest row.
    newest_other: Option<Row>,
}

impl Matching {
    /// Parses the parameters of the test and those of `match`.
    pub fn parse(
        test: fn(&mut Parameters<'_>) -> Result<Test, String>,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, String> {
        Ok(Self {
            test: test(parameters)?,
            rule: Match::parse(parameters)?,
            tested: 0,
            passed: 0,
            newest: None,
            newest_other: None,
        })
    }

    pub fn add(&mut self, row: Row) {
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

    pub fn finish(self, rows: u64) -> Finding {
        let Some((newest, newest_passes)) = self.newest else {
            return Finding::inconclusive(no_value(rows, self.test.value_type()));
        };
        let met = match self.rule {
            Match::Any => self.passed > 0,
            Match::All => self.passed == self.tested,
            Match::Last => newest_passes,
            Match::Count(count) => self.passed >= count,
        };
        // The newest row whose result equals the outcome, or the newest row if there is none.
        let row = match self.newest_other {
            Some(other) if newest_passes != met => other,
            _ => newest,
        };
        let alert = row.value.as_ref().map(|value| self.test.alert(value));
        Finding::decided(met, row, alert).with("matched", self.passed)
    }
}
