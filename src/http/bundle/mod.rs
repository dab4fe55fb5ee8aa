//! Requests that are passed on to another node at about the same time travel in one request, a bundle: what HTTP costs is paid
//! once for all of them. Its body is the requests one after the other (`application/http`, RFC 9112, 10.2), each with the
//! length of its body. The answer has theirs, each as soon as it is known, with the number of the request that it is for.
//!
//! `sender` collects and sends them, `receiver` gives each to the router of the owner, `format` is what is on the wire.

mod format;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use format::write_request;
pub use receiver::{PATH, receive};
pub use sender::{Bundles, Fate};

/// Requests of one bundle.
const ITEMS_MAX: usize = 64;
/// Bytes of a bundle from which it is sent.
const FULL_BYTES: usize = 64 * 1_024;
/// Bytes of a request in a bundle, head and body.
const ITEM_BYTES_MAX: usize = 32 * 1_024;
/// Bytes of a bundle: all but the last request fit into less than what fills it.
const BYTES_MAX: usize = FULL_BYTES + ITEM_BYTES_MAX;
/// Bytes of an answer in a bundle's answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;
