//! Time steps as a query uses them: by the clock of a zone or in UTC, and of that time or of an earlier one.

use crate::calendar::Unit;
use crate::step::Step;
use crate::zone::{Clocked, Zone};

const DAY_NS: i64 = 86_400_000_000_000;

/// A time step by the clock of a zone, or in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalStep<'z> {
    clocked: Clocked<'z>,
    earlier: Earlier<'z>,
}

/// By how much earlier the steps are than those of the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Earlier<'z> {
    /// Not at all.
    #[default]
    Zero,
    /// By nanoseconds.
    By(i64),
    /// By days of a zone's calendar: the clock shows the same time.
    Days(&'z Zone, i64),
}

impl Earlier<'_> {
    /// The instant that is earlier by this. A clock time that was skipped is the instant of the change; of one that
    /// occurs twice, the second time counts as the end of the first.
    pub fn than_ns(self, at_ns: i64) -> i64 {
        match self {
            Earlier::Zero => at_ns,
            Earlier::By(ns) => at_ns.saturating_sub(ns),
            Earlier::Days(zone, days) => zone.first_at(zone.reached_ns(at_ns).saturating_sub(days * DAY_NS)),
        }
    }
}

impl<'z> LocalStep<'z> {
    /// The step by the clock of a zone; in UTC if there is none.
    pub(crate) fn new(step: Step, zone: Option<&'z Zone>) -> Self {
        Clocked::new(step, zone).into()
    }

    /// The steps that are earlier by this. Each covers the points that lie in the step of the clock when they are moved
    /// by the same.
    #[must_use]
    pub fn earlier(self, earlier: Earlier<'z>) -> Self {
        LocalStep { earlier, ..self }
    }

    /// Start of the step that contains `at_ns`. Saturates at the limits of 64-bit timestamps.
    #[inline]
    pub fn start_ns(self, at_ns: i64) -> i64 {
        match self.earlier {
            Earlier::Zero => self.clocked.start_ns(at_ns),
            earlier => earlier.than_ns(self.clock_start_ns(at_ns)),
        }
    }

    /// Start of the step after the one that contains `at_ns`.
    pub fn next_ns(self, at_ns: i64) -> i64 {
        match self.earlier {
            Earlier::Zero => self.clocked.next_ns(at_ns),
            earlier => {
                let mut start_ns = self.clock_start_ns(at_ns);
                // A step may have no earlier instant of its own.
                loop {
                    start_ns = self.clocked.next_ns(start_ns);
                    let earlier_ns = earlier.than_ns(start_ns);
                    if start_ns == i64::MAX || earlier_ns > at_ns {
                        return if start_ns == i64::MAX {
                            start_ns
                        } else {
                            earlier_ns
                        };
                    }
                }
            }
        }
    }

    /// Start of the clock's step that corresponds to the earlier one that contains `at_ns`.
    pub fn clock_start_ns(self, at_ns: i64) -> i64 {
        let clocked = self.clocked;
        let near_ns = match self.earlier {
            Earlier::Zero => return clocked.start_ns(at_ns),
            Earlier::By(ns) => return clocked.start_ns(at_ns.saturating_add(ns)),
            Earlier::Days(zone, days) => zone.first_at(zone.reading_ns(at_ns).saturating_add(days * DAY_NS)),
        };
        let earlier_ns = |start_ns: i64| self.earlier.than_ns(start_ns);
        let mut start_ns = clocked.start_ns(near_ns);
        loop {
            let next_ns = clocked.next_ns(start_ns);
            if next_ns == i64::MAX || earlier_ns(next_ns) > at_ns {
                break;
            }
            start_ns = next_ns;
        }
        while earlier_ns(start_ns) > at_ns {
            let before_ns = clocked.start_ns(start_ns.saturating_sub(1));
            if before_ns >= start_ns {
                break;
            }
            start_ns = before_ns;
        }
        start_ns
    }

    /// Number of steps that the range touches, both ends inclusive. A date that a zone skipped is counted.
    pub fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        match self.earlier {
            Earlier::Zero => self.clocked.cells(first_ns, last_ns),
            _ if last_ns < first_ns => 0,
            _ => {
                let (first_ns, last_ns) = (self.clock_start_ns(first_ns), self.clock_start_ns(last_ns));
                self.clocked.cells(first_ns, last_ns)
            }
        }
    }

    /// The step in UTC, if it is one, and of that time.
    pub(crate) fn in_utc(self) -> Option<Step> {
        match (self.clocked, self.earlier) {
            (Clocked::Utc(step), Earlier::Zero) => Some(step),
            _ => None,
        }
    }

    /// The length that all steps have; `None` if they differ. Earlier steps end where those of the clock do.
    fn length_ns(self) -> Option<i64> {
        self.in_utc()?.length_ns()
    }

    /// The coarsest rollup level whose cells each lie within one step; `None` if the step is finer than all levels.
    pub(crate) fn level(self) -> Option<usize> {
        let level = self.clocked.level()?;
        match self.earlier {
            Earlier::Zero => Some(level),
            Earlier::By(ns) => Step::level_of_ns(ns).map(|coarsest| level.min(coarsest)),
            Earlier::Days(zone, _) => zone.level().map(|coarsest| level.min(coarsest)),
        }
    }
}

/// The steps of ascending times, one after the other. Where all have the same length, most are found by adding it to
/// the one before instead of by divisions.
pub(crate) struct Following<'z> {
    step: LocalStep<'z>,
    /// `None` for steps of different lengths.
    length_ns: Option<i64>,
    /// Start of the step after the last one.
    next_ns: i64,
}

impl<'z> Following<'z> {
    pub(crate) fn new(step: LocalStep<'z>) -> Self {
        Following {
            step,
            length_ns: step.length_ns(),
            next_ns: i64::MAX,
        }
    }

    /// The start of the step that contains `at_ns`, and of the one after it.
    #[inline]
    pub(crate) fn containing(&mut self, at_ns: i64) -> (i64, i64) {
        let start_ns = self.next_ns;
        let following = self
            .length_ns
            .and_then(|length_ns| start_ns.checked_add(length_ns));
        if let Some(next_ns) = following
            && start_ns <= at_ns
            && at_ns < next_ns
        {
            self.next_ns = next_ns;
            return (start_ns, next_ns);
        }
        let (start_ns, next_ns) = (self.step.start_ns(at_ns), self.step.next_ns(at_ns));
        // A step that is cut off at the beginning of time says nothing about the next one.
        self.next_ns = if start_ns == i64::MIN { i64::MAX } else { next_ns };
        (start_ns, next_ns)
    }
}

impl<'z> From<Clocked<'z>> for LocalStep<'z> {
    fn from(clocked: Clocked<'z>) -> Self {
        LocalStep {
            clocked,
            earlier: Earlier::Zero,
        }
    }
}

impl From<Step> for LocalStep<'_> {
    fn from(step: Step) -> Self {
        Clocked::Utc(step).into()
    }
}

impl From<Unit> for LocalStep<'_> {
    fn from(unit: Unit) -> Self {
        Step::from(unit).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;

    /// A zone whose clock is set forward at hour 1,000 and back at hour 2,000.
    fn zone() -> Zone {
        Zone::new(
            HOUR_NS,
            [(1_000 * HOUR_NS, 2 * HOUR_NS), (2_000 * HOUR_NS, HOUR_NS)],
        )
    }

    #[test]
    fn every_instant_lies_in_the_step_to_which_its_later_one_belongs() {
        let zone = zone();
        let steps = [
            Step::from(Unit::Hour),
            Step::from(Unit::Day),
            Step::from(Unit::Week),
            Step::from(Unit::Month),
            Step::seconds(5 * 3_600).unwrap(),
            Step::seconds(900).unwrap(),
            Step::From(900 * HOUR_NS),
        ];
        for step in steps {
            for earlier in [
                Earlier::By(90 * 60_000_000_000),
                Earlier::By(7),
                Earlier::Days(&zone, 1),
                Earlier::Days(&zone, 7),
            ] {
                let local = step.by(Some(&zone)).earlier(earlier);
                let mut at_ns = local.start_ns(900 * HOUR_NS);
                let mut before_ns = i64::MIN;
                while at_ns < 2_200 * HOUR_NS {
                    let next_ns = local.next_ns(at_ns);
                    assert!(next_ns > at_ns, "{step:?} {earlier:?}");
                    let of_clock = local.clock_start_ns(at_ns);
                    assert!(of_clock > before_ns);
                    before_ns = of_clock;
                    assert_eq!(earlier.than_ns(of_clock), at_ns);
                    for within_ns in [at_ns, at_ns + (next_ns - at_ns) / 3, next_ns - 1] {
                        assert_eq!(
                            local.start_ns(within_ns),
                            at_ns,
                            "{step:?} {earlier:?} {within_ns}"
                        );
                        assert_eq!(local.next_ns(within_ns), next_ns);
                        assert_eq!(local.clock_start_ns(within_ns), of_clock);
                    }
                    if next_ns == i64::MAX {
                        break;
                    }
                    at_ns = next_ns;
                }
            }
        }
    }

    #[test]
    fn steps_that_follow_each_other_are_those_that_contain_the_times() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let zone = zone();
        for step in [
            Step::from(Unit::Minute),
            Step::from(Unit::Hour),
            Step::from(Unit::Week),
            Step::from(Unit::Month),
            Step::Year,
            Step::seconds(5 * 3_600).unwrap(),
            Step::seconds(7).unwrap(),
            Step::From(900 * HOUR_NS),
        ] {
            for local in [
                LocalStep::from(step),
                step.by(Some(&zone)),
                LocalStep::from(step).earlier(Earlier::By(90 * 60_000_000_000)),
                step.by(Some(&zone)).earlier(Earlier::Days(&zone, 1)),
            ] {
                let mut following = Following::new(local);
                let mut at_ns = [i64::MIN, 900 * HOUR_NS, i64::MAX - 40 * HOUR_NS][random.usize(..3)];
                for _ in 0..200 {
                    let expected = (local.start_ns(at_ns), local.next_ns(at_ns));
                    assert_eq!(following.containing(at_ns), expected, "{local:?} at {at_ns}");
                    let length_ns = expected.1.saturating_sub(expected.0);
                    at_ns = match random.u8(..6) {
                        0 => expected.1,
                        1 => at_ns,
                        2 => expected.1.saturating_sub(1).max(at_ns),
                        3 => at_ns.saturating_add(random.i64(0..50 * HOUR_NS)),
                        _ => at_ns.saturating_add(random.i64(0..=length_ns / 2)),
                    };
                }
            }
        }
    }

    #[test]
    fn a_day_earlier_the_clock_shows_the_same_time() {
        let zone = zone();
        let hours = Step::from(Unit::Hour)
            .by(Some(&zone))
            .earlier(Earlier::Days(&zone, 1));
        // Behind the change, the day before was 25 hours ago by the clock's count, and 23 by that of UTC.
        let after_ns = 1_010 * HOUR_NS;
        assert_eq!(Earlier::Days(&zone, 1).than_ns(after_ns), after_ns - 23 * HOUR_NS);
        assert_eq!(hours.clock_start_ns(after_ns - 23 * HOUR_NS), after_ns);
        // The hour that is skipped on the day of the change: its points of the day before belong to the change.
        let skipped_ns = 1_000 * HOUR_NS - 24 * HOUR_NS;
        assert_eq!(hours.clock_start_ns(skipped_ns), 1_000 * HOUR_NS);
        // The hour that comes twice on the day after: its second time, nothing was there the day before.
        let twice_ns = 1_999 * HOUR_NS;
        assert_eq!(hours.clock_start_ns(twice_ns - 24 * HOUR_NS), twice_ns);
        assert_eq!(hours.next_ns(twice_ns - 24 * HOUR_NS), twice_ns - 23 * HOUR_NS);
        assert_eq!(
            hours.clock_start_ns(twice_ns - 23 * HOUR_NS),
            twice_ns + 2 * HOUR_NS
        );
    }

    #[test]
    fn rollups_answer_where_their_cells_lie_within_a_step() {
        let day = Step::from(Unit::Day);
        let level = |ns: i64| LocalStep::from(day).earlier(Earlier::By(ns)).level();
        assert_eq!(level(7 * DAY_NS), day.level());
        assert_eq!(
            [level(5 * HOUR_NS), level(90 * 60_000_000_000)],
            [Some(1), Some(0)]
        );
        assert_eq!(level(1_000_000_000), None);
        let zone = zone();
        let local = day.by(Some(&zone)).earlier(Earlier::Days(&zone, 7));
        assert_eq!(local.level(), Some(1));
    }
}
