//! The answer of the node that owns a shard, as it goes on to the client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderName};
use actix_web::web::Bytes;
use awc::ClientResponse;
use futures_util::Stream;

/// Whether a header is passed on. Those of one connection are not (RFC 9110, 7.6.1), nor is the length of the body, which
/// whoever sends it states.
pub fn is_passed_on(name: &HeaderName) -> bool {
    !matches!(
        name.as_str(),
        "connection"
            | "content-length"
            | "expect"
            | "keep-alive"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Passes an owner's answer on, body streamed.
pub fn respond(answer: ClientResponse) -> HttpResponse {
    let mut response = HttpResponse::build(answer.status());
    for (name, value) in answer.headers() {
        if is_passed_on(name) {
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
