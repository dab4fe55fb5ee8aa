//! The harness of the black-box tests: the real binary as a child process, an HTTP client, and the first
//! steps every test shares (account, bucket, source, points). It knows the wire and nothing of the server's
//! code. Every test binary of this folder uses it; what only one of them needs lives with that one.

pub mod client;
pub mod given;
pub mod process;
pub mod receiver;
pub mod time;
pub mod waiting;
pub mod watch;
