//! Which addresses are public, and so allowed for deliveries when private networks are not.
//!
//! Everything that is not known to be reachable over the public internet is refused. The ranges come from the IANA
//! registries of special-purpose addresses (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>). An IPv6 address that embeds an IPv4 address is
//! public if both are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 ranges that are not public: first address and prefix length.
const IPV4_REFUSED: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // shared by carriers
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, metadata services of clouds
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // relays of 6to4
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// Ranges within 2000::/3 that are not public. All public IPv6 addresses are in 2000::/3, except those of NAT64.
const IPV6_REFUSED: &[(u32, u32)] = &[
    (0x2001_0000, 23), // protocol assignments; Teredo is checked separately
    (0x2001_0db8, 32), // documentation
    (0x3fff_0000, 20), // documentation
];

/// Whether an address is link-local, in any embedding: cloud metadata services, and neighbours without another address.
/// Deliveries never go there, even if private networks are allowed.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || embedded(address).iter().any(Ipv4Addr::is_link_local)
        }
    }
}

/// Whether an address is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within =
        |(first, bits): &([u8; 4], u32)| (address.to_bits() ^ u32::from_be_bytes(*first)) >> (32 - bits) == 0;
    !IPV4_REFUSED.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_global = match address.segments() {
        // NAT64; Teredo.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x2001, 0, ..] => true,
        [first, second, ..] => {
            let top = u32::from(first) << 16 | u32::from(second);
            let within = |(first, bits): &(u32, u32)| (top ^ first) >> (32 - bits) == 0;
            first >> 13 == 1 && !IPV6_REFUSED.iter().any(within)
        }
    };
    is_global && embedded(address).into_iter().all(is_public_v4)
}

/// The IPv4 addresses that an IPv6 address embeds.
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // IPv4-mapped and IPv4-compatible; IPv4-translated; NAT64 including local prefixes; 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, .., high, low]
        | [0x2002, high, low, ..] => vec![v4(high, low)],
        // Teredo: the server, and the client with inverted bits.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            vec![v4(high, low), v4(!client_high, !client_low)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_known_in_every_form() {
        for address in [
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:a9fe:a9fe",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::f7f7:f7f7",
            "2001:0:808:808::5601:5601",
            "fe80::1",
            "febf:ffff::1",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert!(is_link_local(address), "{address}");
            assert!(!is_public(address), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "8.8.8.8",
            "::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "fec0::1",
            "fd00::1",
            "2001:4860:4860::8888",
        ] {
            assert!(!is_link_local(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_distinguished_from_all_others() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7:ffff::1",
            "2001:db9::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "3ffe:ffff::1",
            "3fff:1000::1",
            // Embeds 8.8.8.8.
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:0:808:808::f7f7:f7f7",
        ];
        let refused = [
            "0.0.0.0",
            "0.0.0.1",
            "0.255.255.255",
            "10.0.0.0",
            "10.1.2.3",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.0",
            "127.0.0.1",
            "127.1.1.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.20.1.1",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.170",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.1.1",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.255",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.254",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            // IPv4-mapped and IPv4-compatible, whatever they embed.
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::8.8.8.8",
            // NAT64 to 127.0.0.1, 10.0.0.1, 169.254.169.254 and 192.168.0.1, and with a local prefix.
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::c0a8:1",
            "64:ff9b::1:808:808",
            "64:ff9b:1::808:808",
            "64:ff9b:1:ffff::7f00:1",
            // 6to4 of 127.0.0.1, 10.0.0.1, 192.168.1.1.
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2002:c0a8:101::1",
            // Teredo with a private server, a private client, both.
            "2001:0:a00:1::f7f7:f7f7",
            "2001:0:808:808::80ff:fffe",
            "2001:0:7f00:1::80ff:fffe",
            "100::1",
            "2001:1::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2001:db8:ffff::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "1fff:ffff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456:789a::1",
            "fdff:ffff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
        ];
        for (addresses, expected) in [(&public[..], true), (&refused[..], false)] {
            for address in addresses {
                assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
            }
        }
        assert!(public.len() + refused.len() >= 80);
    }
}
