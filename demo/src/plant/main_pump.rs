//! The pump with a worn bearing: vibration and its bursts grow over the month before the demo.

use super::noise::{Noise, smooth};
use super::{Moment, Sample, air, rounded};

const DAY_S: f64 = 86_400.0;
/// Time in which the wear at the start of the demo developed.
const WORN_WITHIN_S: f64 = 30.0 * DAY_S;

/// Interval of possible bursts; many are skipped.
const BURST_EVERY_S: f64 = 360.0;
/// Time of burst 0 in seconds since the start of the demo: within the window of the first evaluation.
const BURST_PLACE_S: f64 = -60.0;
/// A burst has full strength for this long on both sides of its middle, and fades out in the same time. One point per
/// minute is enough to catch each burst.
const BURST_WHOLE_S: f64 = 20.0;

/// The pump is stopped for service for two hours every week.
const SERVICE_EVERY_S: f64 = 7.0 * DAY_S;
const SERVICE_AFTER_S: f64 = 3.0 * DAY_S;
const SERVICE_S: f64 = 7_200.0;
/// Time in which a stopped bearing cools to about a third.
const COOLING_S: f64 = 1_800.0;
/// Delay of the bearing's temperature relative to the load.
const LAG_S: f64 = 1_500.0;

pub fn samples(noise: Noise, moment: Moment) -> Vec<Sample> {
    let (place, demo_s) = (moment.unix_s, moment.demo_s);
    let load = load(noise, moment);
    let lagging = load_before(noise, moment, LAG_S);
    let since_service_s = (demo_s - SERVICE_AFTER_S).rem_euclid(SERVICE_EVERY_S);
    let running = since_service_s >= SERVICE_S;
    // A worn bearing vibrates irregularly.
    let rough = 1.0 - 0.25 * noise.of(10).at(place);
    let vibration = if running {
        1.6 + 0.9 * load
            + 1.3 * wear(demo_s)
            + burst(noise, demo_s) * rough
            + 0.12 * noise.of(2).scatter(place)
    } else {
        0.05 + 0.02 * noise.of(2).at(place)
    };
    let heat = 20.0 + 22.0 * lagging + 8.0 * wear(demo_s);
    let temperature = air::temperature(noise, moment) + heat * warm(since_service_s);
    let flow = if running {
        46.0 * load + 0.4 * noise.of(3).scatter(place)
    } else {
        0.0
    };
    vec![
        rounded(vibration, 2),
        rounded(temperature + 0.1 * noise.of(4).scatter(place), 1),
        rounded(flow, 1),
        Sample::Flag(running),
        Sample::Text(mode(noise, place, running)),
    ]
}

/// Load from 0 to 1: about half outside working hours, higher within them.
fn load(noise: Noise, moment: Moment) -> f64 {
    let wander = 0.12 * noise.of(5).drift(moment.demo_s, 2_400.0);
    0.52 + 0.3 * air::working(moment.unix_s) + wander
}

fn load_before(noise: Noise, moment: Moment, seconds: f64) -> f64 {
    let earlier = Moment {
        unix_s: moment.unix_s - seconds as i64,
        demo_s: moment.demo_s - seconds,
    };
    load(noise, earlier)
}

/// Wear: 0 for a new bearing, 1 at the start of the demo, growing faster towards the end; limited slightly above 1.
fn wear(demo_s: f64) -> f64 {
    ((demo_s + WORN_WITHIN_S) / WORN_WITHIN_S).clamp(0.0, 1.1).powi(2)
}

/// Additional vibration of a burst, in mm/s.
fn burst(noise: Noise, demo_s: f64) -> f64 {
    let nth = ((demo_s - BURST_PLACE_S) / BURST_EVERY_S).round();
    let place = nth as i64;
    if noise.of(6).at(place) > 0.6 {
        return 0.0;
    }
    let middle_s = BURST_PLACE_S + nth * BURST_EVERY_S + BURST_WHOLE_S * noise.of(7).scatter(place);
    let height = (0.4 + 3.6 * wear(demo_s)) * (0.7 + 0.8 * noise.of(8).at(place));
    height * smooth(2.0 - (demo_s - middle_s).abs() / BURST_WHOLE_S)
}

/// Fraction of the bearing's heat that is left, by the seconds since the last service began.
fn warm(since_service_s: f64) -> f64 {
    let cooled = |seconds: f64| (-seconds / COOLING_S).exp();
    if since_service_s < SERVICE_S {
        cooled(since_service_s)
    } else {
        1.0 - (1.0 - cooled(SERVICE_S)) * cooled(since_service_s - SERVICE_S)
    }
}

/// Occasionally an operator switches to manual for an hour.
fn mode(noise: Noise, unix_s: i64, running: bool) -> &'static str {
    match running {
        false => "service",
        true if noise.of(9).at(unix_s.div_euclid(3_600)) < 0.06 => "manual",
        true => "auto",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sensor;
    use super::super::tests::{plant, value};
    use super::*;

    fn vibration(demo_s: i64) -> f64 {
        value(&plant(), Sensor::MainPump, "vibration", demo_s)
    }

    fn mean(of: impl Iterator<Item = f64>) -> f64 {
        let (sum, count) = of.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / f64::from(count)
    }

    #[test]
    fn vibration_grows_with_wear() {
        let day = |first: i64| mean((0..1_440).map(|minute| vibration(first * 86_400 + minute * 60)));
        let (early, late) = (day(-29), day(-1));
        assert!(late > early + 1.0, "{early} then {late}");
    }

    #[test]
    fn a_point_a_minute_samples_every_burst() {
        let noise = Noise::new(1);
        let minutes = (0..1_000).map(|nth| burst(noise, -f64::from(nth * 360 + 60)));
        let found = minutes.filter(|height| *height > 0.5).count();
        assert!((500..700).contains(&found), "{found} of 600 expected");
    }

    #[test]
    fn the_bearing_follows_the_load_and_cools_in_service() {
        let (plant, began) = (plant(), SERVICE_AFTER_S as i64);
        let temperature = |demo_s| value(&plant, Sensor::MainPump, "bearing_temperature", demo_s);
        let (before, during) = (temperature(began - 60), temperature(began + 7_000));
        let behind = temperature(began + 7_200 + 6 * 1_800);
        assert!(before > during + 20.0 && behind > during + 20.0);
        let samples = plant.samples(Sensor::MainPump, super::super::tests::START_S + began + 60);
        assert_eq!(
            samples[2..],
            [Sample::Number(0.0), Sample::Flag(false), Sample::Text("service")]
        );
    }
}
