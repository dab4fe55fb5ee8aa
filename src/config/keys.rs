//! The table of all keys.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use super::value::Given;
use super::{Config, LogFormat, SyncMode};
use crate::catalog::Plan;

/// One key: its name, its meaning, how it is written as a default, and how it is set.
pub(super) struct Key {
    pub name: &'static str,
    pub meaning: &'static str,
    pub default: &'static str,
    pub set: fn(&mut Config, &Given) -> Result<(), String>,
    /// Its value must not be repeated in messages.
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

/// A terabyte: above it, a size is a slip of the pen.
const BYTES_MAX: u64 = 1 << 40;
const DAY_SECONDS: u64 = 86_400;

pub(super) const KEYS: &[Key] = &[
    key(
        "server.listen",
        "\"127.0.0.1:8080\"",
        "address and port to listen on; port 0 takes a free one",
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
        "threads that serve requests; 0: one per core",
        |c, v| {
            c.server.workers = v.integer(0, 1_024)? as usize;
            Ok(())
        },
    ),
    key(
        "server.connections_max",
        "16384",
        "open connections of the whole server; fewer where descriptors or memory for them are short",
        |c, v| {
            c.server.connections_max = v.integer(1, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "server.head_timeout_seconds",
        "10",
        "time for a request's head to arrive",
        |c, v| {
            c.server.head_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.keep_alive_seconds",
        "75",
        "time an idle connection stays open",
        |c, v| {
            c.server.keep_alive = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.request_timeout_seconds",
        "30",
        "time for a whole request, its body included; then 503, its work cancelled",
        |c, v| {
            c.server.request_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.write_timeout_seconds",
        "30",
        "time for a client to take what it was sent; then its connection is cut",
        |c, v| {
            c.server.write_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.answer_bytes_max",
        "134217728",
        "memory of large answers that wait for their clients to take them, of one organization half as much; above it 503",
        |c, v| {
            c.server.answer_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "server.shutdown_timeout_seconds",
        "30",
        "time for requests in flight when the server stops",
        |c, v| {
            c.server.shutdown_timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "server.tls_certificate",
        "\"\"",
        "PEM file with the server's certificate and those that vouch for it; empty: no TLS; SIGHUP reads it again",
        |c, v| {
            c.server.tls_certificate = path(v)?;
            Ok(())
        },
    ),
    key(
        "server.tls_key",
        "\"\"",
        "PEM file with the certificate's private key",
        |c, v| {
            c.server.tls_key = path(v)?;
            Ok(())
        },
    ),
    key(
        "server.cors_origins",
        "[]",
        "origins whose pages may call the API, like \"https://app.example.com\"; comma-separated in the environment",
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
        "directory that holds everything; one process at a time",
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
        "memory for unsealed points, dictionaries and mailboxes; above it ingests get 503",
        |c, v| {
            c.storage.memory_bytes_max = v.integer(16 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "storage.checkpoint_bytes",
        "67108864",
        "log bytes after which points are sealed into segments",
        |c, v| {
            c.storage.checkpoint_bytes = v.integer(64 << 10, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "storage.cache_bytes_max",
        "67108864",
        "memory for block summaries and rollups read from files; above it those asked for least are read again",
        |c, v| {
            c.storage.cache_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "wal.sync",
        "\"always\"",
        "always: acknowledged means on disk; interval, never: a power cut may take acknowledged points back",
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
        "period of wal.sync = \"interval\"",
        |c, v| {
            c.wal.sync_interval = Duration::from_millis(v.integer(1, 60_000)?);
            Ok(())
        },
    ),
    key(
        "wal.tail_bytes_max",
        "268435456",
        "log that a restart may have to replay; above it ingests get 503",
        |c, v| {
            c.wal.tail_bytes_max = v.integer(1 << 20, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "query.threads",
        "0",
        "threads that run queries; 0: half the cores, at least one; one more runs small queries only",
        |c, v| {
            c.query.threads = v.integer(0, 1_024)? as usize;
            Ok(())
        },
    ),
    key(
        "query.queue_max",
        "256",
        "queries that may wait for a thread, of one organization half as many; above it 503",
        |c, v| {
            c.query.queue_max = v.integer(1, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "query.memory_bytes_max",
        "134217728",
        "memory one query may hold; one that needs more is refused with 400; all together so much for each thread",
        |c, v| {
            c.query.memory_bytes_max = v.integer(1 << 20, 1 << 40)? as usize;
            Ok(())
        },
    ),
    key(
        "query.timeout_seconds",
        "30",
        "time for one query, its waiting included; then 503",
        |c, v| {
            c.query.timeout = v.seconds(1, DAY_SECONDS)?;
            Ok(())
        },
    ),
    key(
        "accounts.default_plan",
        "\"Free\"",
        "plan of a new organization: Free, Pro or Enterprise",
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
        "sign-ups from one address; then 429; 0: no limit; behind a proxy all clients have the proxy's address",
        |c, v| {
            c.accounts.signups_per_hour_max = v.integer(0, 1_000_000)? as usize;
            Ok(())
        },
    ),
    key(
        "limits.buckets_max",
        "20000",
        "buckets of an organization, besides what its plan allows; then 403",
        |c, v| {
            c.limits.buckets_max = v.integer(1, 1_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.sources_max",
        "1000000",
        "data sources of an organization; then 403",
        |c, v| {
            c.limits.sources_max = v.integer(1, 100_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.keys_max",
        "10000",
        "API keys of an organization; then 403",
        |c, v| {
            c.limits.keys_max = v.integer(1, 10_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.rules_max",
        "100000",
        "alert rules of an organization; then 403",
        |c, v| {
            c.limits.rules_max = v.integer(1, 10_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.webhooks_max",
        "1000",
        "webhooks of an organization; then 403",
        |c, v| {
            c.limits.webhooks_max = v.integer(1, 1_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.catalog_bytes_max",
        "67108864",
        "names, descriptions, schemas, rules and webhooks of an organization, in bytes of text; then 403",
        |c, v| {
            c.limits.catalog_bytes_max = v.integer(1, BYTES_MAX)?;
            Ok(())
        },
    ),
    key(
        "limits.owed_deliveries_max",
        "100000",
        "deliveries that an organization owes at once; then 403, and triggers end its oldest as failed",
        |c, v| {
            c.limits.owed_deliveries_max = v.integer(1, 100_000_000)?;
            Ok(())
        },
    ),
    key(
        "limits.owed_bytes_max",
        "134217728",
        "memory of these, at most half of what the server has for all; then the same",
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
            "bearer token of the operator routes; empty: the routes do not exist",
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
        "whether deliveries may go to loopback and private addresses; they never go to link-local ones",
        |c, v| {
            c.webhooks.allow_private_networks = v.boolean()?;
            Ok(())
        },
    ),
    key(
        "log.filter",
        "\"info,actix_server=warn,actix_http=off\"",
        "which log lines: a level (error, warn, info, debug, trace), or target=level pairs, comma-separated",
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
        "text: for people; json: one object a line",
        |c, v| {
            c.log.format = v.one_of(&[("text", LogFormat::Text), ("json", LogFormat::Json)])?;
            Ok(())
        },
    ),
];

/// A file; none when the text is empty.
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

/// All keys with default and meaning, as `--help` shows them.
pub fn describe_all() -> String {
    let mut text = String::from(
        "Config keys, in the TOML file as `[section]` and `key`, in the environment as TIDEWATCH_<SECTION>__<KEY>\n\
         (flags win over environment, environment over file, file over defaults):\n",
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
