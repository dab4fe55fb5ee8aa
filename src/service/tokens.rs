//! Bearer tokens: JSON Web Tokens, HS256 and nothing else, signed with the server's secret.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error as JwtError, ErrorKind as JwtErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use signature::{Signer, Verifier};

use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::TOKEN_HOURS;
use crate::random;

/// Issuer and audience: this server.
const SELF: &str = "tidewatch";

/// Signs and reads bearer tokens.
pub struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
}

/// A fresh token.
pub struct IssuedToken {
    /// As sent in `Authorization: Bearer`.
    pub token: String,
    /// UTC nanoseconds.
    pub expires_at_ns: i64,
}

/// A log-in, and all the tokens that were issued for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Random.
    pub id: u64,
    /// When the user logged in: UTC seconds.
    pub began_seconds: i64,
}

impl Session {
    /// One that begins.
    ///
    /// # Errors
    /// 500 when the operating system gives no random bytes.
    pub fn begin(now_ns: i64) -> Result<Self, ServiceError> {
        Ok(Self {
            id: u64::from_le_bytes(random::bytes()?),
            began_seconds: now_ns.div_euclid(SECOND_NS),
        })
    }
}

/// What a valid token says.
pub struct TokenClaims {
    /// Who signed in.
    pub user_id: ObjectId,
    /// Valid only while this is the user's.
    pub password_version: u32,
    /// What it was issued for.
    pub session: Session,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: ObjectId,
    iat: i64,
    exp: i64,
    /// Of the password that it was issued for.
    pwv: u32,
    /// Of the session; tokens of older versions have none, and are a session each, from its beginning.
    #[serde(default)]
    sid: Option<u64>,
    /// When the session began.
    #[serde(default)]
    auth_time: Option<i64>,
}

impl Tokens {
    /// Tokens of the server with this secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        // A second start within one process finds the same provider installed.
        let _ = PROVIDER.install_default();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[SELF]);
        validation.set_audience(&[SELF]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // The end is judged by the server's clock, in `verify`; the beginning not at all. Nobody but this server signs
        // tokens, and it signs none for later: one from the future says that the clock was set back, which must not sign
        // people out who signed in a moment ago.
        validation.validate_exp = false;
        Self {
            signing: EncodingKey::from_secret(secret),
            verifying: DecodingKey::from_secret(secret),
            validation,
        }
    }

    /// A token of a session for twelve hours from `now_ns`.
    ///
    /// # Errors
    /// 500 when it cannot be signed.
    pub fn issue(
        &self,
        user_id: ObjectId,
        password_version: u32,
        session: Session,
        now_ns: i64,
    ) -> Result<IssuedToken, ServiceError> {
        let now = now_ns.div_euclid(SECOND_NS);
        let exp = now + TOKEN_HOURS * 3_600;
        let claims = Claims {
            iss: SELF.to_owned(),
            aud: SELF.to_owned(),
            sub: user_id,
            iat: now,
            exp,
            pwv: password_version,
            sid: Some(session.id),
            auth_time: Some(session.began_seconds),
        };
        let token =
            encode(&Header::new(Algorithm::HS256), &claims, &self.signing).map_err(ServiceError::internal)?;
        Ok(IssuedToken {
            token,
            expires_at_ns: exp * SECOND_NS,
        })
    }

    /// What a token says, when its signature, issuer and audience are right, and it has not expired at `now_ns`.
    ///
    /// # Errors
    /// 401 that tells expiry from everything else.
    pub fn verify(&self, token: &str, now_ns: i64) -> Result<TokenClaims, ServiceError> {
        let invalid = || ServiceError::unauthorized("the bearer token is invalid; sign in again");
        let claims = decode::<Claims>(token, &self.verifying, &self.validation)
            .map_err(|_| invalid())?
            .claims;
        let now = now_ns.div_euclid(SECOND_NS);
        if claims.exp <= now {
            return Err(ServiceError::unauthorized(
                "the bearer token has expired; sign in again",
            ));
        }
        Ok(TokenClaims {
            user_id: claims.sub,
            password_version: claims.pwv,
            session: Session {
                id: claims.sid.unwrap_or(claims.iat.cast_unsigned()),
                began_seconds: claims.auth_time.unwrap_or(claims.iat),
            },
        })
    }
}

/// HS256 alone. The library's own providers bring RSA, elliptic curves or a C library, none of which
/// this server may ever accept.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| {
        let mac = mac_of(*algorithm, key.as_bytes())?;
        Ok(Box::new(Hs256(mac)) as Box<dyn JwtSigner>)
    },
    verifier_factory: |algorithm, key| {
        let mac = mac_of(*algorithm, key.try_get_as_bytes()?)?;
        Ok(Box::new(Hs256(mac)) as Box<dyn JwtVerifier>)
    },
    key_utils: KeyUtils::new_unimplemented(),
};

fn mac_of(algorithm: Algorithm, secret: &[u8]) -> Result<Hmac<Sha256>, JwtError> {
    if algorithm != Algorithm::HS256 {
        return Err(JwtErrorKind::InvalidAlgorithm.into());
    }
    Hmac::new_from_slice(secret).map_err(|_| JwtErrorKind::InvalidKeyFormat.into())
}

struct Hs256(Hmac<Sha256>);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self
            .0
            .clone()
            .chain_update(message)
            .finalize()
            .into_bytes()
            .to_vec())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let mac = self.0.clone().chain_update(message);
        mac.verify_slice(signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::*;

    const SECRET: [u8; 32] = [42; 32];

    const NOW_NS: i64 = 1_772_323_200 * SECOND_NS + 5;

    fn user() -> ObjectId {
        ObjectId::from_bytes([1; 12])
    }

    /// A token of any header and claims, signed with this secret.
    fn forged(header: &Value, claims: &Value, secret: &[u8]) -> String {
        let message = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let mac: Hmac<Sha256> = Hmac::new_from_slice(secret).unwrap();
        let signed = mac.chain_update(&message).finalize().into_bytes();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signed))
    }

    const SESSION: Session = Session {
        id: 7,
        began_seconds: NOW_NS / SECOND_NS - 86_400,
    };

    fn good() -> Value {
        let now = NOW_NS / SECOND_NS;
        json!({"iss": SELF, "aud": SELF, "sub": user().to_string(), "iat": now, "exp": now + 60, "pwv": 3})
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = good();
        claims[name] = value;
        claims
    }

    fn without(name: &str) -> Value {
        let mut claims = good();
        claims.as_object_mut().unwrap().remove(name);
        claims
    }

    #[test]
    fn an_issued_token_says_who_and_which_password() {
        let tokens = Tokens::new(&SECRET);
        let issued = tokens.issue(user(), 3, SESSION, NOW_NS).unwrap();
        let claims = tokens.verify(&issued.token, NOW_NS).unwrap();
        assert_eq!((claims.user_id, claims.password_version), (user(), 3));
        assert_eq!(claims.session, SESSION);
        assert!(
            tokens
                .verify(
                    &forged(&json!({"alg": "HS256", "typ": "JWT"}), &good(), &SECRET),
                    NOW_NS
                )
                .is_ok()
        );
        assert_eq!(
            issued.expires_at_ns,
            (NOW_NS / SECOND_NS + TOKEN_HOURS * 3_600) * SECOND_NS
        );
        let last_ns = issued.expires_at_ns - 1;
        assert!(tokens.verify(&issued.token, last_ns).is_ok(), "good to the end");
        assert!(
            tokens.verify(&issued.token, last_ns + 1).is_err(),
            "and no longer"
        );
    }

    /// Tokens issued before the clock was set back were refused until it had caught up.
    #[test]
    fn a_clock_that_is_set_back_signs_nobody_out() {
        let tokens = Tokens::new(&SECRET);
        let issued = tokens.issue(user(), 3, SESSION, NOW_NS).unwrap();
        let of_before = forged(
            &json!({"alg": "HS256", "typ": "JWT"}),
            &with("nbf", json!(NOW_NS / SECOND_NS)),
            &SECRET,
        );
        for seconds in [1, 60, 3_600, 86_400, 400 * 86_400] {
            let back_ns = NOW_NS - seconds * SECOND_NS;
            for token in [&issued.token, &of_before] {
                assert!(tokens.verify(token, back_ns).is_ok(), "{seconds} s back");
            }
        }
        assert!(tokens.verify(&issued.token, issued.expires_at_ns).is_err());
    }

    #[test]
    fn every_forgery_is_refused() {
        let tokens = Tokens::new(&SECRET);
        let hs256 = json!({"alg": "HS256", "typ": "JWT"});
        let now = NOW_NS / SECOND_NS;
        let mut forgeries = vec![
            forged(&hs256, &good(), &[43; 32]),
            forged(&json!({"alg": "none"}), &good(), &SECRET),
            forged(&json!({"alg": "HS512"}), &good(), &SECRET),
            forged(&json!({"alg": "RS256"}), &good(), &SECRET),
            String::from("a.b.c"),
            String::new(),
        ];
        for claims in [
            with("exp", json!(now)),
            with("exp", json!((now + 60).to_string())),
            with("exp", Value::Null),
            with("aud", json!("another")),
            with("iss", json!("another")),
            with("sub", json!("not an id")),
            without("exp"),
            without("aud"),
            without("iss"),
            without("sub"),
            without("pwv"),
        ] {
            forgeries.push(forged(&hs256, &claims, &SECRET));
        }
        let right = forged(&hs256, &good(), &SECRET);
        forgeries.push(format!("{right}."));
        forgeries.push(format!("{right}AA"));
        forgeries.push(right[..right.rfind('.').unwrap() + 1].to_owned());
        for forgery in forgeries {
            assert!(tokens.verify(&forgery, NOW_NS).is_err(), "{forgery}");
        }
    }
}
