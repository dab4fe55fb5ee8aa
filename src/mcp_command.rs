//! `tidewatch mcp`: tools for language models.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use mcp::HttpOptions;
use tidewatch::config::Flags;
use tidewatch::startup;

use crate::{KEY_VARIABLE, Outcome, load, stop_on_signal};

#[derive(Args)]
pub struct McpArguments {
    /// Address of the service
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Key for the service; preferably set as TIDEWATCH_KEY in the environment, where the process list does not show it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Serves over HTTP, at /mcp of this address and port, instead of standard input and output
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8090")]
    listen: Option<SocketAddr>,
    /// A name under which clients reach --listen, beside its address; may be repeated
    #[arg(long, value_name = "HOST", requires = "listen")]
    allow_host: Vec<String>,
    /// An origin whose pages may call, such as https://app.example.com:443; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,
}

impl McpArguments {
    /// Serves until the client ends, or over HTTP until SIGTERM.
    pub fn run(self) -> Outcome {
        startup::start_logging(&load(&Flags::default())?.log);
        let key = self.key.or_else(|| std::env::var(KEY_VARIABLE).ok());
        let key = key.filter(|key| !key.is_empty());
        let serving = async {
            let Some(listen) = self.listen else {
                let key = key.ok_or_else(|| format!("a key is needed: set {KEY_VARIABLE}, or give --key"))?;
                // A signal may end this at any moment: nothing is kept.
                return mcp::run_stdio(&self.url, &key)
                    .await
                    .map_err(|error| error.to_string());
            };
            let options = HttpOptions {
                listen,
                hosts: self.allow_host,
                origins: self.allow_origin,
            };
            let stop = stop_on_signal("finishing the calls in progress")?;
            mcp::run_http(&self.url, key, options, stop)
                .await
                .map_err(|error| error.to_string())
        };
        actix_web::rt::System::new().block_on(serving)?;
        Ok(ExitCode::SUCCESS)
    }
}
