//! Bodies: size limits, which apply after decompression, and encodings in both directions.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::scene;
use crate::support::client::Answer;
use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

const SINGLE_BYTES_MAX: usize = 102_400;
const BATCH_BYTES_MAX: usize = 10_485_760;
const OTHER_BYTES_MAX: usize = 1_048_576;

pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::encode_all(body, 1).unwrap()
}

/// Pads the body with spaces before its last brace to this size.
pub fn padded(body: &str, bytes: usize) -> Vec<u8> {
    let head = body.strip_suffix('}').unwrap();
    let blanks = " ".repeat(bytes - body.len());
    format!("{head}{blanks}}}").into_bytes()
}

struct Sized {
    method: &'static str,
    path: String,
    body: String,
    bytes_max: usize,
    success: u16,
}

fn sized(bucket: &Bucket, source: &str) -> Vec<Sized> {
    let entry = json!({"dataSourceId": source, "values": {"level": 1}});
    let mut single = entry.clone();
    single["bucketId"] = json!(bucket.id);
    let batch = json!({"bucketId": bucket.id, "dataPoints": [entry]}).to_string();
    let query = json!({"bucketId": bucket.id}).to_string();
    let patch = json!({"description": "d"}).to_string();
    let (one, of_source) = (
        format!("/api/buckets/{}", bucket.id),
        format!("/api/buckets/{}/sources/{source}", bucket.id),
    );
    let all = |method, path: &str, body, bytes_max, success| Sized {
        method,
        path: path.to_owned(),
        body,
        bytes_max,
        success,
    };
    vec![
        all("POST", "/api/data", single.to_string(), SINGLE_BYTES_MAX, 201),
        all("POST", "/api/data/batch", batch, BATCH_BYTES_MAX, 201),
        all("POST", "/api/data/query", query, OTHER_BYTES_MAX, 200),
        all("PATCH", &one, patch.clone(), OTHER_BYTES_MAX, 200),
        all("PATCH", &of_source, patch, OTHER_BYTES_MAX, 200),
        all(
            "PATCH",
            "/api/organization",
            json!({"name": "Tide Lab"}).to_string(),
            OTHER_BYTES_MAX,
            200,
        ),
    ]
}

#[test]
fn the_size_limit_is_exact_in_every_encoding() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    for route in sized(&bucket, &source) {
        let send = |encoding: &str, body: Vec<u8>| {
            let mut request = bucket
                .client
                .request(route.method, &route.path)
                .key(&bucket.admin);
            if !encoding.is_empty() {
                request = request.header("Content-Encoding", encoding);
            }
            request.body(body).send()
        };
        let fits = padded(&route.body, route.bytes_max);
        let too_large = padded(&route.body, route.bytes_max + 1);
        let (max, what) = (route.bytes_max, format!("{} {}", route.method, route.path));
        send("", fits.clone()).expect(
            route.success,
            &format!("contract 1: {max} bytes are taken by {what}"),
        );
        send("", too_large.clone()).refused(
            413,
            &format!("contract 1: more than {max} bytes are 413 at {what}"),
        );
        let counted = "contract 1: sizes are counted after decompression";
        send("gzip", gzip(&fits)).expect(route.success, &format!("{counted} ({what})"));
        send("gzip", gzip(&too_large)).refused(413, &format!("{counted} ({what})"));
        send("zstd", zstd(&fits)).expect(route.success, &format!("{counted} ({what})"));
        send("zstd", zstd(&too_large)).refused(413, &format!("{counted} ({what})"));
    }
}

#[test]
fn gzip_and_zstd_bodies_are_read_and_corrupt_ones_are_400() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = json!({"bucketId": bucket.id, "dataSourceId": source, "values": {"level": 1}}).to_string();
    let send = |encoding: &str, body: Vec<u8>| {
        let request = bucket
            .client
            .post("/api/data")
            .key(&bucket.admin)
            .header("Content-Encoding", encoding);
        request.body(body).send()
    };
    for (encoding, packed) in [("gzip", gzip(body.as_bytes())), ("zstd", zstd(body.as_bytes()))] {
        send(encoding, packed.clone()).expect(201, "contract 1: Content-Encoding gzip and zstd are accepted");
        send(&encoding.to_uppercase(), packed.clone()).expect(201, "HTTP: content codings have no case");
        let corrupt = &format!("contract 1: a corrupt {encoding} body is 400");
        send(encoding, body.clone().into_bytes()).refused(400, corrupt);
        send(encoding, packed[..packed.len() - 9].to_vec()).refused(400, corrupt);
        send(encoding, packed[..3].to_vec()).refused(400, corrupt);
        let mut flipped = packed.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0xff;
        flipped[middle + 1] ^= 0xff;
        // The encoder's zstd frames have no checksum: a flip may only change the text, which is invalid then, too.
        let answer = send(encoding, flipped);
        assert!(matches!(answer.status, 400 | 404), "{corrupt}: {answer}");
    }
    for encoding in ["br", "deflate", "compress", "gzip, br", "x"] {
        send(encoding, body.clone().into_bytes()).refused(415, "contract 1: another Content-Encoding is 415");
    }
    assert_eq!(bucket.rows(&json!({})).len(), 4, "only whole bodies are stored");
}

#[test]
fn answers_are_compressed_when_the_client_allows_it() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let now = now_ns();
    let points: Vec<_> = (0..500)
        .map(|nth| point(&source, now + nth * SECOND, &json!({"level": nth as f64 / 10.0})))
        .collect();
    bucket.send(&points);
    let body = json!({"bucketId": bucket.id, "limit": 500, "downsampling": false});
    let get = |accepted: Option<&str>| {
        let mut request = bucket
            .client
            .post("/api/data/query")
            .key(&bucket.admin)
            .json(&body);
        if let Some(accepted) = accepted {
            request = request.header("Accept-Encoding", accepted);
        }
        let answer = request.send();
        assert_eq!(answer.status, 200, "a query: {answer}");
        answer
    };
    let plain = get(None);
    assert!(
        plain.header("content-encoding").is_none(),
        "not compressed for a client that did not ask"
    );
    let unpack = |answer: &Answer| match answer.header("content-encoding") {
        Some("gzip") => {
            let mut text = Vec::new();
            GzDecoder::new(answer.body.as_slice())
                .read_to_end(&mut text)
                .unwrap();
            text
        }
        Some("zstd") => zstd::decode_all(answer.body.as_slice()).unwrap(),
        other => panic!("contract 1: answers are compressed when Accept-Encoding allows it, not {other:?}"),
    };
    for accepted in ["gzip", "zstd", "zstd, gzip;q=0.5", "deflate, gzip"] {
        let answer = get(Some(accepted));
        assert_eq!(
            unpack(&answer),
            plain.body,
            "compressed for `{accepted}`, the answer is the same"
        );
        assert!(
            answer.body.len() * 2 < plain.body.len(),
            "compressed for `{accepted}`, the answer is smaller"
        );
    }
    for accepted in ["identity", "gzip;q=0", ""] {
        let answer = get(Some(accepted));
        assert_eq!(
            answer.body, plain.body,
            "`{accepted}` does not allow a compressed answer"
        );
    }
}
