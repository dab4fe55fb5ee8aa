//! Calls of the service: one exchange each, never repeated, because the model decides what to do about a failure.

use std::sync::Arc;
use std::time::Duration;

use awc::http::{Method, StatusCode};
use bytes::Bytes;
use evaluator::{Client, Credential};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::McpError;
use crate::call::{Call, Verb};

/// The service's own request timeout is 30 seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);
/// Calls of all clients that are not yet answered; further ones wait.
const CALLS_MAX: usize = 64;

/// The service at one address. The HTTP client stays on the thread that started this; handles may move.
pub struct Api {
    calls: mpsc::Sender<Pending>,
}

struct Pending {
    call: Call,
    key: String,
    answer: oneshot::Sender<Result<Reply, String>>,
}

/// An answer of the service.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl Api {
    /// Calls the service at `url`. Runs on the current thread, within a local task set. `key` is only checked.
    ///
    /// # Errors
    /// The address or the key is not valid.
    pub fn start(url: &str, key: Option<&str>) -> Result<Arc<Self>, McpError> {
        let credential = key.map_or(Credential::Nothing, Credential::Key);
        Client::new(url, credential).map_err(McpError::Config)?;
        let (calls, mut pending) = mpsc::channel::<Pending>(CALLS_MAX);
        let url = url.to_owned();
        tokio::task::spawn_local(async move {
            let mut exchanges = JoinSet::new();
            while let Some(Pending { call, key, answer }) = pending.recv().await {
                while exchanges.len() >= CALLS_MAX {
                    exchanges.join_next().await;
                }
                let url = url.clone();
                exchanges.spawn_local(async move {
                    // Nobody waits any more if the call was cancelled.
                    let _ = answer.send(exchange(&url, &call, &key).await);
                });
            }
        });
        Ok(Arc::new(Self { calls }))
    }

    /// Makes one call with this key.
    ///
    /// # Errors
    /// There is no answer; the text says why.
    pub async fn call(&self, call: Call, key: String) -> Result<Reply, String> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending { call, key, answer };
        let ended = |()| "the server is stopping".to_owned();
        self.calls.send(pending).await.map_err(|_| ended(()))?;
        answered.await.map_err(|_| ended(()))?
    }
}

async fn exchange(url: &str, call: &Call, key: &str) -> Result<Reply, String> {
    let client = Client::new(url, Credential::Key(key))?;
    let (method, body) = match &call.verb {
        Verb::Get => (Method::GET, None),
        Verb::Post(body) => (Method::POST, Some(Bytes::from(body.to_string()))),
    };
    let reply = client.exchange(&method, &call.path, body, EXCHANGE_MAX).await;
    let reply = reply.map_err(|cause| format!("the service at {url} gives no answer: {cause}"))?;
    Ok(Reply {
        status: StatusCode::as_u16(&reply.status),
        retry_after: reply.retry_after,
        body: reply.body,
    })
}
