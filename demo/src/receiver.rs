//! A webhook receiver on this machine, as a user would run one: it verifies the signature, answers, and logs a line per
//! delivery. Every third answer is 503 to demonstrate retries; the pager always answers 503.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, post};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Path that accepts deliveries.
pub const ALERTS_PATH: &str = "/alerts";
/// Path that always fails.
pub const PAGER_PATH: &str = "/pager";

/// One in this many answers is 503.
const FAIL_EVERY: u64 = 3;

/// A running receiver.
pub struct Receiver {
    pub address: SocketAddr,
    handle: ServerHandle,
}

struct Inbox {
    secret: String,
    deliveries: AtomicU64,
}

impl Receiver {
    /// Listens on a free port of this machine. Deliveries must be signed with `secret`.
    ///
    /// # Errors
    /// No port can be bound.
    pub fn start(secret: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let inbox = Data::new(Inbox {
            secret: secret.to_owned(),
            deliveries: AtomicU64::new(0),
        });
        let server = HttpServer::new(move || {
            App::new()
                .app_data(inbox.clone())
                .route(ALERTS_PATH, post().to(receive))
                .route(PAGER_PATH, post().to(HttpResponse::ServiceUnavailable))
        });
        let running = server.workers(1).disable_signals().listen(listener)?.run();
        let handle = running.handle();
        actix_web::rt::spawn(running);
        Ok(Self { address, handle })
    }

    /// Finishes the requests in progress and stops.
    pub async fn stop(self) {
        self.handle.stop(true).await;
    }
}

async fn receive(request: HttpRequest, body: Bytes, inbox: Data<Inbox>) -> HttpResponse {
    let signature = request.headers().get("x-webhook-signature");
    let signature = signature
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let status = if is_signed(&inbox.secret, &body, signature) {
        status_for(inbox.deliveries.fetch_add(1, Ordering::Relaxed) + 1)
    } else {
        StatusCode::UNAUTHORIZED
    };
    let envelope: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |pointer: &str| {
        envelope
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    tracing::info!(
        event = text("/event"),
        rule = text("/data/alertName"),
        answer = status.as_u16(),
        "the receiver got a delivery"
    );
    HttpResponse::new(status)
}

/// The status for the `nth` delivery, counted from 1.
fn status_for(nth: u64) -> StatusCode {
    if nth.is_multiple_of(FAIL_EVERY) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

/// Whether the signature is `sha256=` and the hex HMAC-SHA256 of the body with the secret.
fn is_signed(secret: &str, body: &[u8], signature: &str) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return false;
    };
    mac.update(body);
    let mac = mac.finalize().into_bytes();
    let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
        .as_bytes()
        .ct_eq(signature.as_bytes())
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_signed_with_the_secret_are_accepted() {
        // The second test case of RFC 4231.
        let good = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let body = b"what do ya want for nothing?";
        assert!(is_signed("Jefe", body, good));
        assert!(!is_signed("Jefe", b"what do you want for nothing?", good));
        assert!(!is_signed("Jeff", body, good));
        assert!(!is_signed("Jefe", body, ""));
        assert!(!is_signed("Jefe", body, &good.replace("sha256=", "")));
    }

    #[test]
    fn the_first_request_is_accepted_and_one_in_three_must_be_retried() {
        let answers: Vec<u16> = (1..=6).map(|nth| status_for(nth).as_u16()).collect();
        assert_eq!(answers, [200, 200, 503, 200, 200, 503]);
    }
}
