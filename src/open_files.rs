//! How many files and connections the process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit to what the operating system allows: many systems begin at 1,024, less than the connections and
/// segments of a busy server, or the files of a large backup. Where it cannot be raised, opening says so.
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}
