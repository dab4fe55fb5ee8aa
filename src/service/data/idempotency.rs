//! The digests that identify a request with an `Idempotency-Key`.

use sha2::{Digest as _, Sha256};

use crate::bucket::Digest;
use crate::error::ServiceError;

/// The digests of a request's key and body.
#[derive(Clone, Copy)]
pub(super) struct Digests {
    pub(super) key: Digest,
    pub(super) body: Digest,
}

impl Digests {
    pub(super) fn of(key: &[u8], body: &[u8]) -> Self {
        Digests {
            key: digest(Sha256::new().chain_update(key)),
            body: digest(Sha256::new().chain_update(body)),
        }
    }

    /// Those of a part of a body that is stored piece by piece; `write` hashes the part.
    pub(super) fn of_part(key: &[u8], part: u64, write: impl FnOnce(&mut Sha256)) -> Self {
        let mut body = Sha256::new();
        write(&mut body);
        Digests {
            key: digest(Sha256::new().chain_update(key).chain_update(part.to_le_bytes())),
            body: digest(body),
        }
    }
}

/// The first half of a SHA-256. 128 bits do not collide by chance, and a client that constructs collisions of its own
/// keys only harms itself.
fn digest(hash: Sha256) -> Digest {
    let whole = hash.finalize();
    std::array::from_fn(|index| whole[index])
}

pub(super) fn key_reused() -> ServiceError {
    ServiceError::conflict("this Idempotency-Key was used with another body; use a new key for a new request")
}
