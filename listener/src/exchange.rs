//! One request and its answer, between the HTTP library and the router.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use actix_web::dev::Payload;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;

use crate::answer::{AnswerBody, BodyKind, Download, Kept};
use crate::bounds::STREAMS_MAX;
use crate::connection::Connection;
use crate::convert;
use crate::counts::Counted;
use crate::refusal::{Refusal, Refuse};
use crate::request_body::RequestBody;
use crate::router::{self, Router};

/// Passes the requests of one connection to the router.
pub(crate) struct Exchange {
    pub router: Rc<Router>,
    pub connection: Rc<Connection>,
    pub peer: SocketAddr,
    /// Open HTTP/2 requests of the whole server.
    pub streams: Arc<AtomicUsize>,
    pub refuse: Refuse,
}

impl Exchange {
    /// Begins a request. With HTTP/1, the future ends when the rest of the request's body is drained as well.
    pub fn answer(
        &self,
        request: hyper::Request<Incoming>,
    ) -> impl Future<Output = Result<hyper::Response<AnswerBody>, Infallible>> + use<> {
        let connection = Rc::clone(&self.connection);
        let running = connection.begin();
        let (head, incoming) = request.into_parts();
        let body = (!incoming.is_end_stream()).then(|| {
            let is_awaited = head.headers.contains_key(EXPECT);
            RequestBody::new(incoming, is_awaited, Rc::clone(&connection))
        });
        let payload = body.as_ref().map_or(Payload::None, RequestBody::payload);
        let (stream, is_full) = match connection.is_multiplexed().then(|| Counted::new(&self.streams)) {
            // A refusal is small and takes no place.
            Some((_, before)) if before >= STREAMS_MAX => (None, true),
            Some((counted, _)) => (Some(counted), false),
            None => (None, false),
        };
        let answering = match convert::request(&head, payload, self.peer) {
            _ if is_full => Err(Refusal::Crowded),
            None => Err(Refusal::Malformed(String::from(
                "it has bytes that have no meaning there",
            ))),
            Some(request) => Ok(router::answer(&self.router, request)),
        };
        let refuse = self.refuse;
        async move {
            let response = match answering {
                Ok(answering) => answering.await,
                Err(refusal) => refuse(&refusal),
            };
            let kind = BodyKind {
                is_download: response.extensions().get::<Download>().is_some(),
                is_kept: response.extensions().get::<Kept>().is_some(),
            };
            let (head, body_out) = response.into_parts();
            // Until the answer is taken: the client decides how long that is.
            let body_out = AnswerBody::new(body_out, kind, connection.send(), stream);
            let mut answer = convert::answer(&head, body_out);
            drop(running);
            if let Some(body) = body
                && !connection.is_multiplexed()
                && !poll_fn(|context| body.poll_drained(context)).await
            {
                // The undrained rest of the body would be read as the next head, so the connection ends.
                convert::close(&mut answer);
            }
            Ok(answer)
        }
    }
}
