//! What an endpoint is: a row of the table says its path and its handler, and the handler's types say the rest.
//!
//! `Call<Admin, ObjectId, BucketBody>` is a request of an admin with one id in its path and that body,
//! `Answer<BucketAnswer>` is what it is answered. From these types follow the order of the checks (contract 10), 405s, the
//! labels of the metrics, and the description in `/api/docs`, whose texts and examples stand in `docs/operations.json`.

mod answer;
mod call;
mod credential;
mod description;
mod params;

use actix_web::guard::{Any, Get, Head};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Payload};
use actix_web::{HttpRequest, Route};
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::service::Service;

pub use answer::{Answer, Answered, Written};
pub use call::{Call, Exact, RequestBody, Unread};
pub use credential::{
    Admin, Anyone, Bearer, Credential, Evaluator, NewUser, OperatorToken, Querier, Reader, Sender, Writer,
};
pub use description::{Components, Description};
pub use params::{DueParams, Pagination, Params};

/// A row of the table.
pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// What `/api/docs` says of it.
    pub description: Description,
    /// Status of a success.
    status: StatusCode,
    make_route: Box<dyn FnOnce(StatusCode) -> Route>,
}

/// One function for each method: `get(path, id, handler)` is an endpoint under the operation id `id`.
macro_rules! methods {
    ($($(#[$about:meta])* $name:ident $method:ident;)*) => {$(
        $(#[$about])*
        pub fn $name<C: Credential, P: Params, B: RequestBody, A: Answered, F>(
            path: &'static str,
            id: &'static str,
            handler: impl Fn(Call<C, P, B>) -> F + Clone + 'static,
        ) -> Endpoint
        where
            F: Future<Output = Result<A, ServiceError>> + 'static,
        {
            Endpoint::new(Method::$method, path, id, handler)
        }
    )*};
}

methods! {
    /// `GET path`, and `HEAD path`.
    get GET;
    /// `POST path`.
    post POST;
    /// `PATCH path`.
    patch PATCH;
    /// `DELETE path`.
    delete DELETE;
}

impl Endpoint {
    fn new<C: Credential, P: Params, B: RequestBody, A: Answered, F>(
        method: Method,
        path: &'static str,
        id: &'static str,
        handler: impl Fn(Call<C, P, B>) -> F + Clone + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, ServiceError>> + 'static,
    {
        let make_route = move |status: StatusCode| {
            web::route().to(
                move |request: HttpRequest, payload: Payload, service: Data<Service>| {
                    let handler = handler.clone();
                    async move {
                        let answer = handler(Call::receive(request.clone(), payload, service).await?).await?;
                        answer.respond(&request, status).await
                    }
                },
            )
        };
        Self {
            description: Description::new::<C, P, B, A>(path, id),
            method,
            path,
            status: StatusCode::OK,
            make_route: Box::new(make_route),
        }
    }

    /// The status of a success, where it is not 200.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self.description.success(status);
        self
    }

    /// The body of another answer, which is neither the usual one nor the usual error.
    #[must_use]
    pub fn answers<T: ToSchema>(mut self, status: StatusCode) -> Self {
        self.description
            .answers(status, |components| Some(components.add::<T>()));
        self
    }

    /// The types of a success's body, where they are not JSON alone.
    #[must_use]
    pub fn of_types(mut self, types: &'static [&'static str]) -> Self {
        self.description.of_types(types);
        self
    }

    /// A header of the request that it reads.
    #[must_use]
    pub fn reads_header(mut self, header: serde_json::Value) -> Self {
        self.description.reads_header(header);
        self
    }

    /// A header of every answer below 400.
    #[must_use]
    pub fn writes_header(mut self, name: &'static str, what: &'static str) -> Self {
        self.description.writes_header(name, what);
        self
    }

    /// How actix-web serves it. `GET` takes `HEAD` too: the listener leaves its body away (RFC 9110, 9.3.2).
    pub fn route(self) -> Route {
        let route = (self.make_route)(self.status);
        match self.method {
            Method::GET => route.guard(Any(Get()).or(Head())),
            method => route.method(method),
        }
    }
}

/// What most handlers end with.
pub type Reply<T> = Result<Answer<T>, ServiceError>;
