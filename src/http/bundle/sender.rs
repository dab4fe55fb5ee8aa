//! Collects requests to a node that arrive in the same turn of the event loop, and sends them together.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::rt::spawn;
use actix_web::rt::task::yield_now;
use actix_web::rt::time::sleep;
use actix_web::web::BytesMut;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use tokio::sync::oneshot::{Receiver, Sender, channel};

use super::format::Malformed;
use super::{ALONE, ANSWER_BYTES_MAX, FULL_BYTES, ITEM_BYTES_MAX, ITEMS_MAX, PATH, format};
use crate::http::node_client::{NodeClient, Unanswered};

/// How often it is checked for whom a bundle is still waited for.
const CHECK_PERIOD: Duration = Duration::from_millis(250);
/// How long a node that refuses bundles is sent none.
const WITHOUT_FOR: Duration = Duration::from_secs(10);

/// What became of a request in a bundle.
pub enum Fate {
    Answered(HttpResponse),
    /// It was not carried out, and has to be sent by itself.
    Alone,
    Unanswered(Unanswered),
}

/// A thread's bundles that take further requests. Cheap to clone.
#[derive(Clone, Default)]
pub struct Bundles(Rc<RefCell<Nodes>>);

/// By the address of the node.
#[derive(Default)]
struct Nodes {
    open: HashMap<Arc<str>, Bundle>,
    /// Nodes that refuse bundles, and when they are asked again.
    without: HashMap<Arc<str>, Instant>,
}

#[derive(Default)]
struct Bundle {
    requests: BytesMut,
    waiting: Waiting,
}

/// Who waits for the answers to a bundle, in the order of its requests; `None` for those that have one.
#[derive(Default)]
struct Waiting(RefCell<Vec<Option<Waiter>>>);

struct Waiter {
    fate: Sender<Fate>,
    /// When it is told that there is no answer.
    until: Instant,
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
        match self.add(client, address, until, write) {
            Some(fate) => fate.await.unwrap_or_else(|_| unanswered("it was given up")),
            None => Fate::Alone,
        }
    }

    /// Adds a request to a bundle; `None` if it has to be sent by itself.
    fn add(
        &self,
        client: &NodeClient,
        address: &Arc<str>,
        until: Instant,
        write: impl FnOnce(&mut BytesMut),
    ) -> Option<Receiver<Fate>> {
        let mut nodes = self.0.borrow_mut();
        if let Some(asked_again) = nodes.without.get(address) {
            if Instant::now() < *asked_again {
                return None;
            }
            nodes.without.remove(address);
        }
        let bundle = match nodes.open.entry(Arc::clone(address)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                spawn(self.clone().close(client.clone(), Arc::clone(address)));
                vacant.insert(Bundle::default())
            }
        };
        let before = bundle.requests.len();
        write(&mut bundle.requests);
        if bundle.requests.len() - before > ITEM_BYTES_MAX {
            bundle.requests.truncate(before);
            return None;
        }
        let (fate, answer) = channel();
        let waiting = bundle.waiting.0.get_mut();
        waiting.push(Some(Waiter { fate, until }));
        if waiting.len() >= ITEMS_MAX || bundle.requests.len() >= FULL_BYTES {
            let full = mem::take(bundle);
            spawn(full.send(self.clone(), client.clone(), Arc::clone(address)));
        }
        Some(answer)
    }

    /// Sends a bundle after all tasks that are ready now have run.
    async fn close(self, client: NodeClient, address: Arc<str>) {
        yield_now().await;
        let closed = self.0.borrow_mut().open.remove(&address);
        if let Some(bundle) = closed {
            bundle.send(self, client, address).await;
        }
    }
}

impl Bundle {
    /// Sends it and passes on the answers, until nobody waits for one.
    async fn send(self, bundles: Bundles, client: NodeClient, address: Arc<str>) {
        let Some(last) = self.waiting.last() else {
            return;
        };
        let mut exchange = pin!(exchange(&client, &address, self.requests, last, &self.waiting));
        let ended = loop {
            match select(exchange.as_mut(), pin!(sleep(CHECK_PERIOD))).await {
                Either::Left((ended, _)) => break ended,
                Either::Right(_) if self.waiting.is_over(Instant::now()) => return,
                Either::Right(_) => {}
            }
        };
        if let Ok(Exchanged::Refused) = ended {
            let asked_again = Instant::now() + WITHOUT_FOR;
            bundles
                .0
                .borrow_mut()
                .without
                .insert(Arc::clone(&address), asked_again);
        }
        self.waiting.end(|| match &ended {
            Ok(Exchanged::Answered) => unanswered("the answer to a bundle ended early"),
            Ok(Exchanged::Refused) => Fate::Alone,
            Err(error) => Fate::Unanswered(error.clone()),
        });
    }
}

/// How an exchange ended.
enum Exchanged {
    Answered,
    /// Nothing was carried out: the program of the node is older and knows no bundles, or it takes none from this node.
    Refused,
}

/// Sends the requests and passes each answer to who waits for it, as it arrives.
async fn exchange(
    client: &NodeClient,
    address: &str,
    requests: BytesMut,
    until: Instant,
    waiting: &Waiting,
) -> Result<Exchanged, Unanswered> {
    let octets = HeaderValue::from_static("application/octet-stream");
    let request = client
        .request(&Method::POST, address, PATH)
        .insert_header((CONTENT_TYPE, octets))
        .timeout(until.saturating_duration_since(Instant::now()));
    let mut answer = request.send_body(requests).await?;
    if answer.status().is_client_error() {
        // Read to its end, so that the connection can be used again.
        let _ = answer.body().await;
        return Ok(Exchanged::Refused);
    }
    if answer.status() != StatusCode::OK {
        let fault = format!("a bundle was answered with {}", answer.status());
        return Err(Unanswered::after_sending(fault));
    }
    let mut arrived = BytesMut::new();
    while let Some(piece) = answer.next().await {
        arrived.extend_from_slice(&piece.map_err(|error| Unanswered::after_sending(error.to_string()))?);
        while let Some((item, answer)) = format::take_answer(&mut arrived) {
            waiting.answer(item, answer);
        }
        if arrived.len() > 2 * ANSWER_BYTES_MAX {
            return Err(Unanswered::after_sending("an answer is too large"));
        }
    }
    Ok(Exchanged::Answered)
}

fn unanswered(cause: &'static str) -> Fate {
    Fate::Unanswered(Unanswered::after_sending(cause))
}

impl Waiting {
    /// When the last one gives up; `None` if there is none.
    fn last(&self) -> Option<Instant> {
        let waiting = self.0.borrow();
        waiting.iter().flatten().map(|waiter| waiter.until).max()
    }

    fn answer(&self, item: usize, answer: Result<HttpResponse, Malformed>) {
        let waiter = self.0.borrow_mut().get_mut(item).and_then(Option::take);
        let fate = match answer {
            Ok(answer) if answer.headers().contains_key(&ALONE) => Fate::Alone,
            Ok(answer) => Fate::Answered(answer),
            Err(error) => Fate::Unanswered(Unanswered::after_sending(error.to_string())),
        };
        if let Some(waiter) = waiter {
            // Its client may be gone.
            let _ = waiter.fate.send(fate);
        }
    }

    /// Tells those whose time is over that there is no answer. Returns whether nobody waits any more.
    fn is_over(&self, now: Instant) -> bool {
        let mut waiting = self.0.borrow_mut();
        for place in waiting.iter_mut() {
            if let Some(late) = place.take_if(|waiter| waiter.until <= now) {
                let _ = late.fate.send(unanswered("it did not answer in time"));
            }
        }
        waiting.iter().flatten().all(|waiter| waiter.fate.is_closed())
    }

    /// Tells those who are left what became of their requests.
    fn end(&self, fate: impl Fn() -> Fate) {
        for waiter in self.0.borrow_mut().iter_mut().filter_map(Option::take) {
            let _ = waiter.fate.send(fate());
        }
    }
}
