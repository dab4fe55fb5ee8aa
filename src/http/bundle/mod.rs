//! Requests that are passed on to another node at about the same time travel in one request, a bundle: what HTTP costs is paid
//! once for all of them. They are independent: each is answered as soon as it can be, and one that a bundle cannot hold is sent
//! by itself.
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

use actix_web::http::header::HeaderName;

/// Requests of one bundle.
const ITEMS_MAX: usize = 64;
/// Bytes of a bundle from which it is sent.
const FULL_BYTES: usize = 64 * 1_024;
/// Bytes of a request in a bundle, head and body.
const ITEM_BYTES_MAX: usize = 32 * 1_024;
/// Bytes of a bundle: all but the last request fit into less than what fills it.
const BYTES_MAX: usize = FULL_BYTES + ITEM_BYTES_MAX;
/// Bytes of the body of an answer to a request of a bundle; more than the details of an error can have.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Says that the request was not carried out, and has to be sent by itself.
static ALONE: HeaderName = HeaderName::from_static("x-tidewatch-alone");
