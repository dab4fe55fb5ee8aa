//! The bridge's configuration: a TOML file, checked whole before anything is connected.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::batch::Bounds;
use crate::topic::{Pattern, PatternError};

/// The longest name of a source or dimension, in characters; the service's bound.
pub const NAME_CHARACTERS_MAX: usize = 128;
/// MQTT's packet identifiers are 1 to 65,535, so no more messages can await their acknowledgement.
const IN_FLIGHT_MAX: u16 = u16::MAX;
/// The service's bound for a body of this route.
const BATCH_BYTES_MAX: usize = 10_485_760;
/// The longest linger. What lingers is neither stored nor acknowledged.
const LINGER_MS_MAX: u64 = 60_000;

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    pub api: Api,
    pub broker: Broker,
    /// In the order of the file; the first that takes a topic reads its messages.
    pub topics: Vec<Pattern>,
    /// Bounds of a request.
    pub batch: Bounds,
    /// How long a message waits for others to join its request.
    pub linger: Duration,
}

/// The service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    pub url: String,
    /// A bucket's write key, or an admin key. Empty until [`Config::read`] has put the environment's in its place.
    #[serde(default)]
    pub key: String,
    /// The bucket's id or name; an admin key needs it.
    pub bucket: Option<String>,
}

/// The broker.
#[derive(Debug)]
pub struct Broker {
    pub host: String,
    pub port: u16,
    pub version: Version,
    pub client_id: String,
    pub credentials: Option<Credentials>,
    pub encryption: Option<Encryption>,
    /// The most messages that are received and not yet acknowledged.
    pub in_flight: u16,
}

/// A version of MQTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V3,
    V5,
}

/// User and password.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// TLS, and whom to trust.
#[derive(Debug)]
pub struct Encryption {
    /// A file with certificates in PEM, in place of the web's authorities.
    pub ca: Option<PathBuf>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0}: {1}")]
    Toml(PathBuf, toml::de::Error),
    #[error("[api] has no key: add key = \"…\", or set TIDEWATCH_KEY in the environment")]
    NoKey,
    #[error(
        "[broker] url = {0:?} must be mqtt://HOST[:PORT] or mqtts://HOST[:PORT]; user and password are members of their own"
    )]
    BrokerUrl(String),
    #[error("[broker] version = {0:?} must be \"3.1.1\" or \"5\"")]
    Version(String),
    #[error("[broker] client_id must not be empty: the broker keeps the session under it")]
    ClientId,
    #[error("[broker] password needs a user")]
    PasswordWithoutUser,
    #[error("[broker] ca is for mqtts:// only")]
    CaWithoutTls,
    #[error("no [[topics]]: nothing to subscribe to")]
    NoTopics,
    #[error("[[topics]] topic = {topic:?}: {fault}")]
    Topic { topic: String, fault: PatternError },
    #[error("{name} = {value} must be {least} to {most}")]
    Range {
        name: &'static str,
        value: u64,
        least: u64,
        most: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    api: Api,
    broker: RawBroker,
    #[serde(default)]
    topics: Vec<RawTopic>,
    #[serde(default)]
    batch: RawBatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBroker {
    url: String,
    client_id: String,
    #[serde(default = "default_version")]
    version: String,
    user: Option<String>,
    password: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default = "default_in_flight")]
    in_flight: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTopic {
    topic: String,
    source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawBatch {
    messages: u64,
    bytes: u64,
    linger_ms: u64,
}

impl Default for RawBatch {
    fn default() -> Self {
        Self {
            messages: 5_000,
            bytes: 1 << 20,
            linger_ms: 5,
        }
    }
}

fn default_version() -> String {
    "5".to_owned()
}

fn default_in_flight() -> u64 {
    10_000
}

impl Config {
    /// Reads a file. `key` is used if the file has none.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong; the message names it.
    pub fn read(path: &Path, key: Option<String>) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|cause| ConfigError::File(path.to_owned(), cause))?;
        Self::parse(&text, key, path)
    }

    pub(crate) fn parse(text: &str, key: Option<String>, path: &Path) -> Result<Self, ConfigError> {
        let raw: RawConfig =
            toml::from_str(text).map_err(|cause| ConfigError::Toml(path.to_owned(), cause))?;
        let RawConfig {
            mut api,
            broker,
            topics,
            batch,
        } = raw;
        if api.key.is_empty() {
            api.key = key.filter(|key| !key.is_empty()).ok_or(ConfigError::NoKey)?;
        }
        if topics.is_empty() {
            return Err(ConfigError::NoTopics);
        }
        let patterns = topics.into_iter().map(RawTopic::check);
        Ok(Self {
            api,
            broker: broker.check()?,
            topics: patterns.collect::<Result<_, _>>()?,
            batch: Bounds {
                messages: within("[batch] messages", batch.messages, 1, u64::from(IN_FLIGHT_MAX))? as usize,
                bytes: within("[batch] bytes", batch.bytes, 1_024, BATCH_BYTES_MAX as u64)? as usize,
            },
            linger: Duration::from_millis(within("[batch] linger_ms", batch.linger_ms, 0, LINGER_MS_MAX)?),
        })
    }
}

impl RawTopic {
    fn check(self) -> Result<Pattern, ConfigError> {
        Pattern::parse(&self.topic, self.source.as_deref()).map_err(|fault| ConfigError::Topic {
            topic: self.topic,
            fault,
        })
    }
}

impl RawBroker {
    fn check(self) -> Result<Broker, ConfigError> {
        let (host, port, is_encrypted) =
            parse_url(&self.url).ok_or_else(|| ConfigError::BrokerUrl(self.url.clone()))?;
        let version = match self.version.as_str() {
            "3.1.1" => Version::V3,
            "5" => Version::V5,
            _ => return Err(ConfigError::Version(self.version)),
        };
        if self.client_id.is_empty() {
            return Err(ConfigError::ClientId);
        }
        let credentials = match (self.user, self.password) {
            (Some(user), password) => Some(Credentials {
                user,
                password: password.unwrap_or_default(),
            }),
            (None, None) => None,
            (None, Some(_)) => return Err(ConfigError::PasswordWithoutUser),
        };
        if self.ca.is_some() && !is_encrypted {
            return Err(ConfigError::CaWithoutTls);
        }
        let in_flight = within("[broker] in_flight", self.in_flight, 1, u64::from(IN_FLIGHT_MAX))?;
        Ok(Broker {
            host,
            port,
            version,
            client_id: self.client_id,
            credentials,
            encryption: is_encrypted.then_some(Encryption { ca: self.ca }),
            in_flight: in_flight as u16,
        })
    }
}

/// Host, port, and whether the connection is encrypted.
fn parse_url(text: &str) -> Option<(String, u16, bool)> {
    let url = Url::parse(text).ok()?;
    let (default_port, is_encrypted) = match url.scheme() {
        "mqtt" => (1883, false),
        "mqtts" => (8883, true),
        _ => return None,
    };
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    let host = url.host_str().filter(|host| is_plain && !host.is_empty())?;
    Some((host.to_owned(), url.port().unwrap_or(default_port), is_encrypted))
}

fn within(name: &'static str, value: u64, least: u64, most: u64) -> Result<u64, ConfigError> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(ConfigError::Range {
            name,
            value,
            least,
            most,
        }),
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { url, key: _, bucket } = self;
        f.debug_struct("Api")
            .field("url", url)
            .field("bucket", bucket)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
