//! Bearer tokens: a text is accepted only with a signature by the server's secret, and only with claims that the server
//! issues.
//!
//! An input without a zero byte is a token. One with a zero byte is a header and claims, which are signed here.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tidewatch::service::tokens::Tokens;

const SECRET: [u8; 32] = [42; 32];
const NOW_NS: i64 = 1_772_323_200_000_000_005;
const NOW: i64 = 1_772_323_200;

static TOKENS: LazyLock<Tokens> = LazyLock::new(|| Tokens::new(&SECRET, None).unwrap());

pub fn check(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else {
        let text = String::from_utf8_lossy(data);
        assert!(TOKENS.verify(&text, NOW_NS).is_err(), "{text}");
        return;
    };
    let (header, claims) = (&data[..end], &data[end + 1..]);
    let message = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signed = |secret: &[u8]| {
        let mac: Hmac<Sha256> = Hmac::new_from_slice(secret).unwrap();
        let signature = mac.chain_update(&message).finalize().into_bytes();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    let another = [43; 32];
    assert!(TOKENS.verify(&signed(&another), NOW_NS).is_err(), "{message}");
    let right = signed(&SECRET);
    if TOKENS.verify(&right, NOW_NS).is_err() {
        return;
    }
    // A member that the server ignores may be a string that is not valid Unicode, such as half of a surrogate pair.
    let (Ok(header), Ok(claims)) = (
        serde_json::from_slice::<Value>(header),
        serde_json::from_slice::<Value>(claims),
    ) else {
        return;
    };
    assert_eq!(header["alg"], "HS256");
    let is_server = |who: &Value| match who {
        Value::Array(several) => several.iter().any(|one| one == "tidewatch"),
        one => one == "tidewatch",
    };
    assert!(is_server(&claims["iss"]) && is_server(&claims["aud"]), "{claims}");
    assert!(claims["exp"].as_i64().unwrap() > NOW, "{claims}");
    assert!(
        claims["pwv"].is_u64() && claims["sub"].as_str().unwrap().len() == 24,
        "{claims}"
    );
    for changed in [
        format!("{right}."),
        format!("{right}A"),
        right[..right.len() - 1].to_owned(),
    ] {
        assert!(TOKENS.verify(&changed, NOW_NS).is_err(), "{changed}");
    }
}
