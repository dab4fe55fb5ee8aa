//! The answer of the node that owns a shard, as it goes on to the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::error::PayloadError;
use actix_web::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use actix_web::web::Bytes;
use awc::ClientResponse;
use futures_util::Stream;

/// Headers that belong to one connection (RFC 9110, 7.6.1).
pub fn is_of_hop(name: &HeaderName) -> bool {
    [CONNECTION, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE].contains(name) || name == "keep-alive"
}

/// Passes an owner's answer on, body streamed.
pub fn respond(answer: ClientResponse) -> HttpResponse {
    let mut response = HttpResponse::build(answer.status());
    for (name, value) in answer.headers() {
        if !is_of_hop(name) && *name != CONTENT_LENGTH {
            response.append_header((name.clone(), value.clone()));
        }
    }
    let length = answer.headers().get(CONTENT_LENGTH);
    match length.and_then(|length| length.to_str().ok()?.parse().ok()) {
        Some(length) => response.body(SizedStream::new(length, Body { answer, left: length })),
        None => response.streaming(answer),
    }
}

/// A body of a known length. Whoever sends it on stops at that length, and the connection to the owner is used for another
/// request only if the end behind the last byte was read, too.
struct Body {
    answer: ClientResponse,
    left: u64,
}

impl Stream for Body {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let read = ready!(Pin::new(&mut self.answer).poll_next(context));
        if let Some(Ok(piece)) = &read {
            self.left = self.left.saturating_sub(piece.len() as u64);
            if self.left == 0 {
                // Known without more from the network.
                let _end = Pin::new(&mut self.answer).poll_next(context);
            }
        }
        Poll::Ready(read)
    }
}
