//! A request as its handler gets it: authenticated, with path, query string and body parsed.

use std::collections::HashMap;
use std::marker::PhantomData;

use actix_web::HttpRequest;
use actix_web::web::Payload;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Arrived, Components, Credential, Params};
use crate::catalog::Role;
use crate::error::ServiceError;
use crate::http::body::{self, Body};
use crate::http::shape::{Faults, FromJson};
use crate::limits::BODY_BYTES_MAX;

/// A request with a credential of `C`, ids and query parameters `P`, and the body `B`.
pub struct Call<C: Credential, P = (), B = ()> {
    pub caller: C::Caller,
    /// Ids of the path in their order, and the parameters of the query string.
    pub params: P,
    pub body: B,
    /// What serves the call: the caller's shard, or the node.
    pub service: C::Scope,
    /// For headers and the peer's address.
    pub request: HttpRequest,
}

impl<C: Credential, P: Params, B: RequestBody<C::Scope>> Call<C, P, B> {
    /// Checks and reads a request in the contract's order: who calls (401, 429, 403), the body's bytes (413, 415, 400),
    /// and all faults of path, query and body together. `least`: the role that a person needs.
    pub(super) async fn receive(
        arrived: Arrived,
        service: C::Scope,
        least: Role,
    ) -> Result<Self, ServiceError> {
        let Arrived { request, payload, .. } = arrived;
        let caller = C::authenticate(&request, &service, least)?;
        let faults = Faults::default();
        let params = P::read(&request, 0, &faults);
        // An error of the body's bytes comes before the faults.
        let body = B::receive(&request, payload, &service, &faults).await?;
        let (params, body) = faults.finish(params.zip(body))?;
        Ok(Self {
            caller,
            params,
            body,
            service,
            request,
        })
    }
}

/// What a handler of calls that `S` serves takes as its body.
pub trait RequestBody<S>: Sized {
    /// Receives and reads the body; `None` when there are faults, which are recorded.
    ///
    /// # Errors
    /// The bytes cannot be received or are not JSON.
    fn receive(
        request: &HttpRequest,
        payload: Payload,
        service: &S,
        faults: &Faults,
    ) -> impl Future<Output = Result<Option<Self>, ServiceError>>;

    /// Adds the schema, and returns the `requestBody` of the operation; `None` where there is no body.
    fn describe(_: &mut Components) -> Option<Value> {
        None
    }
}

/// No body is expected; if there is one, it is ignored.
impl<S> RequestBody<S> for () {
    async fn receive(_: &HttpRequest, _: Payload, _: &S, _: &Faults) -> Result<Option<Self>, ServiceError> {
        Ok(Some(()))
    }
}

/// A JSON body.
impl<S, T: FromJson + ToSchema> RequestBody<S> for T {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        _: &S,
        faults: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let (json, _) = receive_json(request, payload).await?;
        Ok(T::read(&json, &faults.root()))
    }

    fn describe(components: &mut Components) -> Option<Value> {
        let schema = components.body::<T>();
        Some(components.request_body(schema, true))
    }
}

/// A JSON body that may be absent.
pub struct Optional<T>(pub Option<T>);

impl<S, T: FromJson + ToSchema> RequestBody<S> for Optional<T> {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        _: &S,
        faults: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let body = body::read(Ok(()), request, payload, BODY_BYTES_MAX).await?;
        if body.is_empty() {
            return Ok(Some(Self(None)));
        }
        let (json, _) = parsed(body)?;
        let read = T::read(&json, &faults.root());
        Ok(read.map(|read| Self(Some(read))))
    }

    fn describe(components: &mut Components) -> Option<Value> {
        let schema = components.body::<T>();
        Some(components.request_body(schema, false))
    }
}

/// A JSON body that the handler reads itself, after it has checked whether the caller may send it.
pub struct Unread<T> {
    /// As it was sent.
    pub json: Value,
    of: PhantomData<T>,
}

impl<T: FromJson> Unread<T> {
    /// Reads it.
    ///
    /// # Errors
    /// 400 with all its faults.
    pub fn read(&self) -> Result<T, ServiceError> {
        let faults = Faults::default();
        let read = T::read(&self.json, &faults.root());
        faults.finish(read)
    }
}

impl<S, T: FromJson + ToSchema> RequestBody<S> for Unread<T> {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        _: &S,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let (json, _) = receive_json(request, payload).await?;
        let of = PhantomData;
        Ok(Some(Self { json, of }))
    }

    fn describe(components: &mut Components) -> Option<Value> {
        <T as RequestBody<S>>::describe(components)
    }
}

/// A JSON body of which a member is kept as it was sent.
pub struct Exact<T> {
    pub body: T,
    bytes: Body,
}

impl<T> Exact<T> {
    /// A member of the body, exactly as it was sent. Of a member that is there twice the last one counts, here as
    /// elsewhere.
    ///
    /// # Errors
    /// 400 for a body that is not JSON, which [`RequestBody::receive`] rules out.
    pub fn member(&self, name: &str) -> Result<Option<Box<str>>, ServiceError> {
        let members: HashMap<String, &RawValue> =
            serde_json::from_slice(&self.bytes).map_err(|fault| body::malformed_json(&fault))?;
        Ok(members.get(name).map(|raw| raw.get().into()))
    }
}

impl<S, T: FromJson + ToSchema> RequestBody<S> for Exact<T> {
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        _: &S,
        faults: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let (json, bytes) = receive_json(request, payload).await?;
        let body = T::read(&json, &faults.root());
        Ok(body.map(|body| Self { body, bytes }))
    }

    fn describe(components: &mut Components) -> Option<Value> {
        <T as RequestBody<S>>::describe(components)
    }
}

/// Receives a JSON body, with its bytes.
async fn receive_json(request: &HttpRequest, payload: Payload) -> Result<(Value, Body), ServiceError> {
    parsed(body::read(Ok(()), request, payload, BODY_BYTES_MAX).await?)
}

/// A JSON body, with its bytes. Nesting is limited by the parser (128).
fn parsed(body: Body) -> Result<(Value, Body), ServiceError> {
    let json = serde_json::from_slice(&body).map_err(|fault| body::malformed_json(&fault))?;
    Ok((json, body))
}
