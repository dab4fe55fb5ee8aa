//! A request before it is known where it is served.

use std::time::{Duration, Instant};

use actix_web::dev;
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{FromRequest, HttpRequest};
use serde_json::Value;

use crate::error::ServiceError;
use crate::http::server::middleware::Shared;
use crate::http::{body, inside};
use crate::service::{Location, Node, ShardService};

/// Time left for the answer when a request stops waiting for an owner.
const MARGIN: Duration = Duration::from_secs(1);

/// A request with its body, as it has arrived.
pub struct Arrived {
    pub request: HttpRequest,
    pub payload: Payload,
    /// When it stops waiting for an owner of its shard.
    pub until: Instant,
}

impl Arrived {
    /// A request that has just arrived.
    pub fn new(request: HttpRequest, payload: Payload) -> Self {
        let shared = request.app_data::<Data<Shared>>();
        let timeout = shared.map_or(MARGIN, |shared| shared.deadlines.timeout());
        Arrived {
            request,
            payload,
            until: Instant::now() + timeout.saturating_sub(MARGIN),
        }
    }

    /// A request whose body was read.
    ///
    /// # Errors
    /// None: the body is there.
    pub async fn again(request: &HttpRequest, bytes: Bytes, until: Instant) -> Result<Self, ServiceError> {
        let payload = Payload::from_request(request, &mut dev::Payload::from(bytes)).await;
        Ok(Arrived {
            request: request.clone(),
            payload: payload.map_err(|error| ServiceError::internal(error.to_string()))?,
            until,
        })
    }

    /// Where it is served, if that is known without a look at its credential: another node has passed it on, or there is
    /// only one shard.
    ///
    /// # Errors
    /// 503 if nobody serves the shard.
    pub async fn known_location(&self, node: &Node) -> Result<Option<Location<ShardService>>, ServiceError> {
        match inside::shard_of(&self.request) {
            Some(shard) => node.locate(shard, self.until).await.map(Some),
            None => Ok(node.only_shard().map(Location::Here)),
        }
    }

    /// A member of the body, if that is a JSON object with such a text, and the request as it was.
    ///
    /// # Errors
    /// Errors of reading the body.
    pub async fn member(self, name: &str, bytes_max: usize) -> Result<(Option<String>, Self), ServiceError> {
        let sent = body::read_sent(&self.request, self.payload, bytes_max).await?;
        let bytes = sent.bytes();
        // Whatever is wrong with it is said where the request is served.
        let read = body::decoded(&self.request, &sent, bytes_max).ok();
        let read: Option<Value> = read.and_then(|read| serde_json::from_slice(&read).ok());
        let member = read
            .as_ref()
            .and_then(|read| read.get(name)?.as_str().map(str::to_owned));
        Ok((member, Self::again(&self.request, bytes, self.until).await?))
    }
}
