//! Conditions generated from the grammar's parts, with their expected meaning.

use super::*;

/// A field, its spelling, and its units after numbers and after changes.
type FieldParts = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const FIELDS: &[FieldParts] = &[
    (
        "temperature",
        &["temperature", "Temperature", "TEMPERATURE", "\"temperature\""],
        &["", "°C", " C", " degrees", " degrees Celsius", "℃", " %"],
        &["", " °C", " degrees", " celsius"],
    ),
    (
        "cpu_usage",
        &["cpu_usage", "CPU usage", "cpu-usage", "cpuUsage", "`cpu usage`"],
        &["", "%", " %", " percent", " per cent"],
        &["", " percentage points"],
    ),
    (
        "engine_temp",
        &["engine_temp", "Engine Temp", "engine   temp", "'Engine-Temp'"],
        UNITS,
        UNITS_OF_CHANGES,
    ),
    ("temp 2", &["temp 2", "temp2", "Temp_2"], UNITS, UNITS_OF_CHANGES),
    (
        "Füllstand",
        &["Füllstand", "füllstand", "FÜLLSTAND"],
        &["", " l", " L", " litres", " liters"],
        &["", " l", " liter"],
    ),
    (
        "time over limit",
        &["time over limit", "Time Over Limit", "time_over_limit"],
        &["", "s", " sec", " seconds"],
        &["", " s", " second"],
    ),
    (
        "above_ground_level",
        &["above_ground_level", "above ground level"],
        &["", "m", " m", " metres", " meters"],
        &["", "m", " meter"],
    ),
    ("value", &["value", "Value"], UNITS, UNITS_OF_CHANGES),
];

const COMPARISONS: &[(Operator, &[&str])] = &[
    (
        Operator::Gt,
        &[
            ">",
            "is above",
            "exceeds",
            "is greater than",
            "goes over",
            "rises above",
            "is not at most",
        ],
    ),
    (
        Operator::Gte,
        &[
            ">=",
            "≥",
            "is at least",
            "is not below",
            "no less than",
            "greater than or equal to",
        ],
    ),
    (
        Operator::Lt,
        &[
            "<",
            "is below",
            "drops below",
            "has fallen under",
            "is smaller than",
            "isn't at least",
        ],
    ),
    (
        Operator::Lte,
        &[
            "<=",
            "≤",
            "is at most",
            "does not exceed",
            "isn’t over",
            "no more than",
        ],
    ),
    (
        Operator::Eq,
        &["=", "==", "is", "equals", "is equal to", "is exactly", "becomes"],
    ),
    (
        Operator::Neq,
        &[
            "!=",
            "<>",
            "≠",
            "is not",
            "isn't",
            "does not equal",
            "is not equal to",
            "differs from",
        ],
    ),
];

const RANGES: &[(Operator, &[&str])] = &[
    (
        Operator::Between,
        &[
            "between",
            "is between",
            "is in the range",
            "within",
            "stays inside",
            "is from",
            "is not outside",
        ],
    ),
    (
        Operator::Outside,
        &[
            "outside",
            "is outside of",
            "outside the range",
            "is out of range",
            "isn't between",
            "not within",
        ],
    ),
];

const CHANGES: &[(Operator, &[&str])] = &[
    (
        Operator::IncreasesBy,
        &[
            "increases by",
            "rises by more than",
            "has grown by over",
            "jumps",
            "goes up by at least",
        ],
    ),
    (
        Operator::DecreasesBy,
        &[
            "decreases by",
            "drops by more than",
            "falls more than",
            "has sunk by",
            "is going down by",
        ],
    ),
];

const OPENINGS: &[&str] = &[
    "",
    "the ",
    "when ",
    "if the ",
    "Alert me when ",
    "Notify us if the value of ",
    "TRIGGER WHEN THE ",
    "please send me an alert as soon as the ",
    "alarm in case the reading of the ",
];
/// Units of fields that declare none.
const UNITS: &[&str] = &[
    "",
    "°C",
    " °C",
    " degrees",
    " degrees Fahrenheit",
    " %",
    "%",
    " percent",
    " km/h",
    " kWh",
    " m³/h",
    " bar",
    " requests per second",
    " square meters",
    "µg/m³",
    " €",
    " kilowatt hours",
    " m/s^2",
];
const UNITS_OF_CHANGES: &[&str] = &[
    "",
    " °C",
    " degrees",
    " bar",
    "kWh",
    " m³",
    " percentage points",
    " units",
    " $",
];
const PERCENT: &[&str] = &["%", " %", " percent", " per cent", " pct"];
const BETWEEN: &[&str] = &[" and ", " to ", " - ", " – ", "..", " ... "];
const CLOSINGS: &[&str] = &["", ".", "!", " ", ", alert me", " then notify us."];

struct Random(fastrand::Rng);

impl Random {
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.usize(..choices.len())]
    }

    /// A phrase of the table in random case and with random white space.
    fn phrase(&mut self, table: &[(Operator, &'static [&'static str])]) -> (Operator, String) {
        let (operator, phrases) = self.of(table);
        let phrase = self.of(phrases);
        let phrase = match self.of(&[0, 0, 1, 2]) {
            0 => phrase.to_owned(),
            1 => phrase.to_uppercase(),
            _ => phrase.replace(' ', " \t "),
        };
        (operator, phrase)
    }

    /// A number and one of its spellings.
    fn number(&mut self, lowest: i64) -> (f64, String) {
        let thousandths = self.0.i64(lowest..=9_999_999);
        let value = thousandths as f64 / 1_000.0;
        let (whole, fraction) = (thousandths.abs() / 1_000, thousandths.abs() % 1_000);
        let digits = match self.of(&[0, 1, 2, 3]) {
            0 => format!("{}", value.abs()),
            1 => format!("{:e}", value.abs()),
            2 if whole >= 1_000 => format!("{},{:03}.{fraction:03}", whole / 1_000, whole % 1_000),
            _ => format!("{whole}.{fraction:03}"),
        };
        let sign = if value < 0.0 {
            self.of(&["-", "−"])
        } else {
            self.of(&["", "", "+"])
        };
        (value, format!("{sign}{digits}"))
    }

    /// A condition without its opening and closing, and what it means.
    fn condition(&mut self) -> (String, ParsedCondition) {
        let (field, spellings, units, units_of_changes) = self.of(FIELDS);
        let spelled = self.of(spellings);
        let (operator, spelling, value, percent) = match self.of(&[0, 0, 1, 2]) {
            0 => {
                let (operator, phrase) = self.phrase(COMPARISONS);
                let ((value, number), unit) = (self.number(-9_999_999), self.of(units));
                (
                    operator,
                    format!("{phrase} {number}{unit}"),
                    ConditionValue::Number(value),
                    false,
                )
            }
            1 => {
                let (operator, phrase) = self.phrase(RANGES);
                let (one, other) = (self.number(-9_999_999), self.number(-9_999_999));
                let (low, high) = if one.0 <= other.0 {
                    (one, other)
                } else {
                    (other, one)
                };
                let (first, unit, between) = (self.of(units), self.of(units), self.of(BETWEEN));
                let spelling = format!("{phrase} {}{first}{between}{}{unit}", low.1, high.1);
                (operator, spelling, ConditionValue::Range([low.0, high.0]), false)
            }
            _ => {
                let (operator, phrase) = self.phrase(CHANGES);
                let ((value, number), percent) = (self.number(1), self.0.bool());
                let unit = self.of(if percent { PERCENT } else { units_of_changes });
                (
                    operator,
                    format!("{phrase} {number}{unit}"),
                    ConditionValue::Number(value),
                    percent,
                )
            }
        };
        let meaning = ParsedCondition {
            field: field.into(),
            operator,
            value,
            percent,
        };
        (format!("{spelled} {spelling}"), meaning)
    }
}

fn random(seed: u64) -> Random {
    println!("seed {seed:#x}");
    Random(fastrand::Rng::with_seed(seed))
}

#[test]
fn a_condition_combines_the_meaning_of_its_parts() {
    let (mut random, schema) = (random(0x0c0d_0001), machine());
    for _ in 0..20_000 {
        let (condition, meaning) = random.condition();
        let (opening, closing) = (random.of(OPENINGS), random.of(CLOSINGS));
        let text = format!("{opening}{condition}{closing}");
        assert_eq!(parse(&text, &schema).as_ref(), Ok(&meaning), "{text:?}");
    }
}

#[test]
fn text_after_a_condition_is_not_ignored() {
    const TAILS: &[&str] = &[
        " and pressure > 5",
        " or more or less",
        " for 5 minutes",
        " in the last hour",
        " over 10 minutes",
        " twice",
        " 5",
        " every day",
        " continuously",
        " on average",
        ", and alert me",
        " if the pump is on",
        " within an hour",
        " x",
        " rising",
        " thousand",
        " z-score",
        " pressure",
        " below 7",
        " > 7",
        " today",
        " at night",
        " of capacity",
        " more often than not",
        " (or so)",
        " -",
        "?",
        " 'a'",
    ];
    let (mut random, schema) = (random(0x0c0d_0002), machine());
    for _ in 0..20_000 {
        let (condition, _) = random.condition();
        let text = format!("{}{condition}{}", random.of(OPENINGS), random.of(TAILS));
        let refusal = parse(&text, &schema);
        assert!(
            matches!(refusal, Err(ConditionError::NotUnderstood(_))),
            "{text:?}: {refusal:?}"
        );
    }
}

#[test]
fn texts_and_booleans_are_read_verbatim() {
    const WORDS: &[&str] = &[
        "open", "Out", "Order", "gestört", "42", "v1.2", "a-b", "E_7", "-1", "OK",
    ];
    const LINKS: &[(Operator, &[&str])] = &[
        (
            Operator::Eq,
            &[
                "is",
                "=",
                "==",
                "equals",
                "is equal to",
                "becomes",
                "turns",
                "turns into",
                "is set to",
                "is exactly",
            ],
        ),
        (
            Operator::Neq,
            &[
                "is not",
                "!=",
                "isn't",
                "does not equal",
                "is not equal to",
                "differs from",
                "is other than",
            ],
        ),
    ];
    const STATES: &[(bool, &[&str])] = &[
        (true, &["true", "on", "Yes", "OPEN", "active", "enabled", "1"]),
        (
            false,
            &["false", "off", "No", "CLOSED", "inactive", "disabled", "0"],
        ),
    ];
    let (mut random, schema) = (random(0x0c0d_0003), machine());
    for _ in 0..5_000 {
        let (operator, link) = random.phrase(LINKS);
        let opening = random.of(OPENINGS);
        let (open, close) = random.of(&[("", ""), ("'", "'"), ("\"", "\""), ("“", "”")]);
        let words_max = if open.is_empty() { 1 } else { 4 };
        let words: Vec<&str> = (0..random.0.usize(1..=words_max))
            .map(|_| random.of(WORDS))
            .collect();
        let words = words.join(random.of(&[" ", "  "]));
        let closing = random.of(CLOSINGS);
        let text = format!("{opening}status {link} {open}{words}{close}{closing}");
        let meaning = format!("status {} {:?}", operator.name(), words);
        assert_eq!(read(&text, &schema), Ok(meaning), "{text:?}");

        let (state, spellings) = random.of(STATES);
        let text = format!("{opening}Is Open {link} {}{closing}", random.of(spellings));
        assert_eq!(
            read(&text, &schema),
            Ok(format!("is_open {} {state}", operator.name())),
            "{text:?}"
        );
    }
}
