//! Fields matched by name, and names that match no field or several.

use super::*;

#[test]
fn field_names_as_people_write_them() {
    assert_parsed(&[
        ("Engine Temp > 5", "engine_temp gt 5"),
        ("ENGINE_TEMP > 5", "engine_temp gt 5"),
        ("engine-temp > 5", "engine_temp gt 5"),
        ("engine  temp > 5", "engine_temp gt 5"),
        ("engineTemp > 5", "engine_temp gt 5"),
        ("the engine temp is above 5", "engine_temp gt 5"),
        ("\"Engine Temp\" > 5", "engine_temp gt 5"),
        ("`engine_temp` > 5", "engine_temp gt 5"),
        ("CPU usage > 5", "cpu_usage gt 5"),
        ("request rate > 5", "requestRate gt 5"),
        ("CO2 exceeds 400 ppm", "co2 gt 400"),
        ("co 2 exceeds 400", "co2 gt 400"),
        ("temp 2 > 5", "temp 2 gt 5"),
        ("temp2 > 5", "temp 2 gt 5"),
        ("temp-2 > 5", "temp 2 gt 5"),
        ("füllstand below 5 l", "Füllstand lt 5"),
        ("FÜLLSTAND below 5", "Füllstand lt 5"),
        ("time over limit over 5", "time over limit gt 5"),
        ("Time Over Limit is over 5", "time over limit gt 5"),
        ("above ground level is above 5 m", "above_ground_level gt 5"),
        ("is open is true", "is_open eq true"),
        ("Error code is 42", "error-code eq \"42\""),
    ]);
}

#[test]
fn unknown_fields() {
    let schema = machine();
    for (text, message) in [
        (
            "moisture > 30",
            "no field of the data source is named at \"moisture > 30\"",
        ),
        (
            "alert me when the moisture is above 30",
            "at \"moisture is above 30\"",
        ),
        ("average temperature > 30", "at \"average temperature > 30\""),
        ("temperatures > 30", "at \"temperatures > 30\""),
        ("temperature2 > 30", "at \"temperature2 > 30\""),
        ("- temperature > 30", "at \"- temperature > 30\""),
        ("30 < temperature", "at \"30 < temperature\""),
        ("> 30", "at \"> 30\""),
        ("is above 30", "at \"is above 30\""),
        ("\"engine heat\" > 5", "at \"\\\"engine heat\\\" > 5\""),
        ("hello world", "at \"hello world\""),
        ("alert me", "at \"alert me\""),
        ("alert me when", "the condition names no field"),
        ("", "the condition names no field"),
        (" \n\t", "the condition names no field"),
        (
            "some word that is so long that it has to be shortened here",
            "at \"some word that is so long that it has to…\"",
        ),
    ] {
        let error = parse(text, &schema).unwrap_err();
        assert!(matches!(error, ConditionError::Field(_)), "{text:?}: {error}");
        assert!(fault(&error).contains(message), "{text:?}: {error}");
    }
}

#[test]
fn among_names_that_differ_in_spelling_the_exact_one_matches() {
    let schema = schema_of(&[
        ("engine_temp", FieldType::Number, None),
        ("Engine Temp", FieldType::Number, None),
        ("enginetemp", FieldType::String, None),
        ("other", FieldType::Number, None),
    ]);
    assert_eq!(read("engine_temp > 5", &schema).unwrap(), "engine_temp gt 5");
    assert_eq!(
        read("when the Engine Temp > 5", &schema).unwrap(),
        "Engine Temp gt 5"
    );
    assert_eq!(read("'engine_temp' > 5", &schema).unwrap(), "engine_temp gt 5");
    assert_eq!(read("enginetemp is 5", &schema).unwrap(), "enginetemp eq \"5\"");
    for text in ["engine temp > 5", "ENGINE-TEMP is 5", "\"engine temp\" > 5"] {
        let error = parse(text, &schema).unwrap_err();
        assert!(matches!(error, ConditionError::Field(_)), "{error}");
        let fault = fault(&error);
        assert!(
            fault.contains("may mean any of the fields \"engine_temp\", \"Engine Temp\", \"enginetemp\""),
            "{fault}"
        );
    }
    // None of these texts is valid, so any of them may be tested.
    let error = parse(
        "engine temp is somewhere",
        &schema_of(&[("a b", FieldType::Number, None), ("a_b", FieldType::Number, None)]),
    );
    assert!(matches!(error, Err(ConditionError::Field(_))), "{error:?}");
}

#[test]
fn among_names_with_a_common_prefix_the_longest_that_parses_matches() {
    let schema = schema_of(&[
        ("time", FieldType::Number, None),
        ("time over", FieldType::String, None),
        ("time over limit", FieldType::Number, None),
        ("is", FieldType::Number, None),
        ("door", FieldType::String, None),
        ("door is", FieldType::String, None),
        ("alert", FieldType::Number, None),
        ("alert when time", FieldType::Number, None),
        ("-", FieldType::Number, None),
        ("5\" pipe", FieldType::Number, None),
        ("what's up?", FieldType::Number, None),
    ]);
    for (text, expected) in [
        ("time over 5", "time gt 5"),
        ("time over limit over 5", "time over limit gt 5"),
        ("time over is limit", "time over eq \"limit\""),
        ("'time' over 5", "time gt 5"),
        ("is is 5", "is eq 5"),
        ("door is is open", "door is eq \"open\""),
        ("door is open", "door eq \"open\""),
        ("alert is 5", "alert eq 5"),
        ("alert when alert is 5", "alert eq 5"),
        ("alert when time is 5", "alert when time eq 5"),
        ("alert if time is 5", "time eq 5"),
        ("- > 5", "- gt 5"),
        ("5\" pipe > 5", "5\" pipe gt 5"),
        ("5\" PIPE > 5", "5\" pipe gt 5"),
        ("what's up? > 5", "what's up? gt 5"),
        ("What’s up? > 5", ""),
    ] {
        match read(text, &schema) {
            Ok(line) => assert_eq!(line, expected, "{text}"),
            Err(error) => assert!(expected.is_empty(), "{text}: {error}"),
        }
    }
}
