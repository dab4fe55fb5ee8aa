//! Generates API keys: a prefix that names the type, and 32 random bytes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::catalog::{Bytes, KeyHash, KeyType};
use crate::random::{self, NoRandomness};

/// How many characters of a key lists show.
const SHOWN_CHARS: usize = 12;

/// A new key, whose text is shown only to its creator, once.
pub(super) struct FreshKey {
    pub text: String,
    pub hash: KeyHash,
}

impl FreshKey {
    pub fn new(kind: KeyType) -> Result<Self, NoRandomness> {
        let text = format!(
            "{}{}",
            kind.prefix(),
            URL_SAFE_NO_PAD.encode(random::bytes::<32>()?)
        );
        let hash = Bytes(Sha256::digest(text.as_bytes()).into());
        Ok(Self { text, hash })
    }

    pub fn shown_prefix(&self) -> &str {
        &self.text[..SHOWN_CHARS]
    }
}
