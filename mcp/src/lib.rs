//! The Model Context Protocol server behind `tidewatch mcp`: tools with which a language model reads a tidewatch server
//! and, with a key that may, evaluates due rules.
//!
//! It is a client of the HTTP API and shares no code with the server. It decides no access: the service does, by the
//! key. Called by the command line.

mod answer;
mod api;
mod call;
mod http;
mod keys;
mod server;
#[cfg(test)]
mod tests;
mod tools;

use std::net::SocketAddr;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::stdio;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use api::Api;
use keys::Keys;
use server::Server;

/// Settings of the transport over HTTP.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Names in `Host` that are taken beside those of the loopback address and `listen`.
    pub hosts: Vec<String>,
    /// Origins, such as `https://app.example.com:443`, from which pages in a browser may call.
    pub origins: Vec<String>,
}

/// Why a server ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The address of the service, or the key, is not valid.
    #[error("{0}")]
    Config(String),
    /// Others would be served with this server's key.
    #[error(
        "{0} can be reached from other machines, and whoever does would use this server's key: give no key (neither \
         --key nor TIDEWATCH_KEY), so that callers send their own, or listen on 127.0.0.1"
    )]
    KeyForStrangers(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The client speaks another protocol.
    #[error("the client did not begin as MCP has it: {0}")]
    Client(String),
}

/// Serves one client over standard input and output, until it closes the input. Uses `key` for the service at `url`.
///
/// # Errors
/// The address or the key is not valid, or the client speaks no MCP.
pub async fn run_stdio(url: &str, key: &str) -> Result<(), McpError> {
    let api = Api::start(url, Some(key))?;
    let server = Server::new(api, Keys::own(key.to_owned()));
    let client = server.serve(stdio()).await;
    let client = client.map_err(|cause| McpError::Client(cause.to_string()))?;
    client
        .waiting()
        .await
        .map_err(|cause| McpError::Client(cause.to_string()))?;
    Ok(())
}

/// Serves clients over HTTP until `stop` is cancelled. A caller's own key, sent as `Authorization: Bearer`, is passed on
/// to the service at `url`; `key` is for callers without one, and only on a loopback address.
///
/// # Errors
/// The address or the key is not valid, cannot be listened on, or `key` would serve other machines.
pub async fn run_http(
    url: &str,
    key: Option<String>,
    options: HttpOptions,
    stop: CancellationToken,
) -> Result<(), McpError> {
    if key.is_some() && !options.listen.ip().is_loopback() {
        return Err(McpError::KeyForStrangers(options.listen));
    }
    let api = Api::start(url, key.as_deref())?;
    let fault = |cause| McpError::Listen(options.listen, cause);
    let listener = TcpListener::bind(options.listen).await.map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    tracing::info!("listening on http://{address}{}", http::PATH);
    let keys = Keys::of_callers(key);
    http::serve(
        listener,
        Server::new(Arc::clone(&api), keys.clone()),
        &keys,
        &options,
        stop,
    )
    .await;
    tracing::info!("stopped");
    Ok(())
}
