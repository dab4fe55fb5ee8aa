//! A client's request as it is sent to the owner of its shard.

use std::time::{Duration, Instant};

use actix_web::http::Method;
use actix_web::http::header::{CONTENT_ENCODING, HeaderName, HeaderValue};
use actix_web::http::uri::PathAndQuery;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use awc::ClientRequest;

use super::answer::{is_passed_on, respond};
use super::{Forwarding, has_body};
use crate::http::bundle::{Fate, write_request};
use crate::http::inside;
use crate::http::node_client::{NodeClient, Unanswered};
use crate::http::server::body_budget::FREE_BYTES;
use crate::http::server::request_context::id_of;
use crate::service::Owner;

/// Limit of a request that takes as long as it needs. If the owner does not answer, it ends when its shard has another
/// one.
const LONG_REQUEST_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What is sent to an owner for a client's request.
pub struct Outgoing<'a> {
    request: &'a HttpRequest,
    method: Method,
    target: &'a str,
    pub body: Bytes,
    /// Whether the body was larger than any route takes, and is left out.
    pub is_too_large: bool,
    /// Whether it may be sent again although an owner may have carried it out.
    pub is_repeatable: bool,
    /// Whether the owner may take longer than `until` to answer.
    takes_long: bool,
    /// Whether it may share a request with others.
    is_bundled: bool,
    pub until: Instant,
}

impl<'a> Outgoing<'a> {
    /// The client's request with its body.
    pub fn request(request: &'a HttpRequest, body: Bytes, until: Instant, route: Forwarding) -> Self {
        Outgoing {
            request,
            // The answer to HEAD is that to GET, without the body, which the listener leaves out.
            method: match *request.method() {
                Method::HEAD => Method::GET,
                ref method => method.clone(),
            },
            target: request.uri().path_and_query().map_or("/", PathAndQuery::as_str),
            // A small compressed body may be a large one, with a large answer.
            is_bundled: route.is_bundled
                && body.len() <= FREE_BYTES
                && !request.headers().contains_key(CONTENT_ENCODING),
            body,
            is_too_large: false,
            is_repeatable: is_repeatable(request, route),
            takes_long: route.takes_long || route.is_streamed,
            until,
        }
    }

    /// The client's request, whose body is left out.
    pub fn too_large(request: &'a HttpRequest, until: Instant, route: Forwarding) -> Self {
        Outgoing {
            is_too_large: true,
            ..Outgoing::request(request, Bytes::new(), until, route)
        }
    }

    /// The question whether the owner knows the client's credential.
    pub fn question(request: &'a HttpRequest, until: Instant) -> Self {
        Outgoing {
            request,
            method: Method::GET,
            target: inside::CREDENTIAL_PATH,
            body: Bytes::new(),
            is_too_large: false,
            is_repeatable: true,
            takes_long: false,
            is_bundled: false,
            until,
        }
    }

    /// Sends it to the owner.
    ///
    /// # Errors
    /// The owner does not answer in time.
    pub async fn send(&self, client: &NodeClient, owner: &Owner) -> Result<HttpResponse, Unanswered> {
        let fate = match self.is_bundled {
            true => self.send_with_others(client, owner).await,
            false => Fate::Alone,
        };
        match fate {
            Fate::Answered(answer) => Ok(answer),
            Fate::Unanswered(why) => Err(why),
            Fate::Alone => {
                let sent = self.head(client, owner).send_body(self.body.clone()).await;
                Ok(respond(sent?))
            }
        }
    }

    async fn send_with_others(&self, client: &NodeClient, owner: &Owner) -> Fate {
        let bundles = &client.bundles;
        let write = |out: &mut _| {
            let headers = |add: &mut dyn FnMut(&HeaderName, &[u8])| {
                add(&inside::SHARD, owner.shard.0.to_string().as_bytes());
                for (name, value) in self.client_headers() {
                    add(name, value.as_bytes());
                }
                self.own_headers(|name, value| add(name, value.as_bytes()));
            };
            write_request(out, &self.method, self.target, headers, &self.body);
        };
        bundles.send(client, &owner.address, self.until, write).await
    }

    /// A request of its own, without the body.
    pub fn head(&self, client: &NodeClient, owner: &Owner) -> ClientRequest {
        let mut sent = to_owner(client, owner, &self.method, self.target)
            .no_decompress()
            .timeout(self.timeout());
        for (name, value) in self.client_headers() {
            sent = sent.append_header((name.clone(), value.clone()));
        }
        self.own_headers(|name, value| {
            // Digits and the letters of addresses are valid in headers.
            if let Ok(value) = HeaderValue::from_str(value) {
                sent.headers_mut().insert(name.clone(), value);
            }
        });
        sent
    }

    /// The client's headers that go on to the owner.
    fn client_headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let headers = self.request.headers().iter();
        headers.filter(|(name, _)| is_passed_on(name) && !inside::is_reserved(name.as_str()))
    }

    /// Calls this with what the owner has to know of the request.
    fn own_headers(&self, mut add: impl FnMut(&HeaderName, &str)) {
        if let Some(client) = inside::address_of(self.request) {
            add(&inside::CLIENT, &client.to_string());
        }
        if let Some(id) = id_of(self.request) {
            add(&inside::REQUEST_ID, &id.to_string());
        }
        if self.is_too_large {
            add(&inside::TOO_LARGE, "1");
        }
    }

    /// How long to wait for an answer.
    fn timeout(&self) -> Duration {
        match self.takes_long {
            true => LONG_REQUEST_TIMEOUT,
            false => self.until.saturating_duration_since(Instant::now()),
        }
    }
}

/// A request to the owner of a shard.
pub fn to_owner(client: &NodeClient, owner: &Owner, method: &Method, target: &str) -> ClientRequest {
    client
        .request(method, &owner.address, target)
        .insert_header((inside::SHARD.clone(), owner.shard.0.to_string()))
}

/// Whether a request may be sent again although an owner may have carried it out: it changes nothing, or its idempotency key
/// makes the second one harmless, on the routes that know such keys.
fn is_repeatable(request: &HttpRequest, route: Forwarding) -> bool {
    !has_body(request)
        || route.only_reads
        || route.keeps_answers && request.headers().contains_key(&IDEMPOTENCY_KEY)
}
