//! The types that handlers return.

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

/// What a handler returns on success.
pub trait HandlerAnswer {
    /// Makes the response, with this status unless it already has one.
    fn respond(
        self,
        request: &HttpRequest,
        status: StatusCode,
    ) -> impl Future<Output = Result<HttpResponse, ServiceError>>;

    /// Adds the schema of a JSON body, and returns a reference to it; `None` for a body of other types, which the row of
    /// the table names.
    fn describe(_: &mut Components) -> Option<Value> {
        None
    }
}

/// A value as JSON.
pub struct Answer<T> {
    body: Vec<u8>,
    headers: HeaderMap,
    // Contravariant: a value that is already serialized need not outlive `T`.
    of: PhantomData<fn(T)>,
}

impl<T: Serialize> Answer<T> {
    /// Serializes a value.
    ///
    /// # Errors
    /// 500 for a value that has no JSON form.
    pub fn of(value: &T) -> Result<Self, ServiceError> {
        Ok(Self {
            body: serde_json::to_vec(value).map_err(ServiceError::internal)?,
            headers: HeaderMap::new(),
            of: PhantomData,
        })
    }

    /// An answer whose JSON was gathered from several shards.
    ///
    /// # Errors
    /// 500 for a value that has no JSON form.
    pub fn gathered(value: &Value) -> Result<Self, ServiceError> {
        Ok(Self {
            body: serde_json::to_vec(value).map_err(ServiceError::internal)?,
            headers: HeaderMap::new(),
            of: PhantomData,
        })
    }

    /// Headers that are added to the response.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

impl<T: ToSchema> HandlerAnswer for Answer<T> {
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

/// A response that the handler made itself, with a body as `T` describes it.
pub struct Written<T>(HttpResponse, PhantomData<T>);

impl<T> From<HttpResponse> for Written<T> {
    fn from(response: HttpResponse) -> Self {
        Self(response, PhantomData)
    }
}

impl<T: ToSchema> HandlerAnswer for Written<T> {
    async fn respond(self, _: &HttpRequest, _: StatusCode) -> Result<HttpResponse, ServiceError> {
        Ok(self.0)
    }

    fn describe(components: &mut Components) -> Option<Value> {
        Some(components.add::<T>())
    }
}

/// A response that is not JSON.
impl HandlerAnswer for HttpResponse {
    async fn respond(self, _: &HttpRequest, _: StatusCode) -> Result<HttpResponse, ServiceError> {
        Ok(self)
    }
}
