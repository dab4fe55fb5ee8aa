//! Tokens that the server never issued, signed with its own secret. The secret is found in the server's files by
//! checking which bytes sign a real token. So every claim is tested separately, with a valid signature.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::given::Account;
use crate::support::process::Server;

const SECRET_BYTES: usize = 32;

pub struct Forger {
    secret: Vec<u8>,
    /// The claims of a real token.
    pub claims: Value,
}

impl Forger {
    #[track_caller]
    pub fn of(server: &Server, account: &Account) -> Self {
        let (message, signature) = account.token.rsplit_once('.').unwrap();
        let secret = secret_that_signs(&server.data_dir().join("log"), message, signature);
        Self {
            secret: secret
                .unwrap_or_else(|| panic!("the secret of tokens is in the log: this test looks there")),
            claims: decoded(message.split('.').nth(1).unwrap()),
        }
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({"alg": "HS256", "typ": "JWT"}), claims)
    }

    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = signature(&self.secret, &message);
        format!("{message}.{signature}")
    }

    /// The real claims with these replacements; `null` removes one.
    pub fn with(&self, changes: &Value) -> Value {
        let mut claims = self.claims.clone();
        for (name, value) in changes.as_object().into_iter().flatten() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }
}

pub fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

pub fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn signature(secret: &[u8], message: &str) -> String {
    let mac: Hmac<Sha256> = Hmac::new_from_slice(secret).unwrap();
    URL_SAFE_NO_PAD.encode(mac.chain_update(message).finalize().into_bytes())
}

fn secret_that_signs(log: &Path, message: &str, signed: &str) -> Option<Vec<u8>> {
    let mut files: Vec<_> = fs::read_dir(log)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().find_map(|file| {
        let bytes = fs::read(file).unwrap();
        let written = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let mut windows = bytes[..written].windows(SECRET_BYTES);
        windows
            .find(|window| signature(window, message) == signed)
            .map(<[u8]>::to_vec)
    })
}
