//! Phrasings that are refused, with their messages.

use super::*;

/// Asserts that each text is refused with a message that contains the words beside it.
#[track_caller]
pub(super) fn check(cases: &[(&str, &str)]) {
    let schema = machine();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, expected)| match parse(text, &schema) {
            Err(error @ ConditionError::NotUnderstood(_)) if fault(&error).contains(expected) => None,
            Err(error) => Some(format!("{text:?}: {error:.160}, expected {expected:?}")),
            Ok(condition) => Some(format!("{text:?} is read as {}", line(&condition))),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn more_than_one_condition() {
    check(&[
        (
            "temperature > 30 and pressure < 5",
            "not understood at \"and pressure < 5\" (one comparison",
        ),
        ("temperature > 30 or pressure < 5", "at \"or pressure"),
        ("temperature > 30, pressure < 5", "at \", pressure"),
        ("temperature > 30; pressure < 5", "at \"; pressure"),
        ("temperature > 30 && pressure < 5", "at \"&& pressure"),
        ("temperature > 30 but not 40", "at \"but not"),
        ("temperature > 30 pressure < 5", "at \"pressure < 5\""),
        ("temperature is 10 or 20", "at \"or 20\""),
        ("temperature is above 30 or more", "at \"or more\""),
        ("temperature is not 30 or more", "at \"or more\""),
        ("temperature is above 30 and/or below 5", "at \"and/or"),
        ("temperature between 10 and 20 and 30", "at \"and 30\""),
        (
            "door is open or closed",
            "at \"or closed\": a text to compare with is a single word",
        ),
        ("pump is on and door is open", "at \"and door"),
        ("door is open, closed", "at \", closed\""),
        ("temperature > 30 unless pump is off", "at \"unless"),
    ]);
}

#[test]
fn times_and_durations() {
    check(&[
        (
            "temperature > 30 for 5 minutes",
            "at \"for 5 minutes\" (durations",
        ),
        ("temperature > 30 °C for 5 minutes", "at \"for 5 minutes\""),
        ("temperature > 30 in the last hour", "at \"in the last hour\""),
        ("temperature > 30 within 5 minutes", "at \"within 5"),
        ("temperature > 30 during the night", "at \"during"),
        ("temperature > 30 every day", "at \"every day\""),
        ("temperature > 30 over 5 minutes", "at \"over 5"),
        ("temperature > 30 today", "at \"today\""),
        ("temperature > 30 degrees today", "at \"today\""),
        ("temperature > 30 since monday", "at \"since"),
        ("temperature > 30 twice", "at \"twice\""),
        ("temperature > 30 3 times", "at \"3 times\""),
        ("temperature > 30 continuously", "at \"continuously\""),
        ("temperature > 30 on average", "at \"on average\""),
        ("pressure drops by 5 in 10 minutes", "at \"in 10 minutes\""),
        ("pressure drops by 20% within an hour", "at \"within an hour\""),
        ("pressure drops by 20% compared to yesterday", "at \"compared"),
        ("pressure rises by 5 bar per minute", "rate of change"),
        ("pressure rises by 5 per minute", "rate of change"),
        ("pressure rises by 5/min", "rate of change"),
        ("temperature rises by 5 °C/min", "rate of change"),
        ("pressure rises by 5%/min", "at \"/min\""),
        ("pressure rises by 5% per hour", "at \"per hour\" (durations"),
        ("door is open for 5 minutes", "at \"for 5 minutes\""),
        ("pump is off since yesterday", "at \"since"),
    ]);
}

#[test]
fn malformed_numbers() {
    check(&[
        (
            "temperature > 1,5",
            "at \"1,5\": a number has a point before its decimals",
        ),
        ("temperature > 1,00", "a number has"),
        ("temperature > 1000,000", "a number has"),
        ("temperature > 0,500", "a number has"),
        ("temperature > 1.000,5", "a number has"),
        ("temperature > 1.000.000", "a number has"),
        ("temperature > 1e999", "no larger than a double holds"),
        ("temperature between 10,20", "a number has"),
        ("temperature > thirty", "needs a number at \"thirty\""),
        ("temperature > '30'", "needs a number at \"'30'\""),
        ("temperature is hot", "needs a number at \"hot\""),
        ("temperature equals true", "needs a number at \"true\""),
        ("temperature > pressure", "needs a number at \"pressure\""),
        ("temperature >", "needs a number at its end"),
        ("temperature is", "needs a number at its end"),
        ("temperature > - 5", "needs a number at \"- 5\""),
        ("temperature > ５", "needs a number at \"５\""),
        ("temperature > NaN", "needs a number"),
        ("temperature > infinity", "needs a number"),
        ("temperature > 10k", "at \"k\" (write the number itself"),
        ("temperature > 10 k", "at \"k\" (write"),
        ("pressure > 5M", "at \"M\" (write"),
        ("pressure > 2 million", "at \"million\" (write"),
        (
            "pressure > 300 K",
            "at \"K\" (write the number itself in digits, such as 10000; a unit K",
        ),
        ("pressure > 5½", "at \"½\""),
        ("pressure > 0x10", "at \"x10\""),
        ("pressure > 5 e3", "at \"e3\""),
        ("pressure > 1 000", "at \"000\""),
        ("pressure > 1'000", "at \"'000\""),
        ("pressure > 1_000", "at \"_000\""),
        ("pressure > 5 5", "at \"5\""),
        ("pressure > 5..", "at \"..\""),
        ("pressure > 3 sigma", "at \"sigma\""),
        ("pressure > 2 standard deviations", "at \"standard"),
        ("pressure > 90% of capacity", "at \"of capacity\""),
        ("pressure increases by 2x", "at \"x\" (write"),
        ("pressure increases by half", "needs a number"),
        ("pressure > 5 bar - gauge", "at \"- gauge\""),
        ("pressure > 5 bar gauge", "at \"gauge\""),
        ("pressure is 5 warmer", "at \"warmer\""),
        ("pressure is 5% higher", "at \"higher\""),
        ("pressure > about 5", "needs a number at \"about 5\""),
        ("pressure > 5 bar?", "at \"?\""),
        ("pressure > 12:30", "at \":30\""),
        ("pressure > 5 abcdefghijklmnopqrstuvwxyz", "at \"abcdefgh"),
    ]);
}

#[test]
fn impossible_ranges_and_changes() {
    check(&[
        ("pressure is up to 5", "needs a number at \"up to 5\""),
        ("pressure went from 5 to 10", "at \"from 5 to 10\""),
        ("pressure drops from 10 to 5", "at \"from 10 to 5\""),
        (
            "temperature between 20 and 10",
            "the lower end of a range comes first",
        ),
        ("temperature outside 5 to -5", "the lower end"),
        ("temperature between -5 and -10", "the lower end"),
        ("temperature between 10", "needs \"and\", \"to\" or a dash"),
        ("temperature between 10 20", "needs \"and\""),
        ("temperature between 10 -20", "needs \"and\""),
        ("temperature between 10 or 20", "needs \"and\""),
        (
            "temperature between low and high",
            "needs a number at \"low and high\"",
        ),
        ("temperature within 5 of 10", "needs \"and\""),
        ("temperature within 5", "needs \"and\""),
        ("temperature is 5-10", "at \"-10\""),
        ("temperature goes from 5 to 10", "at \"from 5 to 10\""),
        ("temperature falls from 5 to 10", "at \"from 5 to 10\""),
        ("temperature is 5 to 10", "at \"to 10\""),
        ("temperature is between 5 and 10 inclusive", "at \"inclusive\""),
        ("pressure increases by 0", "more than zero"),
        ("pressure increases by -5", "more than zero"),
        ("pressure drops by 0%", "more than zero"),
        (
            "pressure drops by less than 5",
            "needs a number at \"less than 5\"",
        ),
        ("pressure drops by exactly 5", "needs a number at \"exactly 5\""),
        ("pressure drops by up to 5", "needs a number at \"up to 5\""),
        ("pressure increases by 5 to 10", "at \"to 10\""),
        ("pressure changes by 5", "needs its direction"),
        ("pressure changes by more than 5%", "needs its direction"),
        ("pressure varies by 5", "needs its direction"),
        ("pressure moves by 5", "needs its direction"),
        ("pressure reaches 5", "from which side is left open"),
        ("pressure crosses 5", "from which side"),
        ("pressure drops to 5", "needs a number at \"to 5\""),
        ("pressure rises below 5", "at \"below 5\""),
        ("pressure falls above 5", "at \"above 5\""),
        ("pressure increases over 5", "at \"over 5\""),
        ("pressure drops over 5", "at \"over 5\""),
        ("pressure does not drop by 5", "a change that does not happen"),
        ("pressure drops by 5 percent points", "at \"points\""),
        ("pressure drops by 5 percentage", "at \"percentage\""),
    ]);
}

#[test]
fn malformed_comparisons() {
    check(&[
        ("temperature", "not understood at its end"),
        ("temperature 30", "at \"30\""),
        ("temperature not rising above 30", "at \"rising above 30\""),
        ("temperature of 30", "at \"of 30\""),
        ("temperature should be above 30", "at \"should be"),
        ("temperature was above 30", "at \"was above"),
        ("temperature is always above 30", "needs a number at \"always"),
        (
            "temperature is no longer above 30",
            "needs a number at \"no longer",
        ),
        ("temperature is not not above 30", "needs a number at \"not above"),
        (
            "temperature is not no more than 30",
            "needs a number at \"no more",
        ),
        (
            "temperature isn't different from 30",
            "needs a number at \"different",
        ),
        (
            "temperature is greater then 30",
            "needs a number at \"greater then",
        ),
        ("temperature => 30", "needs a number at \"> 30\""),
        ("temperature === 30", "needs a number at \"= 30\""),
        ("temperature > > 30", "needs a number"),
        ("temperature ! 30", "at \"! 30\""),
        ("temperature ~ 30", "at \"~ 30\""),
        ("temperature is above", "needs a number at its end"),
        ("temperature > 30 > 20", "at \"> 20\""),
        ("temperature contains 30", "at \"contains 30\""),
        ("temperature goes 30", "at \"30\""),
        ("temperature > 30..", "at \"..\""),
        ("temperature > 30 (or so)", "at \"(or so)\""),
        ("temperature doubles", "at \"doubles\""),
    ]);
}

#[test]
fn comparisons_not_allowed_for_the_type_of_the_field() {
    check(&[
        ("status is in 5 pieces", "a string field can only"),
        (
            "door > 5",
            "a string field can only be equal or not equal to a text",
        ),
        ("door is above open", "a string field can only"),
        ("door is at least 5", "a string field can only"),
        ("door exceeds 5", "a string field can only"),
        ("door is between a and b", "a string field can only"),
        ("status increases by 5", "a string field can only"),
        (
            "status is over",
            "a text that begins like a comparison goes in quotes",
        ),
        ("status is under maintenance", "a string field can only"),
        (
            "status is",
            "needs a text, in quotes unless it is a single word, at its end",
        ),
        ("status is \"open", "needs a text"),
        (
            "status is any of a",
            "at \"any of a\": if this is the text to compare with, put it in",
        ),
        ("status is neither open", "at \"neither open\""),
        ("status is no longer ok", "at \"no longer ok\""),
        ("status is anything but ok", "at \"anything"),
        ("status is open closed not", "at \"closed not\""),
        ("status is > 5", "a string field can only"),
        ("status is open/closed", "at \"/closed\""),
        ("status is open | closed", "at \"| closed\""),
        ("status is open?", "at \"?\""),
        ("status is open — closed", "at \"— closed\""),
        ("status is open、closed", "at \"、closed\""),
        ("status is down: bad", "at \": bad\""),
        ("status not contains open", "at \"open\""),
        ("status contains open", "at \"contains open\""),
        (
            "pump > 0",
            "a boolean field can only be equal or not equal to true or false",
        ),
        ("pump is between 0 and 1", "a boolean field can only"),
        ("pump increases by 1", "a boolean field can only"),
        ("pump is running", "needs true or false (or on, off"),
        ("pump = 2", "needs true or false"),
        ("pump = 1.0", "needs true or false"),
        ("pump is \"running\"", "needs true or false"),
        ("pump", "at its end"),
        ("pump is on again", "at \"again\""),
    ]);
}

#[test]
fn more_than_a_word_for_a_text() {
    let schema = machine();
    for tail in [
        "now and then",
        "at night",
        "on weekends",
        "on monday",
        "today",
        "too long",
        "past midnight",
        "outside business hours",
        "once",
        "3 times",
        "with door open",
        "5 minutes",
        "+ warning",
        "temperature 5",
        "or auto",
        "in 5 minutes",
    ] {
        let text = format!("mode is manual {tail}");
        let error = parse(&text, &schema).unwrap_err();
        assert!(
            fault(&error).contains("is a single word of letters"),
            "{text:?}: {error}"
        );
    }
    check(&[
        (
            "status is out of order",
            "at \"of order\": a text to compare with is a single word",
        ),
        ("status is in progress", "put it in quotes"),
        ("status is open/closed", "a single word"),
        ("status is red alert", "a single word"),
        ("status is fire alarm", "a single word"),
        ("status is n/a", "a single word"),
        ("status is E#7", "a single word"),
        ("status is 99%", "a single word"),
        ("status is 1,5", "needs a text"),
        ("status turns 🔥", "needs a text"),
        ("status is open-", "at \"-\""),
        ("status is - 5", "needs a text"),
    ]);
}

#[test]
fn words_that_can_continue_a_comparison_are_not_texts() {
    let schema = machine();
    for word in [
        "different",
        "changed",
        "same",
        "increasing",
        "empty",
        "null",
        "missing",
        "rising",
        "constant",
        "none",
        "unset",
        "not",
        "greater",
        "lower",
        "the same",
        "temperature",
        "Error code",
    ] {
        let text = format!("mode is {word}");
        let error = parse(&text, &schema).unwrap_err();
        assert!(
            matches!(error, ConditionError::NotUnderstood(_)) && fault(&error).contains("quotes"),
            "{text:?}: {error}"
        );
        let quoted = read(&format!("mode is '{word}'"), &schema);
        assert_eq!(quoted, Ok(format!("mode eq {word:?}")));
    }
}

#[test]
fn a_refusal_lists_what_is_supported_and_the_fields() {
    let schema = schema_of(&[
        ("temp", FieldType::Number, None),
        ("door \"A\"", FieldType::String, None),
        ("on", FieldType::Boolean, None),
    ]);
    for text in ["temp > hot", "heat > 5", ""] {
        let message = parse(text, &schema).unwrap_err().to_string();
        assert!(message.contains("FIELD between 10 and 20"), "{message}");
        let named = message
            .ends_with("the fields are \"temp\" (number), \"door \\\"A\\\"\" (string), \"on\" (boolean)");
        assert!(named, "{message}");
    }
}
