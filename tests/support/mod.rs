//! The harness of the black-box tests: the real binary as a child process, an HTTP client, and the steps that all tests
//! share (account, bucket, source, points). It uses only the protocol, not the server's code. Helpers used by a single
//! test binary are in that binary.

pub mod client;
pub mod given;
pub mod process;
pub mod receiver;
pub mod time;
pub mod waiting;
pub mod watch;
