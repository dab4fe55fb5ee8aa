//! Connections kept open briefly between attempts. There is one pool per origin and checked address, so that a
//! connection is never reused after the name resolves to a different address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use awc::http::Version;
use awc::{Client, Connector};

/// Applies to TCP, and separately to TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After a longer idle time the receiver may just be closing the connection, and a request sent on it is lost. Common
/// servers keep idle connections for at least 5 seconds.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// Clients by origin and address.
pub(super) struct Connections(RefCell<HashMap<(String, SocketAddr), Kept>>);

struct Kept {
    client: Client,
    used: Instant,
}

impl Connections {
    pub fn new() -> Rc<Self> {
        // An already installed provider is fine. Without any, awc's connector panics.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Rc::new(Self(RefCell::default()))
    }

    pub fn client(self: &Rc<Self>, origin: String, address: SocketAddr) -> Client {
        let mut kept = self.0.borrow_mut();
        if kept.is_empty() {
            actix_web::rt::spawn(sweep(Rc::downgrade(self)));
        }
        let entry = kept.entry((origin, address)).or_insert_with(|| Kept {
            client: new_client(),
            used: Instant::now(),
        });
        entry.used = Instant::now();
        entry.client.clone()
    }
}

/// Drops idle clients until none is left, then ends. An attempt in progress holds its own connection.
async fn sweep(connections: Weak<Connections>) {
    loop {
        tokio::time::sleep(IDLE_MAX).await;
        let Some(connections) = connections.upgrade() else {
            return;
        };
        let mut kept = connections.0.borrow_mut();
        kept.retain(|_, kept| kept.used.elapsed() < IDLE_MAX);
        if kept.is_empty() {
            return;
        }
    }
}

/// A client that adds nothing of its own: no redirects, no default headers, no timeout.
fn new_client() -> Client {
    let connector = Connector::new()
        .max_http_version(Version::HTTP_11)
        .timeout(CONNECT_TIMEOUT)
        .handshake_timeout(CONNECT_TIMEOUT)
        .conn_keep_alive(IDLE_MAX)
        // The schedule limits the attempts in flight.
        .limit(0);
    Client::builder()
        .connector(connector)
        .disable_timeout()
        .disable_redirects()
        .no_default_headers()
        .finish()
}
