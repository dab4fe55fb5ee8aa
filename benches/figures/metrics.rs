//! The server's metrics, from `/metrics`.

use std::time::Duration;

use crate::Outcome;
use crate::client::{Connection, request};
use crate::server::Server;

pub const CHECKPOINTS: &str = "tidewatch_checkpoints_total{outcome=\"done\"}";
pub const FAILED_CHECKPOINTS: &str = "tidewatch_checkpoints_total{outcome=\"failed\"}";
pub const MERGES: &str = "tidewatch_segment_merges_total";
pub const SEGMENTS: &str = "tidewatch_segment_files";
pub const LOG_TAIL: &str = "tidewatch_log_tail_bytes";
pub const LOG_BYTES: &str = "tidewatch_log_bytes_total";
pub const LOG_SYNCS: &str = "tidewatch_log_syncs_total";
pub const DISK_SYNCS: &str = "tidewatch_disk_syncs_total";

const IDLE_TIME: Duration = Duration::from_millis(700);

/// The whole text of one request.
pub struct Metrics(String);

impl Metrics {
    pub fn of(server: &Server) -> Outcome<Self> {
        let mut connection = Connection::open(server.address)?;
        let text = connection.send_ok(&request("GET", "/metrics", "x-of: bench", b""))?;
        Ok(Metrics(String::from_utf8(text.to_vec())?))
    }

    /// The value of a sample; its name includes the labels.
    pub fn get(&self, name: &str) -> Outcome<f64> {
        let found = self
            .0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(found.ok_or_else(|| format!("/metrics has no {name}"))?.parse()?)
    }
}

/// The current value of one sample.
pub fn metric(server: &Server, name: &str) -> Outcome<f64> {
    Metrics::of(server)?.get(name)
}

/// Waits until no merge of segments has ended for a while and the server has no background work.
pub fn wait_for_merges(server: &Server) -> Outcome<()> {
    let mut before = metric(server, MERGES)?;
    loop {
        std::thread::sleep(IDLE_TIME);
        server.settle()?;
        let now = metric(server, MERGES)?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
}
