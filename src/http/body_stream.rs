//! A request body that is read piece by piece, decompressed, and as long as the client sends: memory is that of a piece.
//!
//! Each step of decompression gives at most the buffer of its library (32 KiB for gzip, 128 KiB for zstd), whatever was
//! sent.

use std::io::{self, Write};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::rt::time::timeout;
use actix_web::web::{Bytes, Payload};
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt;
use zstd::stream::raw::{DParameter, Decoder};
use zstd::stream::zio;

use super::body::{self, ZSTD_WINDOW_LOG_MAX};
use super::respond::Coding;
use super::server::body_budget::Share;
use crate::error::ServiceError;

/// How long a client may take until it sends more.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// A body that is being read.
pub struct BodyStream {
    payload: Payload,
    decoder: Option<Decompression>,
    /// What has arrived and was not given out.
    piece: Bytes,
    has_ended: bool,
    _share: Share,
}

/// Decompresses into a buffer.
enum Decompression {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd(Box<zio::Writer<Vec<u8>, Decoder<'static>>>),
}

impl BodyStream {
    /// Begins to read. `memory_bytes`: what is made of the body, at any time.
    ///
    /// # Errors
    /// 415 for a coding that is not known, 503 if there is no memory for it.
    pub fn begin(request: &HttpRequest, payload: Payload, memory_bytes: usize) -> Result<Self, ServiceError> {
        let decoder = match body::coding_of(request)? {
            Coding::Identity => None,
            Coding::Gzip => Some(Decompression::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            Coding::Zstd => {
                let mut decoder = Decoder::new().map_err(body::undecodable)?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))
                    .map_err(body::undecodable)?;
                Some(Decompression::Zstd(Box::new(zio::Writer::new(
                    Vec::new(),
                    decoder,
                ))))
            }
        };
        let mut share = Share::begin(body::budget_of(request)?, 0)?;
        share.grow_to(memory_bytes)?;
        Ok(BodyStream {
            payload,
            decoder,
            piece: Bytes::new(),
            has_ended: false,
            _share: share,
        })
    }

    /// Reads the rest and drops it.
    pub async fn skip(mut self) {
        while let Ok(Some(Ok(_))) = timeout(IDLE_MAX, self.payload.next()).await {}
    }

    /// The bytes that follow; `None` at the end.
    ///
    /// # Errors
    /// 400 if the body breaks off, is not compressed as it says, or nothing arrives for a minute.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ServiceError> {
        loop {
            if self.piece.is_empty() && !self.has_ended {
                match timeout(IDLE_MAX, self.payload.next()).await {
                    Ok(Some(piece)) => {
                        let broken = |cause: actix_web::error::PayloadError| {
                            ServiceError::validation("the body broke off").caused_by(cause.to_string())
                        };
                        self.piece = piece.map_err(broken)?;
                    }
                    Ok(None) => self.has_ended = true,
                    Err(_) => {
                        let message =
                            format!("nothing of the body arrived for {} seconds", IDLE_MAX.as_secs());
                        return Err(ServiceError::validation(message));
                    }
                }
            }
            let Some(decoder) = &mut self.decoder else {
                let piece = std::mem::take(&mut self.piece);
                return Ok((!piece.is_empty() || !self.has_ended).then_some(piece));
            };
            let out = if self.has_ended {
                let out = decoder.finish().map_err(body::undecodable)?;
                if out.is_empty() {
                    return Ok(None);
                }
                out
            } else {
                let read = decoder.write(&self.piece).map_err(body::undecodable)?;
                if read == 0 {
                    return Err(body::undecodable(io::ErrorKind::InvalidData.into()));
                }
                drop(self.piece.split_to(read));
                decoder.take()
            };
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }
        }
    }
}

impl Decompression {
    /// Decompresses a part of the bytes. Returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Decompression::Gzip(decoder) => decoder.write(bytes),
            Decompression::Zstd(decoder) => decoder.write(bytes),
        }
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Decompression::Gzip(decoder) => decoder.get_mut(),
            Decompression::Zstd(decoder) => decoder.writer_mut(),
        })
    }

    /// Decompresses what is left, and checks that the end has arrived.
    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Decompression::Gzip(decoder) => decoder.try_finish()?,
            Decompression::Zstd(decoder) => decoder.finish()?,
        }
        Ok(self.take())
    }
}
