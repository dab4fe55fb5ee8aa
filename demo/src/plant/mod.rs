//! A small simulated plant: sensor values are a function of a seed and a time. Pure.
//!
//! History and live points come from the same function, so they connect without a break. A rotating pump wears out over
//! the month before the demo, far enough for a rule to fire. A second pump fills a tank that empties again. The hall's
//! air follows days and working weeks. Called by the feed.

mod air;
mod feed_pump;
mod main_pump;
mod noise;
mod tank;

use serde::Serialize;

use noise::Noise;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Sample {
    Number(f64),
    /// One of a few words.
    Text(&'static str),
    Flag(bool),
}

/// A field of a data source, serialized as in a schema.
#[derive(Debug, Serialize)]
pub struct Field {
    #[serde(skip)]
    pub name: &'static str,
    /// `number`, `string` or `boolean`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Shown to users.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'static str,
}

/// A machine or room with sensors: a data source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensor {
    /// Runs continuously and wears out.
    MainPump,
    /// Runs while the tank is filled.
    FeedPump,
    /// Filled and emptied in cycles.
    Tank,
    /// The air of the hall.
    Air,
}

/// The plant, relative to the start of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    noise: Noise,
    start_s: i64,
}

/// A point in time on both time scales.
#[derive(Clone, Copy)]
struct Moment {
    /// Seconds since the epoch; determines days and weeks.
    unix_s: i64,
    /// Seconds since the start of the demo, negative before it. Determines wear and cycles, so that every demo is the
    /// same.
    demo_s: f64,
}

impl Plant {
    /// The plant for a seed and a demo that starts at `start_s`, seconds since the epoch.
    pub const fn new(seed: u64, start_s: i64) -> Self {
        Self {
            noise: Noise::new(seed),
            start_s,
        }
    }

    /// The values of a sensor's fields at `unix_s`, seconds since the epoch, in the order of its fields.
    pub fn samples(&self, sensor: Sensor, unix_s: i64) -> Vec<Sample> {
        let moment = Moment {
            unix_s,
            demo_s: (unix_s - self.start_s) as f64,
        };
        let noise = self.noise.of(sensor as u64);
        match sensor {
            Sensor::MainPump => main_pump::samples(noise, moment),
            Sensor::FeedPump => feed_pump::samples(noise, moment),
            Sensor::Tank => tank::samples(noise, moment),
            Sensor::Air => air::samples(noise, moment),
        }
    }
}

impl Sensor {
    pub const ALL: [Self; 4] = [Self::MainPump, Self::FeedPump, Self::Tank, Self::Air];

    /// Name of its source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MainPump => "pump-101",
            Self::FeedPump => "pump-102",
            Self::Tank => "tank-201",
            Self::Air => "hall-air",
        }
    }

    /// Shown to users.
    pub const fn description(self) -> &'static str {
        match self {
            Self::MainPump => "Circulation pump; its bearing is wearing out (simulated)",
            Self::FeedPump => "Feed pump of tank 201; runs while the tank is filled (simulated)",
            Self::Tank => "Buffer tank between feed and process (simulated)",
            Self::Air => "Air of the production hall (simulated)",
        }
    }

    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::MainPump | Self::FeedPump => PUMP_FIELDS,
            Self::Tank => tank::FIELDS,
            Self::Air => air::FIELDS,
        }
    }
}

/// Both pumps have the same sensors.
const PUMP_FIELDS: &[Field] = &[
    number("vibration", "mm/s", "Velocity at the bearing, RMS"),
    number(
        "bearing_temperature",
        "°C",
        "Follows the load, some minutes behind",
    ),
    number("flow", "m³/h", "Behind the pump"),
    field("running", "boolean", "Whether the motor turns"),
    field("mode", "string", "auto, manual or service"),
];

pub const fn number(name: &'static str, unit: &'static str, description: &'static str) -> Field {
    Field {
        unit: Some(unit),
        ..field(name, "number", description)
    }
}

const fn field(name: &'static str, kind: &'static str, description: &'static str) -> Field {
    Field {
        name,
        kind,
        unit: None,
        description,
    }
}

/// Rounds to the precision of the instrument.
fn rounded(value: f64, decimals: i32) -> Sample {
    let factor = 10_f64.powi(decimals);
    Sample::Number((value * factor).round() / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Wednesday.
    pub const START_S: i64 = 1_773_835_200;
    const DAY_S: i64 = 86_400;

    pub fn plant() -> Plant {
        Plant::new(1, START_S)
    }

    /// The value of a number field, `demo_s` seconds since the start of the demo.
    pub fn value(plant: &Plant, sensor: Sensor, field: &str, demo_s: i64) -> f64 {
        let place = sensor.fields().iter().position(|known| known.name == field);
        match plant.samples(sensor, plant.start_s + demo_s)[place.unwrap()] {
            Sample::Number(value) => value,
            other => panic!("{field} is no number: {other:?}"),
        }
    }

    #[test]
    fn samples_match_their_fields_and_are_plausible_at_any_time() {
        let plant = plant();
        for sensor in Sensor::ALL {
            for minute in -30 * 24 * 60..24 * 60 {
                let samples = plant.samples(sensor, START_S + minute * 60);
                assert_eq!(samples.len(), sensor.fields().len());
                for (field, sample) in sensor.fields().iter().zip(samples) {
                    let plausible = match (field.kind, field.unit, sample) {
                        ("number", Some("mm/s"), Sample::Number(v)) => (0.0..15.0).contains(&v),
                        ("number", Some("°C"), Sample::Number(v)) => (5.0..90.0).contains(&v),
                        ("number", Some("m³/h"), Sample::Number(v)) => (0.0..80.0).contains(&v),
                        ("number", Some("%"), Sample::Number(v)) => (0.0..=100.0).contains(&v),
                        ("boolean", None, Sample::Flag(_)) => true,
                        ("string", None, Sample::Text(word)) => ["auto", "manual", "service"].contains(&word),
                        _ => false,
                    };
                    assert!(
                        plausible,
                        "{sensor:?} {} at minute {minute}: {sample:?}",
                        field.name
                    );
                }
            }
        }
    }

    #[test]
    fn equal_seeds_give_equal_plants_and_others_differ() {
        let (one, other) = (plant(), Plant::new(2, START_S));
        for sensor in Sensor::ALL {
            let of = |plant: &Plant| -> Vec<_> {
                (0..100)
                    .map(|nth| plant.samples(sensor, START_S + nth * 60))
                    .collect()
            };
            assert_eq!(of(&one), of(&plant()));
            assert_ne!(of(&one), of(&other), "{sensor:?}");
        }
    }

    #[test]
    fn values_are_continuous_from_history_to_live() {
        let plant = plant();
        for (sensor, field, per_second_max) in [
            (Sensor::MainPump, "bearing_temperature", 0.5),
            (Sensor::FeedPump, "bearing_temperature", 0.5),
            (Sensor::Tank, "level", 0.5),
            (Sensor::Tank, "temperature", 0.3),
            (Sensor::Air, "temperature", 0.3),
            (Sensor::Air, "humidity", 0.8),
        ] {
            for second in -7_200..7_200 {
                let step = value(&plant, sensor, field, second + 1) - value(&plant, sensor, field, second);
                assert!(
                    step.abs() <= per_second_max,
                    "{field} of {sensor:?} moves by {step} in second {second}"
                );
            }
        }
    }

    #[test]
    fn the_feed_pump_runs_while_the_tank_rises() {
        let plant = plant();
        let mut seen = [0, 0];
        for second in (-2 * DAY_S..0).step_by(60) {
            let rises = value(&plant, Sensor::Tank, "level", second + 30)
                > value(&plant, Sensor::Tank, "level", second - 30);
            let at = |second| plant.samples(Sensor::FeedPump, START_S + second)[3];
            // Unless it starts or stops within that minute.
            if at(second - 30) == at(second + 30) {
                assert_eq!(at(second), Sample::Flag(rises), "second {second}");
                seen[usize::from(rises)] += 1;
            }
        }
        assert!(seen.iter().all(|times| *times > 100), "{seen:?}");
    }
}
