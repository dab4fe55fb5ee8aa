//! A client that takes an export piece by piece.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::given::{Bucket, point};
use crate::support::time::{SECOND, now_ns};

const WITHIN: Duration = Duration::from_secs(60);

/// Bytes of the metadata of a wide point.
pub const WIDE_BYTES: usize = 4_000;

/// Sends points of about [`WIDE_BYTES`] each, a second apart; returns the first timestamp.
pub fn send_wide_points(bucket: &Bucket, source: &str, count: i64) -> i64 {
    let first_ns = now_ns() - (count + 10_000) * SECOND;
    let mut random = fastrand::Rng::with_seed(7);
    for start in (0..count).step_by(500) {
        let points: Vec<Value> = (start..count.min(start + 500))
            .map(|nth| {
                let mut point = point(source, first_ns + nth * SECOND, &json!({"nth": nth}));
                let filler: String = (0..WIDE_BYTES).map(|_| random.alphanumeric()).collect();
                point["metadata"] = json!({"filler": filler});
                point
            })
            .collect();
        bucket.send(&points);
    }
    first_ns
}

/// An export whose answer is taken as the test goes on.
pub struct SlowExport(TcpStream);

impl SlowExport {
    /// Sends an export on its own connection; nothing of its answer is read.
    pub fn begin(bucket: &Bucket, body: &Value) -> Self {
        let mut body = body.clone();
        body["bucketId"] = json!(bucket.id);
        let body = body.to_string();
        let base = bucket.client.base();
        let address = base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let request = format!(
            "POST /api/data/export HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\nContent-Length: {}\r\n\r\n{body}",
            bucket.admin,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(stream)
    }

    /// The status, as soon as the answer has begun.
    pub fn status(&mut self) -> u16 {
        let mut line = [0; 12];
        self.0.read_exact(&mut line).unwrap();
        let line = std::str::from_utf8(&line).unwrap();
        line.strip_prefix("HTTP/1.1 ").unwrap().parse().unwrap()
    }

    /// The rest of the body, and whether its last chunk has come.
    pub fn rest(mut self) -> (Vec<u8>, bool) {
        let (mut received, mut part) = (Vec::new(), vec![0; 1 << 16]);
        // The connection stays open behind a whole answer.
        while !received.ends_with(b"\r\n0\r\n\r\n") {
            match self.0.read(&mut part) {
                Ok(0) => break,
                Ok(read) => received.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("neither more nor an end: {error}"),
            }
        }
        let head = received
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .unwrap();
        unchunked(&received[head + 4..])
    }
}

/// The content of chunks, and whether the last one is there.
fn unchunked(mut chunks: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = chunks.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&chunks[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let content = &chunks[line + 2..];
        if content.len() < size + 2 {
            body.extend_from_slice(&content[..size.min(content.len())]);
            return (body, false);
        }
        body.extend_from_slice(&content[..size]);
        chunks = &content[size + 2..];
    }
    (body, false)
}
