//! Process metrics from the operating system, under the names that all Prometheus clients use.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::metrics::Exposition;

/// Records the start time of the process. The first call must be at the start.
pub(in crate::http) fn note_start() -> f64 {
    static START: OnceLock<f64> = OnceLock::new();
    *START.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0.0, |since| since.as_secs_f64())
    })
}

/// Writes the metrics. Those that this operating system does not provide are left out.
pub(in crate::http) fn write(text: &mut Exposition) {
    text.gauges("tidewatch_build_info", "The program's version.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.gauge(
        "process_start_time_seconds",
        "When the process began, in Unix time.",
        note_start(),
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kibibytes) = kibibytes(&status, "VmRSS:") {
        text.gauge(
            "process_resident_memory_bytes",
            "Memory that the process takes.",
            kibibytes * 1_024,
        );
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        text.gauge("process_open_fds", "Open file descriptors.", open.count());
    }
}

/// Parses a line like `VmRSS: 1024 kB`.
fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
