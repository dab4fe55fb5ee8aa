//! The tank: filled in twelve minutes and emptied in twenty-eight, to levels that differ in each cycle.

use super::noise::Noise;
use super::{Field, Moment, Sample, field, number, rounded};

/// Length of a cycle: filling and emptying.
pub const CYCLE_S: f64 = 2_400.0;
/// Length of the filling, at the start of a cycle.
pub const FILLING_S: f64 = 720.0;
/// Position in the cycle at which the demo starts: shortly before the next filling.
const START_S: f64 = 2_100.0;

pub const FIELDS: &[Field] = &[
    number("level", "%", "Of the tank's height"),
    number("temperature", "°C", "Of what is in it"),
    field("inlet_open", "boolean", "Whether the inlet valve is open"),
];

pub fn samples(noise: Noise, moment: Moment) -> Vec<Sample> {
    let (cycle, within_s) = cycle(moment.demo_s);
    let level = if within_s < FILLING_S {
        let (low, high) = (low(noise, cycle), high(noise, cycle));
        low + (high - low) * within_s / FILLING_S
    } else {
        let (high, low) = (high(noise, cycle), low(noise, cycle + 1));
        high + (low - high) * (within_s - FILLING_S) / (CYCLE_S - FILLING_S)
    };
    let temperature = 38.0 + 4.0 * noise.of(4).drift(moment.demo_s, 6.0 * 3_600.0);
    vec![
        rounded(level + 0.1 * noise.of(3).scatter(moment.unix_s), 1),
        rounded(temperature + 0.05 * noise.of(5).scatter(moment.unix_s), 1),
        Sample::Flag(within_s < FILLING_S),
    ]
}

/// Number of the cycle, and the time within it.
pub fn cycle(demo_s: f64) -> (i64, f64) {
    let since_s = demo_s + START_S;
    ((since_s / CYCLE_S).floor() as i64, since_s.rem_euclid(CYCLE_S))
}

/// Level at the start of a filling, in percent.
fn low(noise: Noise, cycle: i64) -> f64 {
    22.0 + 14.0 * noise.of(1).at(cycle)
}

/// Level at the end of a filling, in percent.
fn high(noise: Noise, cycle: i64) -> f64 {
    74.0 + 19.0 * noise.of(2).at(cycle)
}

#[cfg(test)]
mod tests {
    use super::super::Sensor;
    use super::super::tests::{plant, value};
    use super::*;

    #[test]
    fn each_cycle_rises_to_its_high_and_falls_to_its_low() {
        let plant = plant();
        let level = |demo_s: f64| value(&plant, Sensor::Tank, "level", demo_s as i64);
        for nth in -200..20 {
            let begin = f64::from(nth) * CYCLE_S - START_S;
            let high = level(begin + FILLING_S);
            for end in [begin, begin + CYCLE_S] {
                assert!((21.0..37.0).contains(&level(end)), "{}", level(end));
            }
            assert!((73.0..94.0).contains(&high), "{high}");
            let middle = level(begin + FILLING_S / 2.0);
            assert!((middle - (level(begin) + high) / 2.0).abs() < 0.5, "{middle}");
        }
    }
}
