//! What handlers answer.

use std::marker::PhantomData;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Components;
use crate::error::ServiceError;
use crate::http::respond;

/// What a handler may answer.
pub trait Answered {
    /// Makes the answer of a request that succeeded with this status.
    fn respond(
        self,
        request: &HttpRequest,
        status: StatusCode,
    ) -> impl Future<Output = Result<HttpResponse, ServiceError>>;

    /// Adds the body's schema, and answers a reference to it; `None` where the row names other types than JSON.
    fn describe(components: &mut Components) -> Option<Value>;
}

/// A value as JSON.
pub struct Answer<T> {
    body: Vec<u8>,
    headers: HeaderMap,
    // Contravariant: what is written already may be called an answer of a longer lifetime.
    of: PhantomData<fn(T)>,
}

impl<T: Serialize> Answer<T> {
    /// Writes it.
    ///
    /// # Errors
    /// 500 for a value that is not JSON.
    pub fn of(value: &T) -> Result<Self, ServiceError> {
        Ok(Self {
            body: serde_json::to_vec(value).map_err(ServiceError::internal)?,
            headers: HeaderMap::new(),
            of: PhantomData,
        })
    }

    /// Headers that are added.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

impl<T: ToSchema> Answered for Answer<T> {
    async fn respond(self, request: &HttpRequest, status: StatusCode) -> Result<HttpResponse, ServiceError> {
        let mut response = respond::respond(request, status, self.body).await?;
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        Ok(response)
    }

    fn describe(components: &mut Components) -> Option<Value> {
        Some(components.add::<T>())
    }
}

/// A response that the handler made itself, described as `T`.
pub struct Written<T> {
    response: HttpResponse,
    of: PhantomData<T>,
}

impl<T> From<HttpResponse> for Written<T> {
    fn from(response: HttpResponse) -> Self {
        Self {
            response,
            of: PhantomData,
        }
    }
}

impl<T: ToSchema> Answered for Written<T> {
    async fn respond(self, _: &HttpRequest, _: StatusCode) -> Result<HttpResponse, ServiceError> {
        Ok(self.response)
    }

    fn describe(components: &mut Components) -> Option<Value> {
        Some(components.add::<T>())
    }
}

/// A response that is not JSON; the row names its types.
impl Answered for HttpResponse {
    async fn respond(self, _: &HttpRequest, _: StatusCode) -> Result<HttpResponse, ServiceError> {
        Ok(self)
    }

    fn describe(_: &mut Components) -> Option<Value> {
        None
    }
}
