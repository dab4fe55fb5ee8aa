//! Checks which URLs deliveries may go to, to prevent requests into the operator's network (SSRF).
//!
//! A URL is checked when it is set. At every attempt the addresses it resolves to at that time are checked
//! ([`Guard::addresses`]), and the connection goes only to those addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use url::{Host, Url};

use super::address::{is_link_local, is_public};
use super::resolve::Resolve;

const URL_BYTES_MAX: usize = 2_048;
/// Limit for resolving a name while a request waits for it. A timeout counts as "does not resolve yet".
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const NOT_PUBLIC: &str = "is not on the public internet; name a public host, or have the operator set webhooks.allow_private_networks";
const NOT_ADMITTED_PRIVATELY: &str = "is link-local; no delivery goes there";

/// A URL that deliveries may go to, provided that the addresses its name resolves to are allowed too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedUrl(Url);

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Address(SocketAddr),
    /// A name and the port.
    Name(String, u16),
}

impl CheckedUrl {
    /// The canonical URL that is requested, without fragment.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Host and port for the `Host` header. The port is omitted if it is the scheme's default.
    pub fn host_header(&self) -> &str {
        &self.0[url::Position::BeforeHost..url::Position::AfterPort]
    }

    pub fn place(&self) -> Place {
        let port = self.0.port_or_known_default().unwrap_or_default();
        match self.0.host() {
            Some(Host::Ipv4(address)) => Place::Address((address, port).into()),
            Some(Host::Ipv6(address)) => Place::Address((address, port).into()),
            Some(Host::Domain(name)) => Place::Name(name.to_owned(), port),
            None => Place::Name(String::new(), port),
        }
    }
}

/// Checks URLs and addresses. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    admits: fn(IpAddr) -> bool,
    /// Error text for a host that is not allowed.
    refusal: &'static str,
    resolver: Arc<dyn Resolve>,
}

impl Guard {
    /// Allows public addresses, or with `allow_private_networks` all except link-local ones.
    pub fn new(allow_private_networks: bool, resolver: Arc<dyn Resolve>) -> Self {
        let (admits, refusal): (fn(IpAddr) -> bool, _) = match allow_private_networks {
            true => (|address| !is_link_local(address), NOT_ADMITTED_PRIVATELY),
            false => (is_public, NOT_PUBLIC),
        };
        Self {
            admits,
            refusal,
            resolver,
        }
    }

    /// A guard with a custom rule for addresses.
    #[cfg(test)]
    pub(super) fn admitting(admits: fn(IpAddr) -> bool, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            admits,
            ..Self::new(false, resolver)
        }
    }

    /// Checks a URL without resolving its name: the syntax, and the host if it is an address or a local name.
    ///
    /// # Errors
    /// Describes what to change.
    pub fn check_form(&self, text: &str) -> Result<CheckedUrl, String> {
        let url = parse(text)?;
        match url.place() {
            Place::Address(address) => self.check_addresses(&address.ip().to_string(), &[address])?,
            Place::Name(name, port) if is_local_name(&name) => {
                self.check_addresses(&name, &[(Ipv4Addr::LOCALHOST, port).into()])?;
            }
            Place::Name(..) => {}
        }
        Ok(url)
    }

    /// Checks a URL as [`Guard::check_form`] does, and the addresses its name resolves to now. A name that does not
    /// resolve yet passes, because it is checked again at every attempt.
    ///
    /// # Errors
    /// Describes what to change.
    pub async fn check_url(&self, text: &str) -> Result<CheckedUrl, String> {
        let url = self.check_form(text)?;
        if let Place::Name(name, port) = url.place()
            && let Ok(Ok(addresses)) = timeout(CHECK_TIMEOUT, self.resolver.lookup(&name, port)).await
        {
            self.check_addresses(&name, &addresses)?;
        }
        Ok(url)
    }

    /// The addresses that an attempt may connect to; at least one.
    ///
    /// # Errors
    /// Describes why there are none.
    pub async fn addresses(&self, url: &CheckedUrl) -> Result<Vec<SocketAddr>, String> {
        let (name, addresses) = match url.place() {
            Place::Address(address) => (address.ip().to_string(), vec![address]),
            Place::Name(name, port) => match self.resolver.lookup(&name, port).await {
                Ok(addresses) => (name, addresses),
                Err(error) => return Err(format!("the name {name} does not resolve: {error}")),
            },
        };
        if addresses.is_empty() {
            return Err(format!("the name {name} has no address"));
        }
        self.check_addresses(&name, &addresses)?;
        Ok(addresses)
    }

    /// One disallowed address refuses the whole host: a mix of public and private addresses is an attack or a mistake.
    /// The message does not include the addresses, which would reveal the internal network.
    fn check_addresses(&self, host: &str, addresses: &[SocketAddr]) -> Result<(), String> {
        if addresses.iter().all(|address| (self.admits)(address.ip())) {
            return Ok(());
        }
        Err(format!("{host} {}", self.refusal))
    }
}

/// Checks a URL by itself, without a look at where it leads.
///
/// # Errors
/// Describes what to change.
pub fn check_url_form(text: &str) -> Result<(), String> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<CheckedUrl, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("must be at most {URL_BYTES_MAX} bytes long"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(String::from("must not contain spaces or control characters"));
    }
    let malformed =
        |why: &dyn std::fmt::Display| format!("must be a URL like https://example.com/hook: {why}");
    let mut url = Url::parse(text).map_err(|error| malformed(&error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "must begin with https:// or http://, not {}:",
            url.scheme()
        ));
    }
    // The parser would accept a URL without a host by taking the first path segment (RFC 3986, section 3.2).
    let written = text.split_once("://").map(|(_, behind)| behind);
    if written.is_none_or(|behind| behind.starts_with(['/', '\\'])) {
        return Err(malformed(&"no host behind \"//\""));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(String::from(
            "must not carry a user name or password; deliveries are signed with the secret",
        ));
    }
    if url.port() == Some(0) {
        return Err(String::from("must not name port 0"));
    }
    url.set_fragment(None);
    // The HTTP client's URL grammar is narrower.
    if url.as_str().len() > URL_BYTES_MAX || url.as_str().parse::<awc::http::Uri>().is_err() {
        return Err(String::from("must be a shorter or simpler URL"));
    }
    Ok(CheckedUrl(url))
}

/// Names that always mean this machine, whatever a resolver says (RFC 6761).
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}
