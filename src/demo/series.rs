//! The recorded series of `tests/data`, shifted in time so that they end when the demo starts. Pure.
//!
//! They are part of the Numenta Anomaly Benchmark and are included in the binary with their licence, [`LICENCE`].

use crate::clock::SECOND_NS;
use crate::ingest::timestamp;

/// The full licence text of the series, which must accompany them.
pub const LICENCE: &str = include_str!("../../tests/data/LICENSE");

/// A recorded series.
pub struct Series {
    /// Name of its source.
    pub name: &'static str,
    /// Shown to users.
    pub description: &'static str,
    /// Type of its source.
    pub kind: &'static str,
    /// Name of its only field.
    pub field: &'static str,
    /// Unit of the field.
    pub unit: &'static str,
    csv: &'static str,
}

pub const ALL: [Series; 3] = [
    Series {
        name: "machine",
        description: "Temperature of a component of an industrial machine, with an anomaly a week before the end. \
                      Recorded (Numenta Anomaly Benchmark, MIT licence), moved in time",
        kind: "sensor",
        field: "temperature",
        unit: "°F",
        csv: include_str!("../../tests/data/machine_temperature_system_failure.csv"),
    },
    Series {
        name: "taxis",
        description: "Taxi passengers in New York by the half-hour, with the snow storm of January 2015. Recorded \
                      (Numenta Anomaly Benchmark, MIT licence), moved in time",
        kind: "application",
        field: "passengers",
        unit: "people",
        csv: include_str!("../../tests/data/nyc_taxi.csv"),
    },
    Series {
        name: "virtual-server",
        description: "Processor load of a virtual server. Recorded (Numenta Anomaly Benchmark, MIT licence), moved \
                      in time",
        kind: "service",
        field: "cpu",
        unit: "%",
        csv: include_str!("../../tests/data/ec2_cpu_utilization_24ae8d.csv"),
    },
];

impl Series {
    /// The points of the last `window_s` seconds, as seconds since the epoch and values, oldest first. The series is
    /// shifted to end at `end_s`.
    pub fn ending_at(&self, end_s: i64, window_s: i64) -> Vec<(i64, f64)> {
        let mut points: Vec<(i64, f64)> = self.csv.lines().skip(1).filter_map(point).collect();
        points.sort_by_key(|(at_s, _)| *at_s);
        let shift_s = points.last().map_or(0, |(at_s, _)| end_s - at_s);
        points.iter_mut().for_each(|(at_s, _)| *at_s += shift_s);
        points.retain(|(at_s, _)| end_s - *at_s <= window_s);
        points
    }
}

/// Parses a line such as `2014-02-22 22:30:00,0.066`.
fn point(line: &str) -> Option<(i64, f64)> {
    let (at, value) = line.split_once(',')?;
    let at_ns = timestamp::parse(&at.replacen(' ', "T", 1)).ok()?;
    Some((at_ns.div_euclid(SECOND_NS), value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END_S: i64 = 1_800_000_000;

    #[test]
    fn every_line_is_a_point_and_the_last_one_is_now() {
        for (series, points) in ALL.iter().zip([8_400, 10_320, 1_632]) {
            let all = series.ending_at(END_S, i64::MAX);
            assert_eq!(all.len(), points, "{}", series.name);
            assert_eq!(all.last().map(|(at_s, _)| *at_s), Some(END_S));
            assert!(all.is_sorted_by_key(|(at_s, _)| *at_s));
        }
    }

    #[test]
    fn only_the_window_is_taken() {
        let taxis = ALL[1].ending_at(END_S, 86_400);
        assert_eq!(taxis.len(), 49, "both ends are within");
        assert_eq!(taxis.first().map(|(at_s, _)| *at_s), Some(END_S - 86_400));
        assert_eq!(taxis.last().map(|(_, value)| *value), Some(26_288.0));
    }

    #[test]
    fn the_licence_goes_with_them() {
        assert!(LICENCE.contains("Numenta") && LICENCE.contains("Permission is hereby granted"));
    }
}
