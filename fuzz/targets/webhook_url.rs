//! URLs of webhooks: an accepted URL names no refused address in any spelling, and its stored form is accepted again.
//!
//! The first byte of an input says whether private networks are allowed.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use tidewatch::delivery::{Guard, Lookup, Place, Resolve};

/// Resolves no name.
struct NoNames;

impl Resolve for NoNames {
    fn lookup<'a>(&'a self, _: &'a str, _: u16) -> Lookup<'a> {
        Box::pin(async { Err(io::Error::other("no such name")) })
    }
}

static PUBLIC: LazyLock<Guard> = LazyLock::new(|| Guard::new(false, Arc::new(NoNames)));
static PRIVATE: LazyLock<Guard> = LazyLock::new(|| Guard::new(true, Arc::new(NoNames)));

pub fn check(data: &[u8]) {
    let Some((flags, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(text) else { return };
    let allow_private = flags & 1 != 0;
    let guard = if allow_private { &*PRIVATE } else { &*PUBLIC };
    let Ok(url) = guard.check_form(text) else { return };
    assert_eq!(guard.check_form(url.as_str()).as_ref(), Ok(&url), "{text}");
    assert!(
        url.as_str().starts_with(&url.origin()) && !url.as_str().contains('#'),
        "{text}"
    );
    assert!(url.as_str().contains(url.host_header()), "{text}");
    match url.place() {
        Place::Address(address) => assert!(!is_refused(address.ip(), allow_private), "{text}: {address}"),
        Place::Name(name, port) => {
            assert!(port != 0 && !name.is_empty(), "{text}");
            assert!(allow_private || !is_local(&name), "{text}: {name}");
            if let Some(address) = loose_address(&name) {
                panic!("{text}: the name {name} is the address {address} to some resolvers");
            }
        }
    }
}

fn is_local(name: &str) -> bool {
    // A name may end with one dot; no resolver accepts more.
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Whether sending to the address is forbidden, by the standard library and independently of the guard's tables.
fn is_refused(address: IpAddr, allow_private: bool) -> bool {
    match address {
        IpAddr::V4(v4) => is_refused_v4(v4, allow_private),
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4_mapped()
                && is_refused_v4(v4, allow_private)
            {
                return true;
            }
            let private =
                v6.is_loopback() || v6.is_unspecified() || v6.is_unique_local() || v6.is_multicast();
            v6.is_unicast_link_local() || !allow_private && private
        }
    }
}

fn is_refused_v4(address: Ipv4Addr, allow_private: bool) -> bool {
    let private = address.is_loopback()
        || address.is_private()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation();
    address.is_link_local() || !allow_private && private
}

/// The address that `inet_aton` reads in a name: one to four numbers, decimal, octal or hexadecimal, of which the last
/// fills the remaining bytes.
fn loose_address(name: &str) -> Option<Ipv4Addr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut parts: Vec<u64> = Vec::new();
    for part in name.split('.') {
        let lower = part.to_ascii_lowercase();
        let number = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
            (Some(digits), _) => u64::from_str_radix(digits, 16),
            (None, Some(digits)) if !digits.is_empty() => u64::from_str_radix(digits, 8),
            _ => lower.parse(),
        };
        // The standard library accepts a sign, resolvers do not.
        parts.push(number.ok().filter(|_| !part.contains('+'))?);
    }
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) || *last >= 1 << (32 - 8 * first.len()) {
        return None;
    }
    let high = first
        .iter()
        .enumerate()
        .fold(0, |bits, (place, part)| bits | part << (24 - 8 * place));
    Some(Ipv4Addr::from_bits((high | last) as u32))
}
