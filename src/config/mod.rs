//! What an operator can set: flags over environment over file over defaults.
//!
//! Every key stands once, in the table of `keys.rs`: its name, meaning, default and bounds. File,
//! environment, `--help` and the shipped `config.toml` are all checked against that table, and a
//! key or value that is wrong stops the start with a message naming the key and where it came from.

mod keys;
mod layers;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::Plan;

pub use keys::{describe_all, environment_name};
pub use layers::{ConfigError, Flags, load};

/// The checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The HTTP side.
    pub server: ServerConfig,
    /// The data directory and its memory.
    pub storage: StorageConfig,
    /// The log.
    pub wal: WalConfig,
    /// The query pool.
    pub query: QueryConfig,
    /// Sign-up.
    pub accounts: AccountsConfig,
    /// What one organization may have.
    pub limits: LimitsConfig,
    /// Who runs the server.
    pub operator: OperatorConfig,
    /// Deliveries.
    pub webhooks: WebhooksConfig,
    /// The program's own log lines.
    pub log: LogConfig,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// Threads that serve requests; 0 is one per core.
    pub workers: usize,
    /// Open connections of the whole server.
    pub connections_max: usize,
    /// Time for a request's head, from the connection's opening.
    pub head_timeout: Duration,
    /// Time an idle connection stays open.
    pub keep_alive: Duration,
    /// Time for a whole request, its body included.
    pub request_timeout: Duration,
    /// Time for a client to take what it was sent.
    pub write_timeout: Duration,
    /// Memory of large answers that wait for their clients to take them.
    pub answer_bytes_max: u64,
    /// Time for requests in flight when the server stops.
    pub shutdown_timeout: Duration,
    /// The PEM file with the certificate and those that vouch for it; TLS needs its key, too.
    pub tls_certificate: Option<PathBuf>,
    /// The PEM file with the certificate's private key.
    pub tls_key: Option<PathBuf>,
    /// Origins whose pages may call the API.
    pub cors_origins: Vec<String>,
}

/// The files that TLS needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsConfig {
    /// PEM, the server's own certificate first.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

impl ServerConfig {
    /// The files of TLS; `None` without.
    pub fn tls(&self) -> Option<TlsConfig> {
        Some(TlsConfig {
            certificate: self.tls_certificate.clone()?,
            key: self.tls_key.clone()?,
        })
    }
}

/// `[storage]`
#[derive(Clone, Debug, PartialEq)]
pub struct StorageConfig {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Memory of unsaved points, what is on its way to become some, and request bodies, all together.
    pub memory_bytes_max: u64,
    /// Log bytes after which heads are sealed.
    pub checkpoint_bytes: u64,
    /// Memory of block summaries and rollups that are kept decoded.
    pub cache_bytes_max: u64,
}

impl StorageConfig {
    /// The part of the memory for request bodies: they are a passing thing, and get no more however large the server.
    pub fn body_bytes_max(&self) -> u64 {
        (self.memory_bytes_max / 4).min(256 << 20)
    }

    /// Memory of deliveries that are owed, of all organizations, besides: a quarter as much.
    pub const fn owed_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 4
    }

    /// The rest of it: for unsaved points and what is on its way to become some.
    pub fn point_bytes_max(&self) -> u64 {
        self.memory_bytes_max - self.body_bytes_max()
    }
}

/// `[wal]`
#[derive(Clone, Debug, PartialEq)]
pub struct WalConfig {
    /// When a record counts as durable.
    pub sync: SyncMode,
    /// The period of `sync = "interval"`.
    pub sync_interval: Duration,
    /// Log that a restart may have to replay.
    pub tail_bytes_max: u64,
}

/// When a record counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// After its sync: acknowledged means durable.
    Always,
    /// After its write; synced once an interval.
    Interval,
    /// After its write; synced when the operating system likes.
    Never,
}

/// `[query]`
#[derive(Clone, Debug, PartialEq)]
pub struct QueryConfig {
    /// Threads of the query pool, besides the one for small queries; 0 is half the cores.
    pub threads: usize,
    /// Queries that may wait for a thread; of one organization half as many.
    pub queue_max: usize,
    /// Memory that one query may hold.
    pub memory_bytes_max: usize,
    /// Time for one query, waiting included.
    pub timeout: Duration,
}

/// `[accounts]`
#[derive(Clone, Debug, PartialEq)]
pub struct AccountsConfig {
    /// Plan of a new organization.
    pub default_plan: Plan,
    /// Whether anyone may sign up.
    pub signup: bool,
    /// Sign-ups from one address; 0 is no limit.
    pub signups_per_hour_max: usize,
}

/// `[limits]`: what one organization may have. What there is already stays, whatever the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Buckets, besides the plan's limit.
    pub buckets_max: u64,
    /// Data sources of all its buckets.
    pub sources_max: u64,
    /// API keys, those of its buckets included.
    pub keys_max: u64,
    /// Alert rules.
    pub rules_max: u64,
    pub webhooks_max: u64,
    /// Bytes of the texts of all these.
    pub catalog_bytes_max: u64,
    /// Deliveries that are owed at once.
    pub owed_deliveries_max: u64,
    /// Memory that these take.
    pub owed_bytes_max: u64,
}

/// `[operator]`
#[derive(Clone, PartialEq)]
pub struct OperatorConfig {
    /// Opens the operator routes; without it they do not exist.
    pub token: Option<String>,
}

impl std::fmt::Debug for OperatorConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "<secret>");
        f.debug_struct("OperatorConfig").field("token", &token).finish()
    }
}

/// `[webhooks]`
#[derive(Clone, Debug, PartialEq)]
pub struct WebhooksConfig {
    /// Whether deliveries may go to loopback and private addresses. They never go to link-local ones.
    pub allow_private_networks: bool,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// Which lines: a level, or `target=level` pairs separated by commas.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server: ServerConfig {
                listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
                workers: 0,
                connections_max: 16_384,
                head_timeout: Duration::from_secs(10),
                keep_alive: Duration::from_secs(75),
                request_timeout: Duration::from_secs(30),
                write_timeout: Duration::from_secs(30),
                answer_bytes_max: 128 << 20,
                shutdown_timeout: Duration::from_secs(30),
                tls_certificate: None,
                tls_key: None,
                cors_origins: Vec::new(),
            },
            storage: StorageConfig {
                data_dir: PathBuf::from("./data"),
                memory_bytes_max: 1 << 30,
                checkpoint_bytes: 64 << 20,
                cache_bytes_max: 64 << 20,
            },
            wal: WalConfig {
                sync: SyncMode::Always,
                sync_interval: Duration::from_secs(1),
                tail_bytes_max: 256 << 20,
            },
            query: QueryConfig {
                threads: 0,
                queue_max: 256,
                memory_bytes_max: 128 << 20,
                timeout: Duration::from_secs(30),
            },
            accounts: AccountsConfig {
                default_plan: Plan::Free,
                signup: true,
                signups_per_hour_max: 1_000,
            },
            limits: LimitsConfig {
                buckets_max: 20_000,
                sources_max: 1_000_000,
                keys_max: 10_000,
                rules_max: 100_000,
                webhooks_max: 1_000,
                catalog_bytes_max: 64 << 20,
                owed_deliveries_max: 100_000,
                owed_bytes_max: 128 << 20,
            },
            operator: OperatorConfig { token: None },
            webhooks: WebhooksConfig {
                allow_private_networks: false,
            },
            log: LogConfig {
                filter: String::from("info,actix_server=warn,actix_http=off"),
                format: LogFormat::Text,
            },
        }
    }
}

impl Config {
    /// Faults that only two keys together have.
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
        Ok(())
    }
}

#[cfg(test)]
mod tests;
