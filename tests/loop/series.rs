//! The real series in `tests/data`, and the expected values of a rule at each point, computed from the numbers alone.

use std::path::Path;

use crate::time::{HOUR, SECOND, date_of};
use crate::world::START;

/// One measurement, in nanoseconds since 1970, shifted so that the series begins shortly after the world.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub at: i64,
    pub value: f64,
}

/// A part of a file, as a range of its rows.
pub fn series(file: &str, rows: std::ops::Range<usize>) -> Vec<Point> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let all: Vec<Point> = text.lines().skip(1).map(point).collect();
    let mut part = all[rows].to_vec();
    // Shifted by whole hours, so that the hours have the same points.
    let shift = (*START - part[0].at).div_euclid(HOUR) * HOUR + HOUR;
    part.iter_mut().for_each(|point| point.at += shift);
    assert!(
        part.is_sorted_by(|a, b| a.at < b.at),
        "{file} goes forward in these rows"
    );
    part
}

fn point(line: &str) -> Point {
    let (at, value) = line.split_once(',').unwrap();
    let number = |range: std::ops::Range<usize>| at[range].parse::<i64>().unwrap();
    let date = (number(0..4), number(5..7), number(8..10));
    // The range of years in the files.
    let days = (15_000..18_000).find(|days| date_of(*days) == date).unwrap();
    let seconds = ((days * 24 + number(11..13)) * 60 + number(14..16)) * 60 + number(17..19);
    Point {
        at: seconds * SECOND,
        value: value.trim().parse().unwrap(),
    }
}

/// The value that a rule computes from its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The newest value.
    Last,
    /// The greatest value of the last hour with points.
    HourlyMax,
    /// The mean of the last hour with points.
    HourlyMean,
}

/// A rule of the replay.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pub name: &'static str,
    pub reading: Reading,
    pub window_seconds: i64,
    /// The rule is met above it, or below it when negated.
    pub threshold: f64,
    pub below: bool,
    pub dwell_seconds: i64,
}

impl Watch {
    /// The value of the window that ends at `now`; `None` if it is inconclusive.
    fn read(&self, points: &[Point], now: i64) -> Option<f64> {
        let from = now - self.window_seconds * SECOND;
        let seen: Vec<Point> = points
            .iter()
            .copied()
            .filter(|point| (from..=now).contains(&point.at))
            .collect();
        let last = seen.last()?;
        let hour = |at: i64| at.div_euclid(HOUR);
        let of_hour: Vec<f64> = seen
            .iter()
            .filter(|point| hour(point.at) == hour(last.at))
            .map(|point| point.value)
            .collect();
        Some(match self.reading {
            Reading::Last => last.value,
            Reading::HourlyMax => of_hour.iter().copied().fold(f64::MIN, f64::max),
            Reading::HourlyMean => of_hour.iter().sum::<f64>() / of_hour.len() as f64,
        })
    }

    /// The expected triggers of a rule that is evaluated at each of `moments` with the points until then: at every
    /// crossing except those within an excursion, which ends after the value was back for the length of the dwell.
    pub fn crossings(&self, points: &[Point], moments: &[i64]) -> Vec<i64> {
        let mut fired = Vec::new();
        let mut ever_met = false;
        let mut back_since: Option<i64> = None;
        for &now in moments {
            let Some(value) = self.read(points, now) else {
                continue;
            };
            let beyond = if self.below {
                value < self.threshold
            } else {
                value > self.threshold
            };
            if beyond {
                let over = back_since.is_some_and(|since| now - since >= self.dwell_seconds * SECOND);
                if !ever_met || over {
                    fired.push(now);
                }
                ever_met = true;
                back_since = None;
            } else if ever_met {
                back_since.get_or_insert(now);
            }
        }
        fired
    }
}
