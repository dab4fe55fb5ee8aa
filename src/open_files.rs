//! How many files and connections the process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that connections leave to the log, to files of the data directory and to deliveries.
const RESERVE: u64 = 1_024;

/// Raises the limit to what the operating system allows: many systems begin at 1,024, less than the connections and
/// segments of a busy server, or the files of a large backup. Where it cannot be raised, opening says so.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// How many connections may be open at a time without taking the descriptors that files need.
pub fn connections_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(beside_files(limit)).unwrap_or(usize::MAX)
}

/// What a limit of descriptors leaves to connections; of a small one half.
fn beside_files(limit: u64) -> u64 {
    (limit - RESERVE.min(limit / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_part_of_the_descriptors() {
        let cases = [(1, 1), (40, 20), (1_024, 512), (4_096, 3_072), (65_536, 64_512)];
        for (limit, connections) in cases {
            assert_eq!(beside_files(limit), connections, "{limit}");
        }
    }
}
