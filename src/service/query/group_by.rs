//! `groupBy`: the step by which a query groups, as it was sent.

use engine::{Step, Unit};

use super::unit_name;

/// A step of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBy {
    text: Box<str>,
    step: Option<Step>,
}

impl GroupBy {
    /// Parses `minute`, `hour`, `day`, `week`, `month`, `quarter`, `year`, `all`, or a length: a number without leading
    /// zeros and one of `s m h d w`, at most 52 weeks.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unit = Unit::ALL.into_iter().find(|unit| unit_name(*unit) == text);
        let step = match (text, unit) {
            (_, Some(unit)) => Some(Step::Unit(unit)),
            ("quarter", _) => Some(Step::Quarter),
            ("year", _) => Some(Step::Year),
            ("all", _) => None,
            _ => Some(length(text).ok_or_else(|| {
                format!(
                    "must be minute, hour, day, week, month, quarter, year, all, or a length such as 15m (units s, m, h, \
                     d, w; at most 52w), not {text:?}"
                )
            })?),
        };
        Ok(GroupBy {
            text: text.into(),
            step,
        })
    }

    /// The text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The greatest number of steps that a range of this length touches.
    pub fn steps_in(&self, ns: i64) -> u64 {
        self.step.map_or(1, |step| step.cells(0, ns).saturating_add(1))
    }

    /// The step; `None` if the range is a single one.
    pub(super) fn step(&self) -> Option<Step> {
        self.step
    }
}

fn length(text: &str) -> Option<Step> {
    let (seconds, _) = length_of(text)?;
    Step::seconds(u32::try_from(seconds).ok()?)
}

/// A length of `groupBy`, from 1 s to 52 w, in seconds.
pub fn length_seconds(text: &str) -> Option<u64> {
    let (seconds, _) = length_of(text)?;
    length(text).map(|_| seconds)
}

/// Parses a length: a number without leading zeros, and its unit. Returns it in seconds.
pub(super) fn length_of(text: &str) -> Option<(u64, char)> {
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let is_plain = count.bytes().all(|digit| digit.is_ascii_digit()) && !count.starts_with('0');
    let count: u64 = count.parse().ok().filter(|_| is_plain)?;
    Some((count.checked_mul(seconds)?, unit.chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Option<Step> {
        GroupBy::parse(text)
            .unwrap_or_else(|fault| panic!("{fault}"))
            .step()
    }

    #[test]
    fn one_length_in_two_spellings_is_one_step() {
        for same in [
            ["60m", "hour"],
            ["24h", "day"],
            ["1d", "day"],
            ["7d", "week"],
            ["1w", "week"],
            ["14d", "2w"],
            ["60s", "minute"],
            ["364d", "8736h"],
            ["52w", "31449600s"],
        ] {
            assert_eq!(step(same[0]), step(same[1]), "{same:?}");
            assert_eq!(GroupBy::parse(same[0]).unwrap().as_str(), same[0]);
        }
        assert_eq!(step("all"), None);
        assert_eq!(
            [step("quarter"), step("year")],
            [Some(Step::Quarter), Some(Step::Year)]
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [
            "",
            "m",
            "0m",
            "01m",
            "-1m",
            "+1m",
            "1.5h",
            " 1m",
            "1m ",
            "1 m",
            "1M",
            "1H",
            "1y",
            "1ms",
            "m1",
            "365d",
            "53w",
            "8737h",
            "31449601s",
            "4294967296s",
            "99999999999999999999w",
            "Hour",
            "ALL",
            "١m",
            "1µ",
        ] {
            let refused = GroupBy::parse(wrong).unwrap_err();
            assert!(refused.contains("15m"), "{wrong:?}: {refused}");
        }
    }
}
