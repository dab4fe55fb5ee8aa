//! Straight lines and smoothing over the samples of a range.

use super::counter::Window;
use super::kahan::Sum;
use crate::error::Error;

/// The line of least squares: its slope per second and its value at an instant.
pub(crate) fn line(window: Window<'_>, at_ms: i64) -> Option<(f64, f64)> {
    let &[first, _, ..] = window.values else {
        return None;
    };
    if window.values.iter().all(|value| *value == first) {
        return Some(if first.is_infinite() {
            (f64::NAN, f64::NAN)
        } else {
            (0.0, first)
        });
    }
    let count = window.values.len() as f64;
    let [mut x, mut y, mut xy, mut xx] = [Sum::default(); 4];
    for (time, value) in window.times.iter().zip(window.values) {
        let seconds = (time - at_ms) as f64 / 1000.0;
        x.add(seconds);
        y.add(*value);
        xy.add(seconds * value);
        xx.add(seconds * seconds);
    }
    let (x, y) = (x.total(), y.total());
    let covariance = xy.total() - x * y / count;
    let variance = xx.total() - x * x / count;
    let slope = covariance / variance;
    Some((slope, y / count - slope * x / count))
}

/// Holt's double exponential smoothing with two factors between 0 and 1: the last smoothed value.
pub(crate) fn smoothed(values: &[f64], smoothing: f64, trend: f64) -> Result<Option<f64>, Error> {
    for (name, factor) in [("smoothing", smoothing), ("trend", trend)] {
        if factor <= 0.0 || factor >= 1.0 {
            return Err(Error::execution(format!(
                "invalid {name} factor: it has to be between 0 and 1, both excluded, and is {factor}"
            )));
        }
    }
    let &[first, second, ..] = values else {
        return Ok(None);
    };
    let (mut before, mut level) = (0.0, first);
    let mut slope = second - first;
    for (index, value) in values[1..].iter().enumerate() {
        if index > 0 {
            slope = trend * (level - before) + (1.0 - trend) * slope;
        }
        before = level;
        level = smoothing * value + (1.0 - smoothing) * (level + slope);
    }
    Ok(Some(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_on_a_line_is_that_line() {
        let window = Window {
            times: &[0, 10_000, 20_000],
            values: &[5.0, 25.0, 45.0],
            start_ms: 0,
            end_ms: 20_000,
        };
        let (slope, at) = line(window, 20_000).unwrap();
        assert!((slope - 2.0).abs() < 1e-12 && (at - 45.0).abs() < 1e-12);
        assert!(
            line(
                Window {
                    times: &[0],
                    values: &[1.0],
                    ..window
                },
                0
            )
            .is_none()
        );
        assert_eq!(
            line(
                Window {
                    values: &[3.0; 3],
                    ..window
                },
                0
            ),
            Some((0.0, 3.0))
        );
    }

    #[test]
    fn smoothing_follows_a_line_and_checks_its_factors() {
        assert_eq!(smoothed(&[1.0, 2.0, 3.0, 4.0], 0.5, 0.5).unwrap(), Some(4.0));
        assert_eq!(smoothed(&[1.0], 0.5, 0.5).unwrap(), None);
        for (smoothing, trend) in [(0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.5)] {
            assert!(smoothed(&[1.0, 2.0], smoothing, trend).is_err());
        }
    }
}
