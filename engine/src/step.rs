//! Time steps of a grouped query: a calendar unit, or whole seconds that divide a day. The steps here are in UTC;
//! [`LocalStep`] implements them for the clock of a time zone.

use crate::calendar::Unit;
use crate::rollup::LEVELS;
use crate::zone::{LocalStep, Zone};

const SECOND_NS: i64 = 1_000_000_000;
pub(crate) const HOUR_NS: i64 = 3_600 * SECOND_NS;
const DAY_SECONDS: u32 = 86_400;

/// A time step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A calendar unit.
    Unit(Unit),
    /// A fixed length, counted from midnight.
    Length(Length),
}

/// A number of whole seconds that divides a day and is not a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length(u32);

impl From<Unit> for Step {
    fn from(unit: Unit) -> Self {
        Step::Unit(unit)
    }
}

impl Step {
    /// A step of this many seconds; `None` unless they divide a day.
    pub const fn seconds(seconds: u32) -> Option<Self> {
        match seconds {
            60 => Some(Step::Unit(Unit::Minute)),
            3_600 => Some(Step::Unit(Unit::Hour)),
            DAY_SECONDS => Some(Step::Unit(Unit::Day)),
            1.. if DAY_SECONDS.is_multiple_of(seconds) => Some(Step::Length(Length(seconds))),
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
            // The epoch was a midnight.
            Step::Length(length) => timestamp_ns.saturating_sub(timestamp_ns.rem_euclid(length.ns())),
        }
    }

    /// Start of the step after the one that contains `timestamp_ns`.
    pub fn next_ns(self, timestamp_ns: i64) -> i64 {
        match self {
            Step::Unit(unit) => unit.next_ns(timestamp_ns),
            Step::Length(length) => self.start_ns(timestamp_ns).saturating_add(length.ns()),
        }
    }

    /// Number of steps that the range touches, both ends inclusive.
    pub fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        match self {
            Step::Unit(unit) => unit.cells(first_ns, last_ns),
            Step::Length(_) if last_ns < first_ns => 0,
            Step::Length(length) => {
                let index = |ns: i64| ns.div_euclid(length.ns());
                index(last_ns).abs_diff(index(first_ns)) + 1
            }
        }
    }

    /// The coarsest rollup level whose cells each lie within one step; `None` if the step is finer than all levels.
    pub(crate) fn level(self) -> Option<usize> {
        match self {
            Step::Unit(unit) => LEVELS.iter().rposition(|level| *level <= unit),
            Step::Length(length) => LEVELS
                .iter()
                .rposition(|level| length.ns() % (level.next_ns(0) - level.start_ns(0)) == 0),
        }
    }
}

impl Length {
    /// Length of one step in seconds.
    pub fn whole_seconds(self) -> u32 {
        self.0
    }

    pub(crate) fn ns(self) -> i64 {
        i64::from(self.0) * SECOND_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_divide_a_day_and_units_are_units() {
        for (seconds, unit) in [(60, Unit::Minute), (3_600, Unit::Hour), (86_400, Unit::Day)] {
            assert_eq!(Step::seconds(seconds), Some(Step::Unit(unit)));
        }
        assert!(Step::seconds(0).is_none());
        assert!(Step::seconds(7).is_none());
        assert!(Step::seconds(2 * 86_400).is_none());
    }

    #[test]
    fn every_step_begins_at_the_end_of_the_previous() {
        for seconds in [1, 5, 15, 300, 10_800, 43_200] {
            let step = Step::seconds(seconds).unwrap();
            let mut at = step.start_ns(-3 * 86_400 * SECOND_NS - 1);
            for _ in 0..100 {
                let next = step.next_ns(at);
                assert_eq!(next - at, i64::from(seconds) * SECOND_NS);
                assert_eq!((step.start_ns(next), step.start_ns(next - 1)), (next, at));
                assert_eq!((step.cells(at, next - 1), step.cells(at, next)), (1, 2));
                at = next;
            }
            assert_eq!(step.start_ns(0), 0, "counted from midnight");
        }
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let step = Step::seconds(5).unwrap();
        for edge in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
            let _ = (step.start_ns(edge), step.next_ns(edge));
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
        assert_eq!(level(86_400), Some(2));
        assert_eq!(Step::from(Unit::Month).level(), Some(2));
    }
}
