//! The configuration: flags override the environment, which overrides the file, which overrides the defaults.
//!
//! The shipped `config.toml` is compiled in: it has the name, the description and the default of every key. The structs
//! here have the types and the bounds, see `values`. An invalid key or value stops the start with a message that names
//! the key and its source.

mod layers;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use lettre::message::Mailbox;
use serde::Deserialize;
use tracing_subscriber::filter::Targets;

use crate::catalog::Plan;
use values::{
    address, boolean, directory, integer, integer_seconds, log_filter, log_format, mailbox, milliseconds,
    networks, optional, origins, plan, seconds, smtp_tls, sync_mode,
};

use layers::Layers;
pub use layers::{ConfigError, Flags, describe_all, environment_name, load};

const MIB: i64 = 1 << 20;
/// A shorter secret could be guessed.
const SECRET_CHARS_MIN: usize = 16;
/// A larger size is assumed to be a typing error.
const TIB: i64 = 1 << 40;

/// The validated configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub server: ServerConfig,
    pub storage: StorageConfig,
    pub wal: WalConfig,
    pub query: QueryConfig,
    pub accounts: AccountsConfig,
    pub limits: LimitsConfig,
    pub operator: OperatorConfig,
    pub webhooks: WebhooksConfig,
    pub smtp: SmtpConfig,
    pub cluster: ClusterConfig,
    pub log: LogConfig,
}

/// The HTTP server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "integer::<_, _, 0, 1_024>")]
    pub workers: usize,
    #[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")]
    pub connections_max: usize,
    #[serde(rename = "head_timeout_seconds", deserialize_with = "seconds")]
    pub head_timeout: Duration,
    #[serde(rename = "keep_alive_seconds", deserialize_with = "seconds")]
    pub keep_alive: Duration,
    #[serde(rename = "request_timeout_seconds", deserialize_with = "seconds")]
    pub request_timeout: Duration,
    #[serde(rename = "write_timeout_seconds", deserialize_with = "seconds")]
    pub write_timeout: Duration,
    #[serde(deserialize_with = "integer::<_, _, MIB, TIB>")]
    pub answer_bytes_max: u64,
    #[serde(rename = "shutdown_timeout_seconds", deserialize_with = "seconds")]
    pub shutdown_timeout: Duration,
    #[serde(deserialize_with = "optional")]
    pub tls_certificate: Option<PathBuf>,
    #[serde(deserialize_with = "optional")]
    pub tls_key: Option<PathBuf>,
    #[serde(deserialize_with = "origins")]
    pub cors_origins: Vec<String>,
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<IpNet>,
}

/// The files of a listener with TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsConfig {
    /// The section of the configuration that names them.
    pub section: &'static str,
    /// PEM file, the server's own certificate first.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

impl ServerConfig {
    /// The TLS files; `None` if TLS is not configured.
    pub fn tls(&self) -> Option<TlsConfig> {
        Some(TlsConfig {
            section: "server",
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
        })
    }
}

/// Data directory and memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageConfig {
    #[serde(deserialize_with = "directory")]
    pub data_dir: PathBuf,
    #[serde(deserialize_with = "integer::<_, _, { 16 * MIB }, TIB>")]
    pub memory_bytes_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 65_536, TIB>")]
    pub checkpoint_bytes: u64,
    #[serde(deserialize_with = "integer::<_, _, MIB, TIB>")]
    pub cache_bytes_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, { 1 << 30 }>")]
    pub series_max: u64,
    /// URL of an object store; `None` if checkpoints are kept in the data directory only.
    #[serde(deserialize_with = "optional")]
    pub remote: Option<String>,
    #[serde(rename = "remote_period_seconds", deserialize_with = "seconds")]
    pub remote_period: Duration,
}

impl StorageConfig {
    /// The share of the memory for request bodies. It is capped, because bodies are short-lived whatever the server's
    /// size.
    pub fn body_bytes_max(&self) -> u64 {
        (self.memory_bytes_max / 4).min(256 << 20)
    }

    /// Memory for pending deliveries of all organizations, in addition: a quarter of `memory_bytes_max`.
    pub const fn owed_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 4
    }

    /// The rest of the memory: for queues and points that are not in segments yet.
    pub fn point_bytes_max(&self) -> u64 {
        self.memory_bytes_max - self.body_bytes_max()
    }
}

/// Write-ahead log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalConfig {
    #[serde(deserialize_with = "sync_mode")]
    pub sync: SyncMode,
    #[serde(rename = "sync_interval_ms", deserialize_with = "milliseconds")]
    pub sync_interval: Duration,
    #[serde(deserialize_with = "integer::<_, _, MIB, TIB>")]
    pub tail_bytes_max: u64,
}

/// When a record counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// After its sync: acknowledged means durable.
    Always,
    /// After its write; the log is synced periodically.
    Interval,
    /// After its write; the operating system decides when to sync.
    Never,
}

/// Query pool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryConfig {
    #[serde(deserialize_with = "integer::<_, _, 0, 1_024>")]
    pub threads: usize,
    #[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")]
    pub queue_max: usize,
    #[serde(deserialize_with = "integer::<_, _, MIB, TIB>")]
    pub memory_bytes_max: usize,
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds")]
    pub timeout: Duration,
}

/// Sign-up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountsConfig {
    #[serde(deserialize_with = "plan")]
    pub default_plan: Plan,
    #[serde(deserialize_with = "boolean")]
    pub signup: bool,
    #[serde(deserialize_with = "integer::<_, _, 0, 1_000_000>")]
    pub signups_per_hour_max: usize,
}

/// Limits of one organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    #[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")]
    pub buckets_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 100_000_000>")]
    pub sources_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 10_000_000>")]
    pub keys_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 10_000_000>")]
    pub rules_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")]
    pub webhooks_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 100_000>")]
    pub silences_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")]
    pub annotations_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, TIB>")]
    pub catalog_bytes_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, 100_000_000>")]
    pub owed_deliveries_max: u64,
    #[serde(deserialize_with = "integer::<_, _, 1, TIB>")]
    pub owed_bytes_max: u64,
}

/// Access to the operator routes.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorConfig {
    /// `None` disables the routes.
    #[serde(deserialize_with = "optional")]
    pub token: Option<String>,
}

impl std::fmt::Debug for OperatorConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "<secret>");
        f.debug_struct("OperatorConfig").field("token", &token).finish()
    }
}

/// Webhook deliveries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksConfig {
    #[serde(deserialize_with = "boolean")]
    pub allow_private_networks: bool,
}

/// The mail server.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpConfig {
    #[serde(deserialize_with = "optional")]
    pub host: Option<String>,
    #[serde(deserialize_with = "integer::<_, _, 1, 65_535>")]
    pub port: u16,
    #[serde(deserialize_with = "smtp_tls")]
    pub tls: SmtpTls,
    #[serde(deserialize_with = "optional")]
    pub username: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub password: Option<String>,
    #[serde(deserialize_with = "mailbox")]
    pub from: Option<Mailbox>,
}

/// How connections to the mail server are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// By STARTTLS; without it nothing is sent.
    StartTls,
    /// From the beginning.
    Tls,
    None,
}

impl SmtpConfig {
    /// The mail server and the sender; `None` without a mail server.
    pub fn server(&self) -> Option<(&str, &Mailbox)> {
        self.host.as_deref().zip(self.from.as_ref())
    }

    fn check(&self) -> Result<(), String> {
        match () {
            () if self.host.is_some() && self.from.is_none() => {
                Err("smtp.host is set, and smtp.from is not; mail needs a sender".to_owned())
            }
            () if self.username.is_some() != self.password.is_some() => {
                Err("smtp.username and smtp.password belong together: set both or neither".to_owned())
            }
            () => Ok(()),
        }
    }
}

/// Without the password.
impl std::fmt::Debug for SmtpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            host,
            port,
            tls,
            from,
            ..
        } = self;
        write!(f, "SmtpConfig({host:?}, {port}, {tls:?}, {from:?})")
    }
}

/// A node of several.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterConfig {
    /// `None` for a server on one machine.
    #[serde(deserialize_with = "optional")]
    pub log: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub objects: Option<String>,
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "optional")]
    pub address: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub secret: Option<String>,
    #[serde(deserialize_with = "optional")]
    pub tls_certificate: Option<PathBuf>,
    #[serde(deserialize_with = "optional")]
    pub tls_key: Option<PathBuf>,
    #[serde(deserialize_with = "optional")]
    pub tls_ca: Option<PathBuf>,
    #[serde(rename = "lease_seconds", deserialize_with = "integer_seconds::<_, 2, 60>")]
    pub lease: Duration,
    #[serde(deserialize_with = "integer::<_, _, MIB, { 1_024 * TIB }>")]
    pub disk_cache_bytes_max: u64,
}

/// The secrets are left out.
impl std::fmt::Debug for ClusterConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("log", &self.log.as_ref().map(|_| "<secret>"))
            .field("objects", &self.objects)
            .field("listen", &self.listen)
            .field("address", &self.address)
            .field("secret", &self.secret.as_ref().map(|_| "<secret>"))
            .field("tls_certificate", &self.tls_certificate)
            .field("tls_key", &self.tls_key)
            .field("tls_ca", &self.tls_ca)
            .field("lease", &self.lease)
            .field("disk_cache_bytes_max", &self.disk_cache_bytes_max)
            .finish()
    }
}

/// Log output of the program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    #[serde(deserialize_with = "log_filter")]
    pub filter: Targets,
    #[serde(deserialize_with = "log_format")]
    pub format: LogFormat,
}

/// Output format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable.
    Text,
    /// One JSON object per line.
    Json,
}

impl Config {
    /// The defaults of all keys.
    ///
    /// # Errors
    /// The shipped `config.toml` is invalid, which a test rules out.
    pub fn defaults() -> Result<Self, ConfigError> {
        Layers::new().map(|layers| layers.config)
    }

    /// Checks constraints between keys.
    fn check(&self) -> Result<(), String> {
        let missing = match (&self.server.tls_certificate, &self.server.tls_key) {
            (Some(_), None) => Some("server.tls_key"),
            (None, Some(_)) => Some("server.tls_certificate"),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some(missing) = missing {
            return Err(format!(
                "{missing} is not set; TLS needs both server.tls_certificate and server.tls_key"
            ));
        }
        if self.wal.tail_bytes_max < self.storage.checkpoint_bytes {
            return Err(format!(
                "wal.tail_bytes_max ({}) must be at least storage.checkpoint_bytes ({}), else the log is full before it is trimmed",
                self.wal.tail_bytes_max, self.storage.checkpoint_bytes
            ));
        }
        self.smtp.check()?;
        self.cluster.check(&self.storage)
    }
}

/// The files of a node whose connections with other nodes have TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTlsConfig {
    /// The files of its listener.
    pub listener: TlsConfig,
    /// PEM file with the certificates that those of all nodes are signed by.
    pub ca: PathBuf,
}

impl ClusterConfig {
    /// The TLS files; `None` if TLS is not configured.
    pub fn tls(&self) -> Option<NodeTlsConfig> {
        let listener = TlsConfig {
            section: "cluster",
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
        };
        let ca = self.tls_ca.clone()?;
        Some(NodeTlsConfig { listener, ca })
    }

    /// Checks that a cluster is configured.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn check_set(&self) -> Result<(), &'static str> {
        match (&self.log, &self.objects) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err("no cluster is configured: set cluster.log and cluster.objects, and cluster.secret"),
        }
    }

    fn check(&self, storage: &StorageConfig) -> Result<(), String> {
        if self.log.is_none() {
            return Ok(());
        }
        let secret_chars = self.secret.as_ref().map_or(0, |secret| secret.chars().count());
        if secret_chars < SECRET_CHARS_MIN {
            return Err(format!(
                "cluster.secret has {secret_chars} characters; a node of a cluster needs at least {SECRET_CHARS_MIN}"
            ));
        }
        if self.objects.is_none() {
            return Err(
                "cluster.objects is not set; a node of a cluster keeps its checkpoints there".to_owned(),
            );
        }
        let tls = [&self.tls_certificate, &self.tls_key, &self.tls_ca];
        if tls.iter().any(|file| file.is_some()) && self.tls().is_none() {
            return Err(
                "TLS between nodes needs all of cluster.tls_certificate, cluster.tls_key and cluster.tls_ca"
                    .to_owned(),
            );
        }
        if storage.remote.is_some() {
            return Err(
                "storage.remote is for one machine; the checkpoints of a cluster are in cluster.objects"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
