//! Accepted URLs, and refused URLs with the reason.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::delivery::guard::Guard;
use crate::delivery::resolve::{Lookup, Resolve};

/// Resolves three names.
struct Names;

impl Resolve for Names {
    fn lookup<'a>(&'a self, name: &'a str, port: u16) -> Lookup<'a> {
        let addresses: &[&str] = match name {
            "public.example" => &["8.8.8.8", "2606:4700:4700::1111"],
            "inside.example" => &["10.0.0.5"],
            "mixed.example" => &["8.8.8.8", "::1"],
            "metadata.example" => &["169.254.169.254"],
            "empty.example" => &[],
            _ => return Box::pin(async { Err(io::Error::other("no such name")) }),
        };
        let addresses = addresses
            .iter()
            .map(|address| SocketAddr::new(address.parse().unwrap(), port));
        let addresses: Vec<SocketAddr> = addresses.collect();
        Box::pin(async { Ok(addresses) })
    }
}

/// Refused even if private networks are allowed.
const LINK_LOCAL: &[&str] = &[
    "169.254.169.254",
    "2852039166",
    "0251.0376.0251.0376",
    "[fe80::1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
];

fn guard(allow_private: bool) -> Guard {
    Guard::new(allow_private, Arc::new(Names))
}

#[test]
fn public_urls_are_accepted_in_canonical_form() {
    for (text, canonical, origin, host) in [
        (
            "https://example.com",
            "https://example.com/",
            "https://example.com",
            "example.com",
        ),
        (
            "http://Example.COM:80/a?b=c#d",
            "http://example.com/a?b=c",
            "http://example.com",
            "example.com",
        ),
        (
            "https://example.com:8443/hook",
            "https://example.com:8443/hook",
            "https://example.com:8443",
            "example.com:8443",
        ),
        (
            "http://b\u{fc}cher.example/",
            "http://xn--bcher-kva.example/",
            "http://xn--bcher-kva.example",
            "xn--bcher-kva.example",
        ),
        ("http://8.8.8.8/", "http://8.8.8.8/", "http://8.8.8.8", "8.8.8.8"),
        (
            "http://134744072/",
            "http://8.8.8.8/",
            "http://8.8.8.8",
            "8.8.8.8",
        ),
        (
            "https://[2606:4700:4700::1111]:444/x",
            "https://[2606:4700:4700::1111]:444/x",
            "https://[2606:4700:4700::1111]:444",
            "[2606:4700:4700::1111]:444",
        ),
        (
            "https://localhost.example.com/",
            "https://localhost.example.com/",
            "https://localhost.example.com",
            "localhost.example.com",
        ),
    ] {
        let url = guard(false).check_form(text).unwrap();
        assert_eq!(
            (url.as_str(), url.origin().as_str(), url.host_header()),
            (canonical, origin, host)
        );
    }
}

#[test]
fn hosts_that_are_not_public_are_refused_in_every_notation() {
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "0",
        "0.0.0.0",
        "10.1.2.3",
        "0xa.1",
        "167772161",
        "169.254.169.254",
        "2852039166",
        "0251.0376.0251.0376",
        "172.16.0.1",
        "192.168.1.1",
        "192.168.257",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fec0::1]",
        "[ff02::1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::10.0.0.1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost..",
        "a.localhost",
        "a.b.localhost.",
        "loc\u{ff41}lhost",
    ] {
        for (scheme, port) in [("http", ""), ("https", ":8443")] {
            let text = format!("{scheme}://{host}{port}/hook");
            let refused = guard(false).check_form(&text).expect_err(&text);
            assert!(
                refused.contains("is not on the public internet"),
                "{text}: {refused}"
            );
            let allowed = guard(true).check_form(&text);
            if LINK_LOCAL.contains(&host) {
                let refused = allowed.expect_err(&text);
                assert!(refused.contains("is link-local"), "{text}: {refused}");
            } else {
                assert!(allowed.is_ok(), "{text}, where private networks are allowed");
            }
        }
    }
}

#[test]
fn urls_of_another_form_are_refused_with_advice() {
    let long = format!("https://example.com/{}", "x".repeat(2_048));
    // Its canonical form is three times as long.
    let swelling = format!("https://example.com/{}", "\u{fc}".repeat(1_000));
    for (text, expected) in [
        ("", "must be a URL like"),
        ("example.com/hook", "must be a URL like"),
        ("//example.com", "must be a URL like"),
        ("https://", "must be a URL like"),
        ("https:///", "must be a URL like"),
        ("https:///path", "must be a URL like"),
        ("https:example.com", "must be a URL like"),
        ("https:/example.com", "must be a URL like"),
        (r"https:\\example.com", "must be a URL like"),
        ("https://exa mple.com", "spaces or control"),
        ("https://example.com/\n", "spaces or control"),
        ("\thttps://example.com/", "spaces or control"),
        ("https://example.com:99999/", "must be a URL like"),
        ("https://1.2.3.256/", "must be a URL like"),
        ("https://[::1/", "must be a URL like"),
        ("https://ex<ample.com/", "must be a URL like"),
        ("ftp://example.com/", "not ftp:"),
        ("file:///etc/passwd", "not file:"),
        ("gopher://example.com/", "not gopher:"),
        ("javascript:alert(1)", "not javascript:"),
        ("unix:/run/x.sock", "not unix:"),
        ("https://user@example.com/", "user name or password"),
        ("https://user:pass@example.com/", "user name or password"),
        ("https://:pass@example.com/", "user name or password"),
        ("http://8.8.8.8@127.0.0.1/", "user name or password"),
        ("https://example.com:0/", "port 0"),
        (&long, "at most 2048 bytes"),
        (&swelling, "shorter or simpler"),
    ] {
        for allow_private in [false, true] {
            let refused = guard(allow_private).check_form(text).expect_err(text);
            assert!(refused.contains(expected), "{text:?}: {refused}");
        }
    }
}

#[test]
fn ambiguous_urls_are_checked_by_the_host_that_is_requested() {
    for (text, host) in [
        ("http://example.com\\@127.0.0.1/", "example.com"),
        ("http://example.com#@127.0.0.1/", "example.com"),
        ("http://example.com?@127.0.0.1/", "example.com"),
    ] {
        assert_eq!(
            guard(false).check_form(text).unwrap().host_header(),
            host,
            "{text}"
        );
    }
    assert!(guard(false).check_form("http:\\\\127.0.0.1\\x").is_err());
    assert!(guard(false).check_form("http:127.0.0.1").is_err());
}

#[actix::test]
async fn a_name_is_checked_by_all_its_addresses() {
    for (name, allow_private, taken) in [
        ("public.example", false, true),
        ("inside.example", false, false),
        ("inside.example", true, true),
        ("mixed.example", false, false),
        ("mixed.example", true, true),
        ("metadata.example", true, false),
        ("not-yet.example", false, true),
        ("empty.example", false, true),
    ] {
        let text = format!("https://{name}/");
        let checked = guard(allow_private).check_url(&text).await;
        assert_eq!(checked.is_ok(), taken, "{name}: {checked:?}");
    }
}

#[actix::test]
async fn an_attempt_needs_addresses_that_are_all_public() {
    let addresses = async |text: &str, allow_private| {
        let guard = guard(allow_private);
        guard.addresses(&guard.check_form(text).unwrap()).await
    };
    let expected: Vec<SocketAddr> = vec![
        "8.8.8.8:443".parse().unwrap(),
        "[2606:4700:4700::1111]:443".parse().unwrap(),
    ];
    assert_eq!(addresses("https://public.example", false).await, Ok(expected));
    assert_eq!(
        addresses("http://9.9.9.9:81", false).await,
        Ok(vec!["9.9.9.9:81".parse().unwrap()])
    );
    assert!(addresses("http://mixed.example", true).await.is_ok());
    for (name, expected) in [
        ("inside.example", "is not on the public internet"),
        ("mixed.example", "is not on the public internet"),
        ("empty.example", "has no address"),
        ("not-yet.example", "does not resolve: no such name"),
    ] {
        let refused = addresses(&format!("http://{name}"), false).await.unwrap_err();
        assert!(refused.contains(expected), "{refused}");
        assert!(!refused.contains("10.0.0.5"), "what a name hides stays hidden");
    }
}
