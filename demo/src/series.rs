//! The recorded series, shifted in time so that they end when the demo starts. Their files are part of the Numenta
//! Anomaly Benchmark; the licence stands beside them.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::plant::{Field, number};

/// Where the files are if no directory is given: in the repository, in the unpacked tarball, and where the Debian
/// package and the Docker image install them.
const DIRECTORIES: [&str; 3] = ["tests/data", "series", "/usr/share/tidewatch/series"];

/// A recorded series.
pub struct Series {
    pub about: &'static About,
    /// Seconds and values, ascending by time.
    points: Vec<(i64, f64)>,
}

/// The data source of a series.
pub struct About {
    file: &'static str,
    pub name: &'static str,
    /// Shown to users.
    pub description: &'static str,
    pub kind: &'static str,
    /// Its only field.
    pub field: Field,
}

static ALL: [About; 3] = [
    About {
        file: "machine_temperature_system_failure.csv",
        name: "machine",
        description: "Temperature of a component of an industrial machine, with an anomaly a week before the end. \
                      Recorded (Numenta Anomaly Benchmark, MIT licence), moved in time",
        kind: "sensor",
        field: number("temperature", "°F", ""),
    },
    About {
        file: "nyc_taxi.csv",
        name: "taxis",
        description: "Taxi passengers in New York by the half-hour, with the snow storm of January 2015. Recorded \
                      (Numenta Anomaly Benchmark, MIT licence), moved in time",
        kind: "application",
        field: number("passengers", "people", ""),
    },
    About {
        file: "ec2_cpu_utilization_24ae8d.csv",
        name: "virtual-server",
        description: "Processor load of a virtual server. Recorded (Numenta Anomaly Benchmark, MIT licence), moved \
                      in time",
        kind: "service",
        field: number("cpu", "%", ""),
    },
];

/// Reads all series from `directory`, or else from the first of [`DIRECTORIES`] that has them. Returns none if no
/// directory is given and no default one has them.
///
/// # Errors
/// A file of the directory cannot be read.
pub fn read(directory: Option<&Path>) -> Result<Vec<Series>, String> {
    let has_series = |directory: &PathBuf| ALL.iter().all(|about| directory.join(about.file).exists());
    let mut defaults = DIRECTORIES.iter().map(PathBuf::from);
    let directory = directory
        .map(Path::to_owned)
        .or_else(|| defaults.find(has_series));
    let Some(directory) = directory else {
        return Ok(Vec::new());
    };
    let read_one = |about: &'static About| {
        let path = directory.join(about.file);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| format!("cannot read the series {}: {error}", path.display()))?;
        let mut points: Vec<(i64, f64)> = text.lines().skip(1).filter_map(parse_line).collect();
        points.sort_by_key(|(at_s, _)| *at_s);
        Ok(Series { about, points })
    };
    ALL.iter().map(read_one).collect()
}

impl Series {
    /// The points of the last `window_s` seconds, as seconds since the epoch and values, oldest first. The series is
    /// shifted to end at `end_s`.
    pub fn ending_at(&self, end_s: i64, window_s: i64) -> Vec<(i64, f64)> {
        let shift_s = self.points.last().map_or(0, |(at_s, _)| end_s - at_s);
        let shifted = self.points.iter().map(|(at_s, value)| (at_s + shift_s, *value));
        shifted.filter(|(at_s, _)| end_s - at_s <= window_s).collect()
    }
}

/// Parses a line such as `2014-02-22 22:30:00,0.066`.
fn parse_line(line: &str) -> Option<(i64, f64)> {
    let (time, value) = line.split_once(',')?;
    let time: DateTime = time.parse().ok()?;
    let at_s = TimeZone::UTC.to_timestamp(time).ok()?.as_second();
    Some((at_s, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END_S: i64 = 1_800_000_000;

    fn all() -> Vec<Series> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
        read(Some(&directory)).unwrap()
    }

    #[test]
    fn every_line_becomes_a_point_and_the_last_one_is_now() {
        for (series, points) in all().iter().zip([8_400, 10_320, 1_632]) {
            let all = series.ending_at(END_S, i64::MAX);
            assert_eq!(all.len(), points, "{}", series.about.name);
            assert_eq!(all.last().map(|(at_s, _)| *at_s), Some(END_S));
            assert!(all.is_sorted_by_key(|(at_s, _)| *at_s));
        }
    }

    #[test]
    fn only_the_window_is_read() {
        let taxis = all()[1].ending_at(END_S, 86_400);
        assert_eq!(taxis.len(), 49, "both ends are within");
        assert_eq!(taxis.first().map(|(at_s, _)| *at_s), Some(END_S - 86_400));
        assert_eq!(taxis.last().map(|(_, value)| *value), Some(26_288.0));
    }

    #[test]
    fn a_given_directory_without_the_files_is_refused() {
        let refusal = read(Some(Path::new("absent"))).err().unwrap();
        assert!(refusal.contains("absent/machine_temperature"), "{refusal}");
    }
}
