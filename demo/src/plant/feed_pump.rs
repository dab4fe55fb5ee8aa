//! The pump that fills the tank. It has a good bearing, which warms up while the pump runs and cools down afterwards.

use super::noise::Noise;
use super::tank::{self, CYCLE_S, FILLING_S};
use super::{Moment, Sample, air, rounded};

/// Time constant of the bearing's temperature: two thirds of the way to its final value after this time.
const WARMING_S: f64 = 900.0;
/// Final temperature of the running bearing above the air.
const HEAT: f64 = 48.0;

pub fn samples(noise: Noise, moment: Moment) -> Vec<Sample> {
    let place = moment.unix_s;
    let (_, within_s) = tank::cycle(moment.demo_s);
    let running = within_s < FILLING_S;
    let (vibration, flow) = if running {
        let slow = noise.of(1).drift(moment.demo_s, 900.0);
        (
            1.9 + 0.2 * slow + 0.1 * noise.of(2).scatter(place),
            61.0 + 1.5 * slow + 0.5 * noise.of(3).scatter(place),
        )
    } else {
        (0.05 + 0.02 * noise.of(2).at(place), 0.0)
    };
    let temperature = air::temperature(noise, moment) + HEAT * warm(within_s);
    vec![
        rounded(vibration, 2),
        rounded(temperature + 0.1 * noise.of(4).scatter(place), 1),
        rounded(flow, 1),
        Sample::Flag(running),
        Sample::Text("auto"),
    ]
}

/// How warm the bearing is, from 0 to 1. Periodic: the only course that is the same in every cycle.
fn warm(within_s: f64) -> f64 {
    let left = |seconds: f64| (-seconds / WARMING_S).exp();
    let when_stopped = (1.0 - left(FILLING_S)) / (1.0 - left(CYCLE_S));
    let when_started = when_stopped * left(CYCLE_S - FILLING_S);
    if within_s < FILLING_S {
        1.0 - (1.0 - when_started) * left(within_s)
    } else {
        when_stopped * left(within_s - FILLING_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warmth_curve_is_periodic() {
        assert!((warm(0.0) - warm(CYCLE_S - 1e-6)).abs() < 1e-6);
        assert!((warm(FILLING_S - 1e-6) - warm(FILLING_S)).abs() < 1e-6);
        assert!(warm(FILLING_S) > warm(0.0) + 0.3);
    }
}
