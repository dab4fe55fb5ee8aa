//! Texts: each type defines the maximum length and the format.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use super::{FromJson, Place, described, kind_of};
use crate::ids::ObjectId;
use crate::ingest::timestamp;
use crate::limits::{EMAIL_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, SECRET_CHARS_MAX};
use crate::service::webhooks::check_secret;
use crate::timestamp::Timestamp;

/// A character that is not white space as defined by Unicode.
pub const NOT_BLANK: &str = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// A text without the white space around it, not blank, of at most `MAX` characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed<const MAX: usize>(pub String);

impl<const MAX: usize> FromJson for Trimmed<MAX> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let text = place.string(value)?;
        place.check(trimmed(text, MAX)).map(Self)
    }
}

fn trimmed(text: &str, chars_max: usize) -> Result<String, String> {
    match text.trim() {
        "" => Err("must not be blank".to_owned()),
        name => bounded(name, chars_max),
    }
}

fn bounded(text: &str, chars_max: usize) -> Result<String, String> {
    match text.chars().count() {
        chars if chars > chars_max => Err(format!("must have at most {chars_max} characters, not {chars}")),
        _ => Ok(text.to_owned()),
    }
}

described!(Trimmed<MAX> where [const MAX: usize], format!("Name{MAX}"), text(1, MAX).pattern(Some(NOT_BLANK)));

/// Free text of at most `MAX` characters, kept as sent; may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MAX: usize>(pub String);

impl<const MAX: usize> FromJson for Text<MAX> {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let text = place.string(value)?;
        place.check(bounded(text, MAX)).map(Self)
    }
}

described!(Text<MAX> where [const MAX: usize], format!("Text{MAX}"), text(0, MAX));

fn text(chars_min: usize, chars_max: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length((chars_min > 0).then_some(chars_min))
        .max_length(Some(chars_max))
}

impl FromJson for String {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.string(value).map(str::to_owned)
    }
}

impl FromJson for bool {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let boolean = value.as_bool();
        if boolean.is_none() {
            place.fault(format!("must be true or false, not {}", kind_of(value)));
        }
        boolean
    }
}

impl FromJson for ObjectId {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.check(place.string(value)?.parse())
    }
}

/// A timestamp in ISO 8601, as nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub i64);

impl FromJson for Moment {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.check(timestamp::parse(place.string(value)?)).map(Self)
    }
}

described!(Moment, "Timestamp", Timestamp::schema());

/// An email address, trimmed and in lower case.
#[derive(Debug)]
pub struct Email(pub String);

impl FromJson for Email {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.check(email(place.string(value)?)).map(Self)
    }
}

/// Parses an email address from plain text, trimmed and in lower case.
///
/// # Errors
/// A description of what is wrong with it.
pub fn email(text: &str) -> Result<String, String> {
    let email = trimmed(text, EMAIL_CHARS_MAX)?.to_lowercase();
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
    match email.rsplit_once('@') {
        Some((local, domain)) if plain(local) && plain(domain) && !local.contains('@') => Ok(email),
        _ => Err("must be an email address like name@example.com".to_owned()),
    }
}

described!(
    Email,
    "Email",
    text(0, EMAIL_CHARS_MAX).format(Some(SchemaFormat::KnownFormat(KnownFormat::Email)))
);

/// A new password, as typed.
#[derive(Debug)]
pub struct NewPassword(pub String);

impl FromJson for NewPassword {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let password = place.string(value)?;
        let chars = password.chars().count();
        if (PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX).contains(&chars) {
            return Some(Self(password.to_owned()));
        }
        place.fault(format!(
            "must have {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters, not {chars}"
        ));
        None
    }
}

described!(
    NewPassword,
    "NewPassword",
    text(PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX)
);

/// A webhook's secret.
#[derive(Debug)]
pub struct Secret(pub String);

impl FromJson for Secret {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let Text::<SECRET_CHARS_MAX>(secret) = FromJson::read(value, place)?;
        if secret.is_empty() {
            place.fault("must not be empty; leave it out to have one made");
            return None;
        }
        place.check(check_secret(&secret))?;
        Some(Self(secret))
    }
}

described!(Secret, "Secret", text(1, SECRET_CHARS_MAX));

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Faults;
    use super::*;

    fn read<T: FromJson>(value: impl Into<Value>) -> Option<T> {
        T::read(&value.into(), &Faults::default().root())
    }

    #[test]
    fn lengths_are_counted_in_characters_after_trimming() {
        let name = |text: String| read::<Trimmed<100>>(text);
        assert_eq!(
            name(format!("  {}  ", "ü".repeat(100))).unwrap().0,
            "ü".repeat(100)
        );
        assert!(name("ü".repeat(101)).is_none());
        assert!(name(" \t\n".to_owned()).is_none());
        assert!(read::<NewPassword>("ü".repeat(10)).is_some());
        assert!(read::<NewPassword>("123456789").is_none());
        assert!(read::<NewPassword>("x".repeat(129)).is_none());
    }

    #[test]
    fn emails_are_compared_without_case() {
        assert_eq!(read::<Email>("  Ada@Example.COM ").unwrap().0, "ada@example.com");
        for wrong in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a da@example.com",
            "ada@@example.com",
            "a@b@c",
        ] {
            assert!(read::<Email>(json!(wrong)).is_none(), "{wrong:?}");
        }
    }
}
