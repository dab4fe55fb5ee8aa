//! Compressed bodies that expand: refused at the limit, with no more memory than the limit, and not decompressed
//! completely.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::process::{resident_bytes, resident_bytes_max};
use crate::routes::{Ids, ROUTES};
use crate::scene;

const UNPACKED_BYTES: usize = 1 << 30;
const STEP_BYTES: usize = 1 << 20;
/// The largest limit of a body is 10 MiB; a buffer grows by doubling, and each of a few threads may keep its buffer.
const GROWTH_BYTES_MAX: u64 = 128 << 20;
/// Allows for a debug build on two busy cores.
const WITHIN: Duration = Duration::from_secs(1);

fn gzip_bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    unpacked(&mut encoder);
    encoder.finish().unwrap()
}

fn zstd_bomb() -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    unpacked(&mut encoder);
    encoder.finish().unwrap()
}

fn unpacked(encoder: &mut impl Write) {
    let blanks = vec![b' '; STEP_BYTES];
    for _ in 0..UNPACKED_BYTES / STEP_BYTES {
        encoder.write_all(&blanks).unwrap();
    }
}

#[test]
fn a_compression_bomb_is_413_at_once_and_takes_no_memory() {
    let (server, account, bucket) = scene::bucket();
    let ids = Ids {
        bucket: bucket.id.clone(),
        ..Ids::all(scene::UNKNOWN_ID)
    };
    for (encoding, bomb) in [("gzip", gzip_bomb()), ("zstd", zstd_bomb())] {
        assert!(bomb.len() <= STEP_BYTES + STEP_BYTES / 8, "{} bytes", bomb.len());
        let before = resident_bytes(&server);
        for route in ROUTES.iter().filter(|route| route.body.is_some()) {
            let request = server
                .client
                .request(route.method, &route.path(&ids))
                .bearer(&account.token)
                .header("Content-Encoding", encoding);
            let sent = Instant::now();
            let answer = request.body(bomb.clone()).send();
            let took = sent.elapsed();
            let what = format!("{encoding} at {} {}", route.method, route.path);
            answer.refused(
                413,
                &format!("contract 1: limits count after decompression ({what})"),
            );
            assert!(
                took < WITHIN,
                "refused without being unpacked to the end, not after {took:?} ({what})"
            );
        }
        let grown = resident_bytes_max(&server).saturating_sub(before);
        assert!(
            grown <= GROWTH_BYTES_MAX,
            "{encoding}: the server grew by {grown} bytes"
        );
    }
    assert_eq!(
        server.client.get("/health").send().status,
        200,
        "the server lives"
    );
}
