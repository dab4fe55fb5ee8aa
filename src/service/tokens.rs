//! Bearer tokens: JSON Web Tokens (RFC 7519), signed with the server's secret by HMAC-SHA-256 (`HS256`, RFC 7515) and
//! no other algorithm. Only this server issues them, so only its own format is accepted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::shard_name::{NAME_BYTES, ShardName};
use crate::catalog::UserSession;
use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::{SESSION_HOURS_MAX, TOKEN_HOURS};

/// Issuer and audience of all tokens: this server.
const SELF: &str = "tidewatch";

const ALGORITHM: &str = "HS256";

/// Issues and verifies bearer tokens.
pub struct Tokens {
    mac: Hmac<Sha256>,
    /// Named in tokens, in a cluster.
    shard: Option<ShardName>,
}

/// A new token.
pub struct IssuedToken {
    /// As sent in `Authorization: Bearer`.
    pub token: String,
    /// UTC nanoseconds.
    pub expires_at_ns: i64,
}

/// A log-in. All tokens issued for it belong to this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// A random number.
    pub id: u64,
    /// When the user logged in, in UTC seconds.
    pub began_seconds: i64,
}

impl Session {
    /// The session of a user's record.
    pub fn of(record: &UserSession) -> Self {
        Self {
            id: record.number,
            began_seconds: record.began_at_ns.div_euclid(SECOND_NS),
        }
    }
}

/// The header of all tokens.
const HEADER: &str = r#"{"typ":"JWT","alg":"HS256"}"#;

#[derive(Deserialize)]
struct Header {
    alg: String,
}

/// The claims of a token.
#[derive(Serialize, Deserialize)]
pub struct Claims {
    iss: String,
    aud: String,
    /// The user who signed in.
    #[serde(rename = "sub")]
    pub user_id: ObjectId,
    iat: i64,
    exp: i64,
    /// The version of the password at the time of issue. The token is valid only while this is the user's version.
    #[serde(rename = "pwv")]
    pub password_version: u32,
    /// The session's number.
    sid: u64,
    /// When the session began.
    auth_time: i64,
    /// The name of the shard that issued the token, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<[u8; NAME_BYTES]>,
}

impl Claims {
    pub fn session(&self) -> Session {
        Session {
            id: self.sid,
            began_seconds: self.auth_time,
        }
    }

    /// Whether the token is in the second half of its life, so that answers carry a new one, which lives longer.
    pub fn is_to_be_renewed(&self, now_ns: i64) -> bool {
        let now = now_ns.div_euclid(SECOND_NS);
        now - self.iat >= self.exp - now && end_of(self.auth_time, now) > self.exp
    }
}

impl Tokens {
    /// Makes an issuer with this secret. Its tokens name the shard, if there are several.
    ///
    /// # Errors
    /// 500 for an invalid secret, which no secret of 32 bytes is.
    pub fn new(secret: &[u8; 32], shard: Option<ShardName>) -> Result<Self, ServiceError> {
        let mac = Hmac::new_from_slice(secret).map_err(ServiceError::internal)?;
        Ok(Self { mac, shard })
    }

    /// Issues a token for a session, valid for twelve hours from `now_ns`, but not longer than the session.
    ///
    /// # Errors
    /// 500 when signing fails.
    pub fn issue(
        &self,
        user_id: ObjectId,
        password_version: u32,
        session: Session,
        now_ns: i64,
    ) -> Result<IssuedToken, ServiceError> {
        let now = now_ns.div_euclid(SECOND_NS);
        let exp = end_of(session.began_seconds, now);
        let claims = Claims {
            iss: SELF.to_owned(),
            aud: SELF.to_owned(),
            user_id,
            iat: now,
            exp,
            password_version,
            sid: session.id,
            auth_time: session.began_seconds,
            shard: self.shard.map(ShardName::to_bytes),
        };
        let claims = serde_json::to_vec(&claims).map_err(ServiceError::internal)?;
        let [header, claims] = [HEADER.as_bytes(), &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{claims}");
        let signature = self.mac.clone().chain_update(&signed).finalize().into_bytes();
        Ok(IssuedToken {
            token: format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)),
            expires_at_ns: exp * SECOND_NS,
        })
    }

    /// Returns the claims of a token whose signature, issuer and audience are correct, and which has not expired at
    /// `now_ns`.
    ///
    /// The time of issue is not checked: a token from the future means that the clock was set back, which must not end
    /// recent sessions.
    ///
    /// # Errors
    /// 401; an expired token has its own message.
    pub fn verify(&self, token: &str, now_ns: i64) -> Result<Claims, ServiceError> {
        let claims = self.verified(token).ok_or_else(invalid_token)?;
        let now = now_ns.div_euclid(SECOND_NS);
        if claims.exp <= now {
            return Err(ServiceError::unauthorized(
                "the bearer token has expired; sign in again",
            ));
        }
        Ok(claims)
    }

    /// Returns the claims if this server issued the token for itself.
    fn verified(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Compared in constant time.
        let mac = self.mac.clone().chain_update(signed);
        mac.verify_slice(&signature).ok()?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = decoded(header)?;
        let claims: Claims = decoded(claims)?;
        let is_own = header.alg == ALGORITHM && claims.iss == SELF && claims.aud == SELF;
        is_own.then_some(claims)
    }
}

/// When a token ends that is issued now for a session that began then, in UTC seconds.
fn end_of(began: i64, now: i64) -> i64 {
    (now + TOKEN_HOURS * 3_600).min(began + SESSION_HOURS_MAX * 3_600)
}

/// The shard and the user that a token names, whoever made it: says who can verify it, and nothing else.
pub(super) fn named_in(token: &str) -> Option<(Option<ShardName>, ObjectId)> {
    let claims: Claims = decoded(token.split('.').nth(1)?)?;
    Some((claims.shard.map(ShardName::of_bytes), claims.user_id))
}

pub(super) fn invalid_token() -> ServiceError {
    ServiceError::unauthorized("the bearer token is invalid; sign in again")
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
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
        json!({
            "iss": SELF, "aud": SELF, "sub": user().to_string(), "iat": now, "exp": now + 60, "pwv": 3, "sid": 7,
            "auth_time": now,
        })
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
    fn an_issued_token_names_its_user_and_password_version() {
        let tokens = Tokens::new(&SECRET, None).unwrap();
        let issued = tokens.issue(user(), 3, SESSION, NOW_NS).unwrap();
        let claims = tokens.verify(&issued.token, NOW_NS).unwrap();
        assert_eq!((claims.user_id, claims.password_version), (user(), 3));
        assert_eq!(claims.session(), SESSION);
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

    #[test]
    fn a_token_is_renewed_in_the_second_half_of_its_life_while_that_prolongs_it() {
        const HOUR_NS: i64 = 3_600 * SECOND_NS;
        let tokens = Tokens::new(&SECRET, None).unwrap();
        let began = Session {
            id: 7,
            began_seconds: NOW_NS / SECOND_NS,
        };
        let renewed_at = |issued_ns: i64, now_ns: i64| {
            let issued = tokens.issue(user(), 3, began, issued_ns).unwrap();
            let claims = tokens.verify(&issued.token, now_ns).unwrap();
            claims.is_to_be_renewed(now_ns)
        };
        let half_ns = TOKEN_HOURS * HOUR_NS / 2;
        assert!(!renewed_at(NOW_NS, NOW_NS + half_ns - SECOND_NS));
        assert!(renewed_at(NOW_NS, NOW_NS + half_ns));
        assert!(!renewed_at(NOW_NS, NOW_NS - half_ns), "the clock was set back");
        let end_ns = (NOW_NS / SECOND_NS) * SECOND_NS + SESSION_HOURS_MAX * HOUR_NS;
        let last = tokens.issue(user(), 3, began, end_ns - HOUR_NS).unwrap();
        assert_eq!(last.expires_at_ns, end_ns, "no token outlives its session");
        assert!(!renewed_at(end_ns - HOUR_NS, end_ns - SECOND_NS));
        assert!(renewed_at(end_ns - 13 * HOUR_NS, end_ns - 2 * HOUR_NS));
    }

    /// Regression: tokens issued before the clock was set back were refused until it had caught up.
    #[test]
    fn a_clock_set_back_ends_no_session() {
        let tokens = Tokens::new(&SECRET, None).unwrap();
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
    fn every_forged_token_is_refused() {
        let tokens = Tokens::new(&SECRET, None).unwrap();
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
            // As versions without sessions issued them.
            without("sid"),
            without("auth_time"),
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
