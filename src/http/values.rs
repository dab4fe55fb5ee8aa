//! Reading single JSON values: each answers the value, or what is wrong with it in words that go
//! behind the member's name.

use serde_json::Value;

use super::faults::kind_of;
use crate::ids::ObjectId;
use crate::limits::{EMAIL_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN};

/// A string as sent.
pub fn string(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("must be a string, not {}", kind_of(value)))
}

/// A name: trimmed, not blank, of `chars_max` characters at most.
pub fn name(value: &Value, chars_max: usize) -> Result<String, String> {
    name_text(string(value)?, chars_max)
}

/// As [`name`], of a text that is no JSON value, such as a member's name.
pub fn name_text(text: &str, chars_max: usize) -> Result<String, String> {
    let name = text.trim();
    match name.chars().count() {
        0 => Err(String::from("must not be blank")),
        chars if chars > chars_max => Err(format!("must have at most {chars_max} characters, not {chars}")),
        _ => Ok(name.to_owned()),
    }
}

/// Free text, of `chars_max` characters at most; may be empty.
pub fn text(value: &Value, chars_max: usize) -> Result<String, String> {
    let text = string(value)?;
    match text.chars().count() {
        chars if chars > chars_max => Err(format!("must have at most {chars_max} characters, not {chars}")),
        _ => Ok(text.to_owned()),
    }
}

/// True or false.
pub fn boolean(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("must be true or false, not {}", kind_of(value)))
}

/// An integer within bounds; `30.0` is the integer 30.
pub fn integer(value: &Value, min: u64, max: u64) -> Result<u64, String> {
    let whole = |float: f64| (float.fract() == 0.0 && (0.0..=9e15).contains(&float)).then_some(float as u64);
    let Value::Number(number) = value else {
        return Err(format!(
            "must be an integer from {min} to {max}, not {}",
            kind_of(value)
        ));
    };
    number
        .as_u64()
        .or_else(|| number.as_f64().and_then(whole))
        .filter(|integer| (min..=max).contains(integer))
        .ok_or_else(|| format!("must be an integer from {min} to {max}, not {number}"))
}

/// A finite number within bounds.
pub fn number(value: &Value, min: f64, max: f64) -> Result<f64, String> {
    let range = match (min, max) {
        (f64::MIN, _) => String::from("a finite number"),
        (_, f64::MAX) => format!("a number, {min} or more"),
        _ => format!("a number from {min} to {max}"),
    };
    let Value::Number(number) = value else {
        return Err(format!("must be {range}, not {}", kind_of(value)));
    };
    number
        .as_f64()
        .filter(|float| float.is_finite() && (min..=max).contains(float))
        .ok_or_else(|| format!("must be {range}, not {number}"))
}

/// A number as the API shows it: an integral one without a fraction.
pub fn shown_number(value: f64) -> Value {
    /// Up to here every integer is a double of its own.
    const INTEGERS_EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= INTEGERS_EXACT_MAX {
        Value::from(value as i64)
    } else {
        Value::from(value)
    }
}

/// An id.
pub fn id(value: &Value) -> Result<ObjectId, String> {
    string(value)?
        .parse()
        .map_err(|malformed: crate::ids::MalformedId| malformed.to_string())
}

/// One of a few words.
pub fn one_of<T: Copy>(value: &Value, choices: &[(&str, T)]) -> Result<T, String> {
    let word = string(value)?;
    choices
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            format!("must be {}, not {word:?}", names.join(" or "))
        })
}

/// An email address, trimmed and in lower case.
pub fn email(value: &Value) -> Result<String, String> {
    let email = name(value, EMAIL_CHARS_MAX)?.to_lowercase();
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
    match email.rsplit_once('@') {
        Some((local, domain)) if plain(local) && plain(domain) && !local.contains('@') => Ok(email),
        _ => Err(String::from("must be an email address like name@example.com")),
    }
}

/// A new password, as typed.
pub fn new_password(value: &Value) -> Result<String, String> {
    let password = string(value)?;
    match password.chars().count() {
        PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX => Ok(password.to_owned()),
        chars => Err(format!(
            "must have {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters, not {chars}"
        )),
    }
}

/// A password to compare; longer than any password can be is not worth hashing.
pub fn password(value: &Value) -> Result<String, String> {
    text(value, PASSWORD_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_are_counted_in_characters_after_trimming() {
        assert_eq!(
            name(&json!(format!("  {}  ", "ü".repeat(100))), 100).unwrap(),
            "ü".repeat(100)
        );
        assert!(name(&json!("ü".repeat(101)), 100).is_err());
        assert!(name(&json!(" \t\n"), 100).is_err());
        assert!(new_password(&json!("ü".repeat(10))).is_ok());
        assert!(new_password(&json!("123456789")).is_err());
        assert!(new_password(&json!("x".repeat(129))).is_err());
    }

    #[test]
    fn integers_are_integers() {
        assert_eq!(integer(&json!(30), 1, 30), Ok(30));
        assert_eq!(integer(&json!(30.0), 1, 30), Ok(30));
        for wrong in [
            json!(0),
            json!(31),
            json!(-1),
            json!(1.5),
            json!("30"),
            json!(true),
            json!(1e300),
            json!(null),
        ] {
            assert!(integer(&wrong, 1, 30).is_err(), "{wrong}");
        }
    }

    #[test]
    fn emails_are_compared_without_case() {
        assert_eq!(email(&json!("  Ada@Example.COM ")).unwrap(), "ada@example.com");
        for wrong in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a da@example.com",
            "ada@@example.com",
            "a@b@c",
        ] {
            assert!(email(&json!(wrong)).is_err(), "{wrong:?}");
        }
    }
}
