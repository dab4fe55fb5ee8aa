//! Attempts over real sockets. Here 127.0.0.1 stands for private addresses, and the rest of 127/8 for the
//! public internet.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::delivery::guard::Guard;
use crate::delivery::resolve::{Lookup, Resolve};
use crate::delivery::transport::{HttpTransport, Outcome, Request, Transport};

use super::receiver::Receiver;

const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const OTHER_PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// Nothing listens here.
const UNUSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));
const LONG: Duration = Duration::from_secs(20);

/// Answers each look-up with the next of its lists, and finally with the last repeatedly.
struct ChangingResolver {
    answers: Vec<Vec<IpAddr>>,
    lookups: AtomicUsize,
}

impl ChangingResolver {
    fn new(answers: &[&[IpAddr]]) -> Arc<Self> {
        Arc::new(Self {
            answers: answers.iter().map(|answer| answer.to_vec()).collect(),
            lookups: AtomicUsize::new(0),
        })
    }
}

impl Resolve for ChangingResolver {
    fn lookup<'a>(&'a self, _: &'a str, port: u16) -> Lookup<'a> {
        let nth = self.lookups.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(nth).or(self.answers.last());
        let addresses = answer
            .into_iter()
            .flatten()
            .map(|address| SocketAddr::new(*address, port));
        let addresses: Vec<_> = addresses.collect();
        Box::pin(async move {
            match addresses.is_empty() {
                true => Err(io::Error::other("no such name")),
                false => Ok(addresses),
            }
        })
    }
}

fn transport(resolver: &Arc<ChangingResolver>, timeout: Duration) -> HttpTransport {
    let guard = Guard::admitting(|address| address != PRIVATE, Arc::clone(resolver) as _);
    HttpTransport::new(guard, timeout)
}

/// A transport without names to resolve.
fn to_addresses() -> HttpTransport {
    transport(&ChangingResolver::new(&[]), LONG)
}

fn at(address: IpAddr) -> SocketAddr {
    (address, 0).into()
}

fn request(url: impl Into<String>) -> Request {
    Request {
        url: url.into(),
        content_type: "application/json",
        headers: vec![("x-webhook-id", "7".to_owned())],
        body: (*b"{\"a\":1}").into(),
    }
}

async fn send(transport: &HttpTransport, url: impl Into<String>) -> Outcome {
    transport.attempt(request(url)).await
}

#[track_caller]
fn assert_error(outcome: &Outcome, expected: &str) {
    let error = outcome.error().unwrap_or_default();
    assert!(error.contains(expected), "{error:?} says nothing of {expected:?}");
}

#[actix::test]
async fn requests_are_well_formed_and_connections_are_reused() {
    let receiver = Receiver::answering(at(PUBLIC), "200 OK");
    let transport = to_addresses();
    for _ in 0..2 {
        let outcome = send(&transport, receiver.url()).await;
        assert_eq!(outcome.answer, Ok(200));
        assert!(outcome.is_success() && outcome.error().is_none());
    }
    let requests = receiver.requests();
    let mut head = requests[1].head.clone();
    assert_eq!(head.remove(0), "POST /hook?a=b HTTP/1.1");
    head.retain(|line| !line.starts_with("date: "));
    head.sort();
    let port = receiver.address.port();
    assert_eq!(
        head,
        [
            "accept-encoding: identity".to_owned(),
            "content-length: 7".to_owned(),
            "content-type: application/json".to_owned(),
            format!("host: 127.0.0.2:{port}"),
            format!("user-agent: tidewatch/{}", env!("CARGO_PKG_VERSION")),
            "x-webhook-id: 7".to_owned(),
        ]
    );
    assert_eq!(requests[1].body, b"{\"a\":1}");
    assert_eq!(receiver.connections(), 1);
}

#[actix::test]
async fn every_status_but_2xx_is_a_failure_and_no_redirect_is_followed() {
    let target = Receiver::answering(at(PUBLIC), "200 OK");
    for (status, success) in [
        ("201 Created", true),
        ("204 No Content", true),
        ("299 Odd", true),
        ("304 Not Modified", false),
        ("400 Bad Request", false),
        ("410 Gone", false),
        ("500 Internal Server Error", false),
    ] {
        let receiver = Receiver::start(at(PUBLIC), move |stream| {
            stream
                .write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes())
                .unwrap();
            false
        });
        let outcome = send(&to_addresses(), receiver.url()).await;
        assert_eq!(outcome.answer, Ok(status[..3].parse().unwrap()));
        assert_eq!(outcome.is_success(), success, "{status}");
    }
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = target.url();
        let receiver = Receiver::start(at(PUBLIC), move |stream| {
            let answer = format!("HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).is_ok()
        });
        let outcome = send(&to_addresses(), receiver.url()).await;
        assert_eq!(outcome.answer, Ok(status[..3].parse().unwrap()));
        assert_error(&outcome, "redirects are not followed");
    }
    assert_eq!(target.connections(), 0);
}

#[actix::test]
async fn an_endless_response_is_dropped_and_its_status_counts() {
    let receiver = Receiver::start(at(PUBLIC), |stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .unwrap();
        while stream.write_all(b"400\r\n").is_ok() {
            if stream.write_all(&[b'x'; 1026]).is_err() {
                break;
            }
        }
        false
    });
    let outcome = send(&to_addresses(), receiver.url()).await;
    // The end of a chunk is also missing above, so the body is malformed, which has no effect.
    assert_eq!(outcome.answer, Ok(200));
    assert!(outcome.took < Duration::from_secs(2), "{outcome:?}");
}

#[actix::test]
async fn failures_describe_their_cause() {
    let none = ChangingResolver::new(&[]);
    let closing = Receiver::start(at(PUBLIC), |_| false);
    assert_error(
        &send(&to_addresses(), closing.url()).await,
        "closed the connection without an answer",
    );
    let garbage = Receiver::start(at(PUBLIC), |stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.7\r\n\r\n").unwrap();
        false
    });
    assert_error(
        &send(&to_addresses(), garbage.url()).await,
        "the answer is not HTTP",
    );
    let plain = Receiver::answering(at(PUBLIC), "200 OK");
    let as_tls = plain.url().replace("http:", "https:");
    assert_error(&send(&to_addresses(), as_tls).await, "TLS");
    let silent = Receiver::start(at(PUBLIC), |stream| {
        let _ = io::copy(stream, &mut io::sink());
        false
    });
    let impatient = transport(&none, Duration::from_millis(200));
    let outcome = send(&impatient, silent.url()).await;
    assert_error(&outcome, "timed out: no answer within 200ms");
    assert!(outcome.took < LONG, "{outcome:?}");
    assert_error(
        &send(&to_addresses(), format!("http://{UNUSED}:8080")).await,
        "connection refused",
    );
    assert_error(
        &send(&to_addresses(), "http://nowhere.example").await,
        "does not resolve: no such name",
    );
    assert_error(
        &send(&to_addresses(), "ftp://example.com").await,
        "must begin with https://",
    );
}

#[actix::test]
async fn no_connection_is_opened_to_private_addresses() {
    let [private, public] = Receiver::pair([PRIVATE, PUBLIC]);
    let port = public.address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "localhost",
        "x.localhost",
        "%31%32%37.0.0.1",
    ] {
        let outcome = send(&to_addresses(), format!("http://{host}:{port}/")).await;
        assert_error(&outcome, "is not on the public internet");
    }
    for answer in [&[PRIVATE][..], &[PUBLIC, PRIVATE], &[PRIVATE, PUBLIC]] {
        let transport = transport(&ChangingResolver::new(&[answer]), LONG);
        let outcome = send(&transport, format!("http://mixed.example:{port}/")).await;
        assert_error(&outcome, "mixed.example is not on the public internet");
    }
    assert_eq!((private.connections(), public.connections()), (0, 0));
}

#[actix::test]
async fn a_rebound_name_is_not_connected_to_its_private_address() {
    let [private, public] = Receiver::pair([PRIVATE, PUBLIC]);
    let port = public.address.port();
    let resolver = ChangingResolver::new(&[&[PUBLIC], &[PRIVATE]]);
    let transport = transport(&resolver, LONG);
    let url = format!("http://flip.example:{port}/");
    assert_eq!(send(&transport, &url).await.answer, Ok(200));
    assert_eq!(
        resolver.lookups.load(Ordering::SeqCst),
        1,
        "an attempt looks up once"
    );
    assert_eq!(
        public.requests()[0].head[1..]
            .iter()
            .filter(|line| **line == format!("host: flip.example:{port}"))
            .count(),
        1
    );
    // The open connection is not used either.
    assert_error(&send(&transport, &url).await, "is not on the public internet");
    assert_eq!((private.connections(), public.requests().len()), (0, 1));
}

#[actix::test]
async fn a_moved_name_is_reconnected_and_dead_addresses_are_skipped() {
    let first = Receiver::answering(at(PUBLIC), "200 OK");
    let port = first.address.port();
    let resolver = ChangingResolver::new(&[&[OTHER_PUBLIC, PUBLIC], &[OTHER_PUBLIC]]);
    let transport = transport(&resolver, LONG);
    let url = format!("http://moving.example:{port}/");
    assert_eq!(
        send(&transport, &url).await.answer,
        Ok(200),
        "nothing listens at the first address"
    );
    let second = Receiver::answering((OTHER_PUBLIC, port).into(), "202 Accepted");
    assert_eq!(send(&transport, &url).await.answer, Ok(202));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
}
