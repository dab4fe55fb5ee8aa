//! One attempt: a POST to the addresses that the guard has checked, and its outcome.
//!
//! Redirects and proxies are not used and the name is not resolved again: the connection goes to the checked address,
//! while TLS and `Host` use the name. Lives on the thread of the delivery actor.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use awc::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use futures_util::StreamExt;
use tokio::time::{timeout, timeout_at};

use super::connections::Connections;
use super::failure::{NotConnected, refused, unreachable};
use super::guard::{CheckedUrl, Guard};
use super::mail::{MAILTO, MailTransport};

/// For the body of the answer, which is read only to reuse the connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes of the answer's body that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const AGENT: &str = concat!("tidewatch/", env!("CARGO_PKG_VERSION"));

/// The request of an attempt.
#[derive(Clone, Debug)]
pub struct Request {
    /// Not checked yet.
    pub url: String,
    pub content_type: &'static str,
    /// Lower-case names and values.
    pub headers: Vec<(&'static str, String)>,
    pub body: Arc<[u8]>,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the answer, or why there was none.
    pub answer: Result<u16, String>,
    pub took: Duration,
}

impl Outcome {
    /// Whether the receiver accepted the delivery (2xx).
    pub fn is_success(&self) -> bool {
        matches!(self.answer, Ok(200..=299))
    }

    /// Why the attempt failed; `None` if it succeeded.
    pub fn error(&self) -> Option<String> {
        match &self.answer {
            Ok(200..=299) => None,
            Ok(status) => Some(refused(*status)),
            Err(error) => Some(error.clone()),
        }
    }
}

/// A pending attempt.
pub type AttemptFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// Sends attempts.
pub trait Transport {
    /// Starts an attempt.
    fn attempt(&self, request: Request) -> AttemptFuture;
}

/// Attempts by mail to `mailto:` URLs, and over HTTP to all others.
pub(super) struct ByScheme {
    pub(super) http: HttpTransport,
    pub(super) mail: MailTransport,
}

impl Transport for ByScheme {
    fn attempt(&self, request: Request) -> AttemptFuture {
        match request.url.starts_with(MAILTO) {
            true => self.mail.attempt(request),
            false => self.http.attempt(request),
        }
    }
}

/// Attempts over HTTP.
#[derive(Clone)]
pub struct HttpTransport {
    guard: Guard,
    connections: Rc<Connections>,
    timeout: Duration,
}

impl HttpTransport {
    /// A transport that connects only where the guard allows. Must be created on the thread that uses it.
    /// `timeout` is for a whole attempt, from name resolution to the head of the answer.
    pub fn new(guard: Guard, timeout: Duration) -> Self {
        Self {
            guard,
            connections: Connections::new(),
            timeout,
        }
    }
}

impl Transport for HttpTransport {
    fn attempt(&self, request: Request) -> AttemptFuture {
        let transport = self.clone();
        Box::pin(async move {
            let began = Instant::now();
            let answer = match timeout(transport.timeout, transport.exchange(&request)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("timed out: no answer within {:?}", transport.timeout)),
            };
            Outcome {
                answer,
                took: began.elapsed(),
            }
        })
    }
}

impl HttpTransport {
    async fn exchange(&self, request: &Request) -> Result<u16, String> {
        let url = self.guard.check_form(&request.url)?;
        let addresses = self.guard.addresses(&url).await?;
        let mut failure = String::new();
        for address in addresses {
            match self.send(&url, address, request).await {
                Ok(status) => return Ok(status),
                // Nothing was sent, so the next address may be tried.
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
            .insert_header((CONTENT_TYPE, request.content_type));
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
        while let Ok(Some(Ok(chunk))) = timeout_at(deadline, answer.next()).await {
            read += chunk.len();
            if read > ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(status)
    }
}
