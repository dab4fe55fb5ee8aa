//! Writes answers as JSON, compressed if the client accepts it and it saves something.

use std::io::Write;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY,
};
use actix_web::web::{Bytes, block};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::error::ServiceError;

/// Compressing smaller answers saves no network packet.
const COMPRESS_BYTES_MIN: usize = 1_024;
/// Compressing larger answers takes about a millisecond and is done off the worker thread.
const INLINE_COMPRESS_BYTES_MAX: usize = 64 * 1_024;
/// Level 1 needs little memory and has most of the gain of higher levels.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// The content coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Not compressed.
    Identity,
    /// Supported by every client.
    Gzip,
    /// Faster and smaller than gzip, for clients that name it.
    Zstd,
}

/// A complete body in its coding. Cheap to clone.
#[derive(Clone)]
pub struct Encoded {
    pub(super) coding: Coding,
    pub(super) bytes: Bytes,
}

/// Chooses the coding that the client prefers; zstd before gzip if it prefers both equally.
pub fn coding_of(request: &HttpRequest) -> Coding {
    let accepted = request
        .headers()
        .get(ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    accepted.map_or(Coding::Identity, negotiate)
}

/// Compresses a complete body. This uses CPU time, so large bodies belong off the worker threads.
///
/// # Errors
/// Writing to memory does not fail, but the encoders return a `Result`.
pub fn encode(coding: Coding, body: impl Into<Bytes>) -> Result<Encoded, ServiceError> {
    let body = body.into();
    let coding = if body.len() < COMPRESS_BYTES_MIN {
        Coding::Identity
    } else {
        coding
    };
    let bytes = match coding {
        Coding::Identity => body,
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
            encoder.write_all(&body).map_err(ServiceError::internal)?;
            encoder.finish().map_err(ServiceError::internal)?.into()
        }
        Coding::Zstd => zstd::bulk::compress(&body, ZSTD_LEVEL)
            .map_err(ServiceError::internal)?
            .into(),
    };
    Ok(Encoded { coding, bytes })
}

/// Serializes a value as JSON and compresses it.
pub fn encode_json(coding: Coding, value: &impl Serialize) -> Result<Encoded, ServiceError> {
    encode(coding, serde_json::to_vec(value).map_err(ServiceError::internal)?)
}

/// Responds with a body that is already encoded.
pub fn respond_encoded(status: StatusCode, body: Encoded) -> HttpResponse {
    head(status, body.coding).body(body.bytes)
}

/// Starts a JSON response in this coding.
pub fn head(status: StatusCode, coding: Coding) -> HttpResponseBuilder {
    // Constants: a value is checked byte by byte when it is made.
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
    const BY_ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
    let mut builder = HttpResponse::build(status);
    builder
        .insert_header((CONTENT_TYPE, JSON))
        .insert_header((CACHE_CONTROL, NO_STORE))
        .insert_header((VARY, BY_ACCEPT_ENCODING));
    let coding = match coding {
        Coding::Identity => return builder,
        Coding::Gzip => HeaderValue::from_static("gzip"),
        Coding::Zstd => HeaderValue::from_static("zstd"),
    };
    builder.insert_header((CONTENT_ENCODING, coding));
    builder
}

/// Responds with a complete JSON body, compressed as the client prefers.
///
/// # Errors
/// 500 when the compression is interrupted.
pub async fn respond(
    request: &HttpRequest,
    status: StatusCode,
    body: Vec<u8>,
) -> Result<HttpResponse, ServiceError> {
    let coding = coding_of(request);
    let encoded = if coding == Coding::Identity || body.len() <= INLINE_COMPRESS_BYTES_MAX {
        encode(coding, body)
    } else {
        block(move || encode(coding, body))
            .await
            .map_err(|_| ServiceError::internal("the compression was interrupted"))?
    };
    Ok(respond_encoded(status, encoded?))
}

/// Responds with this value as JSON.
pub async fn json(
    request: &HttpRequest,
    status: StatusCode,
    value: &impl Serialize,
) -> Result<HttpResponse, ServiceError> {
    let body = serde_json::to_vec(value).map_err(ServiceError::internal)?;
    respond(request, status, body).await
}

fn negotiate(accepted: &str) -> Coding {
    let (mut gzip, mut zstd, mut any) = (None, None, None);
    for entry in accepted.split(',') {
        let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let quality: f32 = parameters
            .trim()
            .strip_prefix("q=")
            .map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
        match name.trim().to_ascii_lowercase().as_str() {
            "zstd" => zstd = Some(quality),
            "gzip" | "x-gzip" => gzip = Some(quality),
            "*" => any = Some(quality),
            _ => {}
        }
    }
    // A coding that the client names has the weight it gives; `*` is for all others. zstd is used only when it is
    // named.
    let (gzip, zstd) = (gzip.or(any).unwrap_or(0.0), zstd.unwrap_or(0.0));
    if zstd > 0.0 && zstd >= gzip {
        Coding::Zstd
    } else if gzip > 0.0 {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses_the_content_coding() {
        for (accepted, coding) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("br", Coding::Identity),
            ("gzip", Coding::Gzip),
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("zstd;q=0.5, gzip;q=0.8", Coding::Gzip),
            ("gzip;q=0, zstd;q=0", Coding::Identity),
            ("*", Coding::Gzip),
            ("gzip;q=0, *", Coding::Identity),
            ("*, gzip;q=0", Coding::Identity),
            ("gzip;q=0, *;q=0.5, zstd;q=0.1", Coding::Zstd),
            ("zstd;q=0.5, *", Coding::Gzip),
            ("*;q=0", Coding::Identity),
            ("*;q=0, gzip", Coding::Gzip),
            ("GZIP ; q=1.0", Coding::Gzip),
            ("gzip;q=nonsense", Coding::Identity),
        ] {
            assert_eq!(negotiate(accepted), coding, "{accepted:?}");
        }
    }

    #[test]
    fn small_bodies_are_sent_unchanged_and_large_ones_round_trip() {
        let small = encode(Coding::Gzip, vec![b'a'; COMPRESS_BYTES_MIN - 1]).unwrap();
        assert_eq!(small.coding, Coding::Identity);
        let plain = vec![b'a'; 100_000];
        let encoded = encode(Coding::Zstd, plain.clone()).unwrap();
        assert!(encoded.bytes.len() < 1_000);
        assert_eq!(zstd::stream::decode_all(&encoded.bytes[..]).unwrap(), plain);
    }
}
