//! One HTTP exchange with the service, limited in time and size. Never retries and never reveals the credential. Used
//! by the evaluator, the bridge, the importer, the MCP server and the demo.

use std::time::Duration;

use awc::error::PayloadError;
use awc::http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER};
use awc::http::{Method, StatusCode, Uri};
use awc::{Connector, SendClientRequest};
use bytes::Bytes;
use futures_util::Stream;
use serde_json::Value;

use crate::condition::clip;

/// A page of 10,000 rows takes about 2 MB; with maximum metadata in every point, 160 MB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After a longer idle time the service may just be closing the connection, and a request sent on it is lost.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// A client of the service at `base`. Every request has the credential.
pub struct Client {
    http: awc::Client,
    base: String,
}

/// How requests are authenticated.
#[derive(Clone, Copy)]
pub enum Credential<'a> {
    /// No credential, as for signing up.
    Nothing,
    Key(&'a str),
    /// A session token.
    Bearer(&'a str),
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// `Retry-After`, if it is a number of seconds.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoReply {
    /// No connection, or it broke.
    #[error("{0}")]
    Unreachable(String),
    /// No answer within this time.
    #[error("no answer within {0:.1?}")]
    Slow(Duration),
    /// The answer exceeds the size limit.
    #[error("the answer is larger than 64 MiB")]
    TooLarge,
}

impl Client {
    /// A client of the service at `url`, an `http` or `https` address. Sends the credential with every request.
    ///
    /// # Errors
    /// The address or the credential is not valid. The message never contains the credential.
    pub fn new(url: &str, credential: Credential<'_>) -> Result<Self, String> {
        let base = url.trim_end_matches('/');
        let address: Uri = base
            .parse()
            .map_err(|cause| format!("{url} is no address of a service: {cause}"))?;
        let plain =
            address.query().is_none() && !address.authority().is_some_and(|a| a.as_str().contains('@'));
        if !plain || !matches!(address.scheme_str(), Some("http" | "https")) {
            return Err(
                "the address of the service must be http://HOST:PORT or https://HOST:PORT, without user or query"
                    .to_owned(),
            );
        }
        let credential = credential.header()?;
        // An already installed provider is fine. Without any, awc's connector panics.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connector = Connector::new()
            .timeout(CONNECT_TIMEOUT)
            .conn_keep_alive(IDLE_MAX);
        let mut builder = awc::Client::builder()
            .connector(connector)
            .disable_timeout()
            // The credential is for this service only, not for a redirect's target.
            .disable_redirects();
        if let Some(header) = credential {
            builder = builder.add_default_header(header);
        }
        Ok(Self {
            http: builder.finish(),
            base: base.to_owned(),
        })
    }

    /// Sends a request and reads the whole answer. `path` is relative to the base address; `body` is JSON.
    pub async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<Bytes>,
        within: Duration,
    ) -> Result<Reply, NoReply> {
        let sending = tokio::time::timeout(within, self.send(method, path, body));
        sending.await.unwrap_or(Err(NoReply::Slow(within)))
    }

    /// Posts bytes of any type under an idempotency key.
    pub async fn post_bytes(
        &self,
        path: &str,
        key: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Reply, NoReply> {
        let request = self.http.post(format!("{}{path}", self.base));
        let sent = request.insert_header((IDEMPOTENCY_KEY, key)).send_body(body);
        let reply = tokio::time::timeout(within, reply(sent));
        reply.await.unwrap_or(Err(NoReply::Slow(within)))
    }

    /// Posts what a stream gives under an idempotency key.
    pub async fn post_stream<E: std::error::Error + 'static>(
        &self,
        path: &str,
        key: &str,
        body: impl Stream<Item = Result<Bytes, E>> + 'static,
        within: Duration,
    ) -> Result<Reply, NoReply> {
        let request = self.http.post(format!("{}{path}", self.base));
        let sent = request
            .insert_header((IDEMPOTENCY_KEY, key))
            .send_stream(Box::pin(body));
        let reply = tokio::time::timeout(within, reply(sent));
        reply.await.unwrap_or(Err(NoReply::Slow(within)))
    }

    async fn send(&self, method: &Method, path: &str, body: Option<Bytes>) -> Result<Reply, NoReply> {
        let request = self.http.request(method.clone(), format!("{}{path}", self.base));
        let sent = match body {
            Some(body) => request.content_type("application/json").send_body(body),
            None => request.send(),
        };
        reply(sent).await
    }
}

/// Reads the whole answer to a request.
async fn reply(sent: SendClientRequest) -> Result<Reply, NoReply> {
    let mut answer = sent
        .await
        .map_err(|cause| NoReply::Unreachable(cause.to_string()))?;
    let body = answer.body().limit(ANSWER_BYTES_MAX).await;
    Ok(Reply {
        status: answer.status(),
        retry_after: answer.headers().get(RETRY_AFTER).and_then(seconds),
        body: body.map_err(|cause| match cause {
            PayloadError::Overflow => NoReply::TooLarge,
            cause => NoReply::Unreachable(format!("the answer broke off: {cause}")),
        })?,
    })
}

impl Credential<'_> {
    fn header(self) -> Result<Option<(HeaderName, HeaderValue)>, String> {
        let (name, text) = match self {
            Self::Nothing => return Ok(None),
            Self::Key("") => return Err("the key is empty".to_owned()),
            Self::Key(key) => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Self::Bearer(token) => (AUTHORIZATION, format!("Bearer {token}")),
        };
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| "the key has characters that no key has".to_owned())?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

fn seconds(header: &HeaderValue) -> Option<Duration> {
    header.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

impl Reply {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Status and message for people.
    pub fn describe(&self) -> String {
        match self.json()["message"].as_str() {
            Some(message) => format!("{}: {}", self.status, clip(message)),
            None => self.status.to_string(),
        }
    }
}
