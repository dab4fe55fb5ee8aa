//! Signatures by which a receiver verifies a delivery: two signatures of the same body with the same secret.
//!
//! `X-Webhook-Signature` signs the body with the secret's bytes as given. The three headers of Standard Webhooks
//! (<https://www.standardwebhooks.com>) sign id, time and body, so that existing verifiers work. Their key is the
//! base64 after `whsec_`, or the secret's bytes if it has no such prefix.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::catalog::Secret;
use crate::clock::SECOND_NS;
use crate::hex;
use crate::ids::ObjectId;
use crate::random::{self, NoRandomness};

/// Prefix of a base64 secret.
const PREFIX: &str = "whsec_";
/// Length of a generated secret's key: the output length of the hash.
const GENERATED_BYTES: usize = 32;
/// Maximum length of a secret as text.
const SECRET_BYTES_MAX: usize = 1_024;

/// Written with padding; read with or without it, as most verifiers do.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The signature headers of an attempt at `now_ns`, UTC nanoseconds. Names are in lower case.
pub fn headers(
    secret: &Secret,
    webhook_id: ObjectId,
    now_ns: i64,
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let seconds = now_ns.div_euclid(SECOND_NS);
    let own_bytes = secret.0.as_bytes();
    let plain = hex::text(&hmac_sha256(own_bytes, &[body]));
    let signed = format!("{webhook_id}.{seconds}.");
    let key = encoded_key(&secret.0).and_then(Result::ok);
    let standard = hmac_sha256(key.as_deref().unwrap_or(own_bytes), &[signed.as_bytes(), body]);
    vec![
        ("x-webhook-signature", format!("sha256={plain}")),
        ("webhook-id", webhook_id.to_string()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", format!("v1,{}", BASE64.encode(standard))),
    ]
}

/// Checks whether a secret can be used for signing.
///
/// # Errors
/// Describes what to change.
pub fn check_secret(secret: &str) -> Result<(), String> {
    if secret.is_empty() {
        return Err(String::from("must not be empty; leave it out to have one made"));
    }
    if secret.len() > SECRET_BYTES_MAX {
        return Err(format!("must be at most {SECRET_BYTES_MAX} bytes long"));
    }
    match encoded_key(secret) {
        Some(Ok(key)) if key.is_empty() => Err(format!("must have a base64 key behind {PREFIX}")),
        Some(Err(_)) => Err(format!(
            "must be valid base64 behind {PREFIX}, or not begin with {PREFIX}"
        )),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Generates a secret.
///
/// # Errors
/// The operating system provides no random bytes.
pub fn generate_secret() -> Result<Secret, NoRandomness> {
    let key = random::bytes::<GENERATED_BYTES>()?;
    Ok(Secret(format!("{PREFIX}{}", BASE64.encode(key)).into()))
}

/// Decodes the key after the prefix; `None` without the prefix.
fn encoded_key(secret: &str) -> Option<Result<Vec<u8>, base64::DecodeError>> {
    secret.strip_prefix(PREFIX).map(|text| BASE64.decode(text))
}

fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "BUG: HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("BUG: HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret(text.into())
    }

    #[test]
    fn the_hash_matches_rfc_4231() {
        for (key, message, expected) in [
            (
                vec![0x0b; 20],
                "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex::text(&hmac_sha256(&key, &[message.as_bytes()])), expected);
        }
    }

    /// The test vector published by the Standard Webhooks libraries. Its id is not an ObjectId, so this test signs as
    /// `headers` does instead of calling it.
    #[test]
    fn the_standard_signature_matches_the_published_vector() {
        let key = encoded_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .unwrap()
            .unwrap();
        let signed = b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.";
        let made = hmac_sha256(&key, &[signed, br#"{"test": 2432232314}"#]);
        assert_eq!(
            BASE64.encode(made),
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn an_attempt_carries_both_signatures() {
        let id = ObjectId::from_bytes([0xab; 12]);
        let body = br#"{"event":"webhook.test"}"#;
        let at_ns = 1_614_265_330 * SECOND_NS + 999_999_999;
        for (text, key) in [
            ("plain secret", b"plain secret".to_vec()),
            ("whsec_AQID", vec![1, 2, 3]),
            ("whsec_AQ", vec![1]),
        ] {
            let plain = hex::text(&hmac_sha256(text.as_bytes(), &[body]));
            let message = [format!("{id}.1614265330.").as_bytes(), body].concat();
            let standard = BASE64.encode(hmac_sha256(&key, &[&message]));
            assert_eq!(
                headers(&secret(text), id, at_ns, body),
                [
                    ("x-webhook-signature", format!("sha256={plain}")),
                    ("webhook-id", "abababababababababababab".to_owned()),
                    ("webhook-timestamp", "1614265330".to_owned()),
                    ("webhook-signature", format!("v1,{standard}")),
                ]
            );
        }
    }

    #[test]
    fn unusable_secrets_are_refused() {
        let longest = "x".repeat(SECRET_BYTES_MAX);
        for good in ["x", "whsec_AQID", "whsec_AQ==", "whsec_AQ", "whsec", &longest] {
            assert_eq!(check_secret(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "whsec_",
            "whsec_not base64",
            "whsec_A",
            "whsec_A_-B",
            &format!("{longest}x"),
        ] {
            assert!(check_secret(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn generated_secrets_are_valid_and_differ() {
        let (one, two) = (generate_secret().unwrap(), generate_secret().unwrap());
        assert_ne!(one, two);
        assert_eq!(check_secret(&one.0), Ok(()));
        assert_eq!(encoded_key(&one.0).unwrap().unwrap().len(), GENERATED_BYTES);
    }
}
