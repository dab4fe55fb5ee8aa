//! An answer's body on its way out. The HTTP library asks for it when it has room, and gets it in pieces, so that the
//! progress of the client is visible.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::bounds::{PIECE_BYTES, STREAM_PIECE_BYTES};
use crate::connection::InFlight;
use crate::counts::Counted;

/// An extension of a response whose client may take its time: it is cut off only when it has taken nothing for
/// [`crate::Limits::download_quiet_max`].
#[derive(Clone, Copy, Debug)]
pub struct Download;

/// An extension of a response whose body the service keeps in memory anyway, for all who ask for it. It is not copied for
/// each of them.
#[derive(Clone, Copy, Debug)]
pub struct Kept;

/// The body of an answer.
pub(crate) struct AnswerBody {
    sending: InFlight,
    /// Its place among the open HTTP/2 requests, until it is sent or given up.
    _stream: Option<Counted>,
    is_kept: bool,
    /// While the next chunk is being made.
    making: Option<InFlight>,
    /// Of a download.
    _download: Option<InFlight>,
    /// The rest of the chunk that the handler gave last.
    rest: Bytes,
    /// Whether `rest` is only a part of that chunk.
    is_cut: bool,
    /// The source of further chunks.
    more: Option<BoxBody>,
    /// Remaining bytes in total; `None` when the length is unknown.
    left: Option<u64>,
    piece_bytes: usize,
}

/// What the service says of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodyKind {
    /// See [`Download`].
    pub is_download: bool,
    /// See [`Kept`].
    pub is_kept: bool,
}

impl AnswerBody {
    pub fn new(body: BoxBody, kind: BodyKind, sending: InFlight, stream: Option<Counted>) -> Self {
        let left = match body.size() {
            BodySize::None => Some(0),
            BodySize::Sized(bytes) => Some(bytes),
            BodySize::Stream => None,
        };
        let (rest, more) = match body.try_into_bytes() {
            Ok(whole) => (whole, None),
            Err(body) => (Bytes::new(), Some(body)),
        };
        Self {
            making: None,
            _download: kind.is_download.then(|| sending.connection().download()),
            piece_bytes: if sending.connection().is_multiplexed() {
                STREAM_PIECE_BYTES
            } else {
                PIECE_BYTES
            },
            sending,
            _stream: stream,
            is_kept: kind.is_kept,
            rest,
            is_cut: false,
            more,
            left,
        }
    }

    /// The next piece. A piece of a larger chunk is copied: a slice would keep the whole chunk in memory until it is
    /// written, while the answer budget no longer counts it.
    fn piece(&mut self) -> Bytes {
        let bytes = self.rest.len().min(self.piece_bytes);
        self.is_cut |= bytes < self.rest.len();
        let piece = self.rest.split_to(bytes);
        if self.is_cut && !self.is_kept {
            Bytes::copy_from_slice(&piece)
        } else {
            piece
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.sending.progressed();
        while self.rest.is_empty() {
            let Some(more) = &mut self.more else {
                return Poll::Ready(None);
            };
            let chunk = Pin::new(more).poll_next(context);
            if chunk.is_pending() && self.making.is_none() {
                self.making = Some(self.sending.connection().make());
            }
            let chunk = ready!(chunk);
            self.making = None;
            match chunk {
                Some(Ok(piece)) => {
                    self.rest = piece;
                    self.is_cut = false;
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.to_string().into()))),
                None => self.more = None,
            }
        }
        let piece = self.piece();
        self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && (self.more.is_none() || self.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;
    use crate::clock::Ticks;
    use crate::connection::Connection;

    fn answer(body: Bytes) -> AnswerBody {
        answer_of(body, BodyKind::default())
    }

    fn answer_of(body: Bytes, kind: BodyKind) -> AnswerBody {
        let connection = Connection::new(Rc::new(Ticks::new()));
        AnswerBody::new(body.boxed(), kind, connection.send(), None)
    }

    fn next(answer: &mut AnswerBody) -> Option<Bytes> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(answer).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.unwrap().into_data().unwrap()),
            Poll::Pending => panic!("all of it is there"),
        }
    }

    #[test]
    fn a_small_body_is_passed_on_without_copying() {
        let body = Bytes::from(vec![b'x'; PIECE_BYTES]);
        let mut answer = answer(body.clone());
        assert_eq!(answer.size_hint().exact(), Some(PIECE_BYTES as u64));
        assert!(!answer.is_end_stream());
        let piece = next(&mut answer).unwrap();
        assert_eq!((piece.as_ptr(), piece.len()), (body.as_ptr(), body.len()));
        assert!(answer.is_end_stream());
        assert_eq!(next(&mut answer), None);
    }

    #[test]
    fn pieces_of_a_large_body_do_not_keep_the_whole_alive() {
        let body = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]);
        let mut answer = answer(body.clone());
        let mut lengths = Vec::new();
        while let Some(piece) = next(&mut answer) {
            assert!(!body.as_ptr_range().contains(&piece.as_ptr()), "it is a copy");
            lengths.push(piece.len());
        }
        assert_eq!(lengths, [PIECE_BYTES, PIECE_BYTES, 1]);
        assert_eq!(answer.size_hint().exact(), Some(0));
    }

    #[test]
    fn pieces_of_a_body_that_is_kept_are_not_copied() {
        let body = Bytes::from(vec![b'x'; 2 * PIECE_BYTES + 1]);
        let kind = BodyKind {
            is_kept: true,
            ..BodyKind::default()
        };
        let mut answer = answer_of(body.clone(), kind);
        for at in [0, PIECE_BYTES, 2 * PIECE_BYTES] {
            let piece = next(&mut answer).unwrap();
            assert_eq!(piece.as_ptr(), body[at..].as_ptr());
        }
        assert!(answer.is_end_stream());
    }

    #[test]
    fn an_empty_body_is_at_its_end() {
        assert!(answer(Bytes::new()).is_end_stream());
    }
}
