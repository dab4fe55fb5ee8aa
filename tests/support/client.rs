//! An HTTP client with keep-alive connections, and answers whose assertions name the violated sentence of the contract.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{self, HeaderMap, Method};

/// Longer than the contract's limit of 30 s for a request.
const TIMEOUT: Duration = Duration::from_secs(45);
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Clones share connections and the address, which changes when the server is restarted.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base: Arc<RwLock<String>>,
}

impl Client {
    pub fn new() -> Self {
        Self::with_timeout(TIMEOUT)
    }

    /// A client that gives a request up after this time.
    pub fn with_timeout(timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections_per_host(32)
            .timeout_global(Some(timeout))
            .build();
        Self {
            agent: config.into(),
            base: Arc::default(),
        }
    }

    pub fn point_at(&self, base: &str) {
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = base.to_owned();
    }

    /// The current base URL of the server, `http://ADDR:PORT`.
    pub fn base(&self) -> String {
        self.base.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn get(&self, path: &str) -> Request<'_> {
        self.request("GET", path)
    }

    pub fn post(&self, path: &str) -> Request<'_> {
        self.request("POST", path)
    }

    pub fn delete(&self, path: &str) -> Request<'_> {
        self.request("DELETE", path)
    }

    pub fn request(&self, method: &str, path: &str) -> Request<'_> {
        let uri = format!("{}{path}", self.base());
        Request {
            agent: &self.agent,
            method: method.to_owned(),
            uri,
            headers: Vec::new(),
            body: None,
        }
    }
}

#[must_use]
pub struct Request<'a> {
    agent: &'a Agent,
    method: String,
    uri: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Request<'_> {
    pub fn key(self, key: &str) -> Self {
        self.header("X-API-Key", key)
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    /// Sends these bytes with the content type JSON.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        self.bytes(body).header("Content-Type", "application/json")
    }

    /// Sends these bytes without a content type.
    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    #[track_caller]
    pub fn send(self) -> Answer {
        let what = format!("{} {}", self.method, self.uri);
        self.try_send()
            .unwrap_or_else(|error| panic!("no answer to {what}: {error}"))
    }

    /// For a server that may be killed meanwhile.
    pub fn try_send(self) -> Result<Answer, ureq::Error> {
        let method = Method::from_bytes(self.method.as_bytes()).map_err(http::Error::from)?;
        let request_line = format!("{method} {}", path_of(&self.uri));
        let mut request = http::Request::builder().method(method).uri(self.uri);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let response = match self.body {
            Some(body) => self.agent.run(request.body(body)?),
            None => self.agent.run(request.body(())?),
        };
        let (parts, mut body) = response?.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Answer {
            request_line,
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        })
    }
}

fn path_of(uri: &str) -> &str {
    uri.split_once("://")
        .and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]))
        .unwrap_or(uri)
}

pub struct Answer {
    request_line: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self}"))
    }

    /// The body of the answer; asserts its status.
    #[track_caller]
    pub fn expect(&self, status: u16, sentence: &str) -> Value {
        assert!(self.status == status, "{sentence}: expected {status}, got {self}");
        self.json()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body: String = self.text().chars().take(600).collect();
        write!(f, "{} → {} {body}", self.request_line, self.status)
    }
}
