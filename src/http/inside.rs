//! Requests that one node of a cluster passes on to another. They arrive at a listener of their own, which takes only
//! requests with the cluster's secret, and say which shard they are for.

use std::net::IpAddr;
use std::time::Instant;

use actix_web::HttpRequest;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, USER_AGENT};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpResponse};
use log_store::Shard;
use subtle::ConstantTimeEq;

use super::auth;
use super::proxies::client_behind;
use super::server::request_id::RequestId;
use crate::error::ServiceError;
use crate::service::sessions::Client;
use crate::service::{Location, Node};

/// The cluster's secret.
pub static SECRET: HeaderName = HeaderName::from_static("x-tidewatch-secret");
/// The number of the shard that the request is for.
pub static SHARD: HeaderName = HeaderName::from_static("x-tidewatch-shard");
/// The address of the client, for limits per address.
pub static CLIENT: HeaderName = HeaderName::from_static("x-tidewatch-client");
/// The id of the client's request.
pub static REQUEST_ID: HeaderName = HeaderName::from_static("x-tidewatch-request-id");
/// Says that the body was larger than any route takes, and is left out.
pub static TOO_LARGE: HeaderName = HeaderName::from_static("x-tidewatch-too-large");
/// Says that the node does not serve the shard, and has not looked at the request.
pub static NOT_HERE: HeaderName = HeaderName::from_static("x-tidewatch-not-here");

/// Headers whose names begin like this mean something only between nodes.
const RESERVED_PREFIX: &str = "x-tidewatch-";

/// What the node at which a request arrived says of it to the owner. A request has it exactly if that node has shown the
/// cluster's secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassedOn {
    pub shard: Option<Shard>,
    pub client: Option<IpAddr>,
    pub request_id: Option<RequestId>,
    pub is_too_large: bool,
}

impl PassedOn {
    /// Notes what a header says; returns whether it means something only between nodes.
    pub fn note(&mut self, name: &str, value: &[u8]) -> bool {
        if !is_reserved(name) {
            return false;
        }
        let text = str::from_utf8(value).unwrap_or_default();
        if name == SHARD.as_str() {
            self.shard = text.parse().ok().map(Shard);
        } else if name == CLIENT.as_str() {
            self.client = text.parse().ok();
        } else if name == REQUEST_ID.as_str() {
            self.request_id = RequestId::parse(text);
        } else if name == TOO_LARGE.as_str() {
            self.is_too_large = true;
        }
        true
    }

    fn of(request: &HttpRequest) -> Option<Self> {
        request.extensions().get::<Self>().copied()
    }
}

/// Whether another node has passed the request on.
pub fn is_inside(request: &HttpRequest) -> bool {
    PassedOn::of(request).is_some()
}

/// The shard that a request of another node is for; `None` for a request of a client.
pub fn shard_of(request: &HttpRequest) -> Option<Shard> {
    PassedOn::of(request)?.shard
}

/// Who sends a request, as far as its connection and its headers tell.
pub fn client_of(request: &HttpRequest) -> Client {
    let user_agent = request.headers().get(USER_AGENT);
    Client {
        address: address_of(request),
        user_agent: user_agent.map(|sent| String::from_utf8_lossy(sent.as_bytes()).into_owned()),
    }
}

/// The address of the client, wherever the request has arrived: the peer of its connection, or whom the configured proxies
/// name.
pub fn address_of(request: &HttpRequest) -> Option<IpAddr> {
    if let Some(passed_on) = PassedOn::of(request) {
        return passed_on.client;
    }
    let peer = request.peer_addr()?.ip();
    let node = request.app_data::<Data<Node>>();
    let trusted = node.map_or(&[][..], |node| &node.config.server.trusted_proxies);
    Some(client_behind(trusted, peer, request.headers()))
}

/// The id that the node at which the request arrived has given it.
pub fn request_id_of(request: &ServiceRequest) -> Option<RequestId> {
    request.extensions().get::<PassedOn>()?.request_id
}

/// Whether a body was left out because it is larger than any route takes.
pub fn is_too_large(request: &HttpRequest) -> bool {
    PassedOn::of(request).is_some_and(|passed_on| passed_on.is_too_large)
}

/// Whether a header means something only between nodes; those of clients are not passed on.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED_PREFIX)
}

/// The answer of a node that does not serve the shard.
pub fn not_here() -> HttpResponse {
    HttpResponse::build(StatusCode::MISDIRECTED_REQUEST)
        .insert_header((NOT_HERE.clone(), "1"))
        .finish()
}

/// The path at which a node is told that the tables have changed.
pub const NEWS_PATH: &str = "/cluster/news";

/// Answers when the tables have been read once more.
pub async fn news(node: Data<Node>) -> HttpResponse {
    if let Some(cluster) = node.cluster() {
        cluster.table.read_again().await;
    }
    HttpResponse::NoContent().finish()
}

/// The path at which a node asks whether a client's credential is known, before it reads a large body.
pub const CREDENTIAL_PATH: &str = "/cluster/credential";

/// Answers 204 if the credential is known.
///
/// # Errors
/// As [`auth::check`].
pub async fn credential(request: HttpRequest, node: Data<Node>) -> Result<HttpResponse, ServiceError> {
    let Some(shard) = shard_of(&request) else {
        return Ok(not_here());
    };
    // While the shard is between two owners, the node that asks waits for the next one.
    let Ok(Location::Here(service)) = node.locate(shard, Instant::now()).await else {
        return Ok(not_here());
    };
    auth::check(&request, &service)?;
    Ok(HttpResponse::NoContent().finish())
}

/// Takes only requests with the cluster's secret, and those of bundles that had it.
pub async fn admit<B: MessageBody + 'static>(
    node: Data<Node>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    if !request.extensions().contains::<PassedOn>() {
        let presented = request.headers().get(&SECRET).map(HeaderValue::as_bytes);
        let is_known = node.cluster().is_some_and(|cluster| {
            let presented = presented.unwrap_or_default();
            presented.ct_eq(cluster.secret.as_bytes()).into()
        });
        if !is_known {
            let refusal = HttpResponse::Unauthorized().finish();
            return Ok(request.into_response(refusal).map_into_right_body());
        }
        let mut passed_on = PassedOn::default();
        for (name, value) in request.headers() {
            passed_on.note(name.as_str(), value.as_bytes());
        }
        request.extensions_mut().insert(passed_on);
    }
    Ok(next.call(request).await?.map_into_left_body())
}
