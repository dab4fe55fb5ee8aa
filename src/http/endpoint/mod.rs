//! Endpoints. A row of the table has the path and the handler; everything else follows from the types of the handler.
//!
//! `Call<Admin, ObjectId, BucketBody>` is a request by an admin with an id in its path and this body, and
//! `Answer<One<BucketView>>` its response. They determine the order of the checks (contract 10), 405s, the labels of the
//! metrics, and the description in `/api/docs`, whose texts and examples are in `docs/operations.json`.

mod answer;
mod call;
mod credential;
mod description;
mod params;

use actix_web::guard::{Any, Get, Head};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Payload};
use actix_web::{HttpRequest, Route};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::service::Service;
use description::Describe;

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
            make_route: Box::new(make_route),
        }
    }

    /// The status of a success, where it is not 200.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.description.success.0 = status;
        self
    }

    /// The body of another answer, which is neither the usual one nor the usual error.
    #[must_use]
    pub fn answers<T: ToSchema>(mut self, status: StatusCode) -> Self {
        let body: Describe = |components| Some(components.add::<T>());
        self.description.answers.push((status, body));
        self
    }

    /// The types of a success's body, where they are not JSON alone.
    #[must_use]
    pub fn of_types(mut self, types: &'static [&'static str]) -> Self {
        self.description.types = types;
        self
    }

    /// A header of the request that it reads.
    #[must_use]
    pub fn reads_header(mut self, header: Value) -> Self {
        self.description.parameters.push(header);
        self
    }

    /// A header of every answer below 400.
    #[must_use]
    pub fn writes_header(mut self, name: &'static str, what: &'static str) -> Self {
        let header = json!({"description": what, "schema": {"type": "string"}});
        self.description.headers.insert(name.to_owned(), header);
        self
    }

    /// How actix-web serves it. `GET` takes `HEAD` too: the listener leaves its body away (RFC 9110, 9.3.2).
    pub fn route(self) -> Route {
        let route = (self.make_route)(self.description.success.0);
        match self.method {
            Method::GET => route.guard(Any(Get()).or(Head())),
            method => route.method(method),
        }
    }
}

/// What most handlers end with.
pub type Reply<T> = Result<Answer<T>, ServiceError>;
