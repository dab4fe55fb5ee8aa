//! Limits on the open files and connections of the process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors reserved for the log, files of the data directory and deliveries.
const RESERVE: u64 = 1_024;

/// Files that a server without clients needs open: its threads, its log and its directories.
pub const FILES_MIN: u64 = 64;

/// Raises the limit to the maximum that the operating system allows. Many systems start with 1,024, which is less than
/// the connections and segments of a busy server, or the files of a large backup. If it cannot be raised, opening a
/// file fails later with a clear error.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Checks that the limit is high enough for a server.
///
/// # Errors
/// The limit, if it is not.
pub fn check_limit() -> Result<(), u64> {
    match getrlimit(Resource::Nofile).current {
        Some(files) if files < FILES_MIN => Err(files),
        _ => Ok(()),
    }
}

/// How many connections may be open without using the descriptors reserved for files.
pub fn connections_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(left_for_connections(limit)).unwrap_or(usize::MAX)
}

/// The number of descriptors left for connections: at least half of a small limit.
fn left_for_connections(limit: u64) -> u64 {
    (limit - RESERVE.min(limit / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_reserved_for_files() {
        let cases = [(1, 1), (40, 20), (1_024, 512), (4_096, 3_072), (65_536, 64_512)];
        for (limit, connections) in cases {
            assert_eq!(left_for_connections(limit), connections, "{limit}");
        }
    }
}
