//! Time steps of a grouped query. The steps here are in UTC; [`LocalStep`] implements them for the clock of a time zone.

use crate::calendar::{Dates, MONDAY_NS, Unit};
use crate::local_step::LocalStep;
use crate::rollup::LEVELS;
use crate::zone::Zone;

const SECOND_NS: i64 = 1_000_000_000;
pub(crate) const HOUR_NS: i64 = 3_600 * SECOND_NS;
const DAY_NS: i64 = 24 * HOUR_NS;

/// A time step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A calendar unit.
    Unit(Unit),
    /// Three calendar months, the first ones from January to March.
    Quarter,
    /// A calendar year.
    Year,
    /// A fixed length.
    Length(Length),
    /// One step that begins at this instant and contains everything.
    From(i64),
}

/// A number of whole seconds that is not a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    ns: i64,
    /// Remainder of the origin's division by the length, so that no step computes it.
    origin_ns: i64,
}

impl From<Unit> for Step {
    fn from(unit: Unit) -> Self {
        Step::Unit(unit)
    }
}

impl Step {
    /// The longest length: 52 weeks.
    pub const SECONDS_MAX: u32 = 52 * 604_800;

    /// A step of this many seconds; `None` if that is 0 or more than [`Step::SECONDS_MAX`].
    pub const fn seconds(seconds: u32) -> Option<Self> {
        match seconds {
            60 => Some(Step::Unit(Unit::Minute)),
            3_600 => Some(Step::Unit(Unit::Hour)),
            86_400 => Some(Step::Unit(Unit::Day)),
            604_800 => Some(Step::Unit(Unit::Week)),
            1..=Self::SECONDS_MAX => Some(Step::Length(Length::of_ns(seconds as i64 * SECOND_NS))),
            _ => None,
        }
    }

    /// The step by the clock of a zone; in UTC if there is none.
    pub fn by(self, zone: Option<&Zone>) -> LocalStep<'_> {
        LocalStep::new(self, zone)
    }

    /// Start of the step that contains `timestamp_ns`. Saturates at the limits of 64-bit timestamps.
    #[inline]
    pub fn start_ns(self, timestamp_ns: i64) -> i64 {
        match self {
            Step::Unit(unit) => unit.start_ns(timestamp_ns),
            Step::Quarter => QUARTER.start_ns(timestamp_ns),
            Step::Year => YEAR.start_ns(timestamp_ns),
            Step::Length(length) => length.start_ns(timestamp_ns),
            // Also of a cell of a rollup that begins before its first point.
            Step::From(start_ns) => start_ns,
        }
    }

    /// Start of the step after the one that contains `timestamp_ns`.
    pub fn next_ns(self, timestamp_ns: i64) -> i64 {
        match self {
            Step::Unit(unit) => unit.next_ns(timestamp_ns),
            Step::Quarter => QUARTER.next_ns(timestamp_ns),
            Step::Year => YEAR.next_ns(timestamp_ns),
            Step::Length(length) => length.next_ns(timestamp_ns),
            Step::From(_) => i64::MAX,
        }
    }

    /// Number of steps that the range touches, both ends inclusive.
    pub fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        match self {
            _ if last_ns < first_ns => 0,
            Step::Unit(unit) => unit.cells(first_ns, last_ns),
            Step::Quarter => QUARTER.cells(first_ns, last_ns),
            Step::Year => YEAR.cells(first_ns, last_ns),
            Step::Length(length) => length.cells(first_ns, last_ns),
            Step::From(_) => 1,
        }
    }

    /// The length that all steps have; `None` if they differ.
    pub(crate) fn length_ns(self) -> Option<i64> {
        match self {
            Step::Unit(unit) => unit.length_ns(),
            Step::Length(length) => Some(length.ns),
            Step::Quarter | Step::Year | Step::From(_) => None,
        }
    }

    /// The same as a step of whole days, if it is one.
    pub(crate) fn dates(self) -> Option<Dates> {
        match self {
            Step::Unit(Unit::Day) => Some(Dates::Days(Length::of_ns(DAY_NS))),
            Step::Unit(Unit::Week) => Some(Dates::Days(Length::of_ns(7 * DAY_NS))),
            Step::Unit(Unit::Month) => Some(Dates::Months(1)),
            Step::Quarter => Some(QUARTER),
            Step::Year => Some(YEAR),
            Step::Length(length) if length.ns % DAY_NS == 0 => Some(Dates::Days(length)),
            Step::Unit(Unit::Minute | Unit::Hour) | Step::Length(_) | Step::From(_) => None,
        }
    }

    /// The coarsest rollup level whose cells each lie within one step; `None` if the step is finer than all levels.
    pub(crate) fn level(self) -> Option<usize> {
        match self {
            Step::Unit(unit) => LEVELS.iter().rposition(|level| *level <= unit),
            Step::Quarter | Step::Year | Step::From(_) => Some(LEVELS.len() - 1),
            Step::Length(length) => Self::level_of_ns(length.ns),
        }
    }

    /// The coarsest rollup level whose cells divide this length.
    pub(crate) fn level_of_ns(ns: i64) -> Option<usize> {
        let divides = |level: &Unit| ns % (level.next_ns(0) - level.start_ns(0)) == 0;
        LEVELS.iter().rposition(divides)
    }
}

const QUARTER: Dates = Dates::Months(3);
const YEAR: Dates = Dates::Months(12);

impl Length {
    pub(crate) const HOUR: Self = Self::of_ns(HOUR_NS);

    pub(crate) const fn of_ns(ns: i64) -> Self {
        Length {
            ns,
            // Those that divide a day are thus counted from midnight.
            origin_ns: MONDAY_NS % ns,
        }
    }

    /// The number of seconds.
    pub fn whole_seconds(self) -> u32 {
        (self.ns / SECOND_NS) as u32
    }

    pub(crate) fn ns(self) -> i64 {
        self.ns
    }

    /// Time since the start of the length that contains `at_ns`.
    #[inline]
    pub(crate) fn into_ns(self, at_ns: i64) -> i64 {
        let into_ns = at_ns.rem_euclid(self.ns) - self.origin_ns;
        if into_ns < 0 { into_ns + self.ns } else { into_ns }
    }

    /// Start of the length that contains `at_ns`.
    #[inline]
    pub(crate) fn start_ns(self, at_ns: i64) -> i64 {
        at_ns.saturating_sub(self.into_ns(at_ns))
    }

    pub(crate) fn next_ns(self, at_ns: i64) -> i64 {
        // In this order, so that it saturates only if the next one is beyond the limit.
        at_ns.saturating_add(self.ns - self.into_ns(at_ns))
    }

    /// Number of lengths that the range touches, both ends inclusive.
    pub(crate) fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        (self.index(last_ns) - self.index(first_ns)) as u64 + 1
    }

    /// The number of the length that contains `at_ns`, counted from any fixed one.
    pub(crate) fn index(self, at_ns: i64) -> i64 {
        at_ns.div_euclid(self.ns) - i64::from(at_ns.rem_euclid(self.ns) < self.origin_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_units_are_units() {
        let units = [
            (60, Unit::Minute),
            (3_600, Unit::Hour),
            (86_400, Unit::Day),
            (604_800, Unit::Week),
        ];
        for (seconds, unit) in units {
            assert_eq!(Step::seconds(seconds), Some(Step::Unit(unit)));
        }
        assert!(Step::seconds(0).is_none());
        assert!(Step::seconds(Step::SECONDS_MAX).is_some());
        assert!(Step::seconds(Step::SECONDS_MAX + 1).is_none());
    }

    #[test]
    fn every_step_begins_at_the_end_of_the_previous() {
        for seconds in [
            1, 5, 7, 15, 300, 5_400, 10_800, 43_200, 129_600, 172_800, 1_209_600,
        ] {
            let step = Step::seconds(seconds).unwrap();
            let mut at = step.start_ns(-30 * DAY_NS - 1);
            for _ in 0..100 {
                let next = step.next_ns(at);
                assert_eq!(next - at, i64::from(seconds) * SECOND_NS);
                assert_eq!((step.start_ns(next), step.start_ns(next - 1)), (next, at));
                assert_eq!((step.cells(at, next - 1), step.cells(at, next)), (1, 2));
                at = next;
            }
            assert_eq!(step.start_ns(MONDAY_NS), MONDAY_NS, "counted from 1970-01-05");
            if 86_400 % seconds == 0 {
                assert_eq!(step.start_ns(0), 0, "counted from midnight");
            }
        }
    }

    #[test]
    fn quarters_and_years_begin_with_their_months() {
        let start_of_year = Step::Year.start_ns(MONDAY_NS);
        assert_eq!(start_of_year, 0);
        let mut at = Step::Year.start_ns(-400 * DAY_NS);
        for _ in 0..200 {
            let year = at;
            for quarter in 0..4 {
                let mut month = at;
                for _ in 0..3 {
                    assert_eq!(
                        (Step::Quarter.start_ns(month), Step::Year.start_ns(month)),
                        (at, year)
                    );
                    month = Unit::Month.next_ns(month);
                }
                assert_eq!(Step::Quarter.next_ns(at), month);
                at = month;
                assert_eq!(Step::Quarter.cells(year, at - 1), quarter + 1);
            }
            assert_eq!((Step::Year.next_ns(year), Step::Year.cells(year, at)), (at, 2));
        }
    }

    #[test]
    fn a_step_from_an_instant_contains_everything() {
        let step = Step::From(5);
        assert_eq!(
            [step.start_ns(5), step.start_ns(0), step.start_ns(i64::MAX)],
            [5; 3]
        );
        assert_eq!((step.next_ns(5), step.cells(5, i64::MAX)), (i64::MAX, 1));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let step = Step::seconds(5).unwrap();
        let longest = Step::seconds(Step::SECONDS_MAX).unwrap();
        for step in [step, longest, Step::Quarter, Step::Year] {
            for edge in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                let _ = (step.start_ns(edge), step.next_ns(edge));
            }
            assert!(step.cells(i64::MIN, i64::MAX) > 500);
        }
        let about = u64::MAX / (5 * SECOND_NS as u64);
        assert!((about..=about + 2).contains(&step.cells(i64::MIN, i64::MAX)));
    }

    #[test]
    fn a_step_is_answered_from_the_coarsest_level_that_fits() {
        let level = |seconds| Step::seconds(seconds).unwrap().level();
        assert_eq!([level(1), level(30)], [None; 2]);
        assert_eq!([level(60), level(900)], [Some(0); 2]);
        assert_eq!([level(3_600), level(21_600)], [Some(1); 2]);
        assert_eq!([level(7), level(90)], [None; 2]);
        assert_eq!(
            [level(420), level(5_400), level(18_000), level(129_600)],
            [Some(0), Some(0), Some(1), Some(1)]
        );
        assert_eq!([level(86_400), level(172_800), level(1_209_600)], [Some(2); 3]);
        assert_eq!(
            [Step::Quarter, Step::Year, Step::From(0)].map(Step::level),
            [Some(2); 3]
        );
        assert_eq!(Step::from(Unit::Month).level(), Some(2));
    }
}
