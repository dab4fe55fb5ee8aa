//! Passes a request on to the node that owns its shard, in one hop.
//!
//! The body is read whole before it is sent, within the limits of bodies: so that the request can be sent to the next owner
//! if the shard is just being handed over, and a slow client holds resources of one node only. A body of any length is passed
//! on as it arrives, to one owner. Before a large body is read, the owner is asked whether it knows the caller. A request
//! whose fate is unknown is sent again only if that is harmless.

mod answer;
mod outgoing;

use std::fmt::Display;
use std::pin::pin;
use std::time::{Duration, Instant};

use actix_web::error::PayloadError;
use actix_web::http::header::AUTHORIZATION;
use actix_web::http::{Method, StatusCode};
use actix_web::rt::time::{sleep, timeout};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::unfold;
use listener::Download;
use serde_json::Value;

use super::body;
use super::body_stream::IDLE_MAX;
use super::endpoint::Arrived;
use super::inside;
use super::node_client::{NodeClient, Unanswered};
use super::server::request_context::lift_deadline;
use crate::error::{ErrorKind, ServiceError};
use crate::limits::BATCH_BODY_BYTES_MAX;
use crate::service::{Cluster, Location, Node, Owner};
use answer::respond;
use outgoing::{Outgoing, to_owner};

pub use answer::is_passed_on;

/// Pause before a node that cannot be reached is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the answers of an owner may be on their way when it is none any more.
const LAST_ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// `Retry-After` of a request whose owner did not answer.
const RETRY_AFTER_SECONDS: u32 = 2;

/// Time for another node's part of an answer.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of another node's part of an answer.
const ASKED_BYTES_MAX: usize = 16 << 20;

/// What has to be known of a route to pass its requests on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forwarding {
    /// Whether it refuses a caller without a known credential.
    pub needs_credential: bool,
    /// Whether the body may have any length. Then a request takes as long as it needs, too.
    pub is_streamed: bool,
    /// Whether a request takes as long as it needs.
    pub takes_long: bool,
    /// Whether it only reads, although it takes a body.
    pub only_reads: bool,
    /// Whether it gives the first answer again for an idempotency key.
    pub keeps_answers: bool,
    /// Whether a success is a file, which a client may take slowly.
    pub is_download: bool,
    /// Whether requests with a small body may share one, because their answers are small, too.
    pub is_bundled: bool,
}

/// The outcome of passing a request on.
pub enum Forwarded {
    /// The owner's answer.
    Answered(HttpResponse),
    /// The shard is served here by now.
    Here(Arrived),
}

/// What became of a request that was sent.
enum Delivered {
    Answered(HttpResponse),
    /// The shard is served here by now.
    Here,
}

/// Asks another node for its part of an answer that several shards give: a request of this method to this path, with the
/// caller's `Authorization`. Returns the status and the body.
///
/// # Errors
/// 503 if the node does not answer with JSON.
pub async fn ask(
    node: &Node,
    owner: &Owner,
    request: &HttpRequest,
    (method, path): (Method, String),
    body: Option<&Value>,
) -> Result<(StatusCode, Value), ServiceError> {
    let (_, client) = means(node, request)?;
    let mut asked = to_owner(client, owner, &method, &path).timeout(ASK_TIMEOUT);
    for value in request.headers().get_all(AUTHORIZATION) {
        asked = asked.append_header((AUTHORIZATION, value.clone()));
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut answer = asked
        .send_body(body)
        .await
        .map_err(|error| unanswered(owner, &error))?;
    let read = answer.json().limit(ASKED_BYTES_MAX).await;
    let read = read.map_err(|error| unanswered(owner, &error))?;
    Ok((answer.status(), read))
}

fn means<'a>(
    node: &'a Node,
    request: &'a HttpRequest,
) -> Result<(&'a Cluster, &'a NodeClient), ServiceError> {
    let client = request.app_data::<Data<NodeClient>>().map(|client| &***client);
    let means = node.cluster().zip(client);
    means.ok_or_else(|| ServiceError::internal("BUG: a request has another owner without a cluster"))
}

/// Passes a request on to the owner of its shard, and to the next one if that is none any more.
///
/// # Errors
/// 503 if no owner has answered in time, or what became of the request is not known. Errors of reading the body.
pub async fn forward(
    node: &Node,
    mut owner: Owner,
    arrived: Arrived,
    route: Forwarding,
) -> Result<Forwarded, ServiceError> {
    if inside::is_inside(&arrived.request) {
        // One hop is all: the node that asked finds the owner.
        return Ok(Forwarded::Answered(inside::not_here()));
    }
    let Arrived {
        request,
        payload,
        until,
    } = arrived;
    let (cluster, client) = means(node, &request)?;
    if route.needs_credential && has_body(&request) && body::may_be_large(&request) {
        let question = Outgoing::question(&request, until);
        match deliver(client, cluster, &mut owner, &question).await? {
            Delivered::Answered(answer) if answer.status() == StatusCode::NO_CONTENT => {}
            Delivered::Answered(refusal) => return Ok(Forwarded::Answered(refusal)),
            Delivered::Here => {
                return Ok(Forwarded::Here(Arrived {
                    request,
                    payload,
                    until,
                }));
            }
        }
    }
    if route.is_streamed {
        lift_deadline(&request);
        let outgoing = Outgoing::request(&request, Bytes::new(), until, route);
        return pass_on(client, cluster, &owner, &outgoing, payload).await;
    }
    let outgoing = if has_body(&request) {
        match body::read_sent(&request, payload, BATCH_BODY_BYTES_MAX).await {
            // The owner says so, after it has checked who calls.
            Err(error) if error.kind == ErrorKind::PayloadTooLarge => {
                Outgoing::too_large(&request, until, route)
            }
            body => Outgoing::request(&request, body?.bytes(), until, route),
        }
    } else {
        Outgoing::request(&request, Bytes::new(), until, route)
    };
    if route.takes_long {
        lift_deadline(&request);
    }
    match deliver(client, cluster, &mut owner, &outgoing).await? {
        Delivered::Answered(mut answer) => {
            cluster.table.counts.forwarded();
            if route.is_download && answer.status().is_success() {
                answer.extensions_mut().insert(Download);
            }
            Ok(Forwarded::Answered(answer))
        }
        Delivered::Here if outgoing.is_too_large => {
            Err(ServiceError::payload_too_large(BATCH_BODY_BYTES_MAX))
        }
        Delivered::Here => {
            let arrived = Arrived::again(&request, outgoing.body, until).await?;
            Ok(Forwarded::Here(arrived))
        }
    }
}

/// Passes on a body as it arrives. It is gone if the owner is none any more. The client of this library reads an answer
/// only when it has sent the whole body, so an owner that refuses reads the rest of it first.
async fn pass_on(
    client: &NodeClient,
    cluster: &Cluster,
    owner: &Owner,
    outgoing: &Outgoing<'_>,
    payload: Payload,
) -> Result<Forwarded, ServiceError> {
    // Of a client that stops, the owner knows nothing.
    let body = unfold(payload, |mut payload| async move {
        let piece = timeout(IDLE_MAX, payload.next()).await;
        let piece = piece.unwrap_or(Some(Err(PayloadError::Incomplete(None))))?;
        Some((piece, payload))
    });
    let sending = pin!(outgoing.head(client, owner).send_stream(Box::pin(body)));
    let sent = match select(sending, pin!(gone(cluster, owner))).await {
        Either::Left((sent, _)) => sent.map_err(|error| error.to_string()),
        Either::Right(_) => Err("it is none any more".to_owned()),
    };
    match sent {
        Ok(answer) if !answer.headers().contains_key(&inside::NOT_HERE) => {
            cluster.table.counts.forwarded();
            Ok(Forwarded::Answered(respond(answer)))
        }
        Ok(_) => {
            cluster.table.ask_for_news();
            Err(unanswered(owner, &"it is none any more"))
        }
        Err(error) => {
            cluster.table.counts.unanswered();
            Err(unanswered(owner, &error))
        }
    }
}

/// Sends something to the owner of a shard, and to the next one if that is none any more, until the request's time is over.
async fn deliver(
    client: &NodeClient,
    cluster: &Cluster,
    owner: &mut Owner,
    outgoing: &Outgoing<'_>,
) -> Result<Delivered, ServiceError> {
    loop {
        let refused = match attempt(client, cluster, owner, outgoing).await {
            Attempt::Answered(answer) => return Ok(Delivered::Answered(answer)),
            Attempt::Moved => Some(&*owner),
            Attempt::Lost => {
                cluster.table.counts.unanswered();
                return Err(unanswered(owner, &"it is none any more"));
            }
            Attempt::Failed(error) => {
                let may_repeat = error.is_unsent || outgoing.is_repeatable;
                if !may_repeat || Instant::now() + PAUSE >= outgoing.until {
                    cluster.table.counts.unanswered();
                    return Err(unanswered(owner, &error));
                }
                sleep(PAUSE).await;
                None
            }
        };
        *owner = match cluster.table.locate(owner.shard, refused, outgoing.until).await? {
            Location::At(owner) => owner,
            Location::Here(_) => return Ok(Delivered::Here),
        };
    }
}

/// What became of an attempt.
enum Attempt {
    Answered(HttpResponse),
    /// The shard is not there any more, and the request may be sent again.
    Moved,
    /// The shard is not there any more, and what became of the request is not known.
    Lost,
    Failed(Unanswered),
}

async fn attempt(client: &NodeClient, cluster: &Cluster, owner: &Owner, outgoing: &Outgoing<'_>) -> Attempt {
    let sending = pin!(outgoing.send(client, owner));
    let sent = match outgoing.is_repeatable {
        // A node that is frozen answers nothing, and is replaced after its lease.
        true => match select(sending, pin!(cluster.table.moved(owner))).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => return Attempt::Moved,
        },
        false => match select(sending, pin!(gone(cluster, owner))).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => return Attempt::Lost,
        },
    };
    match sent {
        Ok(answer) if answer.headers().contains_key(&inside::NOT_HERE) => {
            cluster.table.ask_for_news();
            Attempt::Moved
        }
        Ok(answer) => Attempt::Answered(answer),
        Err(error) => Attempt::Failed(error),
    }
}

/// Waits until the shard has left this owner, and its answers have arrived: it lets go of a shard when its requests have
/// ended.
async fn gone(cluster: &Cluster, owner: &Owner) {
    cluster.table.moved(owner).await;
    sleep(LAST_ANSWERS_WITHIN).await;
}

/// Whether the request may have a body that means something (RFC 9110, 9.3.1).
fn has_body(request: &HttpRequest) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD)
}

fn unanswered(owner: &Owner, error: &dyn Display) -> ServiceError {
    let message = "the node that owns the organization's shard did not answer, and may have carried the request out; send \
                   it again, with an Idempotency-Key if it must not count twice";
    let cause = format!("{}: {error}", owner.address);
    ServiceError::unavailable(message, RETRY_AFTER_SECONDS).caused_by(cause)
}
