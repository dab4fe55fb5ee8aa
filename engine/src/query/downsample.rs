//! Automatic downsampling: estimates the number of points in a range, and chooses a unit that gives few enough rows.

use crate::calendar::Unit;
use crate::series::SeriesStats;
use crate::step::Step;
use crate::zone::Zone;

/// Above this number of expected points, data is downsampled, to at most as many rows if a unit achieves that.
const POINTS_MAX: u64 = 500;

/// The expected data of one source in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Number of points, estimated from the source's average interval.
    pub points: u64,
    /// The range, clipped to the existing points; both ends inclusive.
    range_ns: (i64, i64),
}

impl Expected {
    /// The expectation for a source in `range_ns`, both ends inclusive; `None` if it has no point in the range.
    pub fn of(stats: SeriesStats, range_ns: (i64, i64)) -> Option<Expected> {
        let (first, last) = stats.bounds_ns?;
        let range_ns = (range_ns.0.max(first), range_ns.1.min(last));
        if range_ns.0 > range_ns.1 {
            return None;
        }
        let points = match stats.average_interval_ns() {
            Some(interval) if interval > 0.0 => {
                let span = range_ns.1 as f64 - range_ns.0 as f64;
                // A regular series of n points spans n − 1 intervals; the small term prevents rounding from losing one.
                ((span / interval + 1e-6) as u64)
                    .saturating_add(1)
                    .min(stats.points)
            }
            // A single point, or all at the same time.
            _ => stats.points,
        };
        Some(Expected { points, range_ns })
    }
}

/// The decision to downsample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downsampling {
    /// The step to group by.
    pub step: Step,
    /// Total number of expected points.
    pub expected_points: u64,
}

/// The finest unit whose expected rows, summed over the sources, are at most 500, otherwise months. `None` if at most
/// 500 points are expected.
pub fn choose_unit(sources: &[Expected]) -> Option<Downsampling> {
    let points = sources.iter().map(|expected| expected.points);
    let expected_points = points.fold(0, u64::saturating_add);
    if expected_points <= POINTS_MAX {
        return None;
    }
    let rows = |unit: Unit| {
        let rows = sources.iter().map(|expected| {
            unit.cells(expected.range_ns.0, expected.range_ns.1)
                .min(expected.points)
        });
        rows.fold(0u64, u64::saturating_add)
    };
    let unit = Unit::ALL
        .into_iter()
        .find(|unit| rows(*unit) <= POINTS_MAX)
        .unwrap_or(Unit::Month);
    Some(Downsampling {
        step: unit.into(),
        expected_points,
    })
}

/// Steps of charts in seconds, from the finest to the coarsest.
const CHART_SECONDS: [u32; 12] = [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200];

/// The finest step with which none of these sources gives more than `rows_max` rows, steps without points included;
/// months if none is coarse enough. Steps are counted by the clock of the zone, if given, otherwise in UTC. `None` if
/// no source has more points than that.
pub fn finest_step(sources: &[SeriesStats], rows_max: u64, zone: Option<&Zone>) -> Option<Downsampling> {
    if sources.iter().all(|stats| stats.points <= rows_max) {
        return None;
    }
    let few_enough = |step: &Step| {
        let mut bounds = sources.iter().filter_map(|stats| stats.bounds_ns);
        let step = step.by(zone);
        bounds.all(|(first, last)| step.cells(first, last) <= rows_max)
    };
    let lengths = CHART_SECONDS.into_iter().filter_map(Step::seconds);
    let step = lengths
        .chain([Unit::Day, Unit::Week].map(Step::from))
        .find(few_enough);
    let points = sources.iter().map(|stats| stats.points);
    Some(Downsampling {
        step: step.unwrap_or(Unit::Month.into()),
        expected_points: points.fold(0, u64::saturating_add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const ALL: (i64, i64) = (i64::MIN, i64::MAX);

    fn regular(points: u64, interval_s: i64) -> SeriesStats {
        SeriesStats {
            points,
            bounds_ns: Some((0, (points as i64 - 1) * interval_s * SECOND)),
        }
    }

    fn choice(stats: SeriesStats, range_ns: (i64, i64)) -> Option<Downsampling> {
        choose_unit(&Expected::of(stats, range_ns).into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn five_hundred_points_are_returned_raw() {
        assert_eq!(choice(regular(500, 60), ALL), None);
        let more = choice(regular(501, 60), ALL).unwrap();
        assert_eq!((more.step, more.expected_points), (Unit::Hour.into(), 501));
    }

    #[test]
    fn the_finest_unit_with_few_enough_rows_is_chosen() {
        assert_eq!(
            choice(regular(3_000, 1), ALL).unwrap().step,
            Step::Unit(Unit::Minute)
        );
        assert_eq!(
            choice(regular(100_000, 1), ALL).unwrap().step,
            Step::Unit(Unit::Hour)
        );
        assert_eq!(
            choice(regular(100_000, 300), ALL).unwrap().step,
            Step::Unit(Unit::Day)
        );
        assert_eq!(
            choice(regular(100_000, 3_600), ALL).unwrap().step,
            Step::Unit(Unit::Month)
        );
        assert_eq!(
            choice(regular(1_000, 8_640_000), ALL).unwrap().step,
            Unit::Month.into(),
            "nothing coarser exists"
        );
    }

    #[test]
    fn the_range_is_clipped_to_the_points_that_exist() {
        let stats = regular(1_000, 1);
        assert_eq!(choice(stats, (0, 499 * SECOND)), None);
        assert_eq!(choice(stats, (0, 500 * SECOND)).unwrap().expected_points, 501);
        assert_eq!(choice(stats, (2_000 * SECOND, i64::MAX)), None);
        assert_eq!(choice(stats, (i64::MIN, -1)), None);
    }

    #[test]
    fn sources_add_up() {
        let one = Expected::of(regular(300, 60), ALL).unwrap();
        assert_eq!(choose_unit(&[one]), None);
        assert_eq!(choose_unit(&[one, one]).unwrap().expected_points, 600);
    }

    #[test]
    fn points_at_one_instant_are_counted() {
        let stats = SeriesStats {
            points: 600,
            bounds_ns: Some((5, 5)),
        };
        assert_eq!(choice(stats, ALL).unwrap().expected_points, 600);
    }
}
