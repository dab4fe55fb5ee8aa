//! The PostgreSQL server that the tests of this process share.

use std::process::{Child, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

use crate::server::Postgres;

pub fn shared() -> &'static Postgres {
    static SHARED: OnceLock<Vec<Postgres>> = OnceLock::new();
    // What the tests look at is in memory, or on its way there.
    &SHARED.get_or_init(|| Postgres::start(0, &["fsync=off"]))[0]
}

/// A session that runs statements as they are written to it; it ends with its input.
pub fn session(database: &str) -> Child {
    let mut psql = shared().psql(database);
    psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

/// Ends a server as a loss of power would, for those who are connected to it.
pub fn kill(server: &Postgres) {
    let file = server.sql("postgres", "SELECT pg_read_file('postmaster.pid')");
    let pid = file
        .lines()
        .next()
        .and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
    kill_process(pid.unwrap(), Signal::KILL).unwrap();
}

/// Makes a standby the primary.
pub fn promote(server: &Postgres) {
    assert_eq!(server.sql("postgres", "SELECT pg_promote()"), "t");
}
