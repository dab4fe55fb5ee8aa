//! The configuration: flags override the environment, which overrides the file, which overrides the defaults.
//!
//! Every key is defined once, in the table of `keys.rs`, with its name, meaning, default and bounds. The file, the
//! environment, `--help` and the shipped `config.toml` are checked against that table. An invalid key or value stops
//! the start with a message that names the key and its source.

mod keys;
mod layers;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::Plan;

pub use keys::{describe_all, environment_name};
pub use layers::{ConfigError, Flags, load};

/// The validated configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// HTTP server.
    pub server: ServerConfig,
    /// Data directory and memory.
    pub storage: StorageConfig,
    /// Write-ahead log.
    pub wal: WalConfig,
    /// Query pool.
    pub query: QueryConfig,
    /// Sign-up.
    pub accounts: AccountsConfig,
    /// Limits of one organization.
    pub limits: LimitsConfig,
    /// Access to the operator routes.
    pub operator: OperatorConfig,
    /// Webhook deliveries.
    pub webhooks: WebhooksConfig,
    /// Log output of the program.
    pub log: LogConfig,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Worker threads for requests; 0 means one per core.
    pub workers: usize,
    /// Maximum open connections.
    pub connections_max: usize,
    /// Timeout for receiving a request's head, from the opening of the connection.
    pub head_timeout: Duration,
    /// Time after which an idle connection is closed.
    pub keep_alive: Duration,
    /// Timeout for a whole request, including its body.
    pub request_timeout: Duration,
    /// Timeout for a client to read what was sent.
    pub write_timeout: Duration,
    /// Memory for large answers that clients have not read yet.
    pub answer_bytes_max: u64,
    /// Time that requests in flight get to finish when the server stops.
    pub shutdown_timeout: Duration,
    /// PEM file with the certificate chain; TLS requires its key too.
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    pub tls_key: Option<PathBuf>,
    pub cors_origins: Vec<String>,
}

/// The files required for TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsConfig {
    /// PEM file, the server's own certificate first.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

impl ServerConfig {
    /// The TLS files; `None` if TLS is not configured.
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
    /// The data directory.
    pub data_dir: PathBuf,
    /// Memory for request bodies, queues and points that are not in segments yet, in total.
    pub memory_bytes_max: u64,
    /// Log size at which points are written to segments.
    pub checkpoint_bytes: u64,
    /// Size of the cache for decoded block summaries and rollups.
    pub cache_bytes_max: u64,
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

/// `[wal]`
#[derive(Clone, Debug, PartialEq)]
pub struct WalConfig {
    /// When a record counts as durable.
    pub sync: SyncMode,
    /// Time between syncs with [`SyncMode::Interval`].
    pub sync_interval: Duration,
    /// Maximum log size that a restart has to replay.
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

/// `[query]`
#[derive(Clone, Debug, PartialEq)]
pub struct QueryConfig {
    /// Query threads, besides the one for small queries; 0 means half the cores.
    pub threads: usize,
    /// Maximum queued queries, half of them per organization.
    pub queue_max: usize,
    /// Memory limit of one query.
    pub memory_bytes_max: usize,
    /// Timeout for a query, including its time in the queue.
    pub timeout: Duration,
}

/// `[accounts]`
#[derive(Clone, Debug, PartialEq)]
pub struct AccountsConfig {
    /// Plan of new organizations.
    pub default_plan: Plan,
    /// Whether anyone may sign up.
    pub signup: bool,
    /// Maximum sign-ups per hour from one address; 0 means no limit.
    pub signups_per_hour_max: usize,
}

/// `[limits]` of one organization. Existing objects are kept if a limit is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Maximum buckets, in addition to the plan's limit.
    pub buckets_max: u64,
    /// Maximum data sources of all buckets.
    pub sources_max: u64,
    /// Maximum API keys, including those of buckets.
    pub keys_max: u64,
    pub rules_max: u64,
    pub webhooks_max: u64,
    /// Maximum total text of all of these, in bytes.
    pub catalog_bytes_max: u64,
    /// Maximum pending deliveries.
    pub owed_deliveries_max: u64,
    /// Memory limit of pending deliveries.
    pub owed_bytes_max: u64,
}

/// `[operator]`
#[derive(Clone, PartialEq)]
pub struct OperatorConfig {
    /// Bearer token of the operator routes; `None` disables them.
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
    /// Whether deliveries may go to loopback and private addresses. Link-local addresses are never allowed.
    pub allow_private_networks: bool,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// Log filter: a level, or `target=level` pairs separated by commas.
    pub filter: String,
    /// Output format.
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
        Ok(())
    }
}

#[cfg(test)]
mod tests;
