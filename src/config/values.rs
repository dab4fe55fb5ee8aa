//! The types and bounds of values. The keys name these functions in `deserialize_with`. A message continues the name of
//! the key: it says what the value must be.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use lettre::message::Mailbox;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::Value;
use tracing_subscriber::filter::Targets;

use super::{LogFormat, SmtpTls, SyncMode};
use crate::catalog::Plan;

/// Reads a value with `read`, which returns `None` if the value is not what was `expected`.
fn value<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: impl Display,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    read(&value).ok_or_else(|| D::Error::custom(format_args!("must be {expected}, not {value}")))
}

pub fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    value(deserializer, "true or false", Value::as_bool)
}

/// An integer from `MIN` to `MAX`.
pub fn integer<'de, D, T, const MIN: i64, const MAX: i64>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    let expected = format_args!("an integer from {MIN} to {MAX}");
    value(deserializer, expected, |value| {
        let integer = value
            .as_integer()
            .filter(|integer| (MIN..=MAX).contains(integer))?;
        T::try_from(integer).ok()
    })
}

/// One second to one day.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    integer_seconds::<_, 1, 86_400>(deserializer)
}

/// Seconds from `MIN` to `MAX`.
pub fn integer_seconds<'de, D, const MIN: i64, const MAX: i64>(deserializer: D) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    integer::<_, _, MIN, MAX>(deserializer).map(Duration::from_secs)
}

/// One millisecond to one minute.
pub fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    integer::<_, _, 1, 60_000>(deserializer).map(Duration::from_millis)
}

/// Trimmed text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| text.trim().to_owned())
}

/// Text, or `None` if it is empty.
pub fn optional<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = text(deserializer)?;
    Ok((!text.is_empty()).then(|| text.into()))
}

/// The path of a directory.
pub fn directory<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<T, D::Error> {
    optional(deserializer)?.ok_or_else(|| D::Error::custom("must name a directory"))
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D, expected: &str) -> Result<T, D::Error> {
    let text = text(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom(format_args!("must be {expected}, not {text:?}")))
}

pub fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parsed(deserializer, "an address and a port like 127.0.0.1:8080")
}

pub fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Targets, D::Error> {
    parsed(deserializer, "a level or target=level pairs")
}

fn one_of<'de, D, T, const N: usize>(deserializer: D, choices: [(&str, T); N]) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    let text = text(deserializer)?;
    let names = choices.each_ref().map(|(name, _)| *name).join(", ");
    let choice = choices.into_iter().find(|(name, _)| *name == text);
    choice
        .map(|(_, choice)| choice)
        .ok_or_else(|| D::Error::custom(format_args!("must be one of {names}, not {text:?}")))
}

pub fn sync_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SyncMode, D::Error> {
    let (always, interval, never) = (SyncMode::Always, SyncMode::Interval, SyncMode::Never);
    one_of(
        deserializer,
        [("always", always), ("interval", interval), ("never", never)],
    )
}

pub fn log_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LogFormat, D::Error> {
    one_of(
        deserializer,
        [("text", LogFormat::Text), ("json", LogFormat::Json)],
    )
}

pub fn smtp_tls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SmtpTls, D::Error> {
    let (starttls, tls, none) = (SmtpTls::StartTls, SmtpTls::Tls, SmtpTls::None);
    one_of(
        deserializer,
        [("starttls", starttls), ("tls", tls), ("none", none)],
    )
}

/// An address of mail with or without a name, or `None` if it is empty.
pub fn mailbox<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Mailbox>, D::Error> {
    let text = text(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    let mailbox = text.parse();
    mailbox.map(Some).map_err(|_| {
        let expected = "an address like alerts@example.org or Tidewatch <alerts@example.org>";
        D::Error::custom(format_args!("must be {expected}, not {text:?}"))
    })
}

pub fn plan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    one_of(deserializer, Plan::ALL.map(|plan| (plan.name(), plan)))
}

/// Trimmed texts.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    value(deserializer, "an array of strings", |value| {
        let entries = value.as_array()?.iter();
        entries
            .map(|entry| entry.as_str().map(|text| text.trim().to_owned()))
            .collect()
    })
}

/// Origins as in the `Origin` header of browsers.
pub fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let origins = texts(deserializer)?;
    match origins.iter().find(|origin| !is_origin(origin)) {
        None => Ok(origins),
        Some(wrong) => Err(D::Error::custom(format_args!(
            "must list origins like https://app.example.com, without path or wildcard, not {wrong:?}"
        ))),
    }
}

/// Addresses and networks.
pub fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let network = |text: &String| {
        let address = text
            .parse()
            .map(|address: IpAddr| IpNet::from(address.to_canonical()));
        address.or_else(|_| text.parse::<IpNet>()).map_err(|_| {
            D::Error::custom(format_args!(
                "must list addresses and networks like 10.0.0.7 or 10.0.0.0/8, not {text:?}"
            ))
        })
    };
    texts(deserializer)?.iter().map(network).collect()
}

fn is_origin(text: &str) -> bool {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', '*']) && host.is_ascii())
}
