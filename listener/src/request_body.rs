//! A request's body on its way in. It is read from the HTTP library only as the handler asks for it, which gives
//! back-pressure to the client.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Wake};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame, Incoming};

use crate::bounds::DRAIN_BYTES_MAX;
use crate::connection::{Connection, InFlight};
use crate::wakes::held_back;

/// A request's body, shared by the handler that reads it and by the code that drains what the handler left.
pub(crate) struct RequestBody {
    connection: Rc<Connection>,
    incoming: RefCell<Incoming>,
    /// Whether the client sends the body only after `100 Continue`.
    is_awaited: Cell<bool>,
    has_ended: Cell<bool>,
    /// Whether the end of the body can no longer be found.
    is_broken: Cell<bool>,
    /// While the handler waits for bytes.
    waiting: Cell<Option<InFlight>>,
    drained_bytes: Cell<u64>,
}

/// The body as the handler reads it.
struct HandlerPayload(Rc<RequestBody>);

impl RequestBody {
    pub fn new(incoming: Incoming, is_awaited: bool, connection: Rc<Connection>) -> Rc<Self> {
        Rc::new(Self {
            connection,
            incoming: RefCell::new(incoming),
            is_awaited: Cell::new(is_awaited),
            has_ended: Cell::new(false),
            is_broken: Cell::new(false),
            waiting: Cell::new(None),
            drained_bytes: Cell::new(0),
        })
    }

    /// Returns the payload for the handler.
    pub fn payload(self: &Rc<Self>) -> Payload {
        Payload::Stream {
            payload: Box::pin(HandlerPayload(Rc::clone(self))),
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        if self.has_ended.get() {
            return Poll::Ready(None);
        }
        self.is_awaited.set(false);
        loop {
            let mut incoming = self.incoming.borrow_mut();
            let (polled, missed) = held_back(|| Pin::new(&mut *incoming).poll_frame(context));
            let is_last = incoming.is_end_stream();
            if let Some(missed) = missed.filter(|_| !is_last) {
                missed.wake();
            }
            let Poll::Ready(frame) = polled else {
                let waiting = self.waiting.take();
                let waiting = waiting.unwrap_or_else(|| self.connection.wait_for_body());
                self.waiting.set(Some(waiting));
                return Poll::Pending;
            };
            self.waiting.take();
            self.connection.progressed();
            return Poll::Ready(match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => {
                    self.has_ended.set(is_last);
                    Some(Ok(bytes))
                }
                // Trailers are ignored.
                Some(Ok(Err(_))) => continue,
                Some(Err(error)) => {
                    self.is_broken.set(true);
                    Some(Err(PayloadError::Io(io::Error::other(error))))
                }
                None => {
                    self.has_ended.set(true);
                    None
                }
            });
        }
    }

    /// Reads and discards a limited amount of the body that the handler did not read. Returns whether the body's end
    /// was reached, so that the connection can be reused.
    pub fn poll_drained(&self, context: &mut Context<'_>) -> Poll<bool> {
        loop {
            if self.has_ended.get() {
                return Poll::Ready(true);
            }
            // Of a chunked body, nothing is known about the rest.
            let rest = self.incoming.borrow().size_hint().lower();
            let is_long = self.drained_bytes.get().saturating_add(rest) > DRAIN_BYTES_MAX;
            if self.is_awaited.get() || self.is_broken.get() || is_long {
                return Poll::Ready(false);
            }
            match self.poll(context) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.drained_bytes.update(|drained| drained + bytes.len() as u64)
                }
                Poll::Ready(Some(Err(_)) | None) => {}
                Poll::Pending if self.connection.is_read_blocked() => return Poll::Ready(false),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Stream for HandlerPayload {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll(context)
    }
}

impl Drop for HandlerPayload {
    fn drop(&mut self) {
        // The handler no longer waits for the body.
        self.0.waiting.take();
    }
}
