//! Steps by the clock of a time zone. What a zone's clock shows is UTC and an offset, which changes now and then; where
//! these changes come from is not this file's matter.
//!
//! A step of hours begins whenever the clock reads its beginning: at a reading that comes twice it begins twice, and at
//! one that is passed over it begins at the change. Days and longer begin at the first instant of their date.

use std::iter;

use crate::calendar::Unit;
use crate::rollup::{HOUR, MINUTE};

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// The offsets of a zone's clock over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Ascending; the first is from the beginning of time.
    stretches: Box<[Stretch]>,
    /// The coarsest rollup level whose cells none of its steps cuts.
    level: Option<usize>,
}

/// A time with one offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from_ns: i64,
    offset_ns: i64,
    /// The latest reading that the clock has come near to by its end.
    reached_ns: i64,
}

/// A step of time by the clock of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalStep<'z> {
    zone: &'z Zone,
    length: LocalLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalLength {
    /// Whole hours that divide a day, in nanoseconds.
    Hours(i64),
    /// A day, or longer.
    Days(Unit),
}

impl Zone {
    /// With this offset before its first change, and from each change on another one. Changes are ascending.
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

    /// Steps of so many nanoseconds: whole hours that divide a day.
    pub(crate) fn hours(&self, ns: i64) -> LocalStep<'_> {
        LocalStep {
            zone: self,
            length: LocalLength::Hours(ns),
        }
    }

    /// Days, weeks or months.
    pub(crate) fn days(&self, unit: Unit) -> LocalStep<'_> {
        LocalStep {
            zone: self,
            length: LocalLength::Days(unit),
        }
    }

    fn index_of(&self, at_ns: i64) -> usize {
        self.stretches.partition_point(|it| it.from_ns <= at_ns) - 1
    }

    /// The last instant of a stretch, and what the clock is about to read then.
    fn end_of(&self, index: usize) -> Option<(i64, i64)> {
        let next = self.stretches.get(index + 1)?;
        Some((
            next.from_ns,
            next.from_ns.saturating_add(self.stretches[index].offset_ns),
        ))
    }

    /// Whether a step of hours begins with a stretch: the clock then reads its beginning, or has just passed over one.
    fn begins_with(&self, index: usize, length_ns: i64) -> bool {
        let Stretch {
            from_ns, offset_ns, ..
        } = self.stretches[index];
        let reads = from_ns.saturating_add(offset_ns);
        let Some((_, read)) = index.checked_sub(1).and_then(|before| self.end_of(before)) else {
            return true;
        };
        let next_beginning = read.saturating_add(read.wrapping_neg().rem_euclid(length_ns));
        reads.rem_euclid(length_ns) == 0 || (read < reads && next_beginning < reads)
    }

    fn hour_start_ns(&self, at_ns: i64, length_ns: i64) -> i64 {
        let mut index = self.index_of(at_ns);
        let mut at_ns = at_ns;
        loop {
            let Stretch {
                from_ns, offset_ns, ..
            } = self.stretches[index];
            let into = at_ns.saturating_add(offset_ns).rem_euclid(length_ns);
            let start_ns = at_ns.saturating_sub(into);
            if start_ns >= from_ns {
                return start_ns;
            }
            if self.begins_with(index, length_ns) {
                return from_ns;
            }
            // It began before the change.
            at_ns = from_ns - 1;
            index -= 1;
        }
    }

    fn hour_next_ns(&self, at_ns: i64, length_ns: i64) -> i64 {
        let mut index = self.index_of(at_ns);
        let mut at_ns = at_ns;
        loop {
            let offset_ns = self.stretches[index].offset_ns;
            let into = at_ns.saturating_add(offset_ns).rem_euclid(length_ns);
            let next_ns = at_ns.saturating_add(length_ns - into);
            let Some((end_ns, _)) = self.end_of(index).filter(|(end_ns, _)| *end_ns <= next_ns) else {
                return next_ns;
            };
            index += 1;
            if self.begins_with(index, length_ns) {
                return end_ns;
            }
            at_ns = end_ns;
        }
    }

    /// The first instant at which the clock has reached a reading.
    fn first_at(&self, reading_ns: i64) -> i64 {
        let index = self.stretches.partition_point(|it| it.reached_ns <= reading_ns);
        // The last stretch never ends.
        let Stretch {
            from_ns, offset_ns, ..
        } = self.stretches[index.min(self.stretches.len() - 1)];
        reading_ns.saturating_sub(offset_ns).max(from_ns)
    }

    /// The reading at which the day of a moment began. A day that has begun goes on, also where the clock goes back
    /// behind its midnight.
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

impl LocalStep<'_> {
    /// The same step by another clock.
    pub(crate) fn in_zone<'o>(self, zone: &'o Zone) -> LocalStep<'o> {
        LocalStep {
            zone,
            length: self.length,
        }
    }

    pub(crate) fn level(self) -> Option<usize> {
        self.zone.level
    }

    pub(crate) fn start_ns(self, at_ns: i64) -> i64 {
        match self.length {
            LocalLength::Hours(ns) => self.zone.hour_start_ns(at_ns, ns),
            LocalLength::Days(unit) => self.zone.first_at(unit.start_ns(self.zone.day_of(at_ns))),
        }
    }

    pub(crate) fn next_ns(self, at_ns: i64) -> i64 {
        match self.length {
            LocalLength::Hours(ns) => self.zone.hour_next_ns(at_ns, ns),
            LocalLength::Days(unit) => {
                let mut reading_ns = unit.next_ns(self.zone.day_of(at_ns));
                // A date that the zone passed over has no instant of its own.
                loop {
                    let next_ns = self.zone.first_at(reading_ns);
                    if next_ns > at_ns || reading_ns == i64::MAX {
                        return next_ns;
                    }
                    reading_ns = unit.next_ns(reading_ns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;

    const HALF_NS: i64 = 30 * MINUTE_NS;
    const DAY_NS: i64 = 24 * HOUR_NS;
    /// Half hours that are looked at.
    const HALVES: i64 = 48 * 60;

    /// Offsets of half hours, changing every few days, now and then by a whole day.
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

    /// The half hours at which a step begins, told by reading the clock at each of them.
    fn beginnings(offsets: &[i64], step: Step<'_>) -> Vec<i64> {
        let Step::Local(LocalStep { length, .. }) = step else {
            panic!("{step:?} is of a zone");
        };
        let mut reached = i64::MIN;
        let mut found = Vec::new();
        for half in 1..offsets.len() {
            let at_ns = half as i64 * HALF_NS;
            let (before, reads) = (at_ns + offsets[half - 1], at_ns + offsets[half]);
            let begins = match length {
                LocalLength::Hours(ns) => {
                    let passed = (before.min(reads)..reads).step_by(HALF_NS as usize);
                    reads % ns == 0 || passed.into_iter().any(|reading| reading % ns == 0)
                }
                LocalLength::Days(unit) => {
                    // All readings so far were less than this.
                    reached = reached.max(before);
                    unit.start_ns(reads) >= reached
                }
            };
            if begins {
                found.push(at_ns);
            }
        }
        found
    }

    #[test]
    fn steps_begin_where_the_clock_says() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let (zone, offsets) = random_zone(&mut random);
            for step in [
                Step::from(Unit::Hour),
                Step::seconds(3 * 3_600).unwrap(),
                Step::seconds(12 * 3_600).unwrap(),
                Step::from(Unit::Day),
                Step::from(Unit::Week),
                Step::from(Unit::Month),
            ] {
                let step = step.in_zone(&zone);
                let expected = beginnings(&offsets, step);
                let first = expected.partition_point(|beginning| *beginning < 10 * DAY_NS);
                let Some(mut at_ns) = expected.get(first).copied() else {
                    continue;
                };
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
    fn a_zone_tells_which_rollups_it_cuts() {
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
        ] {
            for edge in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                let step = step.in_zone(&zone);
                let _ = (step.start_ns(edge), step.next_ns(edge));
            }
        }
    }
}
