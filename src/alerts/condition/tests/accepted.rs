//! Phrasings of number fields that are understood.

use super::*;

#[test]
fn comparisons_in_words_and_signs() {
    assert_parsed(&[
        ("temperature exceeded 30", "temperature gt 30"),
        ("temperature went over 30", "temperature gt 30"),
        ("temperature is hotter than 30", "temperature gt 30"),
        ("temperature is up above 30", "temperature gt 30"),
        ("temperature fell below 30", "temperature lt 30"),
        ("temperature is colder than 30", "temperature lt 30"),
        ("temperature > 30", "temperature gt 30"),
        ("temperature>30", "temperature gt 30"),
        ("  temperature\t>\n30  ", "temperature gt 30"),
        ("temperature\u{a0}>\u{2003}30", "temperature gt 30"),
        ("temperature >= 30", "temperature gte 30"),
        ("temperature ≥ 30", "temperature gte 30"),
        ("temperature < 30", "temperature lt 30"),
        ("temperature <= 30", "temperature lte 30"),
        ("temperature ≤30", "temperature lte 30"),
        ("temperature = 30", "temperature eq 30"),
        ("temperature == 30", "temperature eq 30"),
        ("temperature != 30", "temperature neq 30"),
        ("temperature <> 30", "temperature neq 30"),
        ("temperature ≠ 30", "temperature neq 30"),
        ("temperature is > 30", "temperature gt 30"),
        ("temperature gt 30", "temperature gt 30"),
        ("temperature lte 30", "temperature lte 30"),
        ("temperature greater than 30", "temperature gt 30"),
        ("temperature is greater than 30", "temperature gt 30"),
        ("temperature is more than 30", "temperature gt 30"),
        ("temperature is higher than 30", "temperature gt 30"),
        ("temperature gets larger than 30", "temperature gt 30"),
        ("temperature becomes bigger than 30", "temperature gt 30"),
        ("temperature above 30", "temperature gt 30"),
        ("temperature is over 30", "temperature gt 30"),
        ("temperature goes above 30", "temperature gt 30"),
        ("temperature goes over 30", "temperature gt 30"),
        ("temperature stays above 30", "temperature gt 30"),
        ("temperature is currently above 30", "temperature gt 30"),
        ("temperature has gone beyond 30", "temperature gt 30"),
        ("temperature is in excess of 30", "temperature gt 30"),
        ("temperature exceeds 30", "temperature gt 30"),
        ("temperature has exceeded 30", "temperature gt 30"),
        ("temperature rises above 30", "temperature gt 30"),
        ("temperature climbs above 30", "temperature gt 30"),
        ("temperature climbs over 30", "temperature gt 30"),
        ("temperature rises to above 30", "temperature gt 30"),
        ("temperature has risen above 30", "temperature gt 30"),
        ("temperature increases above 30", "temperature gt 30"),
        ("temperature goes up above 30", "temperature gt 30"),
        ("temperature is not less than or equal to 30", "temperature gt 30"),
        ("temperature is at least 30", "temperature gte 30"),
        ("temperature no less than 30", "temperature gte 30"),
        ("temperature is no lower than 30", "temperature gte 30"),
        ("temperature is greater than or equal to 30", "temperature gte 30"),
        ("temperature is equal to or greater than 30", "temperature gte 30"),
        ("temperature is greater than or equals 30", "temperature gte 30"),
        ("temperature reaches or exceeds 30", "temperature gte 30"),
        ("temperature greater or equal to 30", "temperature gte 30"),
        ("temperature is not below 30", "temperature gte 30"),
        ("temperature isn't below 30", "temperature gte 30"),
        ("temperature isn’t less than 30", "temperature gte 30"),
        ("temperature is at or above 30", "temperature gte 30"),
        ("temperature is 30 or more", "temperature gte 30"),
        ("temperature is 30 °C or higher", "temperature gte 30"),
        ("temperature rises to at least 30", "temperature gte 30"),
        ("temperature exceeds or equals 30", "temperature gte 30"),
        ("temperature less than 30", "temperature lt 30"),
        ("temperature is lower than 30", "temperature lt 30"),
        ("temperature is smaller than 30", "temperature lt 30"),
        ("temperature is fewer than 30", "temperature lt 30"),
        ("temperature below 30", "temperature lt 30"),
        ("temperature is under 30", "temperature lt 30"),
        ("temperature drops below 30", "temperature lt 30"),
        ("temperature falls below 30", "temperature lt 30"),
        ("temperature goes below 30", "temperature lt 30"),
        ("temperature dips under 30", "temperature lt 30"),
        ("temperature falls to below 30", "temperature lt 30"),
        ("temperature has dropped below 30", "temperature lt 30"),
        ("temperature is dropping below 30", "temperature lt 30"),
        ("temperature is not at least 30", "temperature lt 30"),
        ("temperature is at most 30", "temperature lte 30"),
        ("temperature is no more than 30", "temperature lte 30"),
        ("temperature is not above 30", "temperature lte 30"),
        ("temperature not greater than 30", "temperature lte 30"),
        ("temperature does not exceed 30", "temperature lte 30"),
        ("temperature doesn't exceed 30", "temperature lte 30"),
        ("temperature is less than or equal to 30", "temperature lte 30"),
        ("temperature is at or below 30", "temperature lte 30"),
        ("temperature is 30 or less", "temperature lte 30"),
        ("temperature equals 30", "temperature eq 30"),
        ("temperature equals to 30", "temperature eq 30"),
        ("temperature equal to 30", "temperature eq 30"),
        ("temperature is equal to 30", "temperature eq 30"),
        ("temperature is 30", "temperature eq 30"),
        ("temperature is exactly 30", "temperature eq 30"),
        ("temperature reads 30", "temperature eq 30"),
        ("temperature becomes 30", "temperature eq 30"),
        ("temperature is the same as 30", "temperature eq 30"),
        ("temperature is not equal to 30", "temperature neq 30"),
        ("temperature not equal to 30", "temperature neq 30"),
        ("temperature is not 30", "temperature neq 30"),
        ("temperature isn't 30", "temperature neq 30"),
        ("temperature does not equal 30", "temperature neq 30"),
        ("temperature doesn’t equal 30", "temperature neq 30"),
        ("temperature differs from 30", "temperature neq 30"),
        ("temperature is different from 30", "temperature neq 30"),
        ("temperature is other than 30", "temperature neq 30"),
        ("temperature is not exactly 30", "temperature neq 30"),
    ]);
}

#[test]
fn words_around_a_condition() {
    assert_parsed(&[
        ("Notify the team when temperature > 30", "temperature gt 30"),
        (
            "I want to be notified if the temperature ever exceeds 30",
            "temperature gt 30",
        ),
        ("Alert: temperature > 30", "temperature gt 30"),
        ("Alert me when temperature is above 30.", "temperature gt 30"),
        ("alert if temperature > 30", "temperature gt 30"),
        ("Notify me when the temperature exceeds 30", "temperature gt 30"),
        ("TRIGGER WHEN TEMPERATURE IS GREATER THAN 30", "temperature gt 30"),
        ("When temperature drops below 30", "temperature lt 30"),
        ("if the value of the temperature is over 30", "temperature gt 30"),
        ("the reading of temperature is over 30", "temperature gt 30"),
        ("whenever temperature value is over 30!", "temperature gt 30"),
        (
            "Please let me know as soon as temperature > 30",
            "temperature gt 30",
        ),
        (
            "send me an alert if the field temperature > 30",
            "temperature gt 30",
        ),
        ("raise an alarm when temperature > 30", "temperature gt 30"),
        ("if temperature > 30 then alert me", "temperature gt 30"),
        (
            "When the temperature exceeds 30 °C, notify us.",
            "temperature gt 30",
        ),
        ("when the door is open, send an email", "door eq \"open\""),
        ("value > 3", "value gt 3"),
        ("the value is above 3", "value gt 3"),
        ("value of value is above 3", "value gt 3"),
        ("value of temperature is above 3", "temperature gt 3"),
    ]);
}

#[test]
fn ranges() {
    assert_parsed(&[
        ("temperature in 5..10", "temperature between [5,10]"),
        (
            "temperature is in the 5 to 10 °C range",
            "temperature between [5,10]",
        ),
        (
            "temperature is outside the 10 to 20 range",
            "temperature outside [10,20]",
        ),
        ("temperature is not in 10..20", "temperature outside [10,20]"),
        ("temperature between 10 and 20", "temperature between [10,20]"),
        ("temperature is between 10 and 20", "temperature between [10,20]"),
        (
            "temperature is in between 10 and 20",
            "temperature between [10,20]",
        ),
        (
            "temperature stays between 10 °C and 20 °C",
            "temperature between [10,20]",
        ),
        ("temperature is between -5 and 5", "temperature between [-5,5]"),
        ("temperature is between −5 and +5", "temperature between [-5,5]"),
        ("temperature in the range 5..10", "temperature between [5,10]"),
        (
            "temperature is in the range of 5 to 10",
            "temperature between [5,10]",
        ),
        (
            "temperature is in the range from 5 to 10 degrees",
            "temperature between [5,10]",
        ),
        ("temperature is in range 5–10", "temperature between [5,10]"),
        ("temperature is within 5 and 10", "temperature between [5,10]"),
        (
            "temperature is within the limits of 5 and 10",
            "temperature between [5,10]",
        ),
        ("temperature is inside 5 to 10", "temperature between [5,10]"),
        ("temperature is from 5 to 10", "temperature between [5,10]"),
        ("temperature falls between 5 and 10", "temperature between [5,10]"),
        (
            "temperature ranges between 5 and 10",
            "temperature between [5,10]",
        ),
        ("temperature from -10 to -5", "temperature between [-10,-5]"),
        ("temperature between -10--5", "temperature between [-10,-5]"),
        ("temperature between 7 and 7", "temperature between [7,7]"),
        (
            "temperature between 1,000 and 2,000.5",
            "temperature between [1000,2000.5]",
        ),
        (
            "temperature is not outside 10 to 20",
            "temperature between [10,20]",
        ),
        ("cpu usage between 10% and 20%", "cpu_usage between [10,20]"),
        ("depth between 5 in and 10 in", "depth between [5,10]"),
        ("temperature outside 10 to 20", "temperature outside [10,20]"),
        ("temperature is outside 10 to 20", "temperature outside [10,20]"),
        (
            "temperature goes outside of 10 and 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature is outside the range 10-20",
            "temperature outside [10,20]",
        ),
        (
            "temperature is outside of the range 10 - 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature outside the range 10°C-20°C",
            "temperature outside [10,20]",
        ),
        (
            "temperature is out of the range 10 to 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature is out of range 10 to 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature drifts outside 10 to 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature is not between 10 and 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature isn't in the range 10 to 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature is not within 10 to 20",
            "temperature outside [10,20]",
        ),
    ]);
}

#[test]
fn changes() {
    assert_parsed(&[
        ("pressure is up 12%", "pressure increases_by 12 percent"),
        ("pressure decreased by 3", "pressure decreases_by 3"),
        ("pressure is down by 3", "pressure decreases_by 3"),
        ("pressure increases by more than 5", "pressure increases_by 5"),
        ("pressure increases by 5", "pressure increases_by 5"),
        ("pressure increases by at least 5", "pressure increases_by 5"),
        ("pressure increases by over 5 bar", "pressure increases_by 5"),
        ("pressure increases more than 5", "pressure increases_by 5"),
        ("pressure has increased by 5 or more", "pressure increases_by 5"),
        ("pressure rises by 10%", "pressure increases_by 10 percent"),
        (
            "pressure rises by more than 10 %",
            "pressure increases_by 10 percent",
        ),
        (
            "pressure goes up by 10 per cent",
            "pressure increases_by 10 percent",
        ),
        ("pressure grows by 2.5 pct", "pressure increases_by 2.5 percent"),
        ("pressure is rising by 5", "pressure increases_by 5"),
        ("pressure jumps 12%", "pressure increases_by 12 percent"),
        ("pressure decreases by more than 3", "pressure decreases_by 3"),
        (
            "pressure decreases by more than 3 units",
            "pressure decreases_by 3",
        ),
        ("pressure drops by 20 percent", "pressure decreases_by 20 percent"),
        ("pressure drops by 20%.", "pressure decreases_by 20 percent"),
        ("pressure falls by 0.5 bar", "pressure decreases_by 0.5"),
        ("pressure falls more than 10%", "pressure decreases_by 10 percent"),
        ("pressure has fallen by 10%", "pressure decreases_by 10 percent"),
        ("pressure goes down by 1e3", "pressure decreases_by 1000"),
        (
            "pressure declines by 5 percentage points",
            "pressure decreases_by 5",
        ),
        ("cpu usage rises by 5%", "cpu_usage increases_by 5 percent"),
        ("speed drops by 5 km/h", "speed decreases_by 5"),
        (
            "request rate rises by 50 requests per second",
            "requestRate increases_by 50",
        ),
    ]);
}

#[test]
fn bounds_and_negations() {
    assert_parsed(&[
        ("temperature greater or equal 20", "temperature gte 20"),
        ("temperature is less or equal 20", "temperature lte 20"),
        ("temperature greater than or equal to 20", "temperature gte 20"),
        ("temperature 20 or above", "temperature gte 20"),
        ("temperature 20 °C or below", "temperature lte 20"),
        ("temperature at least 20", "temperature gte 20"),
        ("temperature at most 20", "temperature lte 20"),
        ("temperature not 30", "temperature neq 30"),
        ("temperature does not drop below 20", "temperature gte 20"),
        ("temperature doesn't rise above 20", "temperature lte 20"),
        ("temperature doesn't go above 20", "temperature lte 20"),
        (
            "temperature does not stay between 5 and 10",
            "temperature outside [5,10]",
        ),
        ("temperature does not differ from 20", "temperature eq 20"),
        ("temperature goes to 20", "temperature eq 20"),
        ("temperature is set to 20", "temperature eq 20"),
        ("temperature > 20 now", "temperature gt 20"),
        ("alert me when temperature > 20 please", "temperature gt 20"),
        (
            "temperature leaves the range 10 to 20",
            "temperature outside [10,20]",
        ),
        (
            "temperature leaves the 10 to 20 °C range",
            "temperature outside [10,20]",
        ),
        ("temperature exits 10..20", "temperature outside [10,20]"),
        (
            "temperature enters the range of 10 to 20",
            "temperature between [10,20]",
        ),
        (
            "temperature does not leave the range 10 to 20",
            "temperature between [10,20]",
        ),
    ]);
}

#[test]
fn changes_without_by() {
    assert_parsed(&[
        ("temperature up 5%", "temperature increases_by 5 percent"),
        ("temperature down 5%", "temperature decreases_by 5 percent"),
        ("temperature down more than 5", "temperature decreases_by 5"),
        ("temperature drop of more than 5", "temperature decreases_by 5"),
        ("a temperature drop of 5 °C", "temperature decreases_by 5"),
        (
            "temperature increase of 10%",
            "temperature increases_by 10 percent",
        ),
    ]);
}
