//! Bundles between a client and a listener of this process.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::body::to_bytes;
use actix_web::http::header::HeaderName;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Path, Payload, ServiceConfig, get, post};
use actix_web::{App, HttpRequest, HttpResponse};
use futures_util::FutureExt;
use futures_util::future::join_all;
use listener::{Counts, Limits, Listener, Options, RunningServer};
use tokio::sync::Semaphore;

use super::*;
use crate::config::Config;
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
    let router = move |router: listener::WorkerRouter| App::new().app_data(router).configure(routes.clone());
    let running = listener.serve(router, options).unwrap();
    let address = running.address.to_string().into();
    (running, address)
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
    assert!(matches!(fate, Fate::Refused));
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
async fn a_node_that_knows_no_bundles_gets_each_request_by_itself() {
    let (running, address) = serve(echoes);
    let client = client();
    let sending = (0..3).map(|_| send(&client, &address, "/echo/200", "", b""));
    for fate in join_all(sending).await {
        assert!(matches!(fate, Fate::Refused));
    }
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
        app.route("/count", get().to(counted));
    });
    let request = "GET /count HTTP/1.1\r\ncontent-length: 0\r\n\r\n";
    let status_of = |body: String| {
        let mut connection = TcpStream::connect(&*receiver.address).unwrap();
        connection.set_read_timeout(Some(WITHIN)).unwrap();
        let length = body.len();
        let head =
            format!("POST {PATH} HTTP/1.1\r\nx-tidewatch-secret: s\r\ncontent-length: {length}\r\n\r\n");
        connection.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    let filler = format!("POST /count HTTP/1.1\r\ncontent-length: {BYTES_MAX}\r\n\r\n");
    for unreadable in [
        request.repeat(ITEMS_MAX + 1),
        request.to_owned() + &request[..20],
        request.to_owned() + "nonsense\r\n\r\n",
        request.to_owned() + &request.replace("content-length: 0", "content-length: 1"),
        request.to_owned() + &request.replace("content-length: 0", "content-length: -1"),
        request.to_owned() + &request.replace("content-length: 0", "x: y"),
        filler + &"x".repeat(BYTES_MAX),
    ] {
        assert_eq!(status_of(unreadable), "400");
    }
    assert_eq!(CARRIED_OUT.load(Ordering::Relaxed), 0);
    assert_eq!(status_of(request.repeat(ITEMS_MAX)), "200");
    assert_eq!(CARRIED_OUT.load(Ordering::Relaxed), ITEMS_MAX);
    receiver.running.stop().await;
}
