//! Reads request bodies, after authentication, up to a limit on the decompressed bytes.
//!
//! Never trusts a stated length, never holds more than the limit or than `body_budget` allows, and never lets a small
//! compressed body grow beyond that. `Content-Type` is ignored: a body either is the JSON that the route takes, or is
//! not.

use std::future::poll_fn;
use std::io::Read;
use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::Version;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use actix_web::rt::time::{Sleep, sleep};
use actix_web::web::{Bytes, BytesMut, Data, Payload, block};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;

use super::inside;
use super::respond::Coding;
use super::server::body_budget::{BodyBudget, FREE_BYTES, Share};
use crate::error::{ErrorKind, ServiceError};

/// Compressed bodies above this are decompressed off the worker thread.
const INLINE_DECODE_BYTES_MAX: usize = 16 * 1_024;
/// Buffer size that a stated length alone can reserve before the body arrives.
const BUFFER_BYTES: usize = 128 * 1_024;
/// How long an unfinished body keeps others from beginning. Otherwise a thousand clients that announce large bodies and
/// send little would lock out everyone.
const PROGRESS_PATIENCE: Duration = Duration::from_millis(250);
/// Refused bodies up to this length are still read to their end.
const DRAIN_BYTES_MAX: usize = 1 << 20;
/// Typical compression ratio of a batch, used to estimate its decompressed size before it has arrived.
const USUAL_RATIO: usize = 8;
/// Incompressible data grows a little when compressed (frame headers, 5 bytes a 16 KiB block).
const ENCODING_OVERHEAD_BYTES: usize = 4_096;
/// Log2 of the largest zstd window: 8 MiB, the most that RFC 9659 lets an HTTP sender use.
pub(super) const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Decompressed bytes between two checks of the limit and the budget.
const DECODE_STEP_BYTES: usize = 64 * 1_024;

/// A body and its share of the memory budget.
#[derive(Debug)]
pub struct Body {
    bytes: Bytes,
    _share: Share,
}

impl Body {
    /// The bytes, shared.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl Body {
    /// Reserves memory of the same budget for what is made of the body.
    ///
    /// # Errors
    /// 503 if there is no memory for it.
    pub fn hold_more(&self, request: &HttpRequest, bytes: usize) -> Result<Share, ServiceError> {
        Share::begin(budget_of(request)?, bytes)
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads and decompresses the body, at most `body_bytes_max` bytes. `admitted`: whether the request is refused already.
///
/// # Errors
/// 415 for an unknown encoding, 413 beyond the limit, 400 for a corrupt or truncated body, 503 when the bodies of other
/// requests use all the memory for bodies.
pub async fn read(
    admitted: Result<(), ServiceError>,
    request: &HttpRequest,
    mut payload: Payload,
    body_bytes_max: usize,
) -> Result<Body, ServiceError> {
    let stated = stated_of(request);
    let read = match admitted {
        Ok(()) => read_stated(request, &mut payload, stated, body_bytes_max).await,
        Err(refused) => Err(refused),
    };
    if let Err(error) = &read
        && error.kind == ErrorKind::Unavailable
        && stated.is_some_and(|stated| stated <= DRAIN_BYTES_MAX)
    {
        // The client will retry and would otherwise need a new connection, which costs both sides more than reading
        // these bytes.
        while let Some(Ok(_)) = payload.next().await {}
    }
    read
}

async fn read_stated(
    request: &HttpRequest,
    payload: &mut Payload,
    stated: Option<usize>,
    body_bytes_max: usize,
) -> Result<Body, ServiceError> {
    let budget = budget_of(request)?;
    let coding = coding_of(request)?;
    let stated = stated.unwrap_or(0);
    if inside::is_too_large(request) {
        return Err(ServiceError::payload_too_large(body_bytes_max));
    }
    let (sent_bytes_max, expected_bytes) = match coding {
        Coding::Identity => (body_bytes_max, stated),
        Coding::Gzip | Coding::Zstd => (
            body_bytes_max + body_bytes_max / 64 + ENCODING_OVERHEAD_BYTES,
            stated.saturating_mul(USUAL_RATIO),
        ),
    };
    let too_large = || ServiceError::payload_too_large(body_bytes_max);
    if stated > sent_bytes_max {
        return Err(too_large());
    }
    let mut share = Share::begin(budget, expected_bytes)?;
    let sent = collect(payload, stated, sent_bytes_max, &mut share)
        .await?
        .ok_or_else(too_large)?;
    if coding == Coding::Identity {
        return Ok(Body {
            bytes: sent,
            _share: share,
        });
    }
    let inline = sent.len() <= INLINE_DECODE_BYTES_MAX;
    let turn = if inline { None } else { budget.decoder().await };
    let work = move || {
        let _turn = turn;
        Ok((decode(coding, &sent, body_bytes_max, &mut share)?, share))
    };
    let decoded: Result<_, ServiceError> = if inline {
        work()
    } else {
        block(work)
            .await
            .map_err(|_| ServiceError::internal("the decompression was interrupted"))?
    };
    let (decoded, share) = decoded?;
    Ok(Body {
        bytes: decoded.ok_or_else(too_large)?.into(),
        _share: share,
    })
}

/// Reads the body as it was sent, at most `bytes_max` bytes and what compression may add to them.
///
/// # Errors
/// 413 for a longer body, 503 if there is no memory for it, 400 if it breaks off.
pub async fn read_sent(
    request: &HttpRequest,
    mut payload: Payload,
    bytes_max: usize,
) -> Result<Body, ServiceError> {
    let budget = budget_of(request)?;
    let stated = stated_of(request).unwrap_or(0);
    let sent_bytes_max = bytes_max + bytes_max / 64 + ENCODING_OVERHEAD_BYTES;
    let too_large = || ServiceError::payload_too_large(bytes_max);
    if stated > sent_bytes_max {
        return Err(too_large());
    }
    let mut share = Share::begin(budget, stated)?;
    let bytes = collect(&mut payload, stated, sent_bytes_max, &mut share).await?;
    Ok(Body {
        bytes: bytes.ok_or_else(too_large)?,
        _share: share,
    })
}

/// A small body that was read as it was sent, decompressed.
///
/// # Errors
/// 413 for a longer body, 415 for a coding that is not known, 400 for a corrupt one, 503 if there is no memory for it.
pub fn decoded(request: &HttpRequest, sent: &Body, bytes_max: usize) -> Result<Vec<u8>, ServiceError> {
    let mut share = Share::begin(budget_of(request)?, sent.len())?;
    let decoded = decode(coding_of(request)?, sent, bytes_max, &mut share)?;
    decoded.ok_or_else(|| ServiceError::payload_too_large(bytes_max))
}

pub(super) fn budget_of(request: &HttpRequest) -> Result<&Data<BodyBudget>, ServiceError> {
    request
        .app_data::<Data<BodyBudget>>()
        .ok_or_else(|| ServiceError::internal("BUG: no budget for bodies"))
}

/// Whether the body may be larger than what costs nothing to hold.
pub fn may_be_large(request: &HttpRequest) -> bool {
    match stated_of(request) {
        Some(stated) => stated > FREE_BYTES,
        // Without a length there may be a body of any (RFC 9112, 6.3; RFC 9113, 8.1).
        None => request.version() >= Version::HTTP_2 || request.headers().contains_key(TRANSFER_ENCODING),
    }
}

/// The stated length of the body.
fn stated_of(request: &HttpRequest) -> Option<usize> {
    let stated = request.headers().get(CONTENT_LENGTH)?;
    stated.to_str().ok()?.parse().ok()
}

/// Makes the 400 for a body that is not JSON.
pub fn malformed_json(fault: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::validation(format!("the body is not valid JSON: {fault}"))
}

pub(super) fn coding_of(request: &HttpRequest) -> Result<Coding, ServiceError> {
    let mut stated = request.headers().get_all(CONTENT_ENCODING);
    let encoding = match (stated.next(), stated.next()) {
        (None, _) => return Ok(Coding::Identity),
        (Some(one), None) => one.to_str().unwrap_or("?").trim().to_ascii_lowercase(),
        (Some(_), Some(_)) => String::from("more than one"),
    };
    match encoding.as_str() {
        "" | "identity" => Ok(Coding::Identity),
        "gzip" | "x-gzip" => Ok(Coding::Gzip),
        "zstd" => Ok(Coding::Zstd),
        _ => Err(ServiceError::new(
            ErrorKind::UnsupportedMediaType,
            format!("content-encoding {encoding:?} is not understood; send gzip, zstd or plain JSON"),
        )),
    }
}

/// Reads the bytes as sent; `None` when there are more than `bytes_max`.
async fn collect(
    payload: &mut Payload,
    stated: usize,
    bytes_max: usize,
    share: &mut Share,
) -> Result<Option<Bytes>, ServiceError> {
    let mut whole = BytesMut::new();
    let mut patience: Option<Pin<Box<Sleep>>> = None;
    loop {
        let next = poll_fn(|context| {
            let next = payload.poll_next_unpin(context);
            // The timer is made by the first wait: most bodies need none.
            if next.is_pending() {
                let patience = patience.get_or_insert_with(|| Box::pin(sleep(PROGRESS_PATIENCE)));
                if !patience.is_elapsed() && patience.as_mut().poll(context).is_ready() {
                    share.leave_progress();
                }
            }
            next
        });
        let Some(chunk) = next.await else { break };
        let chunk = chunk
            .map_err(|cause| ServiceError::validation("the body broke off").caused_by(cause.to_string()))?;
        if whole.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        share.grow_to(whole.len() + chunk.len())?;
        if whole.is_empty() {
            if chunk.len() == stated {
                // A small body usually arrives in one piece, which is not copied.
                return Ok(Some(chunk));
            }
            whole.reserve(stated.clamp(chunk.len(), BUFFER_BYTES.max(chunk.len())));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Some(whole.freeze()))
}

/// Decompresses the bytes; `None` when there are more than `bytes_max`.
fn decode(
    coding: Coding,
    sent: &[u8],
    bytes_max: usize,
    share: &mut Share,
) -> Result<Option<Vec<u8>>, ServiceError> {
    let mut decoder: Box<dyn Read + '_> = match coding {
        Coding::Identity => Box::new(sent),
        Coding::Gzip => Box::new(MultiGzDecoder::new(sent)),
        Coding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(sent).map_err(undecodable)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(undecodable)?;
            Box::new(decoder)
        }
    };
    let mut decoded = Vec::new();
    loop {
        let step = (bytes_max + 1 - decoded.len()).min(DECODE_STEP_BYTES);
        let read = decoder
            .by_ref()
            .take(step as u64)
            .read_to_end(&mut decoded)
            .map_err(undecodable)?;
        if decoded.len() > bytes_max {
            return Ok(None);
        }
        if read < step {
            return Ok(Some(decoded));
        }
        share.grow_to(sent.len() + decoded.capacity())?;
    }
}

pub(super) fn undecodable(cause: std::io::Error) -> ServiceError {
    // The library distinguishes its errors only by their text.
    let message = if cause.to_string().contains("too much memory") {
        format!(
            "the zstd window is larger than 8 MiB; compress with a window log of {ZSTD_WINDOW_LOG_MAX} at most"
        )
    } else {
        "the compressed body is corrupt or broken off".to_owned()
    };
    ServiceError::validation(message).caused_by(cause)
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

    fn decode(coding: Coding, sent: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, ServiceError> {
        let budget = Data::new(BodyBudget::new(usize::MAX / 2, 1));
        super::decode(coding, sent, bytes_max, &mut Share::begin(&budget, 0)?)
    }

    fn read(
        budget: &Data<BodyBudget>,
        encoding: Option<&'static str>,
        sent: Vec<u8>,
    ) -> Result<Body, ServiceError> {
        use actix_web::FromRequest;

        let request = actix_web::test::TestRequest::post()
            .app_data(budget.clone())
            .set_payload(sent);
        let request = match encoding {
            Some(encoding) => request.insert_header((CONTENT_ENCODING, encoding)),
            None => request,
        };
        actix_web::rt::System::new().block_on(async move {
            let (request, mut payload) = request.to_http_parts();
            let payload = Payload::from_request(&request, &mut payload).await.unwrap();
            super::read(Ok(()), &request, payload, 8 << 20).await
        })
    }

    #[test]
    fn bodies_beyond_the_shared_memory_are_refused() {
        let budget = Data::new(BodyBudget::new(1 << 20, 1));
        let plain = vec![b'x'; 700_000];
        let first = read(&budget, None, plain.clone()).unwrap();
        assert_eq!(*first, plain);
        // The one that may go beyond.
        let second = read(&budget, None, plain.clone()).unwrap();
        for (encoding, sent) in [
            (None, plain.clone()),
            (Some("gzip"), gzip(&plain)),
            (Some("zstd"), zstd(&plain)),
        ] {
            let refused = read(&budget, encoding, sent).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Unavailable, "{encoding:?}");
            assert!(refused.retry_after_seconds.is_some());
        }
        drop(second);
        let small = vec![b'x'; 60_000];
        assert_eq!(*read(&budget, Some("gzip"), gzip(&small)).unwrap(), small);
        drop(first);
        assert_eq!(*read(&budget, Some("zstd"), zstd(&plain)).unwrap(), plain);
    }

    #[test]
    fn a_window_above_the_limit_is_named() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(ZSTD_WINDOW_LOG_MAX + 1).unwrap();
        encoder.write_all(&vec![b'x'; 20 << 20]).unwrap();
        let refused = decode(Coding::Zstd, &encoder.finish().unwrap(), 64 << 20).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Validation);
        assert!(refused.message.contains("window"), "{}", refused.message);
    }

    #[test]
    fn a_body_of_exactly_the_limit_passes_and_one_byte_more_is_refused() {
        for (coding, encode) in [(Coding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Coding::Zstd, zstd)] {
            let plain = vec![b'x'; 1_000];
            assert_eq!(decode(coding, &encode(&plain), 1_000).unwrap().unwrap(), plain);
            assert!(decode(coding, &encode(&plain), 999).unwrap().is_none());
        }
    }

    #[test]
    fn decompression_stops_at_the_limit() {
        for (coding, bomb) in [
            (Coding::Gzip, gzip(&vec![0; 64 << 20])),
            (Coding::Zstd, zstd(&vec![0; 64 << 20])),
        ] {
            assert!(decode(coding, &bomb, 1 << 20).unwrap().is_none());
        }
    }

    #[test]
    fn corrupt_and_truncated_bodies_are_refused() {
        for (coding, encode) in [(Coding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Coding::Zstd, zstd)] {
            let whole = encode(br#"{"name":"a long enough text to be compressed, compressed"}"#);
            for length in 0..whole.len() {
                let cut = decode(coding, &whole[..length], 1_000);
                // No bytes at all are an empty body; what is wrong with it is the JSON parser's to say.
                assert!(cut.is_err() || length == 0, "cut at {length}");
            }
            assert!(decode(coding, b"{\"name\":\"plain\"}", 1_000).is_err());
            let mut trailing = whole.clone();
            trailing.extend_from_slice(b"garbage");
            assert!(decode(coding, &trailing, 1_000).is_err());
        }
    }
}
