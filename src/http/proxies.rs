//! The client behind proxies: whose `X-Forwarded-For` is believed.

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};
use ipnet::IpNet;

/// Hops that are followed. A longer chain is nobody's set-up; its client is the hop that is reached.
const HOPS_MAX: usize = 32;

/// The client of a connection from `peer`. Each trusted proxy says from whom it got the request: it adds that address at the
/// end of `X-Forwarded-For`. So the list is read from its end, as long as the hop that wrote an entry is trusted. What
/// stands before that, anybody may have sent.
pub fn client_behind(trusted: &[IpNet], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = peer.to_canonical();
    if trusted.is_empty() {
        return client;
    }
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    // Several lines are one list.
    let lines: Vec<&str> = headers
        .get_all(X_FORWARDED_FOR)
        .map(|line| line.to_str().unwrap_or_default())
        .collect();
    let hops = lines.iter().rev().flat_map(|line| line.rsplit(','));
    for hop in hops.take(HOPS_MAX) {
        if !is_trusted(&client) {
            break;
        }
        // After what is no address, nothing is known.
        let Some(address) = address(hop.trim()) else {
            break;
        };
        client = address;
    }
    client
}

/// An address, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    let with_port = || text.parse().ok().map(|address: SocketAddr| address.ip());
    address
        .or_else(with_port)
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn client(trusted: &[&str], peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        client_behind(&trusted, peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn nobody_is_believed_unless_configured() {
        assert_eq!(client(&[], "10.0.0.7", &["203.0.113.9"]), "10.0.0.7");
        assert_eq!(client(&["10.0.0.8/32"], "10.0.0.7", &["203.0.113.9"]), "10.0.0.7");
    }

    #[test]
    fn a_trusted_proxy_names_its_client() {
        let trusted = ["10.0.0.0/8"];
        assert_eq!(client(&trusted, "10.0.0.7", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client(&trusted, "10.0.0.7", &[]), "10.0.0.7");
        assert_eq!(client(&trusted, "10.0.0.7", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(client(&trusted, "10.0.0.7", &["2001:db8::1"]), "2001:db8::1");
        assert_eq!(client(&trusted, "10.0.0.7", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(client(&trusted, "10.0.0.7", &["[2001:db8::1]:80"]), "2001:db8::1");
        // A listener on both kinds of addresses shows peers so.
        assert_eq!(
            client(&trusted, "::ffff:10.0.0.7", &["203.0.113.9"]),
            "203.0.113.9"
        );
    }

    #[test]
    fn what_the_client_itself_has_sent_is_not_believed() {
        let trusted = ["10.0.0.0/8"];
        let forged = ["198.51.100.1, 10.0.0.3, 203.0.113.9"];
        assert_eq!(client(&trusted, "10.0.0.7", &forged), "203.0.113.9");
        assert_eq!(
            client(&trusted, "10.0.0.7", &["198.51.100.1", "203.0.113.9, 10.0.0.3"]),
            "203.0.113.9"
        );
    }

    #[test]
    fn the_list_ends_at_what_is_no_address_and_after_some_hops() {
        let trusted = ["10.0.0.0/8"];
        assert_eq!(
            client(&trusted, "10.0.0.7", &["203.0.113.9, unknown, 10.0.0.3"]),
            "10.0.0.3"
        );
        assert_eq!(client(&trusted, "10.0.0.7", &["unknown"]), "10.0.0.7");
        let hops = vec!["10.0.0.3"; 10_000].join(",");
        assert_eq!(
            client(&trusted, "10.0.0.7", &[&format!("203.0.113.9,{hops}")]),
            "10.0.0.3"
        );
        assert_eq!(client(&trusted, "10.0.0.7", &["10.0.0.4"]), "10.0.0.4");
    }
}
