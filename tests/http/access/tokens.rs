//! Bearer tokens and keys: invalid credentials are 401.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::forgery::{Forger, decoded, encoded};
use crate::scene;
use crate::support::client::Answer;

const UNAUTHORIZED: &str = "spec: a missing, invalid or deleted credential is 401";

fn part(token: &str, nth: usize) -> &str {
    token
        .split('.')
        .nth(nth)
        .unwrap_or_else(|| panic!("contract 2: the bearer token is a JWT, not `{token}`"))
}

#[test]
fn the_token_is_a_jwt_signed_with_hs256_for_12_hours() {
    let (_server, account, _) = scene::bucket();
    let header = decoded(part(&account.token, 0));
    assert_eq!(
        header["alg"], "HS256",
        "contract 2: the bearer token is a JWT (HS256, 12 h)"
    );
    let claims = decoded(part(&account.token, 1));
    let seconds = claims["exp"]
        .as_i64()
        .zip(claims["iat"].as_i64())
        .map(|(exp, iat)| exp - iat);
    if let Some(seconds) = seconds {
        assert_eq!(
            seconds,
            12 * 3600,
            "contract 2: the bearer token is a JWT (HS256, 12 h)"
        );
    }
    assert!(
        claims["exp"].is_i64(),
        "contract 2: the token ends by itself, so it has `exp`: {claims}"
    );
    assert_eq!(
        account.token.split('.').count(),
        3,
        "contract 2: the bearer token is a JWT"
    );
}

#[test]
fn a_token_that_the_server_did_not_sign_is_401() {
    let (_server, account, _) = scene::bucket();
    let token = &account.token;
    let (header, claims, signature) = (part(token, 0), part(token, 1), part(token, 2));
    let mut longer = decoded(claims);
    longer["exp"] = json!(4_000_000_000_u64);
    let mut timeless = decoded(claims);
    timeless.as_object_mut().unwrap().remove("exp");
    let unsigned = encoded(&json!({"alg": "none", "typ": "JWT"}));
    let other_algorithm = encoded(&json!({"alg": "HS512", "typ": "JWT"}));
    let asymmetric = encoded(&json!({"alg": "RS256", "typ": "JWT"}));
    let mut flipped = URL_SAFE_NO_PAD.decode(signature).unwrap();
    flipped[0] ^= 1;
    let flipped = URL_SAFE_NO_PAD.encode(flipped);
    let forged = [
        format!("{unsigned}.{claims}."),
        format!("{unsigned}.{claims}.{signature}"),
        format!("{other_algorithm}.{claims}.{signature}"),
        format!("{asymmetric}.{claims}.{signature}"),
        format!("{header}.{}.{signature}", encoded(&longer)),
        format!("{header}.{}.{signature}", encoded(&timeless)),
        format!("{header}.{claims}.{flipped}"),
        format!("{header}.{claims}."),
        format!("{header}.{claims}"),
        format!("{token}A"),
        format!("{token}.{signature}"),
        token[..token.len() - 1].to_owned(),
        // Signed with the key `secret`, which no server should use.
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIiwiZXhwIjo0MDAwMDAwMDAwfQ.\
         4DXwTpF4pZ0vF2Ol0vQ8h8O2gNV2K6Yv4qvL3cH0z2I"
            .to_owned(),
        String::new(),
        "undefined".to_owned(),
        account.admin.clone(),
    ];
    for forged in forged {
        for path in ["/api/auth/me", "/api/buckets"] {
            account
                .client
                .get(path)
                .bearer(&forged)
                .send()
                .refused(401, &format!("{UNAUTHORIZED} (bearer `{forged}`)"));
        }
    }
    account
        .client
        .get("/api/auth/me")
        .bearer(token)
        .send()
        .expect(200, "the real one still works");
}

/// A token issued in the future means that the clock was set back: it stays valid until it expires.
#[test]
fn a_token_issued_before_the_clock_was_set_back_works() {
    let (server, account, _) = scene::bucket();
    let forger = Forger::of(&server, &account);
    let now = forger.claims["iat"].as_i64().unwrap_or_default();
    for ahead in [1, 60, 3_600, 24 * 3_600] {
        let later = json!({"iat": now + ahead, "nbf": now + ahead, "exp": now + ahead + 12 * 3_600});
        let token = forger.sign(&forger.with(&later));
        let answer = account.client.get("/api/buckets").bearer(&token).send();
        answer.expect(200, &format!("issued {ahead} s from now"));
    }
}

/// Signed with the secret of the server, so that only the claims can be the reason.
#[test]
fn a_correctly_signed_token_with_wrong_claims_is_401() {
    let (server, account, _) = scene::bucket();
    let forger = Forger::of(&server, &account);
    let list_buckets = |token: &str| account.client.get("/api/buckets").bearer(token).send();
    list_buckets(&forger.sign(&forger.claims)).expect(200, "the same claims, signed again, are a real token");
    let exp = forger.claims["exp"].as_i64().unwrap_or_default();
    for changes in [
        json!({"exp": null}),
        json!({"exp": exp.to_string()}),
        json!({"exp": exp - 24 * 3600}),
        json!({"aud": "another"}),
        json!({"aud": null}),
        json!({"iss": "another"}),
        json!({"iss": null}),
        json!({"sub": scene::UNKNOWN_ID}),
        json!({"sub": "not an id"}),
        json!({"sub": null}),
    ] {
        let token = forger.sign(&forger.with(&changes));
        list_buckets(&token).refused(401, &format!("{UNAUTHORIZED} (claims changed by {changes})"));
    }
    for header in [
        json!({"alg": "none"}),
        json!({"alg": "HS384"}),
        json!({"alg": "HS512"}),
        json!({"alg": "RS256"}),
    ] {
        let token = forger.sign_as(&header, &forger.claims);
        list_buckets(&token).refused(401, &format!("{UNAUTHORIZED} (header {header})"));
    }
    let right = forger.sign(&forger.claims);
    for token in [
        format!("{right}."),
        format!("{right}AA"),
        format!("{right} x"),
        format!("{right}="),
    ] {
        list_buckets(&token).refused(401, &format!("{UNAUTHORIZED} (trailing bytes)"));
    }
}

#[test]
fn a_malformed_or_wrong_key_is_401() {
    let (_server, account, bucket) = scene::bucket();
    let key = &account.admin;
    let refused = |answer: Answer| answer.refused(401, UNAUTHORIZED);
    let flipped = format!(
        "{}{}",
        &key[..key.len() - 1],
        if key.ends_with('A') { 'B' } else { 'A' }
    );
    let other_type = key.replace("svc_a_", "svc_r_");
    let padded = format!("{key}A");
    for wrong in [
        "",
        "x",
        "svc_a_",
        &key[..key.len() - 1],
        &padded,
        &flipped,
        &other_type,
        &key.to_uppercase(),
        &account.token,
    ] {
        refused(account.client.get("/api/buckets").key(wrong).send());
    }
    for authorization in [
        key.clone(),
        format!("Basic {key}"),
        "Bearer".to_owned(),
        account.token.clone(),
    ] {
        refused(
            account
                .client
                .get("/api/buckets")
                .header("Authorization", authorization)
                .send(),
        );
    }
    for name in ["api_key", "apiKey", "key", "X-API-Key", "token", "access_token"] {
        // The spec forbids keys in URLs, so they must not work.
        refused(account.client.get(&format!("/api/buckets?{name}={key}")).send());
    }
    let body = json!({"bucketId": bucket.id, "apiKey": key});
    refused(account.client.post("/api/data/query").json(&body).send());
}
