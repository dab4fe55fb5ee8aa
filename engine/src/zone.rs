//! Time steps by the clock of a time zone. A zone's clock shows UTC plus an offset, which changes occasionally; the
//! source of these changes is outside of this module.
//!
//! A step of hours begins whenever the clock shows its start: if a clock time occurs twice, the step begins twice; if
//! it is skipped, the step begins at the change. Days and longer steps begin at the first instant of their date.

use std::iter;

use crate::calendar::{Dates, Unit};
use crate::rollup::{HOUR, MINUTE};
use crate::step::{HOUR_NS, Length, Step};

const MINUTE_NS: i64 = 60_000_000_000;

/// The offsets of a zone's clock over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// In ascending order; the first one starts at the beginning of time.
    stretches: Box<[Stretch]>,
    /// The coarsest rollup level whose cells lie within one step of any kind.
    level: Option<usize>,
}

/// A period with a constant offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from_ns: i64,
    offset_ns: i64,
    /// Upper bound (exclusive) of the clock times shown up to its end.
    reached_ns: i64,
}

impl Stretch {
    /// The clock time at its start.
    fn start_reading_ns(self) -> i64 {
        self.from_ns.saturating_add(self.offset_ns)
    }
}

/// A time step by the clock of a zone, or in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clocked<'z> {
    /// In UTC.
    Utc(Step),
    /// A length of whole hours.
    Hours(&'z Zone, Length),
    /// Days and longer.
    Dates(&'z Zone, Dates),
}

impl Zone {
    /// A zone with this offset before its first change; each change is a time and the offset from then on, in ascending
    /// order.
    pub fn new(offset_ns: i64, changes: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let stretch = |(from_ns, offset_ns)| Stretch {
            from_ns,
            offset_ns,
            reached_ns: i64::MAX,
        };
        let first = (i64::MIN, offset_ns);
        let mut stretches: Box<[Stretch]> = iter::once(first).chain(changes).map(stretch).collect();
        let mut reached_ns = i64::MIN;
        for index in 1..stretches.len() {
            let until_ns = stretches[index].from_ns;
            let before = &mut stretches[index - 1];
            reached_ns = reached_ns.max(until_ns.saturating_add(before.offset_ns));
            before.reached_ns = reached_ns;
        }
        let all_are = |length: i64| {
            let is = |ns: i64| ns == i64::MIN || ns % length == 0;
            stretches
                .iter()
                .all(|it| is(it.from_ns) && it.offset_ns % length == 0)
        };
        let level = match () {
            () if all_are(HOUR_NS) => Some(HOUR),
            () if all_are(MINUTE_NS) => Some(MINUTE),
            () => None,
        };
        Zone { stretches, level }
    }

    /// The coarsest rollup level whose cells lie within one step of any kind.
    pub(crate) fn level(&self) -> Option<usize> {
        self.level
    }

    fn index_of(&self, at_ns: i64) -> usize {
        self.stretches.partition_point(|it| it.from_ns <= at_ns) - 1
    }

    /// The clock time at an instant.
    pub(crate) fn reading_ns(&self, at_ns: i64) -> i64 {
        at_ns.saturating_add(self.stretches[self.index_of(at_ns)].offset_ns)
    }

    /// Upper bound (exclusive) of the clock times shown before an instant.
    pub(crate) fn reached_ns(&self, at_ns: i64) -> i64 {
        let index = self.index_of(at_ns.saturating_sub(1));
        let reading_ns = at_ns.saturating_add(self.stretches[index].offset_ns);
        let before = index
            .checked_sub(1)
            .map(|before| self.stretches[before].reached_ns);
        before.map_or(reading_ns, |before_ns| reading_ns.max(before_ns))
    }

    /// The end of a period, and the clock time that would be shown at that instant without the change.
    fn end_of(&self, index: usize) -> Option<(i64, i64)> {
        let end_ns = self.stretches.get(index + 1)?.from_ns;
        Some((end_ns, end_ns.saturating_add(self.stretches[index].offset_ns)))
    }

    /// Whether a step of hours begins with a period: the clock shows its start then, or has just skipped it.
    fn begins_with(&self, index: usize, length: Length) -> bool {
        let reads = self.stretches[index].start_reading_ns();
        let Some((_, read)) = index.checked_sub(1).and_then(|before| self.end_of(before)) else {
            return true;
        };
        let next_beginning = match length.into_ns(read) {
            0 => read,
            _ => length.next_ns(read),
        };
        length.into_ns(reads) == 0 || (read < reads && next_beginning < reads)
    }

    fn hour_start_ns(&self, at_ns: i64, length: Length) -> i64 {
        let mut index = self.index_of(at_ns);
        let mut at_ns = at_ns;
        loop {
            let stretch = self.stretches[index];
            let into = length.into_ns(at_ns.saturating_add(stretch.offset_ns));
            let start_ns = at_ns.saturating_sub(into);
            if start_ns >= stretch.from_ns {
                return start_ns;
            }
            if self.begins_with(index, length) {
                return stretch.from_ns;
            }
            // It began before the change.
            at_ns = stretch.from_ns - 1;
            index -= 1;
        }
    }

    fn hour_next_ns(&self, at_ns: i64, length: Length) -> i64 {
        let mut index = self.index_of(at_ns);
        let mut at_ns = at_ns;
        loop {
            let offset_ns = self.stretches[index].offset_ns;
            let into = length.into_ns(at_ns.saturating_add(offset_ns));
            let next_ns = at_ns.saturating_add(length.ns() - into);
            let Some((end_ns, _)) = self.end_of(index).filter(|(end_ns, _)| *end_ns <= next_ns) else {
                return next_ns;
            };
            index += 1;
            if self.begins_with(index, length) {
                return end_ns;
            }
            at_ns = end_ns;
        }
    }

    /// Number of steps of hours that begin after the first instant, up to the last.
    fn hours_begun(&self, (first_ns, last_ns): (i64, i64), length: Length) -> u64 {
        let begun = |index: usize| {
            let stretch = self.stretches[index];
            let end_ns = self.end_of(index).map_or(i64::MAX, |(end_ns, _)| end_ns - 1);
            let before_ns = first_ns.max(stretch.from_ns.saturating_sub(1));
            let lengths_by = |ns: i64| length.index(ns.saturating_add(stretch.offset_ns));
            let at_change = stretch.from_ns > first_ns
                && length.into_ns(stretch.start_reading_ns()) != 0
                && self.begins_with(index, length);
            lengths_by(last_ns.min(end_ns)).abs_diff(lengths_by(before_ns)) + u64::from(at_change)
        };
        (self.index_of(first_ns)..=self.index_of(last_ns))
            .map(begun)
            .sum()
    }

    /// The first instant at which the clock has reached a clock time.
    pub(crate) fn first_at(&self, reading_ns: i64) -> i64 {
        let index = self.stretches.partition_point(|it| it.reached_ns <= reading_ns);
        // The last period never ends.
        let stretch = self.stretches[index.min(self.stretches.len() - 1)];
        reading_ns.saturating_sub(stretch.offset_ns).max(stretch.from_ns)
    }

    /// The clock time at which the day of a moment began. A day that has begun continues even if the clock is set back
    /// before its midnight.
    fn day_of(&self, at_ns: i64) -> i64 {
        let offset_ns = self.stretches[self.index_of(at_ns)].offset_ns;
        let reading_ns = at_ns.saturating_add(offset_ns);
        let next_ns = Unit::Day.next_ns(reading_ns);
        match self.first_at(next_ns) <= at_ns {
            true => next_ns,
            false => Unit::Day.start_ns(reading_ns),
        }
    }
}

impl<'z> Clocked<'z> {
    /// Hours, lengths of whole hours, days and longer steps follow the zone's clock. All others are as in UTC.
    pub(crate) fn new(step: Step, zone: Option<&'z Zone>) -> Self {
        let Some(zone) = zone else {
            return Clocked::Utc(step);
        };
        if let Some(dates) = step.dates() {
            return Clocked::Dates(zone, dates);
        }
        match step {
            Step::Unit(Unit::Hour) => Clocked::Hours(zone, Length::HOUR),
            Step::Length(length) if length.ns() % HOUR_NS == 0 => Clocked::Hours(zone, length),
            _ => Clocked::Utc(step),
        }
    }

    /// Start of the step that contains `at_ns`. Saturates at the limits of 64-bit timestamps.
    #[inline]
    pub(crate) fn start_ns(self, at_ns: i64) -> i64 {
        match self {
            Clocked::Utc(step) => step.start_ns(at_ns),
            Clocked::Hours(zone, length) => zone.hour_start_ns(at_ns, length),
            Clocked::Dates(zone, dates) => zone.first_at(dates.start_ns(zone.day_of(at_ns))),
        }
    }

    /// Start of the step after the one that contains `at_ns`.
    pub(crate) fn next_ns(self, at_ns: i64) -> i64 {
        match self {
            Clocked::Utc(step) => step.next_ns(at_ns),
            Clocked::Hours(zone, length) => zone.hour_next_ns(at_ns, length),
            Clocked::Dates(zone, dates) => {
                let mut reading_ns = dates.next_ns(zone.day_of(at_ns));
                // A date that the zone skipped has no instant of its own.
                loop {
                    let next_ns = zone.first_at(reading_ns);
                    if next_ns > at_ns {
                        return next_ns;
                    }
                    // At the end of time, no step follows.
                    if reading_ns == i64::MAX {
                        return i64::MAX;
                    }
                    reading_ns = dates.next_ns(reading_ns);
                }
            }
        }
    }

    /// Number of steps that the range touches, both ends inclusive. A date that a zone skipped is counted.
    pub(crate) fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        match self {
            Clocked::Utc(step) => step.cells(first_ns, last_ns),
            _ if last_ns < first_ns => 0,
            Clocked::Hours(zone, length) => zone.hours_begun((first_ns, last_ns), length).saturating_add(1),
            Clocked::Dates(zone, dates) => dates.cells(zone.day_of(first_ns), zone.day_of(last_ns)),
        }
    }

    /// The coarsest rollup level whose cells each lie within one step; `None` if the step is finer than all levels.
    pub(crate) fn level(self) -> Option<usize> {
        match self {
            Clocked::Utc(step) => step.level(),
            Clocked::Hours(zone, _) | Clocked::Dates(zone, _) => zone.level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_NS: i64 = 30 * MINUTE_NS;
    const DAY_NS: i64 = 24 * HOUR_NS;
    /// Half hours that are tested.
    const HALVES: i64 = 48 * 60;

    /// Offsets in half hours, changing every few days, occasionally by a whole day.
    fn random_zone(random: &mut fastrand::Rng) -> (Zone, Vec<i64>) {
        let mut offset = random.i64(-24..=24);
        let (first, mut changes, mut offsets) = (offset, Vec::new(), Vec::new());
        let mut next = random.i64(1..400);
        for half in 0..HALVES {
            if half == next {
                let by = match random.u8(..8) {
                    0 => 48,
                    1 => -48,
                    _ => random.i64(-4..=4),
                };
                offset = (offset + by).clamp(-52, 52);
                changes.push((half * HALF_NS, offset * HALF_NS));
                next = half + random.i64(150..500);
            }
            offsets.push(offset * HALF_NS);
        }
        (Zone::new(first * HALF_NS, changes), offsets)
    }

    /// The half hours at which a step begins, determined by reading the clock at each of them.
    fn beginnings(offsets: &[i64], step: Clocked<'_>) -> Vec<i64> {
        let mut reached = i64::MIN;
        let mut found = Vec::new();
        for half in 1..offsets.len() {
            let at_ns = half as i64 * HALF_NS;
            let (before, reads) = (at_ns + offsets[half - 1], at_ns + offsets[half]);
            let begins = match step {
                Clocked::Utc(step) => panic!("{step:?} is of no zone"),
                Clocked::Hours(_, length) => {
                    // Monday, 1970-01-05, 00:00.
                    let is_beginning = |reading: i64| (reading - 4 * DAY_NS) % length.ns() == 0;
                    let mut passed = (before.min(reads)..reads).step_by(HALF_NS as usize);
                    is_beginning(reads) || passed.any(is_beginning)
                }
                Clocked::Dates(_, dates) => {
                    // All clock times so far were less than this.
                    reached = reached.max(before);
                    dates.start_ns(reads) >= reached
                }
            };
            if begins {
                found.push(at_ns);
            }
        }
        found
    }

    #[test]
    fn steps_begin_at_local_clock_times() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let (zone, offsets) = random_zone(&mut random);
            for step in [
                Step::from(Unit::Hour),
                Step::seconds(3 * 3_600).unwrap(),
                Step::seconds(12 * 3_600).unwrap(),
                Step::seconds(5 * 3_600).unwrap(),
                Step::seconds(36 * 3_600).unwrap(),
                Step::from(Unit::Day),
                Step::seconds(2 * 86_400).unwrap(),
                Step::seconds(10 * 86_400).unwrap(),
                Step::from(Unit::Week),
                Step::from(Unit::Month),
            ] {
                let step = Clocked::new(step, Some(&zone));
                let expected = beginnings(&offsets, step);
                let first = expected.partition_point(|beginning| *beginning < 10 * DAY_NS);
                let Some(mut at_ns) = expected.get(first).copied() else {
                    continue;
                };
                let from_ns = at_ns + random.i64(0..HALF_NS);
                for (more, beginning) in (1..).zip(&expected[first..]) {
                    let cells = step.cells(from_ns, (beginning + random.i64(0..HALF_NS)).max(from_ns));
                    let passed_over = cells.checked_sub(more);
                    assert!(
                        passed_over == Some(0)
                            || (matches!(step, Clocked::Dates(..)) && passed_over.is_some()),
                        "{cells} {step:?} up to {beginning}, not {more}"
                    );
                }
                for beginning in &expected[first..] {
                    assert_eq!(step.start_ns(at_ns), *beginning, "{step:?}");
                    let next_ns = step.next_ns(at_ns);
                    assert_eq!(
                        step.start_ns(next_ns - 1),
                        *beginning,
                        "{step:?} before {next_ns}"
                    );
                    assert_eq!(step.next_ns(next_ns - 1), next_ns, "{step:?}");
                    at_ns = next_ns;
                }
            }
        }
    }

    #[test]
    fn a_zone_knows_which_rollups_it_cuts() {
        assert_eq!(
            Zone::new(-5 * HOUR_NS, [(HOUR_NS, -4 * HOUR_NS)]).level,
            Some(HOUR)
        );
        assert_eq!(Zone::new(11 * HALF_NS, []).level, Some(MINUTE));
        assert_eq!(Zone::new(-1, []).level, None);
        assert_eq!(Zone::new(0, [(HALF_NS, HOUR_NS)]).level, Some(MINUTE));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let zone = Zone::new(-12 * HOUR_NS, [(0, 14 * HOUR_NS)]);
        for step in [
            Step::from(Unit::Hour),
            Step::from(Unit::Day),
            Step::from(Unit::Month),
            Step::seconds(Step::SECONDS_MAX).unwrap(),
            Step::Year,
        ] {
            for edge in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                let step = Clocked::new(step, Some(&zone));
                let _ = (step.start_ns(edge), step.next_ns(edge));
            }
        }
    }
}
