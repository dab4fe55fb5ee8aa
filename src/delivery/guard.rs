//! Which URLs deliveries may go to, so that nobody reaches into the operator's network through us.
//!
//! The rule is applied when a URL is set, and at every attempt to what its name resolves to then
//! ([`Guard::addresses`]): a connection goes to the addresses that were checked and to no others.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use url::{Host, Url};

use super::address::{is_link_local, is_public};
use super::resolve::Resolve;

const URL_BYTES_MAX: usize = 2_048;
/// How long somebody who sets a URL waits for its name; a slower one counts as one that does not resolve yet.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

const NOT_PUBLIC: &str = "is not on the public internet; name a public host, or have the operator set webhooks.allow_private_networks";
const NOT_ADMITTED_PRIVATELY: &str = "is link-local; no delivery goes there";

/// A URL that deliveries may go to, but for what its name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedUrl(Url);

/// Where a URL's host is, as far as the URL tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The host is an address.
    Address(SocketAddr),
    /// The host is a name, with the port.
    Name(String, u16),
}

impl CheckedUrl {
    /// The URL as it is requested: canonical, without fragment.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Host and port for the `Host` header; the port only where it is not the scheme's.
    pub fn host_header(&self) -> &str {
        &self.0[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// Where its host is.
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

/// Judges URLs and addresses. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    admits: fn(IpAddr) -> bool,
    /// What is said of a host that is not admitted.
    refusal: &'static str,
    resolver: Arc<dyn Resolve>,
}

impl Guard {
    /// A guard that admits public addresses, or all but link-local ones.
    pub fn new(allow_private_networks: bool, resolver: Arc<dyn Resolve>) -> Self {
        if allow_private_networks {
            Self {
                refusal: NOT_ADMITTED_PRIVATELY,
                ..Self::admitting(|address| !is_link_local(address), resolver)
            }
        } else {
            Self::admitting(is_public, resolver)
        }
    }

    /// A guard with a rule of its own for addresses.
    pub(super) fn admitting(admits: fn(IpAddr) -> bool, resolver: Arc<dyn Resolve>) -> Self {
        Self {
            admits,
            refusal: NOT_PUBLIC,
            resolver,
        }
    }

    /// Checks a URL by itself: its form, and its host when that says where it is.
    ///
    /// # Errors
    /// What to change.
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

    /// Checks a URL that somebody sets: as [`Guard::check_form`], and what its name resolves to now. A name that does
    /// not resolve yet passes; it is checked again at every attempt.
    ///
    /// # Errors
    /// What to change.
    pub async fn check_url(&self, text: &str) -> Result<CheckedUrl, String> {
        let url = self.check_form(text)?;
        if let Place::Name(name, port) = url.place()
            && let Ok(Ok(addresses)) = timeout(CHECK_TIMEOUT, self.resolver.lookup(&name, port)).await
        {
            self.check_addresses(&name, &addresses)?;
        }
        Ok(url)
    }

    /// The addresses that an attempt may connect to, at least one.
    ///
    /// # Errors
    /// Why there are none.
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

    /// One address that is not admitted spoils all: whoever mixes them is up to something, or about to be misled. The
    /// message says of a name no more than that: what it resolves to inside a network is nobody's business outside.
    fn check_addresses(&self, host: &str, addresses: &[SocketAddr]) -> Result<(), String> {
        if addresses.iter().all(|address| (self.admits)(address.ip())) {
            return Ok(());
        }
        Err(format!("{host} {}", self.refusal))
    }
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
    // The parser would guess a host where none is written (RFC 3986, section 3.2).
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
    // The HTTP client reads URLs by a narrower grammar.
    if url.as_str().len() > URL_BYTES_MAX || url.as_str().parse::<awc::http::Uri>().is_err() {
        return Err(String::from("must be a shorter or simpler URL"));
    }
    Ok(CheckedUrl(url))
}

/// Names of this machine, whatever a resolver says (RFC 6761).
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}
