//! One connection from its first byte to its last: TLS, the protocol, refused heads, and a close that does not lose the
//! last answer.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::bounds;
use crate::connection::{Order, Phase};
use crate::exchange::Exchange;
use crate::refusal::{Refusal, last_answer};
use crate::stream::{Stream, Watched};
use crate::wakes::LibraryWaker;

/// The ALPN name of HTTP/2.
const H2: &[u8] = b"h2";

/// The TLS acceptors, with HTTP/2 and without.
#[derive(Clone)]
pub(crate) struct Acceptors {
    roomy: TlsAcceptor,
    crowded: TlsAcceptor,
}

/// A connection and its settings.
pub(crate) struct Serving {
    pub exchange: Exchange,
    /// Whether it is among the first connections, which get large buffers and HTTP/2.
    pub is_roomy: bool,
    /// Whether the connection takes more than one request.
    pub is_kept_alive: bool,
}

/// Runs the requests of an HTTP/2 connection on the connection's own thread.
#[derive(Clone)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        actix_web::rt::spawn(future);
    }
}

impl Acceptors {
    /// Makes the acceptors for this certificate.
    pub fn new(config: &rustls::ServerConfig) -> Self {
        let acceptor = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        };
        Self {
            roomy: acceptor(&[H2, b"http/1.1"]),
            crowded: acceptor(&[b"http/1.1"]),
        }
    }
}

impl Serving {
    /// Serves the connection until it ends.
    pub async fn run(self, socket: TcpStream, tls: Option<&Acceptors>) {
        match tls {
            None => self.http1(Stream::Left(socket)).await,
            // Boxed: the state of TLS is large, and few connections use it.
            Some(acceptors) => Box::pin(self.encrypted(socket, acceptors)).await,
        }
    }

    async fn encrypted(self, socket: TcpStream, acceptors: &Acceptors) {
        let acceptor = if self.is_roomy {
            &acceptors.roomy
        } else {
            &acceptors.crowded
        };
        let handshake = pin!(acceptor.accept_with(socket, |tls| {
            tls.set_buffer_limit(Some(bounds::TLS_BUFFER_BYTES_MAX));
        }));
        let connection = &Rc::clone(&self.exchange.connection);
        let Either::Right((Ok(stream), _)) = select(connection.next_order(), handshake).await else {
            // No answer can be sent before the handshake is complete.
            return;
        };
        connection.enter(Phase::Head);
        let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(H2);
        let stream = Stream::Right(Box::new(stream));
        if speaks_h2 {
            self.http2(stream).await;
        } else {
            self.http1(stream).await;
        }
    }

    async fn http1(self, stream: Stream) {
        let connection = &Rc::clone(&self.exchange.connection);
        let (peer, refuse) = (self.exchange.peer, self.exchange.refuse);
        let buffer_bytes_max = if self.is_roomy {
            bounds::ROOMY_BUFFER_BYTES_MAX
        } else {
            bounds::CROWDED_BUFFER_BYTES_MAX
        };
        let stream = TokioIo::new(Watched::new(stream, Rc::clone(connection)));
        let mut protocol = http1::Builder::new()
            .keep_alive(self.is_kept_alive)
            // A client may close its sending side and still wait for its answer.
            .half_close(true)
            .header_read_timeout(None)
            .max_buf_size(buffer_bytes_max)
            .max_header_size(bounds::HEAD_BYTES_MAX)
            .serve_connection(stream, service_fn(move |request| self.exchange.answer(request)));
        let mut is_stopping = false;
        let library_waker = LibraryWaker::new();
        // The result of the protocol, or the order that ends it.
        let end = poll_fn(|context| {
            match connection.ordered(context.waker()) {
                Some(Order::Stop) if connection.is_busy() => {
                    is_stopping = true;
                    Pin::new(&mut protocol).graceful_shutdown();
                }
                Some(order) => return Poll::Ready(Err(order)),
                None => {}
            }
            let waker = library_waker.of_task(context.waker());
            Pin::new(&mut protocol)
                .poll(&mut Context::from_waker(waker))
                .map(Ok)
        })
        .await;
        let parts = protocol.into_parts();
        let mut stream = parts.io.into_inner().into_stream();
        let refusal = match end {
            Ok(Ok(())) => None,
            Ok(Err(error)) => match refusal(connection.refused(), &error, &parts.read_buf) {
                Some(refusal) => Some(refusal),
                // The client has closed the connection.
                None => return,
            },
            Err(Order::Late) if connection.head_begun() => Some(Refusal::Late),
            Err(Order::Stop | Order::Late | Order::Close) => {
                // Closes the sending side if that is possible without waiting.
                stream.shutdown().now_or_never();
                return;
            }
            Err(Order::Cut) => return,
        };
        let patience = if is_stopping {
            bounds::STOP_LINGER
        } else {
            bounds::LINGER
        };
        let last = async {
            if let Some(refusal) = refusal {
                tracing::debug!(?refusal, %peer, "request head refused");
                stream.write_all(&last_answer(refuse(&refusal))).await?;
                stream.flush().await?;
            }
            linger(&mut stream).await
        };
        let last = pin!(timeout(patience, last));
        // The client may keep sending for the linger time, but must not delay a stop.
        connection.enter(Phase::Busy);
        select(connection.next_order(), last).await;
    }

    async fn http2(self, stream: Stream) {
        let connection = &Rc::clone(&self.exchange.connection);
        connection.multiplex();
        let stream = TokioIo::new(Watched::new(stream, Rc::clone(connection)));
        let mut protocol = http2::Builder::new(OnThisThread)
            .max_concurrent_streams(bounds::STREAMS_PER_CONNECTION_MAX)
            .max_header_list_size(bounds::HEAD_BYTES_MAX as u32)
            .max_pending_accept_reset_streams(bounds::PENDING_RESETS_MAX)
            .max_local_error_reset_streams(bounds::FAULTY_STREAMS_MAX)
            .max_send_buf_size(bounds::STREAM_SEND_BYTES_MAX)
            .initial_stream_window_size(bounds::STREAM_WINDOW_BYTES)
            .initial_connection_window_size(bounds::CONNECTION_WINDOW_BYTES)
            .serve_connection(stream, service_fn(move |request| self.exchange.answer(request)));
        let mut is_ending = false;
        let _: hyper::Result<()> = poll_fn(|context| {
            match connection.ordered(context.waker()) {
                Some(Order::Stop) if connection.is_busy() => {
                    Pin::new(&mut protocol).graceful_shutdown();
                }
                // The client is notified and has the head timeout to leave.
                Some(Order::Close) if !is_ending => {
                    is_ending = true;
                    connection.enter(Phase::Head);
                    Pin::new(&mut protocol).graceful_shutdown();
                }
                Some(_) => return Poll::Ready(Ok(())),
                None => {}
            }
            Pin::new(&mut protocol).poll(context)
        })
        .await;
    }
}

/// Returns what was wrong with a head, from the HTTP library's own refusal of it; `None` when the connection broke.
fn refusal(refused: Option<u16>, error: &hyper::Error, read: &[u8]) -> Option<Refusal> {
    let line_bytes = read.iter().position(|byte| *byte == b'\n');
    match refused {
        Some(431) if line_bytes.is_none_or(|bytes| bytes >= bounds::HEAD_BYTES_MAX) => {
            Some(Refusal::TargetTooLong)
        }
        Some(431) => Some(Refusal::HeadTooLarge),
        Some(414) => Some(Refusal::TargetTooLong),
        Some(_) => Some(Refusal::Malformed(error.to_string())),
        None => error
            .is_parse_version_h2()
            .then(|| Refusal::Malformed(String::from("HTTP/2 is spoken by TLS only"))),
    }
}

/// Shuts down the sending side and reads what the client still sends. If the socket were closed with unread bytes, the
/// client's system would be told to discard the answer.
async fn linger(stream: &mut Stream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = stream.take(bounds::LINGER_BYTES_MAX as u64);
    tokio::io::copy(&mut unread, &mut tokio::io::sink()).await?;
    Ok(())
}
