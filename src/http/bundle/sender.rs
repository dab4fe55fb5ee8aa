//! Collects the requests to another node until those that have arrived together are there, and sends them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::rt::spawn;
use actix_web::rt::task::yield_now;
use actix_web::web::BytesMut;
use futures_util::StreamExt;
use tokio::sync::oneshot::{Sender, channel};

use super::{ANSWER_BYTES_MAX, FULL_BYTES, ITEM_BYTES_MAX, ITEMS_MAX, PATH, format};
use crate::http::node_client::{NodeClient, Unanswered};

/// What became of a request in a bundle.
pub enum Fate {
    Answered(HttpResponse),
    /// The node has not looked at it: it has to be sent by itself.
    Refused,
    Unanswered(Unanswered),
}

/// A thread's bundles that take further requests, by the address of the node.
#[derive(Clone, Default)]
pub struct Bundles(Rc<RefCell<HashMap<Arc<str>, Bundle>>>);

struct Bundle {
    requests: BytesMut,
    /// Who waits for the answers, in the order of the requests.
    waiting: Vec<Option<Sender<Fate>>>,
    /// When the last of them is not waited for any more.
    until: Instant,
}

impl Bundle {
    fn new(until: Instant) -> Self {
        Bundle {
            requests: BytesMut::new(),
            waiting: Vec::new(),
            until,
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= ITEMS_MAX || self.requests.len() >= FULL_BYTES
    }
}

impl Bundles {
    /// Sends what `write` writes to the node at this address, together with what others send there now, and waits for its
    /// answer.
    pub async fn send(
        &self,
        client: &NodeClient,
        address: &Arc<str>,
        until: Instant,
        write: impl FnOnce(&mut BytesMut),
    ) -> Fate {
        let fate = {
            let mut open = self.0.borrow_mut();
            let bundle = match open.entry(Arc::clone(address)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(vacant) => {
                    spawn(self.clone().close(client.clone(), Arc::clone(address)));
                    vacant.insert(Bundle::new(until))
                }
            };
            let before = bundle.requests.len();
            write(&mut bundle.requests);
            if bundle.requests.len() - before > ITEM_BYTES_MAX {
                bundle.requests.truncate(before);
                return Fate::Refused;
            }
            let (waiting, fate) = channel();
            bundle.waiting.push(Some(waiting));
            bundle.until = bundle.until.max(until);
            if bundle.is_full() {
                let full = mem::replace(bundle, Bundle::new(until));
                spawn(full.send(client.clone(), Arc::clone(address)));
            }
            fate
        };
        fate.await.unwrap_or_else(|_| {
            Fate::Unanswered(Unanswered::after_sending("the bundle of requests was given up"))
        })
    }

    /// Sends what has come together when everybody who is ready has had a turn.
    async fn close(self, client: NodeClient, address: Arc<str>) {
        yield_now().await;
        let closed = self.0.borrow_mut().remove(&address);
        if let Some(bundle) = closed.filter(|bundle| !bundle.waiting.is_empty()) {
            bundle.send(client, address).await;
        }
    }
}

impl Bundle {
    async fn send(mut self, client: NodeClient, address: Arc<str>) {
        let sent = self.exchange(&client, &address).await;
        for waiting in self.waiting.into_iter().flatten() {
            let fate = match &sent {
                Ok(true) => Fate::Unanswered(Unanswered::after_sending(
                    "the answer to a bundle of requests ended early",
                )),
                Ok(false) => Fate::Refused,
                Err(error) => Fate::Unanswered(error.clone()),
            };
            // The client may be gone.
            let _ = waiting.send(fate);
        }
    }

    /// Passes each answer to who waits for it, as it arrives. Returns whether the node takes bundles: one that is being
    /// replaced may run a program that knows none.
    async fn exchange(&mut self, client: &NodeClient, address: &str) -> Result<bool, Unanswered> {
        let request = client
            .request(&Method::POST, address, PATH)
            .insert_header((CONTENT_TYPE, HeaderValue::from_static("application/http")))
            .timeout(self.until.saturating_duration_since(Instant::now()));
        let mut answer = request.send_body(mem::take(&mut self.requests)).await?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(false),
            other => {
                let fault = format!("a bundle of requests was answered with {other}");
                return Err(Unanswered::after_sending(fault));
            }
        }
        let mut arrived = BytesMut::new();
        while let Some(piece) = answer.next().await {
            arrived.extend_from_slice(&piece.map_err(|error| Unanswered::after_sending(error.to_string()))?);
            loop {
                let taken = format::take_answer(&mut arrived);
                let taken = taken.map_err(|error| Unanswered::after_sending(error.to_string()))?;
                let Some((item, answer)) = taken else { break };
                let waiting = self.waiting.get_mut(item).and_then(Option::take);
                if let Some(waiting) = waiting {
                    // The client may be gone.
                    let _ = waiting.send(Fate::Answered(answer));
                }
            }
            if arrived.len() > 2 * ANSWER_BYTES_MAX {
                return Err(Unanswered::after_sending("an answer is too large"));
            }
        }
        Ok(true)
    }
}
