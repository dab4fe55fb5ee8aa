//! Where the database is, and connecting to it.
//!
//! The driver tries several hosts in turn, but limits only the TCP part of each attempt: a host that accepts and then says
//! nothing would hide the next one. So each host, and each address of its name, is tried here with a limit of its own.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::parameters::{self, Parameters};
use super::tls::Wanted;
use crate::error::{StoreError, explained};

/// More hosts than this are refused: an attempt's time is divided among them.
const HOSTS_MAX: usize = 16;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The port of PostgreSQL.
const PORT: u16 = 5432;

/// A host of the address.
#[derive(Clone, Debug)]
struct Target {
    host: Option<Host>,
    address: Option<IpAddr>,
    port: u16,
}

/// An address such as `postgres://user:password@host1,host2/database`.
#[derive(Clone)]
pub(super) struct Address {
    /// All but the hosts.
    config: Config,
    targets: Vec<Target>,
    /// The target that was connected to last; it is tried first.
    last: usize,
    tls: MakeRustlsConnect,
    /// How long connecting may take, all hosts together.
    limit: Duration,
}

/// What the driver makes of an encrypted or plain socket.
pub(super) type Driver =
    Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>;

impl Address {
    /// Reads an address. An attempt to connect takes at most `limit`.
    pub(super) fn parse(text: &str, limit: Duration) -> Result<Self, StoreError> {
        let Parameters {
            rest,
            sslmode,
            sslrootcert,
        } = parameters::split(text)?;
        let parsed: Config = rest
            .parse()
            .map_err(|error: tokio_postgres::Error| StoreError::Failed(explained(&error)))?;
        if parsed.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
            return Err(refused(
                "target_session_attrs=read-only names a database that takes no writes",
            ));
        }
        let (mode, tls) = Wanted { sslmode, sslrootcert }.prepare()?;
        let targets = targets(&parsed)?;
        let mut config = without_hosts(&parsed);
        config.ssl_mode(mode);
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("tidewatch");
        Ok(Address {
            config,
            targets,
            last: 0,
            tls,
            limit,
        })
    }

    /// Connects to the first host that answers and takes writes.
    pub(super) async fn connect(&mut self) -> Result<(Client, Driver), StoreError> {
        let count = self.targets.len();
        // One part is left for what comes after connecting.
        let share = self.limit / (count as u32 + 1);
        let mut failures = Vec::with_capacity(count);
        for index in (0..count).map(|next| (self.last + next) % count) {
            let target = &self.targets[index];
            match self.connect_to(target, share).await {
                Ok(connected) => {
                    self.last = index;
                    return Ok(connected);
                }
                Err(failure) => failures.push((target.to_string(), failure)),
            }
        }
        Err(all(failures))
    }

    /// Tries the addresses of a host.
    async fn connect_to(&self, target: &Target, share: Duration) -> Result<(Client, Driver), StoreError> {
        let Some(Host::Tcp(name)) = &target.host else {
            return self.connect_once(target, target.address, share).await;
        };
        if target.address.is_some() {
            return self.connect_once(target, target.address, share).await;
        }
        let found = timeout(share, lookup_host((name.as_str(), target.port))).await;
        let found = found
            .map_err(|_| silent())?
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        let addresses: Vec<IpAddr> = found.map(|found| found.ip()).take(ADDRESSES_MAX).collect();
        let share = share / addresses.len().max(1) as u32;
        let mut last = StoreError::Unavailable("the host's name has no address".into());
        for address in addresses {
            match self.connect_once(target, Some(address), share).await {
                Ok(connected) => return Ok(connected),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    async fn connect_once(
        &self,
        target: &Target,
        address: Option<IpAddr>,
        share: Duration,
    ) -> Result<(Client, Driver), StoreError> {
        let mut config = self.config.clone();
        match &target.host {
            Some(Host::Tcp(name)) => drop(config.host(name)),
            // As with libpq, a socket in the file system is not encrypted.
            Some(Host::Unix(path)) => drop(config.host_path(path).ssl_mode(SslMode::Disable)),
            None => {}
        }
        config.port(target.port);
        address.map(|address| config.hostaddr(address));
        let connected = timeout(share, config.connect(self.tls.clone())).await;
        Ok(connected.map_err(|_| silent())??)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.host, self.address) {
            (Some(Host::Tcp(name)), _) => write!(f, "{name}:{}", self.port),
            (Some(Host::Unix(path)), _) => write!(f, "{}:{}", path.display(), self.port),
            (None, Some(address)) => write!(f, "{address}:{}", self.port),
            (None, None) => write!(f, "port {}", self.port),
        }
    }
}

fn refused(why: &str) -> StoreError {
    StoreError::Failed(format!("the address of the log store is refused: {why}").into())
}

fn silent() -> StoreError {
    StoreError::Unavailable(io::Error::new(io::ErrorKind::TimedOut, "the database does not answer").into())
}

/// The failure of all hosts: waiting does not help if it helps none of them.
fn all(mut failures: Vec<(String, StoreError)>) -> StoreError {
    if failures.len() == 1
        && let Some((_, failure)) = failures.pop()
    {
        return failure;
    }
    let is_final = failures
        .iter()
        .all(|(_, failure)| matches!(failure, StoreError::Failed(_)));
    let reasons = failures.iter().map(|(host, failure)| match failure {
        StoreError::Unavailable(why) | StoreError::Failed(why) => format!("{host}: {why}"),
        StoreError::Tables(why) => format!("{host}: {why}"),
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    match is_final {
        true => StoreError::Failed(reasons.into()),
        false => StoreError::Unavailable(reasons.into()),
    }
}

fn targets(parsed: &Config) -> Result<Vec<Target>, StoreError> {
    let (hosts, addresses, ports) = (parsed.get_hosts(), parsed.get_hostaddrs(), parsed.get_ports());
    let count = hosts.len().max(addresses.len());
    if count == 0 || count > HOSTS_MAX {
        return Err(refused(&format!(
            "it names {count} hosts; 1 to {HOSTS_MAX} can be used"
        )));
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err(refused("it has not as many `hostaddr` as `host`"));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(refused("it has not as many ports as hosts"));
    }
    let target = |index: usize| Target {
        host: hosts.get(index).cloned(),
        address: addresses.get(index).copied(),
        port: ports.get(index).or(ports.first()).copied().unwrap_or(PORT),
    };
    Ok((0..count).map(target).collect())
}

/// The driver's configuration has no way to remove a host.
fn without_hosts(parsed: &Config) -> Config {
    let mut config = Config::new();
    parsed.get_user().map(|user| config.user(user));
    parsed.get_password().map(|password| config.password(password));
    parsed.get_dbname().map(|name| config.dbname(name));
    parsed.get_options().map(|options| config.options(options));
    parsed
        .get_tcp_user_timeout()
        .map(|limit| config.tcp_user_timeout(*limit));
    parsed
        .get_keepalives_interval()
        .map(|interval| config.keepalives_interval(interval));
    parsed
        .get_keepalives_retries()
        .map(|retries| config.keepalives_retries(retries));
    config
        .keepalives(parsed.get_keepalives())
        .keepalives_idle(parsed.get_keepalives_idle())
        .channel_binding(parsed.get_channel_binding())
        .ssl_negotiation(parsed.get_ssl_negotiation());
    config
}
