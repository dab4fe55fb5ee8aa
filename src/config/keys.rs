//! The table of all keys.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::value::Given;
use super::{Config, LogFormat, SyncMode};
use crate::catalog::Plan;

/// A key of the configuration.
pub(super) struct Key {
    pub name: &'static str,
    pub meaning: &'static str,
    /// The default as written in TOML.
    pub default: &'static str,
    pub set: fn(&mut Config, &Given) -> Result<(), String>,
    /// Whether its value must not appear in messages.
    pub secret: bool,
}

const fn key(
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
    set: fn(&mut Config, &Given) -> Result<(), String>,
) -> Key {
    Key {
        name,
        meaning,
        default,
        set,
        secret: false,
    }
}

/// A terabyte. A larger size is assumed to be a typing error.
const BYTES_MAX: u64 = 1 << 40;
const DAY_SECONDS: u64 = 86_400;

pub(super) const KEYS: &[Key] = &[
    key(
        "server.listen",
        "\"127.0.0.1:8080\"",
        "address and port to listen on; port 0 selects a free port",
        |c, v| {
            let text = v.text()?;
            c.server.listen = text
                .parse()
                .map_err(|_| format!("must be an address and a port like 127.0.0.1:8080, not {text:?}"))?;
            Ok(())
        },
    ),
    key(
        "server.workers",
        "0",
        "worker threads for requests; 0: one per core",
        |c, v| {
            c.server.workers = v.integer(0, 1_024)? as usize;
            Ok(())
        },
    ),
    key(
        "server.connections_max",
        "16384",
        "maximum open connections; lower if file descriptors or memory do not suffice",
        |c, v| {
            c.server.connections_max = v.integer(1, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "server.head_timeout_seconds",
        "10",
        "timeout for receiving a request's head",
        |c, v| {
            c.server.head_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.keep_alive_seconds",
        "75",
        "time after which an idle connection is closed",
        |c, v| {
            c.server.keep_alive = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.request_timeout_seconds",
        "30",
        "timeout for a whole request, including its body; after it the request is cancelled with 503",
        |c, v| {
            c.server.request_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.write_timeout_seconds",
        "30",
        "timeout for a client to read what was sent; after it the connection is closed",
        |c, v| {
            c.server.write_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.answer_bytes_max",
        "134217728",
        "memory for large answers that clients have not read yet, half of it per organization; above it 503",
        |c, v| {
            c.server.answer_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "server.shutdown_timeout_seconds",
        "30",
        "time that requests in flight get to finish when the server stops",
        |c, v| {
            c.server.shutdown_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.tls_certificate",
        "\"\"",
        "PEM file with the server's certificate chain; empty: no TLS; reloaded on SIGHUP",
        |c, v| {
            c.server.tls_certificate = path(v)?;
            Ok(())
        },
    ),
    key(
        "server.tls_key",
        "\"\"",
        "PEM file with the certificate's private key; reloaded on SIGHUP",
        |c, v| {
            c.server.tls_key = path(v)?;
            Ok(())
        },
    ),
    key(
        "server.cors_origins",
        "[]",
        "origins whose pages may call the API, such as \"https://app.example.com\"; comma-separated in the environment",
        |c, v| {
            let origins = v.list()?;
            for origin in &origins {
                check_origin(origin)?;
            }
            c.server.cors_origins = origins;
            Ok(())
        },
    ),
    key(
        "storage.data_dir",
        "\"./data\"",
        "data directory; used by one process at a time",
        |c, v| {
            let text = v.text()?;
            if text.is_empty() {
                return Err(String::from("must name a directory"));
            }
            c.storage.data_dir = text.into();
            Ok(())
        },
    ),
    key(
        "storage.memory_bytes_max",
        "1073741824",
        "memory for request bodies, queues and points that are not in segments yet; above it ingests get 503",
        |c, v| {
            c.storage.memory_bytes_max = v.integer(16 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "storage.checkpoint_bytes",
        "67108864",
        "log size in bytes at which points are written to segments",
        |c, v| {
            c.storage.checkpoint_bytes = v.integer(64 << 10, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "storage.cache_bytes_max",
        "67108864",
        "cache for block summaries and rollups read from files; the least used are evicted",
        |c, v| {
            c.storage.cache_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "wal.sync",
        "\"always\"",
        "always: acknowledged points are on disk; interval, never: a power failure may lose acknowledged points",
        |c, v| {
            c.wal.sync = v.one_of(&[
                ("always", SyncMode::Always),
                ("interval", SyncMode::Interval),
                ("never", SyncMode::Never),
            ])?;
            Ok(())
        },
    ),
    key(
        "wal.sync_interval_ms",
        "1000",
        "time between syncs with wal.sync = \"interval\"",
        |c, v| {
            c.wal.sync_interval = Duration::from_millis(v.integer(1, 60_000)?);
            Ok(())
        },
    ),
    key(
        "wal.tail_bytes_max",
        "268435456",
        "maximum log size in bytes that a restart has to replay; above it ingests get 503",
        |c, v| {
            c.wal.tail_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "query.threads",
        "0",
        "query threads; 0: half the cores, at least one; one additional thread runs only small queries",
        |c, v| {
            c.query.threads = v.integer(0, 1_024)? as usize;
            Ok(())
        },
    ),
    key(
        "query.queue_max",
        "256",
        "maximum queued queries, half of them per organization; above it 503",
        |c, v| {
            c.query.queue_max = v.integer(1, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "query.memory_bytes_max",
        "134217728",
        "memory limit of one query; above it 400; the limit of all queries together is this times the number of threads",
        |c, v| {
            c.query.memory_bytes_max = v.integer(1 << 20, 1 << 40)? as usize;
            Ok(())
        },
    ),
    key(
        "query.timeout_seconds",
        "30",
        "timeout for a query, including its time in the queue; after it 503",
        |c, v| {
            c.query.timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "accounts.default_plan",
        "\"Free\"",
        "plan of new organizations: Free, Pro or Enterprise",
        |c, v| {
            c.accounts.default_plan = v.one_of(&Plan::ALL.map(|plan| (plan.name(), plan)))?;
            Ok(())
        },
    ),
    key("accounts.signup", "true", "whether anyone may sign up", |c, v| {
        c.accounts.signup = v.boolean()?;
        Ok(())
    }),
    key(
        "accounts.signups_per_hour_max",
        "1000",
        "maximum sign-ups per hour from one address; above it 429; 0: no limit; behind a proxy all clients have its address",
        |c, v| {
            c.accounts.signups_per_hour_max = v.integer(0, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "limits.buckets_max",
        "20000",
        "maximum buckets of an organization, in addition to its plan's limit; above it 403",
        |c, v| {
            c.limits.buckets_max = v.integer(1, 1_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.sources_max",
        "1000000",
        "maximum data sources of an organization; above it 403",
        |c, v| {
            c.limits.sources_max = v.integer(1, 100_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.keys_max",
        "10000",
        "maximum API keys of an organization; above it 403",
        |c, v| {
            c.limits.keys_max = v.integer(1, 10_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.rules_max",
        "100000",
        "maximum alert rules of an organization; above it 403",
        |c, v| {
            c.limits.rules_max = v.integer(1, 10_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.webhooks_max",
        "1000",
        "maximum webhooks of an organization; above it 403",
        |c, v| {
            c.limits.webhooks_max = v.integer(1, 1_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.catalog_bytes_max",
        "67108864",
        "maximum text of an organization in bytes: names, descriptions, schemas, rules, webhooks; above it 403",
        |c, v| {
            c.limits.catalog_bytes_max = v.integer(1, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "limits.owed_deliveries_max",
        "100000",
        "maximum pending deliveries of an organization; above it 403, and triggers fail the oldest deliveries",
        |c, v| {
            c.limits.owed_deliveries_max = v.integer(1, 100_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.owed_bytes_max",
        "134217728",
        "memory limit of an organization's pending deliveries, at most half of the server's; above it as for the count",
        |c, v| {
            c.limits.owed_bytes_max = v.integer(1, BYTES_MAX)?;
            Ok(())
        },
    ),
    Key {
        secret: true,
        ..key(
            "operator.token",
            "\"\"",
            "bearer token of the operator routes; empty: the routes are disabled",
            |c, v| {
                let text = v.text()?;
                c.operator.token = (!text.is_empty()).then(|| text.to_owned());
                Ok(())
            },
        )
    },
    key(
        "webhooks.allow_private_networks",
        "false",
        "whether deliveries may go to loopback and private addresses; link-local addresses are never allowed",
        |c, v| {
            c.webhooks.allow_private_networks = v.boolean()?;
            Ok(())
        },
    ),
    key(
        "log.filter",
        "\"info,actix_server=warn,actix_http=off\"",
        "log filter: a level (error, warn, info, debug, trace), or target=level pairs, comma-separated",
        |c, v| {
            let text = v.text()?;
            text.parse::<tracing_subscriber::filter::Targets>()
                .map_err(|_| format!("must be a level or target=level pairs, not {text:?}"))?;
            c.log.filter = text.to_owned();
            Ok(())
        },
    ),
    key(
        "log.format",
        "\"text\"",
        "text: human-readable; json: one object per line",
        |c, v| {
            c.log.format = v.one_of(&[("text", LogFormat::Text), ("json", LogFormat::Json)])?;
            Ok(())
        },
    ),
];

/// A path; `None` if the text is empty.
fn path(given: &Given) -> Result<Option<PathBuf>, String> {
    let text = given.text()?;
    Ok((!text.is_empty()).then(|| text.into()))
}

fn check_origin(origin: &str) -> Result<(), String> {
    let host = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    let plain = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', '*']) && host.is_ascii();
    if host.is_some_and(plain) {
        Ok(())
    } else {
        Err(format!(
            "must list origins like https://app.example.com, without path or wildcard, not {origin:?}"
        ))
    }
}

/// The environment variable of a key: `server.listen` is `TIDEWATCH_SERVER__LISTEN`.
pub fn environment_name(key: &str) -> String {
    format!("TIDEWATCH_{}", key.replace('.', "__").to_ascii_uppercase())
}

/// All keys with their defaults and meanings, for `--help`.
pub fn describe_all() -> String {
    let mut text = String::from(
        "Config keys, in the TOML file as `[section]` and `key`, in the environment as TIDEWATCH_<SECTION>__<KEY>\n\
         (flags override the environment, the environment overrides the file, the file overrides the defaults):\n",
    );
    for Key {
        name,
        meaning,
        default,
        ..
    } in KEYS
    {
        let _ = write!(
            text,
            "\n  {name} = {default}\n      {meaning}\n      {}\n",
            environment_name(name)
        );
    }
    text
}
