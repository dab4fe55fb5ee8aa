//! One exchange with the service: a request out, a whole answer in, bounded in time and size. It never tries twice
//! and never shows the credential. Whoever is a client of the service in this program calls it: the evaluator, the demo.

use std::time::Duration;

use actix_web::web::Bytes;
use awc::Connector;
use awc::error::{PayloadError, SendRequestError};
use awc::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use awc::http::{Method, StatusCode, Uri};
use serde_json::Value;

use super::judge::clip;

/// A page of 10,000 rows takes about 2 MB; with the largest metadata that points may carry, 160 MB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection idle for longer may just be closed by the service, and a request on it be lost.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// Where the service is, and what opens it.
pub struct Client {
    http: awc::Client,
    base: String,
    credential: Option<(HeaderName, HeaderValue)>,
}

/// What opens the service.
#[derive(Clone, Copy)]
pub enum Credential<'a> {
    /// Nothing: signing up.
    Nothing,
    /// An API key.
    Key(&'a str),
    /// The token of a sign-in.
    Bearer(&'a str),
}

/// What is asked for.
pub struct Request {
    /// As the endpoint has it.
    pub method: Method,
    /// Behind the base address, from `/api` on.
    pub path: String,
    /// JSON.
    pub body: Option<Bytes>,
}

/// What came back, whatever its status.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// `Retry-After`, when it is a number of seconds.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug)]
pub enum NoReply {
    /// No connection, or it broke.
    Unreachable(String),
    /// Nothing within the time given.
    Slow(Duration),
    /// The answer is larger than an answer may be.
    TooLarge,
}

impl Client {
    /// A client of the service at `url`, an `http` or `https` address; the credential goes with every request.
    ///
    /// # Errors
    /// The address or the credential cannot be used; the text never shows the credential.
    pub fn new(url: &str, credential: Credential<'_>) -> Result<Self, String> {
        let base = url.trim_end_matches('/');
        let address: Uri = base
            .parse()
            .map_err(|cause| format!("--url {url} is no address: {cause}"))?;
        let plain =
            address.query().is_none() && !address.authority().is_some_and(|a| a.as_str().contains('@'));
        if !plain || !matches!(address.scheme_str(), Some("http" | "https")) {
            return Err(
                "--url must be http://HOST:PORT or https://HOST:PORT, without user or query".to_owned(),
            );
        }
        let credential = credential.header()?;
        // Whoever installed one before is as good; without one, awc's connector panics.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connector = Connector::new()
            .timeout(CONNECT_TIMEOUT)
            .conn_keep_alive(IDLE_MAX);
        let http = awc::Client::builder()
            .connector(connector)
            .disable_timeout()
            // The credential is for this service, not for where it points.
            .disable_redirects()
            .finish();
        Ok(Self {
            http,
            base: base.to_owned(),
            credential,
        })
    }

    /// Sends the request and reads the whole answer.
    pub async fn exchange(&self, request: &Request, within: Duration) -> Result<Reply, NoReply> {
        match tokio::time::timeout(within, self.send(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(NoReply::Slow(within)),
        }
    }

    async fn send(&self, request: &Request) -> Result<Reply, NoReply> {
        let mut outgoing = self
            .http
            .request(request.method.clone(), format!("{}{}", self.base, request.path));
        if let Some(credential) = &self.credential {
            outgoing = outgoing.insert_header(credential.clone());
        }
        let sent = match &request.body {
            Some(body) => outgoing
                .insert_header((CONTENT_TYPE, "application/json"))
                .send_body(body.clone()),
            None => outgoing.send(),
        };
        let mut answer = sent.await.map_err(unreachable)?;
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

fn unreachable(cause: SendRequestError) -> NoReply {
    NoReply::Unreachable(cause.to_string())
}

fn seconds(header: &HeaderValue) -> Option<Duration> {
    header.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

impl Reply {
    /// The body as JSON, null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Status and message, as people read it.
    pub fn describe(&self) -> String {
        match self.json()["message"].as_str() {
            Some(message) => format!("{}: {}", self.status, clip(message)),
            None => self.status.to_string(),
        }
    }
}
