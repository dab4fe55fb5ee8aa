//! Texts: each type defines the maximum length and the format.

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use super::{FromJson, Place, described};
use crate::ids::ObjectId;
use crate::ingest::timestamp;
use crate::limits::{
    EMAIL_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, SECRET_CHARS_MAX, URL_CHARS_MAX,
};
use crate::service::webhooks::{check_receiver, check_secret, check_url_form};
use crate::timestamp::Timestamp;

/// A character that is not white space as defined by Unicode.
pub const NOT_BLANK: &str = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// A text without the white space around it, not blank, of at most `MAX` characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed<const MAX: usize>(pub String);

/// Free text of at most `MAX` characters, kept as sent; may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MAX: usize>(pub String);

/// Free text of 1 to `MAX` characters, kept as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note<const MAX: usize>(pub String);

/// A timestamp in ISO 8601, as nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub i64);

/// An email address, trimmed and in lower case.
#[derive(Debug)]
pub struct Email(pub String);

/// A new password, as typed.
#[derive(Debug)]
pub struct NewPassword(pub String);

/// A webhook's secret.
#[derive(Debug)]
pub struct Secret(pub String);

/// An http or https URL. Whether its host may be called is said by the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(pub String);

/// The same, or a mailto URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlOrMailto(pub String);

/// Types that are parsed from the text of a string.
macro_rules! from_text {
    ($($kind:ty $(where [const $bound:ident: usize])?, $parse:expr;)*) => {$(
        impl$(<const $bound: usize>)? FromJson for $kind {
            fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
                place.parse(value, $parse)
            }
        }
    )*};
}

from_text! {
    String, |text| Ok::<_, String>(text.to_owned());
    ObjectId, str::parse;
    Trimmed<MAX> where [const MAX: usize], |text| trimmed(text, MAX).map(Self);
    Text<MAX> where [const MAX: usize], |text| bounded(text, MAX).map(Self);
    Note<MAX> where [const MAX: usize], |text| note(text, MAX).map(Self);
    Moment, |text| timestamp::parse(text).map(Self);
    Email, |text| email(text).map(Self);
    NewPassword, |text| password(text).map(Self);
    Secret, |text| {
        check_secret(&bounded(text, SECRET_CHARS_MAX)?)?;
        Ok::<_, String>(Self(text.to_owned()))
    };
    Url, |text| url(text, check_url_form).map(Self);
    UrlOrMailto, |text| url(text, check_receiver).map(Self);
}

described!(Trimmed<MAX> where [const MAX: usize], format!("Name{MAX}"), text(1, MAX).pattern(Some(NOT_BLANK)));
described!(Text<MAX> where [const MAX: usize], format!("Text{MAX}"), text(0, MAX));
described!(Note<MAX> where [const MAX: usize], format!("Note{MAX}"), text(1, MAX));
described!(Moment, "Timestamp", Timestamp::schema());
described!(
    Email,
    "Email",
    text(0, EMAIL_CHARS_MAX).format(Some(SchemaFormat::KnownFormat(KnownFormat::Email)))
);
described!(
    NewPassword,
    "NewPassword",
    text(PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX)
);
described!(Secret, "Secret", text(1, SECRET_CHARS_MAX));
described!(Url, "Url", text(1, URL_CHARS_MAX).pattern(Some(NOT_BLANK)));
described!(
    UrlOrMailto,
    "UrlOrMailto",
    text(1, URL_CHARS_MAX).pattern(Some(NOT_BLANK))
);

fn text(chars_min: usize, chars_max: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length((chars_min > 0).then_some(chars_min))
        .max_length(Some(chars_max))
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

fn url(text: &str, check: impl Fn(&str) -> Result<(), String>) -> Result<String, String> {
    let url = trimmed(text, URL_CHARS_MAX)?;
    check(&url).map(|()| url)
}

fn note(text: &str, chars_max: usize) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text => bounded(text, chars_max),
    }
}

fn password(text: &str) -> Result<String, String> {
    match text.chars().count() {
        PASSWORD_CHARS_MIN..=PASSWORD_CHARS_MAX => Ok(text.to_owned()),
        chars => Err(format!(
            "must have {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters, not {chars}"
        )),
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

impl FromJson for bool {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        place.typed(value.as_bool(), "true or false", value)
    }
}

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
