//! Bundles between a client and a listener of this process.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Response, ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderName;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{Bytes, BytesMut, Path, Payload, ServiceConfig, post, to};
use actix_web::{App, Error, HttpMessage, HttpRequest, HttpResponse};
use futures_util::FutureExt;
use futures_util::future::{Either, join, join_all, select};
use listener::{Counts, Limits, Listener, Options, RunningServer};
use tokio::sync::Semaphore;

use super::*;
use crate::config::Config;
use crate::http::inside::PassedOn;
use crate::http::node_client::{NodeAccess, NodeClient};

const WITHIN: Duration = Duration::from_secs(30);
static WORD: HeaderName = HeaderName::from_static("x-word");

/// A node that takes bundles.
struct Receiver {
    running: RunningServer,
    address: Arc<str>,
    /// The bundles that it got.
    bundles: Arc<AtomicUsize>,
}

impl Receiver {
    /// With these routes.
    fn start(routes: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> Self {
        let bundles = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&bundles);
        let bundle_route = move |app: &mut ServiceConfig| {
            let counted = Arc::clone(&counted);
            let counting = move |request: HttpRequest, payload: Payload| {
                counted.fetch_add(1, Ordering::Relaxed);
                receive(request, payload)
            };
            app.route(PATH, post().to(counting));
        };
        let (running, address) = serve(move |app| {
            bundle_route(app);
            routes(app);
        });
        Receiver {
            running,
            address,
            bundles,
        }
    }
}

fn serve(routes: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> (RunningServer, Arc<str>) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), WITHIN).unwrap();
    let limits = Limits {
        workers: 1,
        connections_max: 100,
        head_timeout: WITHIN,
        keep_alive: Some(WITHIN),
        quiet_max: WITHIN,
        download_quiet_max: WITHIN,
        shutdown_timeout: WITHIN,
    };
    let options = Options {
        limits,
        tls: None,
        counts: Counts::default(),
        refuse: |_| HttpResponse::BadRequest().finish().into(),
    };
    let router = move |router: listener::WorkerRouter| {
        App::new()
            .app_data(router)
            .wrap(from_fn(of_a_node))
            .configure(routes.clone())
    };
    let running = listener.serve(router, options).unwrap();
    let address = running.address.to_string().into();
    (running, address)
}

/// All requests are of a node.
async fn of_a_node<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    request.extensions_mut().insert(PassedOn::default());
    next.call(request).await
}

fn client() -> NodeClient {
    NodeClient::new(NodeAccess::read(&Config::defaults().unwrap().cluster).unwrap())
}

async fn send(client: &NodeClient, address: &Arc<str>, target: &str, word: &str, body: &[u8]) -> Fate {
    let write = |out: &mut _| {
        let headers = |add: &mut dyn FnMut(&HeaderName, &[u8])| add(&WORD, word.as_bytes());
        write_request(out, &Method::POST, target, headers, body);
    };
    let until = Instant::now() + WITHIN;
    client.bundles.send(client, address, until, write).await
}

async fn answered(fate: Fate) -> (HttpResponse, Bytes) {
    let Fate::Answered(answer) = fate else {
        panic!("a request was not answered");
    };
    let (answer, body) = answer.into_parts();
    (
        answer.set_body(actix_web::body::BoxBody::new(())),
        to_bytes(body).await.unwrap(),
    )
}

fn is_unanswered(fate: &Fate, unsent: bool) -> bool {
    matches!(fate, Fate::Unanswered(why) if why.is_unsent == unsent)
}

/// The status is in the path; the word and the body come back.
async fn echo(request: HttpRequest, status: Path<u16>, body: Bytes) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(*status).unwrap())
        .insert_header((WORD.clone(), request.headers().get(&WORD).unwrap().clone()))
        .body(body)
}

fn echoes(app: &mut ServiceConfig) {
    app.route("/echo/{status}", post().to(echo));
}

#[actix::test]
async fn requests_of_one_moment_share_bundles_and_each_gets_its_own_answer() {
    const REQUESTS: usize = 3 * ITEMS_MAX + 1;
    let receiver = Receiver::start(echoes);
    let client = client();
    let sending = (0..REQUESTS).map(|number| {
        let (client, address) = (&client, &receiver.address);
        async move {
            let status = 200 + number as u16;
            let (word, body) = (format!("word {number}"), vec![b'x'; number]);
            let fate = send(client, address, &format!("/echo/{status}"), &word, &body).await;
            let (answer, received) = answered(fate).await;
            assert_eq!(answer.status().as_u16(), status);
            assert_eq!(answer.headers().get(&WORD).unwrap(), &word);
            assert_eq!(received, body);
        }
    });
    join_all(sending).await;
    assert_eq!(
        receiver.bundles.load(Ordering::Relaxed),
        REQUESTS.div_ceil(ITEMS_MAX)
    );
    receiver.running.stop().await;
}

#[actix::test]
async fn bundles_that_are_full_of_bytes_are_sent_and_what_is_too_large_for_one_goes_by_itself() {
    let receiver = Receiver::start(echoes);
    let client = client();
    let body = vec![b'x'; ITEM_BYTES_MAX - 1_024];
    let sending = (0..8).map(|_| send(&client, &receiver.address, "/echo/200", "large", &body));
    for fate in join_all(sending).await {
        assert_eq!(answered(fate).await.1, body);
    }
    // Three of 31 KiB fill one.
    assert_eq!(receiver.bundles.load(Ordering::Relaxed), 3);
    let body = vec![b'x'; ITEM_BYTES_MAX];
    let fate = send(&client, &receiver.address, "/echo/200", "too large", &body).await;
    assert!(matches!(fate, Fate::Alone));
    assert_eq!(receiver.bundles.load(Ordering::Relaxed), 3);
    receiver.running.stop().await;
}

#[actix::test]
async fn a_request_that_takes_long_delays_no_other_of_its_bundle() {
    static LONG: Semaphore = Semaphore::const_new(0);
    let receiver = Receiver::start(|app| {
        echoes(app);
        let long = || async {
            let _permit = LONG.acquire().await;
            HttpResponse::Accepted().finish()
        };
        app.route("/long", post().to(long));
    });
    let client = client();
    let long = send(&client, &receiver.address, "/long", "", b"");
    let quick = send(&client, &receiver.address, "/echo/200", "quick", b"");
    let mut long = Box::pin(long);
    assert!(long.as_mut().now_or_never().is_none(), "it has begun");
    let (answer, _) = answered(quick.await).await;
    assert_eq!(answer.headers().get(&WORD).unwrap(), "quick");
    assert!(long.as_mut().now_or_never().is_none());
    LONG.add_permits(1);
    assert_eq!(answered(long.await).await.0.status(), StatusCode::ACCEPTED);
    assert_eq!(receiver.bundles.load(Ordering::Relaxed), 1);
    receiver.running.stop().await;
}

/// In a cluster whose nodes are replaced one after the other.
#[actix::test]
async fn a_node_that_knows_no_bundles_gets_each_request_by_itself_and_is_not_asked_each_time() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (running, address) = serve(|app| {
        let unknown = || async {
            ASKED.fetch_add(1, Ordering::Relaxed);
            HttpResponse::NotFound().body("no such route")
        };
        app.default_service(to(unknown));
    });
    let client = client();
    for _ in 0..3 {
        let sending = (0..3).map(|_| send(&client, &address, "/echo/200", "", b""));
        for fate in join_all(sending).await {
            assert!(matches!(fate, Fate::Alone));
        }
    }
    assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    running.stop().await;
}

#[actix::test]
async fn without_an_answer_it_is_known_of_each_request_whether_it_was_sent() {
    let client = client();
    let unbound = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address: Arc<str> = unbound.local_addr().unwrap().to_string().into();
    drop(unbound);
    let sending = (0..3).map(|_| send(&client, &address, "/echo/200", "", b""));
    for fate in join_all(sending).await {
        assert!(is_unanswered(&fate, true));
    }
    // The answer of one ends the bundle's.
    let receiver = Receiver::start(|app| {
        echoes(app);
        let panics = || async {
            if true {
                panic!("BUG: of the test");
            }
            HttpResponse::Ok().finish()
        };
        app.route("/panics", post().to(panics));
    });
    let sending = ["/panics", "/panics"].map(|path| send(&client, &receiver.address, path, "", b""));
    for fate in join_all(sending).await {
        assert!(is_unanswered(&fate, false));
    }
}

#[actix::test]
async fn an_answer_beyond_its_bound_is_an_error_of_that_request_alone() {
    let receiver = Receiver::start(|app| {
        echoes(app);
        let large = || async { HttpResponse::Ok().body(vec![b'x'; ANSWER_BYTES_MAX + 1]) };
        app.route("/large", post().to(large));
    });
    let client = client();
    let large = send(&client, &receiver.address, "/large", "", b"");
    let small = send(&client, &receiver.address, "/echo/200", "", b"small");
    let (large, small) = futures_util::join!(large, small);
    assert_eq!(
        answered(large).await.0.status(),
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(answered(small).await.1, &b"small"[..]);
    receiver.running.stop().await;
}

#[actix::test]
async fn of_a_bundle_that_does_not_read_nothing_is_carried_out() {
    static CARRIED_OUT: AtomicUsize = AtomicUsize::new(0);
    let receiver = Receiver::start(|app| {
        let counted = || async {
            CARRIED_OUT.fetch_add(1, Ordering::Relaxed);
            HttpResponse::Ok().finish()
        };
        app.route("/count", post().to(counted));
    });
    let mut request = BytesMut::new();
    write_request(&mut request, &Method::POST, "/count", |_| {}, b"");
    let status_of = |bundle: Vec<u8>| {
        let mut connection = TcpStream::connect(&*receiver.address).unwrap();
        connection.set_read_timeout(Some(WITHIN)).unwrap();
        let length = bundle.len();
        let head =
            format!("POST {PATH} HTTP/1.1\r\nx-tidewatch-secret: s\r\ncontent-length: {length}\r\n\r\n");
        connection
            .write_all(&[head.as_bytes(), &bundle].concat())
            .unwrap();
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    for unreadable in [
        request.repeat(ITEMS_MAX + 1),
        [&request[..], &request[..20]].concat(),
        [&request[..], &[0xff; 100]].concat(),
        [&request[..], &vec![b'x'; BYTES_MAX]].concat(),
    ] {
        assert_eq!(status_of(unreadable), "400");
    }
    assert_eq!(CARRIED_OUT.load(Ordering::Relaxed), 0);
    assert_eq!(status_of(request.repeat(ITEMS_MAX)), "200");
    assert_eq!(CARRIED_OUT.load(Ordering::Relaxed), ITEMS_MAX);
    receiver.running.stop().await;
}

/// Such a head arrives by HTTP/2.
#[actix::test]
async fn a_request_with_a_head_that_http_1_does_not_have_goes_by_itself_and_spoils_no_other() {
    let receiver = Receiver::start(echoes);
    let client = client();
    let odd = HeaderName::from_bytes(b"x\"y").unwrap();
    let sending = [&WORD, &odd, &WORD].map(|name| {
        let write = move |out: &mut _| {
            let headers = |add: &mut dyn FnMut(&HeaderName, &[u8])| add(name, b"word");
            write_request(out, &Method::POST, "/echo/200", headers, b"");
        };
        let until = Instant::now() + WITHIN;
        client.bundles.send(&client, &receiver.address, until, write)
    });
    let fates = join_all(sending).await;
    let answered = fates.iter().map(|fate| matches!(fate, Fate::Answered(_)));
    assert_eq!(answered.collect::<Vec<_>>(), [true, false, true]);
    assert!(matches!(fates[1], Fate::Alone));
    assert_eq!(receiver.bundles.load(Ordering::Relaxed), 1);
    receiver.running.stop().await;
}

/// A node that takes a bundle, sends these bytes of an answer, and then nothing more.
fn silent_after(answer: Vec<u8>) -> (Arc<str>, JoinHandle<io::Result<usize>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string().into();
    let node = thread::spawn(move || {
        let (mut connection, _) = listener.accept()?;
        connection.set_read_timeout(Some(WITHIN))?;
        assert_ne!(connection.read(&mut [0; 65_536])?, 0, "of the bundle");
        connection.write_all(&answer)?;
        // 0 when the other side has ended the connection.
        connection.read(&mut [0])
    });
    (address, node)
}

/// The first bytes of an answer, which has one to the first request.
fn first_answer() -> Vec<u8> {
    let mut part = BytesMut::new();
    let head = Response::new(StatusCode::CREATED).drop_body();
    format::write_answer(&mut part, 0, &head, b"");
    let head = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
        part.len()
    );
    [head.as_bytes(), &part, b"\r\n"].concat()
}

#[actix::test]
async fn when_a_node_falls_silent_each_request_ends_in_its_own_time_and_the_bundle_with_the_last() {
    // Whether the clients of the others go away instead of waiting.
    for (answer, leave) in [
        (Vec::new(), true),
        (first_answer(), false),
        (first_answer(), true),
    ] {
        let (address, node) = silent_after(answer);
        let client = client();
        let send = |within: Duration| {
            let write = |out: &mut _| write_request(out, &Method::POST, "/", |_| {}, b"");
            let until = Instant::now() + within;
            Box::pin(client.bundles.send(&client, &address, until, write))
        };
        let began = Instant::now();
        let (first, short, long) = (send(WITHIN), send(Duration::from_millis(1)), send(WITHIN / 15));
        // Polled, and so sent, in this order.
        let Either::Right((short, others)) = select(join(first, long), short).await else {
            panic!("the one whose time is over first waited for the others");
        };
        assert!(is_unanswered(&short, false));
        if leave {
            drop(others);
        } else {
            let (first, long) = others.await;
            assert_eq!(answered(first).await.0.status(), StatusCode::CREATED);
            assert!(is_unanswered(&long, false));
        }
        // Not on this thread, whose tasks end the connection.
        let ended = actix_web::rt::task::spawn_blocking(move || node.join().unwrap()).await;
        assert_eq!(ended.unwrap().unwrap(), 0, "the connection was ended");
        assert!(began.elapsed() < WITHIN / 2, "a bundle is kept for nobody");
    }
}
