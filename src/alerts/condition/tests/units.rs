//! Numbers followed by the unit of the field, another unit, or none.

use super::refused::check;
use super::*;

#[test]
fn numbers_and_units() {
    assert_parsed(&[
        ("temperature above 80 °C", "temperature gt 80"),
        ("temperature above 80°C", "temperature gt 80"),
        ("temperature above 80 ° C", "temperature gt 80"),
        ("temperature above 80 ℃", "temperature gt 80"),
        ("temperature above 30 degrees", "temperature gt 30"),
        ("temperature above 30 degrees celsius", "temperature gt 30"),
        ("engine temp above 30 deg F", "engine_temp gt 30"),
        ("temperature above 30 C", "temperature gt 30"),
        ("pressure above 80 %", "pressure gt 80"),
        ("cpu_usage above 90%", "cpu_usage gt 90"),
        ("cpu_usage above 90 percent", "cpu_usage gt 90"),
        ("speed above 5 km/h", "speed gt 5"),
        ("speed above 5km/h", "speed gt 5"),
        ("pressure above 1.5kWh", "pressure gt 1.5"),
        ("pressure above 1.5 kilowatt hours", "pressure gt 1.5"),
        ("pressure above 10 m³/h", "pressure gt 10"),
        ("pressure above 10 m3", "pressure gt 10"),
        ("pressure above 10 cubic meters per hour", "pressure gt 10"),
        ("pressure above 10 requests per second", "pressure gt 10"),
        ("pressure above 10 /min", "pressure gt 10"),
        ("pressure above 400 parts per million", "pressure gt 400"),
        ("pressure above 9.81 m/s^2", "pressure gt 9.81"),
        ("pressure above 5 N·m", "pressure gt 5"),
        ("pressure above 5 µg/m³", "pressure gt 5"),
        ("pressure above 5 Ω", "pressure gt 5"),
        ("pressure above 16 A", "pressure gt 16"),
        ("pressure above $500", "pressure gt 500"),
        ("pressure above 500 €", "pressure gt 500"),
        ("depth above 5 in", "depth gt 5"),
        ("time over limit above 5 seconds", "time over limit gt 5"),
        ("pressure above 1,000", "pressure gt 1000"),
        ("pressure above 1,234,567.5", "pressure gt 1234567.5"),
        ("pressure above 1000000", "pressure gt 1000000"),
        ("pressure above 1e3", "pressure gt 1000"),
        ("pressure above 1.5E-3", "pressure gt 0.0015"),
        ("pressure above 2e+2 bar", "pressure gt 200"),
        ("pressure above +5", "pressure gt 5"),
        ("pressure above -5", "pressure gt -5"),
        ("pressure above −5", "pressure gt -5"),
        ("pressure>-5", "pressure gt -5"),
        ("pressure below -0", "pressure lt 0"),
        ("pressure above .5", "pressure gt 0.5"),
        ("pressure above 5.", "pressure gt 5"),
        ("pressure above 007", "pressure gt 7"),
        ("pressure above 9007199254740993", "pressure gt 9007199254740992"),
        ("pressure above 5 eV", "pressure gt 5"),
    ]);
}

#[test]
fn numbers_in_words() {
    assert_parsed(&[
        ("temperature drops below zero", "temperature lt 0"),
        ("pressure is zero", "pressure eq 0"),
        ("pressure is not zero", "pressure neq 0"),
        ("temperature is below minus 10 °C", "temperature lt -10"),
        (
            "temperature is between minus 5 and zero",
            "temperature between [-5,0]",
        ),
    ]);
}

#[test]
fn all_spellings_of_the_unit_of_a_field() {
    assert_parsed(&[
        ("temperature > 30 celsius", "temperature gt 30"),
        ("temperature > 30 Degrees Centigrade", "temperature gt 30"),
        ("temperature > 30 ºC", "temperature gt 30"),
        ("temperature > 30 c", "temperature gt 30"),
        ("TEMPERATURE > 30 DEGREES", "temperature gt 30"),
        ("temperature rises by 5 degrees", "temperature increases_by 5"),
        ("cpu usage > 90 per cent", "cpu_usage gt 90"),
        ("cpu usage > 90 percentage points", "cpu_usage gt 90"),
        (
            "cpu usage drops by 5 percentage points",
            "cpu_usage decreases_by 5",
        ),
        ("temperature > 90 percent", "temperature gt 90"),
        ("speed > 5 kph", "speed gt 5"),
        ("speed > 5 KM/H", "speed gt 5"),
        ("speed > 5 kilometers per hour", "speed gt 5"),
        ("speed > 5 km / h", "speed gt 5"),
        ("depth > 5 inches", "depth gt 5"),
        ("co2 > 400 parts per million", "co2 gt 400"),
        ("Füllstand < 5 L", "Füllstand lt 5"),
        ("Füllstand < 5 litres", "Füllstand lt 5"),
        ("time over limit > 5 sec", "time over limit gt 5"),
        (
            "time over limit rises by 5 seconds",
            "time over limit increases_by 5",
        ),
        ("above ground level < 5 m", "above_ground_level lt 5"),
        ("above ground level < 5 metres", "above_ground_level lt 5"),
        ("request rate > 50 requests/s", "requestRate gt 50"),
        ("request rate > 50 req/sec", "requestRate gt 50"),
        ("queue > 5 widgets", "queue gt 5"),
        ("QUEUE > 5 WIDGETS", "queue gt 5"),
        ("queue drops by 5 widgets", "queue decreases_by 5"),
        ("energy > 5 kilowatt-hours", "energy gt 5"),
        ("energy > 5 kW·h", "energy gt 5"),
        ("energy > 5 kwh", "energy gt 5"),
        ("voltage > 11 volts", "voltage gt 11"),
        ("voltage > 11 V", "voltage gt 11"),
        ("latency > 5 milliseconds", "latency gt 5"),
        ("latency > 5ms", "latency gt 5"),
        ("heat > 300 K", "heat gt 300"),
        ("heat > 300 kelvin", "heat gt 300"),
        ("heat > 300 degrees", "heat gt 300"),
        ("cost > $500", "cost gt 500"),
        ("cost > 500 dollars", "cost gt 500"),
        ("price > 0.30 EUR/kWh", "price gt 0.3"),
        ("price > 0.30 eur / kwh", "price gt 0.3"),
        ("price > 0.30", "price gt 0.3"),
    ]);
}

#[test]
fn known_units_for_a_field_without_a_unit() {
    assert_parsed(&[
        ("pressure > 5 kpa", "pressure gt 5"),
        ("pressure > 5 hPa", "pressure gt 5"),
        ("pressure > 5 mbar", "pressure gt 5"),
        ("pressure > 5 psi", "pressure gt 5"),
        ("pressure > 5 rpm", "pressure gt 5"),
        ("pressure > 5 hz", "pressure gt 5"),
        ("pressure > 5 µm", "pressure gt 5"),
        ("pressure > 5 GiB", "pressure gt 5"),
        ("pressure > 5 Mbit/s", "pressure gt 5"),
        ("pressure > 5 %RH", "pressure gt 5"),
        ("pressure > 5 feet", "pressure gt 5"),
        ("pressure > 5 users", "pressure gt 5"),
        ("if pressure > 5 message me", "pressure gt 5"),
        ("pressure > 5 degC", "pressure gt 5"),
        ("pressure > 5 errors", "pressure gt 5"),
        ("pressure > 5 messages per second", "pressure gt 5"),
        ("pressure > 5 minutes", "pressure gt 5"),
        ("pressure > 5 newton meters", "pressure gt 5"),
        ("pressure > 5 square feet", "pressure gt 5"),
        ("pressure > 5 USD", "pressure gt 5"),
    ]);
}

#[test]
fn words_after_a_number_that_are_not_units() {
    let schema = machine();
    for text in [
        "pressure > 3 trillions",
        "pressure > 1 lakhs",
        "pressure > 3 crores",
        "pressure > 3 Mrd",
        "pressure > 3 bil",
        "pressure > 3 grand",
        "pressure > 5 T",
        "pressure > 5 kilo",
        "pressure > 5 mega",
        "pressure > 3 tens",
        "pressure > 3 twofold",
        "pressure > 3 z-score",
        "pressure > 3 stdevs",
        "pressure > 3 dev",
        "pressure > 3 deviations",
        "pressure > 3 averages",
        "pressure > 5ish",
        "pressure > 5 m",
        "pressure > 5m",
        "pressure > 5 B",
        "pressure > 5 pm",
        "pressure > 5 visitors",
        "pressure > 5 apples",
        "pressure > 5 bar rising",
        "humidity exceeds 20 rising",
        "humidity exceeds 20 falling",
        "humidity exceeds 20 jump",
        "humidity exceeds 20 increase",
        "humidity exceeds 20 baseline",
        "humidity exceeds 20 normal",
        "humidity exceeds 20 setpoint",
        "humidity exceeds 20 limit",
        "humidity exceeds 20 threshold",
        "humidity exceeds 20 combined",
        "humidity exceeds 20 summer",
        "humidity exceeds 20 March",
        "humidity exceeds 20 somewhere",
        "humidity exceeds 20 maybe",
        "humidity exceeds 20 temperature",
        "humidity exceeds 20 max",
        "humidity exceeds 20 us-wide",
        "queue > 5 Widget",
    ] {
        let error = parse(text, &schema).unwrap_err();
        assert!(
            matches!(error, ConditionError::NotUnderstood(_))
                && fault(&error).contains("is not understood at"),
            "{text:?}: {error}"
        );
    }
    check(&[
        (
            "humidity exceeds 20 baseline",
            "at \"baseline\" (no unit that is known; one that the schema gives the field",
        ),
        ("humidity drops 20 minutes", "may be a duration"),
        ("humidity drops by 5 hours", "may be a duration"),
        ("visitors drops by 5 per day", "rate of change"),
    ]);
}

#[test]
fn units_that_differ_from_that_of_the_field() {
    check(&[
        (
            "voltage < 11 kV",
            "at \"kV\": the field is in V, and nothing is converted; write the number in V, or without a unit",
        ),
        ("voltage between 11 and 12 kV", "the field is in V"),
        ("voltage between 11 mV and 12 V", "the field is in V"),
        ("voltage drops by 5 kV", "the field is in V"),
        ("voltage > $5", "the field is in V"),
        ("voltage > 5 V/s", "the field is in V"),
        ("voltage > 5 minutes", "the field is in V"),
        ("latency exceeds 2 seconds", "the field is in ms"),
        ("latency exceeds 2 s", "the field is in ms"),
        ("temperature > 30 °F", "the field is in °C"),
        ("temperature > 30 degrees fahrenheit", "the field is in °C"),
        ("temperature > 30 kelvin", "the field is in °C"),
        ("temperature drops by 5 percentage points", "the field is in °C"),
        ("temperature 20 °F or above", "the field is in °C"),
        ("energy > 5 MWh", "the field is in kWh"),
        ("energy > 5 kW", "the field is in kWh"),
        ("speed > 5 mph", "the field is in km/h"),
        ("speed > 5 m/s", "the field is in km/h"),
        ("speed > 5 km·h⁻¹", "the field is in km/h"),
        ("price > €0.30/kWh", "the field is in EUR/kWh"),
        ("price > 0.30 euros per kilowatt hour", "the field is in EUR/kWh"),
        ("price > 0.30 EUR/MWh", "the field is in EUR/kWh"),
        (
            "queue > 5 gadgets",
            "at \"gadgets\" (no unit that is known; the field is in widgets)",
        ),
        ("queue drops by 5 widgets per day", "may be a rate of change"),
        ("cost > 5 €", "the field is in USD"),
        ("queue > 5 kg", "the field is in widgets"),
        ("queue > 5 requests", "the field is in widgets"),
        ("cpu usage > 5 °C", "the field is in %"),
        ("co2 > 5 ppb", "the field is in ppm"),
    ]);
}
