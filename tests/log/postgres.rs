//! The PostgreSQL server that the tests of this process share.

use std::process::{Child, Stdio};
use std::sync::OnceLock;

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
