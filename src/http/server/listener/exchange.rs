//! One request and its answer, between the HTTP library and the router.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, ready};

use actix_http::Request;
use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, Response, Service};
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;

use super::answer::Answer;
use super::arriving::Arriving;
use super::bounds::STREAMS_MAX;
use super::connection::{Connection, Running};
use super::convert::{self, Unconvertible};
use super::counts::Counted;
use crate::error::ServiceError;
use crate::http::error::error_response;
use crate::http::server::request_id::RequestId;

/// `Retry-After` of a refused request: requests finish within seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Passes the requests of one connection to the router.
pub(super) struct Exchange<S, B> {
    app: Rc<S>,
    pub connection: Rc<Connection>,
    pub peer: SocketAddr,
    /// Running HTTP/2 requests of the whole server.
    streams: Arc<AtomicUsize>,
    _body: PhantomData<fn() -> B>,
}

/// The future of an answer.
pub(super) struct Answering<F, B> {
    state: State<F, B>,
    connection: Rc<Connection>,
    arriving: Option<Rc<Arriving>>,
    running: Option<Running>,
    _counted: Option<Counted>,
}

enum State<F, B> {
    Handled(Pin<Box<F>>),
    /// The answer is ready, but the rest of the request's body has not been drained yet.
    Made(hyper::Response<Answer<EitherBody<B>>>),
    Given,
}

impl<S, B> Exchange<S, B> {
    pub fn new(app: Rc<S>, connection: Rc<Connection>, peer: SocketAddr, streams: Arc<AtomicUsize>) -> Self {
        Self {
            app,
            connection,
            peer,
            streams,
            _body: PhantomData,
        }
    }
}

impl<S, B> hyper::service::Service<hyper::Request<Incoming>> for Exchange<S, B>
where
    S: Service<Request, Error: Into<Error>, Response: Into<Response<B>>>,
    B: MessageBody + 'static,
{
    type Response = hyper::Response<Answer<EitherBody<B>>>;
    type Error = Infallible;
    type Future = Answering<S::Future, B>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        let connection = &self.connection;
        let running = connection.begin();
        let (head, incoming) = request.into_parts();
        let (payload, arriving) = if incoming.is_end_stream() {
            (Payload::None, None)
        } else {
            let arriving = Arriving::new(incoming, head.headers.contains_key(EXPECT), Rc::clone(connection));
            (arriving.payload(), Some(arriving))
        };
        let counted = connection.is_multiplexed().then(|| Counted::new(&self.streams));
        let (counted, before) = counted.unzip();
        let is_full = before.is_some_and(|before| before >= STREAMS_MAX);
        let state = match convert::request(&head, payload, self.peer) {
            _ if is_full => refused(
                connection,
                &ServiceError::unavailable(
                    "the server has as many requests open as it has room for; send it again in a moment",
                    RETRY_AFTER_SECONDS,
                ),
            ),
            Err(Unconvertible) => refused(
                connection,
                &ServiceError::validation("the request's head has bytes that have no meaning there"),
            ),
            // The router needs no `poll_ready`: it is always ready.
            Ok(request) => State::Handled(Box::pin(self.app.call(request))),
        };
        Answering {
            state,
            connection: Rc::clone(connection),
            arriving,
            running: Some(running),
            _counted: counted,
        }
    }
}

fn refused<F, B: MessageBody + 'static>(connection: &Rc<Connection>, error: &ServiceError) -> State<F, B> {
    let response: Response<_> = error_response(error, RequestId::next()).into();
    State::Made(made(
        response.map_body(|_, body| EitherBody::right(body)),
        connection,
    ))
}

fn made<B: MessageBody + 'static>(
    response: Response<EitherBody<B>>,
    connection: &Rc<Connection>,
) -> hyper::Response<Answer<EitherBody<B>>> {
    let (head, body) = response.into_parts();
    let body = Answer::new(body, connection.send(), connection.is_multiplexed());
    convert::answer(&head, body)
}

impl<F, B, R, E> Future for Answering<F, B>
where
    F: Future<Output = Result<R, E>>,
    R: Into<Response<B>>,
    E: Into<Error>,
    B: MessageBody + 'static,
{
    type Output = Result<hyper::Response<Answer<EitherBody<B>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Only the handler needs pinning, and it is boxed.
        let this = self.get_mut();
        if let State::Handled(handler) = &mut this.state {
            let response = match ready!(handler.as_mut().poll(context)) {
                Ok(response) => response.into().map_body(|_, body| EitherBody::left(body)),
                Err(error) => {
                    let error: Error = error.into();
                    Response::from(error).map_body(|_, body| EitherBody::right(body))
                }
            };
            this.state = State::Made(made(response, &this.connection));
            this.running = None;
        }
        let mut last = false;
        if let Some(arriving) = &this.arriving
            && !this.connection.is_multiplexed()
        {
            // The undrained rest of the body would be read as the next head, so the connection ends.
            last = !ready!(arriving.poll_drained(context));
        }
        match std::mem::replace(&mut this.state, State::Given) {
            State::Made(mut response) => {
                if last {
                    convert::close(&mut response);
                }
                Poll::Ready(Ok(response))
            }
            // A future is not polled again after it was ready.
            State::Handled(_) | State::Given => Poll::Pending,
        }
    }
}

impl<F, B> Unpin for Answering<F, B> {}
