//! Access to the service for the demo: JSON over the public HTTP API.

use std::time::Duration;

use awc::http::Method;
use serde_json::Value;

use crate::evaluator::{Client, Credential, NoReply, Request};

/// The service's own request timeout is 30 seconds.
const WITHIN: Duration = Duration::from_secs(40);

/// A client with a fixed credential.
pub struct Api(Client);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ApiError {
    what: String,
    /// Whether a retry may succeed.
    pub passing: bool,
}

impl Api {
    /// A client of the service at `base`.
    ///
    /// # Errors
    /// The address or the credential is not valid.
    pub fn new(base: &str, credential: Credential<'_>) -> Result<Self, ApiError> {
        let client = Client::new(base, credential);
        client.map(Self).map_err(|what| ApiError { what, passing: false })
    }

    /// Creates an object. Returns the answer's body.
    ///
    /// # Errors
    /// No answer, or a status other than success.
    pub async fn post(&self, path: impl Into<String>, body: String) -> Result<Value, ApiError> {
        self.send(Method::POST, path.into(), body).await
    }

    /// Changes an object. Returns the answer's body.
    ///
    /// # Errors
    /// No answer, or a status other than success.
    pub async fn patch(&self, path: impl Into<String>, body: String) -> Result<Value, ApiError> {
        self.send(Method::PATCH, path.into(), body).await
    }

    async fn send(&self, method: Method, path: String, body: String) -> Result<Value, ApiError> {
        let request = Request {
            method,
            path,
            body: Some(body.into()),
        };
        let failed = |cause: String, passing| ApiError {
            what: format!("{} {}: {cause}", request.method, request.path),
            passing,
        };
        match self.0.exchange(&request, WITHIN).await {
            Ok(reply) if reply.status.is_success() => Ok(reply.json()),
            Ok(reply) => {
                let passing = reply.status.is_server_error() || reply.status.as_u16() == 429;
                Err(failed(reply.describe(), passing))
            }
            Err(NoReply::Unreachable(cause)) => Err(failed(cause, true)),
            Err(NoReply::Slow(within)) => Err(failed(format!("no answer within {within:?}"), true)),
            Err(NoReply::TooLarge) => Err(failed("the answer is too large".to_owned(), false)),
        }
    }
}

/// The string at a JSON pointer of an answer.
///
/// # Errors
/// There is no string at the pointer.
pub fn text(answer: &Value, pointer: &str) -> Result<String, ApiError> {
    let found = answer.pointer(pointer).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| ApiError {
        what: format!("an answer has nothing at {pointer}"),
        passing: false,
    })
}
