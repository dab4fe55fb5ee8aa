//! One attempt: a POST to the addresses that the guard has checked, and what came of it.
//!
//! No redirect is followed and no proxy asked, no name is resolved a second time: the connection goes to the address
//! that was checked, while TLS and `Host` keep the name. Lives on one thread, that of the deliveries' actor.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use awc::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use futures_core::Stream;
use tokio::time::{timeout, timeout_at};

use super::connections::Connections;
use super::failure::{NotConnected, refused, unreachable};
use super::guard::{CheckedUrl, Guard};

/// For a whole attempt, from the look-up of the name to the answer's head.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// For the rest of an answer: it is read only so that the connection can be used again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const AGENT: &str = concat!("tidewatch/", env!("CARGO_PKG_VERSION"));

/// What is sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where to; not yet checked.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Arc<[u8]>,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer, or why there was none.
    pub answer: Result<u16, String>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Whether the receiver took the delivery.
    pub fn is_success(&self) -> bool {
        matches!(self.answer, Ok(200..=299))
    }

    /// Why the receiver did not take it.
    pub fn error(&self) -> Option<String> {
        match &self.answer {
            Ok(200..=299) => None,
            Ok(status) => Some(refused(*status)),
            Err(error) => Some(error.clone()),
        }
    }
}

/// An attempt under way.
pub type AttemptFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// Makes attempts.
pub trait Transport {
    /// Begins one.
    fn attempt(&self, request: Request) -> AttemptFuture;
}

/// Attempts over HTTP.
pub struct HttpTransport(Rc<Inner>);

struct Inner {
    guard: Guard,
    connections: Rc<Connections>,
    timeout: Duration,
}

impl HttpTransport {
    /// A transport that goes where the guard lets it. Must be made on the thread that it works on.
    pub fn new(guard: Guard) -> Self {
        Self::with_timeout(guard, ATTEMPT_TIMEOUT)
    }

    pub(super) fn with_timeout(guard: Guard, timeout: Duration) -> Self {
        Self(Rc::new(Inner {
            guard,
            connections: Connections::new(),
            timeout,
        }))
    }
}

impl Transport for HttpTransport {
    fn attempt(&self, request: Request) -> AttemptFuture {
        let inner = Rc::clone(&self.0);
        Box::pin(async move {
            let began = Instant::now();
            let answer = match timeout(inner.timeout, inner.exchange(&request)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("timed out: no answer within {:?}", inner.timeout)),
            };
            Outcome {
                answer,
                took: began.elapsed(),
            }
        })
    }
}

impl Inner {
    async fn exchange(&self, request: &Request) -> Result<u16, String> {
        let url = self.guard.check_form(&request.url)?;
        let addresses = self.guard.addresses(&url).await?;
        let mut failure = String::new();
        for address in addresses {
            match self.send(&url, address, request).await {
                Ok(status) => return Ok(status),
                // Nothing was sent: the next address may be better.
                Err((error, NotConnected(true))) => failure = error,
                Err((error, NotConnected(false))) => return Err(error),
            }
        }
        Err(failure)
    }

    async fn send(
        &self,
        url: &CheckedUrl,
        address: SocketAddr,
        request: &Request,
    ) -> Result<u16, (String, NotConnected)> {
        let client = self.connections.client(url.origin(), address);
        let mut outgoing = client
            .post(url.as_str())
            .address(address)
            .insert_header((HOST, url.host_header()))
            .insert_header((USER_AGENT, AGENT))
            .insert_header((CONTENT_TYPE, "application/json"));
        for (name, value) in &request.headers {
            outgoing = outgoing.insert_header((*name, value.as_str()));
        }
        let body = Bytes::from_owner(Arc::clone(&request.body));
        let mut answer = outgoing
            .send_body(body)
            .await
            .map_err(|error| unreachable(&error))?;
        let status = answer.status().as_u16();
        let deadline = tokio::time::Instant::now() + ANSWER_TIMEOUT;
        let mut read = 0;
        while let Ok(Some(Ok(chunk))) = timeout_at(
            deadline,
            std::future::poll_fn(|context| Pin::new(&mut answer).poll_next(context)),
        )
        .await
        {
            read += chunk.len();
            if read > ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(status)
    }
}
