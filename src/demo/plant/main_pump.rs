//! The pump whose bearing wears out: vibration grows over the month before the demo, with bursts that grow with it.

use super::noise::{Noise, smooth};
use super::{Moment, Sample, air, rounded};

const DAY_S: f64 = 86_400.0;
/// The wear that the demo begins with took so long.
const WORN_WITHIN_S: f64 = 30.0 * DAY_S;

/// Bursts have a place of their own each so many seconds, which many leave empty.
const BURST_EVERY_S: f64 = 360.0;
/// The place of burst 0, in seconds since the demo began: within the window of the first evaluation.
const BURST_PLACE_S: f64 = -60.0;
/// Whole for so long to both sides of its middle, then gone within as long again. A point a minute finds each.
const BURST_WHOLE_S: f64 = 20.0;

/// Once a week the pump is stopped for two hours.
const SERVICE_EVERY_S: f64 = 7.0 * DAY_S;
const SERVICE_AFTER_S: f64 = 3.0 * DAY_S;
const SERVICE_S: f64 = 7_200.0;
/// A stopped bearing cools to a third in this time.
const COOLING_S: f64 = 1_800.0;
/// The bearing's temperature is behind the load by so much.
const LAG_S: f64 = 1_500.0;

pub fn samples(noise: Noise, moment: Moment) -> Vec<Sample> {
    let (place, demo_s) = (moment.unix_s, moment.demo_s);
    let load = load(noise, moment);
    let lagging = load_before(noise, moment, LAG_S);
    let since_service_s = (demo_s - SERVICE_AFTER_S).rem_euclid(SERVICE_EVERY_S);
    let running = since_service_s >= SERVICE_S;
    // A bearing that rattles does not do so evenly.
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

/// From 0 to 1: half of what it can when nobody works, most of it when the hall does.
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

/// From 0 for a new bearing to 1 when the demo begins, faster towards the end; a little more is possible.
fn wear(demo_s: f64) -> f64 {
    ((demo_s + WORN_WITHIN_S) / WORN_WITHIN_S).clamp(0.0, 1.1).powi(2)
}

/// What a burst adds, in mm/s.
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

/// How much of its heat the bearing has left, by the seconds since the last service began.
fn warm(since_service_s: f64) -> f64 {
    let cooled = |seconds: f64| (-seconds / COOLING_S).exp();
    if since_service_s < SERVICE_S {
        cooled(since_service_s)
    } else {
        1.0 - (1.0 - cooled(SERVICE_S)) * cooled(since_service_s - SERVICE_S)
    }
}

/// Now and then somebody takes over for an hour.
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
    fn it_wears_out() {
        let day = |first: i64| mean((0..1_440).map(|minute| vibration(first * 86_400 + minute * 60)));
        let (early, late) = (day(-29), day(-1));
        assert!(late > early + 1.0, "{early} then {late}");
    }

    #[test]
    fn a_point_a_minute_finds_each_burst_whole() {
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
        let samples = plant.samples(Sensor::MainPump, super::super::tests::BEGAN_S + began + 60);
        assert_eq!(
            samples[2..],
            [Sample::Number(0.0), Sample::Flag(false), Sample::Text("service")]
        );
    }
}
