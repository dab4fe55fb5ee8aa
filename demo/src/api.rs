//! Access to the service for the demo: JSON over the public HTTP API.

use std::time::Duration;

use actix_web::http::Method;
use evaluator::{Client, Credential, NoReply};
use serde::Serialize;
use serde_json::Value;

/// The service's own request timeout is 30 seconds.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A client with a fixed credential.
pub struct Api(Client);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    message: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

impl Api {
    /// A client of the service at `base`.
    ///
    /// # Errors
    /// The address or the credential is not valid.
    pub fn new(base: &str, credential: Credential<'_>) -> Result<Self, ApiError> {
        let client = Client::new(base, credential);
        client.map(Self).map_err(|message| ApiError {
            message,
            retryable: false,
        })
    }

    /// Creates an object. Returns the string at a JSON pointer of the answer, such as the object's id.
    ///
    /// # Errors
    /// No answer, a status other than success, or no string at the pointer.
    pub async fn create(&self, path: &str, body: &impl Serialize, pointer: &str) -> Result<String, ApiError> {
        let answer = self.send(Method::POST, path, body).await?;
        let found = answer.pointer(pointer).and_then(Value::as_str);
        found.map(str::to_owned).ok_or_else(|| ApiError {
            message: format!("POST {path}: the answer has nothing at {pointer}"),
            retryable: false,
        })
    }

    /// Sends a body. Returns the answer's body.
    ///
    /// # Errors
    /// No answer, or a status other than success.
    pub async fn send(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Value, ApiError> {
        // Numbers, strings and ids can always be serialized.
        let body = serde_json::to_vec(body).unwrap_or_default();
        let exchange = self.0.exchange(&method, path, Some(body.into()), TIMEOUT);
        let (cause, retryable) = match exchange.await {
            Ok(reply) if reply.status.is_success() => return Ok(reply.json()),
            Ok(reply) => {
                let retryable = reply.status.is_server_error() || reply.status.as_u16() == 429;
                (reply.describe(), retryable)
            }
            Err(error) => (error.to_string(), !matches!(error, NoReply::TooLarge)),
        };
        Err(ApiError {
            message: format!("{method} {path}: {cause}"),
            retryable,
        })
    }
}
