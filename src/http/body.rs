//! Reading request bodies: after authentication, up to a limit that counts the decompressed bytes.
//!
//! Never trusts a stated length, never holds more than the limit, never lets a small compressed body
//! grow beyond it. `Content-Type` is not asked: a body either is the JSON the route takes, or not.

use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::web::{Bytes, BytesMut, Payload, block};
use flate2::read::MultiGzDecoder;
use futures_core::Stream;
use serde_json::Value;

use crate::error::{ErrorKind, ServiceError};
use crate::limits::BODY_BYTES_MAX;

/// Compressed bodies above this are decompressed off the worker thread.
const INLINE_DECODE_BYTES_MAX: usize = 16 * 1_024;
/// What a body grows to before its stated length is believed.
const FIRST_ALLOCATION_BYTES_MAX: usize = 64 * 1_024;
/// Incompressible data grows a little when compressed (frame headers, 5 bytes a 16 KiB block).
const ENCODING_OVERHEAD_BYTES: usize = 4_096;
/// Log2 of the largest zstd window: 8 MiB, the most that RFC 9659 lets an HTTP sender use.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// The body as sent and decompressed, at most `body_bytes_max` bytes.
///
/// # Errors
/// 415 for an unknown encoding, 413 beyond the limit, 400 for a corrupt or broken-off body.
pub async fn read(
    request: &HttpRequest,
    payload: Payload,
    body_bytes_max: usize,
) -> Result<Bytes, ServiceError> {
    let encoding = encoding_of(request)?;
    let sent_bytes_max = match encoding {
        Encoding::Identity => body_bytes_max,
        Encoding::Gzip | Encoding::Zstd => body_bytes_max + body_bytes_max / 64 + ENCODING_OVERHEAD_BYTES,
    };
    let stated = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let too_large = || ServiceError::payload_too_large(body_bytes_max);
    if stated.is_some_and(|stated| stated > sent_bytes_max) {
        return Err(too_large());
    }
    let sent = collect(payload, stated.unwrap_or(0), sent_bytes_max)
        .await?
        .ok_or_else(too_large)?;
    let decoded = match encoding {
        Encoding::Identity => return Ok(sent),
        Encoding::Gzip | Encoding::Zstd if sent.len() <= INLINE_DECODE_BYTES_MAX => {
            decode(encoding, &sent, body_bytes_max)
        }
        Encoding::Gzip | Encoding::Zstd => block(move || decode(encoding, &sent, body_bytes_max))
            .await
            .map_err(|_| ServiceError::internal("the decompression was interrupted"))?,
    };
    decoded?.map(Bytes::from).ok_or_else(too_large)
}

/// The body as JSON, for the routes whose bodies are small. Nesting is limited by the parser (128).
///
/// # Errors
/// As [`read`]; 400 when it is not JSON.
pub async fn read_json(request: &HttpRequest, payload: Payload) -> Result<Value, ServiceError> {
    let body = read(request, payload, BODY_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|fault| malformed_json(&fault))
}

/// 400 for a body that is not JSON.
pub fn malformed_json(fault: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::validation(format!("the body is not valid JSON: {fault}"))
}

fn encoding_of(request: &HttpRequest) -> Result<Encoding, ServiceError> {
    let mut stated = request.headers().get_all(CONTENT_ENCODING);
    let encoding = match (stated.next(), stated.next()) {
        (None, _) => return Ok(Encoding::Identity),
        (Some(one), None) => one.to_str().unwrap_or("?").trim().to_ascii_lowercase(),
        (Some(_), Some(_)) => String::from("more than one"),
    };
    match encoding.as_str() {
        "" | "identity" => Ok(Encoding::Identity),
        "gzip" | "x-gzip" => Ok(Encoding::Gzip),
        "zstd" => Ok(Encoding::Zstd),
        _ => Err(ServiceError::new(
            ErrorKind::UnsupportedMediaType,
            format!("content-encoding {encoding:?} is not understood; send gzip, zstd or plain JSON"),
        )),
    }
}

/// The bytes as sent; `None` when there are more than `bytes_max`.
async fn collect(
    mut payload: Payload,
    stated: usize,
    bytes_max: usize,
) -> Result<Option<Bytes>, ServiceError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = poll_fn(|context| Pin::new(&mut payload).poll_next(context)).await {
        let chunk = chunk
            .map_err(|cause| ServiceError::validation("the body broke off").caused_by(cause.to_string()))?;
        if whole.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        if whole.is_empty() {
            if chunk.len() == stated {
                // The usual small body arrives in one piece: it is not copied.
                return Ok(Some(chunk));
            }
            whole.reserve(stated.clamp(chunk.len(), FIRST_ALLOCATION_BYTES_MAX.max(chunk.len())));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Some(whole.freeze()))
}

/// The decompressed bytes; `None` when there are more than `bytes_max`.
fn decode(encoding: Encoding, sent: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, ServiceError> {
    let corrupt = |cause: std::io::Error| {
        ServiceError::validation("the compressed body is corrupt or broken off").caused_by(cause)
    };
    let mut decoded = Vec::new();
    let limit = bytes_max as u64 + 1;
    match encoding {
        Encoding::Identity => decoded.extend_from_slice(sent),
        Encoding::Gzip => {
            MultiGzDecoder::new(sent)
                .take(limit)
                .read_to_end(&mut decoded)
                .map_err(corrupt)?;
        }
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(sent).map_err(corrupt)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(corrupt)?;
            decoder.take(limit).read_to_end(&mut decoded).map_err(corrupt)?;
        }
    }
    Ok((decoded.len() <= bytes_max).then_some(decoded))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(plain: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(plain, 3).unwrap()
    }

    #[test]
    fn exactly_the_limit_passes_and_one_more_does_not() {
        for (encoding, encode) in [
            (Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>),
            (Encoding::Zstd, zstd),
        ] {
            let plain = vec![b'x'; 1_000];
            assert_eq!(decode(encoding, &encode(&plain), 1_000).unwrap().unwrap(), plain);
            assert!(decode(encoding, &encode(&plain), 999).unwrap().is_none());
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        for (encoding, bomb) in [
            (Encoding::Gzip, gzip(&vec![0; 64 << 20])),
            (Encoding::Zstd, zstd(&vec![0; 64 << 20])),
        ] {
            assert!(decode(encoding, &bomb, 1 << 20).unwrap().is_none());
        }
    }

    #[test]
    fn corrupt_and_cut_bodies_are_refused() {
        for (encoding, encode) in [
            (Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>),
            (Encoding::Zstd, zstd),
        ] {
            let whole = encode(br#"{"name":"a long enough text to be compressed, compressed"}"#);
            for length in 0..whole.len() {
                let cut = decode(encoding, &whole[..length], 1_000);
                // No bytes at all are an empty body; what is wrong with it is the JSON parser's to say.
                assert!(cut.is_err() || length == 0, "cut at {length}");
            }
            assert!(decode(encoding, b"{\"name\":\"plain\"}", 1_000).is_err());
            let mut trailing = whole.clone();
            trailing.extend_from_slice(b"garbage");
            assert!(decode(encoding, &trailing, 1_000).is_err());
        }
    }
}
