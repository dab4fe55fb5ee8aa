//! Both forms of signature, recomputed from the received requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{admin, receiver, scene, send_test};
use crate::support::given::text;
use crate::support::receiver::Received;
use crate::support::time::{SECOND, now_ns};

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn header<'a>(request: &'a Received, name: &str) -> &'a str {
    let found = request.header(name);
    found.unwrap_or_else(|| panic!("contract 7: deliveries carry `{name}`: {:?}", request.headers))
}

#[track_caller]
fn assert_signed(request: &Received, secret: &str, standard_key: &[u8]) {
    let id = text(&request.json(), "/webhookId");
    assert_signed_as(&id, request, secret, standard_key);
    assert_eq!(
        header(request, "content-type").split(';').next(),
        Some("application/json"),
        "spec: all bodies are JSON"
    );
}

/// Asserts that the request of the delivery that the receiver knows by this id is signed, whatever its format.
#[track_caller]
pub fn assert_signed_as(id: &str, request: &Received, secret: &str, standard_key: &[u8]) {
    assert_eq!(
        header(request, "x-webhook-signature"),
        format!("sha256={}", hex(&hmac(secret.as_bytes(), &request.body))),
        "contract 7: the key of X-Webhook-Signature is always the secret's own bytes, over the raw request body"
    );
    assert_eq!(
        header(request, "webhook-id"),
        id,
        "contract 7: `webhook-id` is the `webhookId`"
    );
    let timestamp = header(request, "webhook-timestamp");
    let seconds: i64 = timestamp.parse().unwrap();
    let now = now_ns() / SECOND;
    assert!(
        (now - 60..=now + 1).contains(&seconds),
        "Standard Webhooks: `webhook-timestamp` is the attempt's, in Unix seconds: {timestamp} at {now}"
    );
    let mut signed = format!("{id}.{timestamp}.").into_bytes();
    signed.extend_from_slice(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(hmac(standard_key, &signed)));
    assert!(
        header(request, "webhook-signature")
            .split(' ')
            .any(|signature| signature == expected),
        "contract 7: Standard Webhooks: existing verifiers work; expected {expected}: {:?}",
        request.headers
    );
    assert_eq!(request.method, "POST", "spec: deliveries are HTTP POSTs");
}

#[test]
fn both_signatures_verify() {
    let (_server, account, _) = scene();
    let receiver = receiver();
    let own = "a secret of mine, ünïcode";
    let encoded = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    for (path, secret) in [
        ("/own", Some(own)),
        ("/encoded", Some(encoded)),
        ("/generated", None),
    ] {
        let mut body = json!({"url": receiver.url(path), "events": ["bucket.updated"]});
        if let Some(secret) = secret {
            body["secret"] = json!(secret);
        }
        let webhook = account.webhook(&body);
        send_test(&account, &text(&webhook, "/_id"));
        let request = receiver.wait(path, 1).remove(0);
        let secret = secret.map_or_else(|| text(&webhook, "/secret"), str::to_owned);
        let key = match secret.strip_prefix("whsec_") {
            Some(key) => STANDARD.decode(key).unwrap(),
            None => secret.as_bytes().to_vec(),
        };
        assert_signed(&request, &secret, &key);
    }
}

#[test]
fn a_changed_secret_signs_later_deliveries() {
    let (_server, account, _) = scene();
    let receiver = receiver();
    let webhook = account.webhook(&json!({
        "url": receiver.url("/"), "events": ["bucket.updated"], "secret": "the first secret",
    }));
    let id = text(&webhook, "/_id");
    send_test(&account, &id);
    receiver.wait("/", 1);
    admin(
        &account,
        "PATCH",
        &format!("/api/webhooks/{id}"),
        &json!({"secret": "the second secret"}),
    )
    .expect(200, "contract 7: PATCH takes any member of the creation");
    send_test(&account, &id);
    let received = receiver.wait("/", 2);
    assert_signed(&received[0], "the first secret", b"the first secret");
    assert_signed(&received[1], "the second secret", b"the second secret");
}

#[test]
fn secrets_cannot_be_read_back() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let id = text(
        &account.webhook(&json!({"url": receiver.url("/"), "events": ["bucket.updated"], "secret": secret})),
        "/_id",
    );
    send_test(&account, &id);
    super::update(&bucket, "other");
    let received = receiver.wait("/", 2);
    super::wait_until_ended(&account, &format!("webhooks/{id}"), 2);
    for path in [
        "/api/webhooks",
        &format!("/api/webhooks/{id}"),
        &format!("/api/webhooks/{id}/deliveries"),
    ] {
        let answer = admin(&account, "GET", path, &Value::Null);
        answer.expect(200, "contract 7: GET");
        assert!(
            !answer.text().contains(&secret[6..]),
            "contract 7: without the secret: {answer}"
        );
    }
    for request in received {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let sent = format!("{body} {:?}", request.headers);
        assert!(
            !sent.contains(&secret[6..]),
            "a delivery does not carry its secret: {sent}"
        );
    }
}
