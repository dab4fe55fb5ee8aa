//! The hall's air: warmer by day and during working hours, Monday to Friday (UTC).

use std::f64::consts::TAU;

use super::noise::{Noise, smooth};
use super::{Field, Moment, Sample, number, rounded};

const DAY_S: i64 = 86_400;
const HOUR_S: f64 = 3_600.0;

pub const FIELDS: &[Field] = &[
    number("temperature", "°C", "Under the roof"),
    number("humidity", "%", "Relative"),
];

pub fn samples(noise: Noise, moment: Moment) -> Vec<Sample> {
    let temperature = temperature(noise, moment);
    let wet = 7.0 * noise.of(3).drift(moment.demo_s, 20.0 * HOUR_S);
    let humidity = (52.0 - 1.6 * (temperature - 19.0) + wet).clamp(15.0, 95.0);
    let place = moment.unix_s;
    vec![
        rounded(temperature + 0.08 * noise.of(4).scatter(place), 1),
        rounded(humidity + 0.2 * noise.of(5).scatter(place), 1),
    ]
}

/// In °C, without measurement noise.
pub fn temperature(noise: Noise, moment: Moment) -> f64 {
    // Warmest at 15:00.
    let of_day = (moment.unix_s.rem_euclid(DAY_S) as f64 - 15.0 * HOUR_S) / DAY_S as f64;
    let weather = 2.0 * noise.of(1).drift(moment.demo_s, 60.0 * HOUR_S);
    18.0 + 2.5 * (TAU * of_day).cos() + 3.5 * working(moment.unix_s) + weather
}

/// Activity in the hall from 0 to 1: from 6:00 to 22:00, Monday to Friday.
pub fn working(unix_s: i64) -> f64 {
    let weekday = (unix_s.div_euclid(DAY_S) + 3).rem_euclid(7);
    if weekday >= 5 {
        return 0.0;
    }
    let hour = unix_s.rem_euclid(DAY_S) as f64 / HOUR_S;
    // Starting and stopping takes an hour each.
    smooth(hour - 5.5) - smooth(hour - 21.5)
}

#[cfg(test)]
mod tests {
    use super::super::Sensor;
    use super::super::tests::{START_S, plant, value};
    use super::*;

    #[test]
    fn days_are_warmer_than_nights_and_working_days_than_weekends() {
        let plant = plant();
        let midnight = START_S.div_euclid(DAY_S) * DAY_S - START_S;
        let at = |day: i64, hour: i64| {
            let demo_s = midnight + day * DAY_S + hour * 3_600;
            value(&plant, Sensor::Air, "temperature", demo_s)
        };
        // The weather changes more slowly than a day; days 0 and -1 are Wednesday and Tuesday, -3 and -4 Sunday and
        // Saturday.
        for week in 0..4 {
            let of = |day: i64, hour: i64| at(day - 7 * week, hour);
            for day in [-1, 0] {
                assert!(of(day, 15) > of(day, 3) + 3.0, "week {week}, day {day}");
            }
        }
        let mean = |days: [i64; 2]| {
            let weeks = (0..4).flat_map(|week| days.map(|day| at(day - 7 * week, 12)));
            weeks.sum::<f64>() / 8.0
        };
        assert!(mean([-1, 0]) > mean([-3, -4]) + 1.5);
    }
}
