//! `Idempotency-Key`: its syntax, and the digests that identify a request.

use sha2::{Digest as _, Sha256};

use super::IngestAnswer;
use crate::bucket::Digest;
use crate::error::{Detail, ServiceError};
use crate::journal::{AnswerView, IdempotencyView};
use crate::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// A valid key: 1 to 255 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(Vec<u8>);

impl IdempotencyKey {
    /// Parses a header's value.
    ///
    /// # Errors
    /// 400 for a key that is empty, too long or not printable.
    pub fn parse(value: &[u8]) -> Result<Self, ServiceError> {
        let printable = value.iter().all(|byte| (b' '..=b'~').contains(byte));
        if printable && (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&value.len()) {
            return Ok(IdempotencyKey(value.to_vec()));
        }
        Err(ServiceError::faults(vec![Detail {
            path: vec!["Idempotency-Key".to_owned()],
            message: format!("must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters"),
        }]))
    }

    /// Returns the digests of the key and of its request's body.
    pub(super) fn digests(&self, body: &[u8]) -> Digests {
        Digests {
            key: digest(&self.0),
            body: digest(body),
        }
    }
}

/// The digests that identify a request.
#[derive(Clone, Copy)]
pub(super) struct Digests {
    pub(super) key: Digest,
    pub(super) body: Digest,
}

impl Digests {
    /// Returns what the record stores: the digests and the answer, with the position of the point's id in it.
    pub(super) fn entry(self, answer: &IngestAnswer) -> (IdempotencyView<'_>, Option<usize>) {
        let view = AnswerView {
            status: answer.status,
            body: &answer.body,
        };
        let entry = IdempotencyView {
            key: self.key,
            body: self.body,
            answer: view,
        };
        (entry, answer.id_at)
    }
}

/// The first half of a SHA-256. 128 bits do not collide by chance, and a client that constructs collisions of its own
/// keys only harms itself.
fn digest(bytes: &[u8]) -> Digest {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
}

pub(super) fn key_reused() -> ServiceError {
    ServiceError::conflict("this Idempotency-Key was used with another body; use a new key for a new request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_printable_and_bounded() {
        for good in [&b"a"[..], b"a b~", &[b'x'; 255]] {
            assert!(IdempotencyKey::parse(good).is_ok());
        }
        for bad in [&b""[..], b"tab\t", "\u{e9}".as_bytes(), &[b'x'; 256], b"\x7f"] {
            assert!(IdempotencyKey::parse(bad).is_err());
        }
    }
}
