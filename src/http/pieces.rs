//! Streams an answer in pieces, each made when the client has taken the one before. A slow client costs the memory of a
//! piece, not of the whole answer.

use std::io::{self, Write};
use std::sync::Arc;

use actix_web::body::BodyStream;
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use super::respond::{Coding, ZSTD_LEVEL};
use crate::error::ServiceError;
use crate::service::query::{Piece, PieceSource};

/// Encodes pieces as one body. Each piece is flushed, so that the client can read it at once.
pub enum Encoder {
    /// Not compressed.
    Identity,
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// Makes an encoder for a new body.
    ///
    /// # Errors
    /// 500 when the library cannot allocate memory.
    pub fn new(coding: Coding) -> Result<Self, ServiceError> {
        Ok(match coding {
            Coding::Identity => Encoder::Identity,
            Coding::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Coding::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL);
                Encoder::Zstd(encoder.map_err(ServiceError::internal)?)
            }
        })
    }

    /// Encodes a piece; `more` says whether another one follows.
    ///
    /// # Errors
    /// Writing to memory does not fail, but the encoders return a `Result`.
    pub fn encode(&mut self, piece: Vec<u8>, more: bool) -> Result<Bytes, ServiceError> {
        self.encoded(piece, more).map_err(ServiceError::internal)
    }

    fn encoded(&mut self, piece: Vec<u8>, more: bool) -> io::Result<Bytes> {
        let bytes = match self {
            Encoder::Identity => piece,
            Encoder::Gzip(encoder) => {
                encoder.write_all(&piece)?;
                match more {
                    true => encoder.flush()?,
                    false => encoder.try_finish()?,
                }
                std::mem::take(encoder.get_mut())
            }
            Encoder::Zstd(encoder) => {
                encoder.write_all(&piece)?;
                match more {
                    true => encoder.flush()?,
                    false => drop(encoder.do_finish()?),
                }
                std::mem::take(encoder.get_mut())
            }
        };
        Ok(bytes.into())
    }
}

/// Responds with a piece that is ready, followed by the rest: each piece is begun only when the client has taken the one
/// before.
pub fn respond_in_pieces(
    mut head: HttpResponseBuilder,
    first: Bytes,
    encoder: Encoder,
    rest: impl PieceSource,
) -> HttpResponse {
    let encoder = Arc::new(Mutex::new(encoder));
    let others = stream::try_unfold(Some(rest), move |rest| {
        let encoder = Arc::clone(&encoder);
        async move {
            let Some(rest) = rest else { return Ok(None) };
            let made = rest.next(move |piece, more| encoder.lock().encode(piece, more));
            // The head is already sent. The client detects the truncated answer by its missing end.
            let Piece { content, rest } = made.await.inspect_err(|error| {
                let cause = error.cause().map(ToString::to_string);
                tracing::error!(
                    cause,
                    "an answer was truncated after its head was sent: {}",
                    error.message
                );
            })?;
            Ok::<_, ServiceError>(Some((content, rest)))
        }
    });
    let pieces = stream::iter([Ok(first)]).chain(others);
    head.body(BodyStream::new(pieces))
}
