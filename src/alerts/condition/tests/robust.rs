//! Random and hostile texts: parsing returns, and its result fits the schema.

use super::*;

/// Fragments that resemble parts of conditions.
const PARTS: &[&str] = &[
    "temperature",
    "cpu usage",
    "door",
    "is_open",
    "temp 2",
    "Füllstand",
    "value",
    "alert me when",
    "the",
    "value of",
    "is",
    "not",
    "isn't",
    "above",
    "below",
    "between",
    "outside",
    "and",
    "to",
    "or more",
    "by",
    "more than",
    "rises",
    "drops",
    "equals",
    ">",
    ">=",
    "<",
    "=",
    "!=",
    "5",
    "-5",
    "1,000",
    "1,5",
    "1e3",
    "1e999",
    ".",
    "..",
    ",",
    "-",
    "−",
    "+",
    "%",
    "°C",
    "°",
    "km/h",
    "/",
    "per",
    "second",
    "'",
    "\"",
    "“",
    "”",
    "open",
    "true",
    "\u{301}",
    "\u{200b}",
    "💧",
    "\u{0}",
    "İ",
    "ß",
    "\u{202e}",
    "\n",
    "(",
    "^",
    "_",
    "$",
    "then",
    "notify us",
];

fn check(text: &str, schema: &Schema) {
    let Ok(condition) = parse(text, schema) else {
        return;
    };
    let field = &schema.fields[usize::from(schema.field(&condition.field).unwrap())];
    let equality = matches!(condition.operator, Operator::Eq | Operator::Neq);
    let change = matches!(condition.operator, Operator::IncreasesBy | Operator::DecreasesBy);
    let fits = match (&condition.value, field.kind) {
        (ConditionValue::Number(number), FieldType::Number) => {
            number.is_finite() && (!change || *number > 0.0)
        }
        (ConditionValue::Range([low, high]), FieldType::Number) => {
            low <= high && matches!(condition.operator, Operator::Between | Operator::Outside)
        }
        (ConditionValue::Boolean(_), FieldType::Boolean) => equality,
        (ConditionValue::Text(value), FieldType::String) => equality && text.contains(&**value),
        _ => false,
    };
    assert!(fits && (change || !condition.percent), "{text:?}: {condition:?}");
}

#[test]
fn random_text_is_parsed_or_refused() {
    let seed = 0x0c0d_0004;
    println!("seed {seed:#x}");
    let (mut random, schema) = (fastrand::Rng::with_seed(seed), machine());
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
        check(&String::from_utf8_lossy(&bytes), &schema);
        let text: String = (0..random.usize(..40)).map(|_| random.char(..)).collect();
        check(&text, &schema);
        check(&format!("temperature {text}"), &schema);
        check(&format!("door is {text}"), &schema);
        let space = random.choice([" ", ""]).unwrap();
        let parts: Vec<&str> = (0..random.usize(..12))
            .map(|_| random.choice(PARTS).copied().unwrap())
            .collect();
        check(&parts.join(space), &schema);
        check(&format!("temperature is {}", parts.join(space)), &schema);
    }
}

#[test]
fn a_condition_truncated_anywhere_is_parsed_or_refused() {
    let schema = machine();
    let text = "Alert me when the “Füllstand” is not between −1,000.5 µg/m³ and 5e3 °C, then notify us.";
    for (start, _) in text.char_indices() {
        for (end, _) in text.char_indices().filter(|(end, _)| *end >= start) {
            check(&text[start..end], &schema);
        }
    }
}

/// A megabyte each: the test would not end if the time were more than linear.
#[test]
fn parsing_time_is_linear_in_the_length_of_the_text() {
    const LENGTH: usize = 1 << 20;
    let schema = machine();
    let long = |part: &str| part.repeat(LENGTH / part.len());
    for part in PARTS.iter().copied().chain([
        " ", "a", "5", "_", "1,", "5.", "the ", "not ", "m/", "m-", "“ ", "'a", "a'", "e5", "\u{a0}", "is_",
        "(((", "°",
    ]) {
        for text in [
            long(part),
            long(&format!("{part} ")),
            format!("temperature > 5 {}", long(part)),
            format!("temperature > {}", long(part)),
            format!("temperature{}> 5", long(part)),
            format!("door is {}", long(part)),
            format!("door is '{}'", long(part)),
        ] {
            check(&text, &schema);
        }
    }
}

/// Names that are each a prefix of the text, as many as a schema can have.
#[test]
fn parsing_time_is_bounded_for_long_texts_and_many_fields() {
    let names: Vec<String> = (1..=128)
        .flat_map(|length| ["a", "A"].map(|letter| letter.repeat(length)))
        .collect();
    let fields: Vec<(&str, FieldType, Option<&str>)> = names
        .iter()
        .map(|name| (name.as_str(), FieldType::Number, None))
        .collect();
    let schema = schema_of(&fields);
    for part in ["a", "a ", "a_", "a-", "_", "- ", "a'"] {
        check(&part.repeat((1 << 16) / part.len()), &schema);
        check(&format!("{} > 5", part.repeat(64)), &schema);
    }
    let twice = read(&format!("{} > 5", "a ".repeat(64)), &schema);
    assert!(matches!(twice, Err(ConditionError::Field(_))), "{twice:?}");
}

#[test]
fn more_words_than_a_condition_has_are_refused() {
    let schema = machine();
    let words = |count: usize| format!("door is {}a", "a-".repeat((count - 1) / 2));
    let most = words(1_021);
    assert_eq!(
        read(&most, &schema),
        Ok(most.replace("door is ", "door eq \"") + "\"")
    );
    let refusal = parse(&words(1_023), &schema).unwrap_err();
    assert!(
        matches!(&refusal, ConditionError::NotUnderstood(message) if message.contains("more than 1024 words"))
    );
    let quoted = "x ".repeat(2_048);
    assert_eq!(
        read(&format!("door is '{quoted}'"), &schema),
        Ok(format!("door eq {quoted:?}"))
    );
    assert!(parse(&format!("door is '{quoted}x'"), &schema).is_err());
}
