//! Connections that are kept for a moment between attempts: one set for each origin and each checked address, so that
//! a connection is never used for a name that has come to mean something else.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use awc::http::Version;
use awc::{Client, Connector};

/// For TCP, and again for TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection idle for longer may just be closed by the receiver, and a request on it be lost; common servers keep
/// theirs for 5 seconds and more.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// Clients by origin and address.
pub(super) struct Connections(RefCell<HashMap<(String, SocketAddr), Kept>>);

struct Kept {
    client: Client,
    used: Instant,
}

impl Connections {
    pub fn new() -> Rc<Self> {
        // Whoever installed one before is as good; without one, awc's connector panics.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Rc::new(Self(RefCell::default()))
    }

    /// The client for this origin at this address.
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

/// Closes what is idle for too long, until nothing is left. An attempt under way keeps its own connection.
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

/// A client that does as it is told: no redirects, no headers and no time limit of its own.
fn new_client() -> Client {
    let connector = Connector::new()
        .max_http_version(Version::HTTP_11)
        .timeout(CONNECT_TIMEOUT)
        .handshake_timeout(CONNECT_TIMEOUT)
        .conn_keep_alive(IDLE_MAX)
        // The schedule bounds what is in flight.
        .limit(0);
    Client::builder()
        .connector(connector)
        .disable_timeout()
        .disable_redirects()
        .no_default_headers()
        .finish()
}
