//! Endpoints. A row of the table has the path and the handler; everything else follows from the types of the handler.
//!
//! `Call<Admin, ObjectId, BucketBody>` is a request by an admin with an id in its path and this body, and
//! `Answer<One<BucketView>>` its response. They determine the order of the checks (contract 10), 405s, the labels of the
//! metrics, and the description in `/api/docs`, whose texts and examples are in `docs/operations.json`.

mod answer;
mod arrived;
mod call;
mod credential;
mod description;
mod params;

use actix_web::guard::fn_guard;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Payload};
use actix_web::{HttpRequest, Route};
use futures_util::TryFutureExt;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::catalog::Role;
use crate::error::{ErrorExtra, ErrorKind, SamplesWritten, ServiceError};
use crate::http::auth::check_one_credential;
use crate::http::forward::{Forwarded, Forwarding, forward};
use crate::service::{Location, Node};
use description::{Describe, path_parameters};

pub use answer::{Answer, HandlerAnswer, Written};
pub use arrived::Arrived;
pub use call::{Call, Exact, Optional, RequestBody, Unread};
pub use credential::{
    Admin, AgentReader, AgentWriter, Anyone, Bearer, Credential, Evaluator, Link, LinkHolder, NewUser,
    OperatorToken, Querier, Reader, Sender, Visitor, Writer,
};
pub use description::Components;
pub use params::{BucketInPath, BucketParam, PrecisionParam};
pub use params::{
    DimensionName, DueParams, ImportParams, LinkToken, Pagination, PanelIndex, Params, Prefix, WantedLabels,
};

/// A row of the table.
pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// Its operation id in `/api/docs`.
    pub id: &'static str,
    /// Number of ids that the handler takes from the path.
    pub ids: usize,
    /// The role that a person needs.
    least_role: Role,
    /// OpenAPI security requirements of a route that needs this role.
    security: fn(Role) -> Value,
    /// OpenAPI parameters: of path and query string, and headers that the handler reads.
    parameters: Vec<Value>,
    request: Describe,
    /// The status of a success, and its body.
    success: (StatusCode, Describe),
    /// Bodies of other answers, by status.
    answers: Vec<(StatusCode, Describe)>,
    /// Media types of the success's body.
    types: &'static [&'static str],
    /// Headers of the success, in addition to those of every answer.
    headers: Map<String, Value>,
    make_route: Box<dyn FnOnce(Success, ErrorMembers, Forwarding) -> Route>,
    /// Adds what the errors of this route have beside those of others.
    pub errors: ErrorMembers,
    forwarding: Forwarding,
}

/// Adds members to an error.
pub type ErrorMembers = fn(ServiceError) -> ServiceError;

/// The status of a success, and the role that a person needs.
type Success = (StatusCode, Role);

/// One function for each method: `get(path, id, handler)` makes an endpoint with the operation id `id`.
macro_rules! methods {
    ($($(#[$about:meta])* $name:ident $method:ident;)*) => {$(
        $(#[$about])*
        pub fn $name<C: Credential, P: Params, B: RequestBody<C::Scope>, A: HandlerAnswer, F>(
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
    fn new<C: Credential, P: Params, B: RequestBody<C::Scope>, A: HandlerAnswer, F>(
        method: Method,
        path: &'static str,
        id: &'static str,
        handler: impl Fn(Call<C, P, B>) -> F + Clone + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, ServiceError>> + 'static,
    {
        let make_route = move |(status, least): Success, errors: ErrorMembers, route: Forwarding| {
            web::route().to(move |request: HttpRequest, payload: Payload, node: Data<Node>| {
                let handler = handler.clone();
                let answer = async move {
                    if !C::IS_NEEDED {
                        check_one_credential(&request)?;
                    }
                    let mut arrived = Arrived::new(request, payload);
                    let (scope, arrived) = loop {
                        match C::locate(arrived, &node).await? {
                            (Location::Here(scope), arrived) => break (scope, arrived),
                            (Location::At(owner), elsewhere) => {
                                // Boxed: the futures of requests that are served here stay small.
                                match Box::pin(forward(&node, owner, elsewhere, route)).await? {
                                    Forwarded::Answered(answer) => return Ok(answer),
                                    Forwarded::Here(here) => arrived = here,
                                }
                            }
                        }
                    };
                    let request = arrived.request.clone();
                    let answer = handler(Call::receive(arrived, scope, least).await?).await?;
                    answer.respond(&request, status).await
                };
                answer.map_err(errors)
            })
        };
        // Whatever changes something is closed to viewers unless its row says otherwise.
        let least_role = match method {
            Method::GET => Role::Viewer,
            _ => Role::Editor,
        };
        Self {
            method,
            path,
            id,
            ids: P::IDS,
            least_role,
            security: C::security,
            parameters: [path_parameters(path), P::describe()].concat(),
            request: B::describe,
            success: (StatusCode::OK, A::describe),
            answers: Vec::new(),
            types: &["application/json"],
            headers: Map::new(),
            make_route: Box::new(make_route),
            errors: |error| error,
            forwarding: Forwarding {
                needs_credential: C::IS_NEEDED,
                ..Forwarding::default()
            },
        }
    }

    /// Sets the status of a success, which is otherwise 200.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.success.0 = status;
        self
    }

    /// Sets the role that a person needs, which is otherwise viewer to read and editor to change.
    #[must_use]
    pub fn least_role(mut self, role: Role) -> Self {
        self.least_role = role;
        self
    }

    /// Says that it changes nothing, whatever its method.
    #[must_use]
    pub fn only_reads(self) -> Self {
        self.least_role(Role::Viewer)
            .forwarded(|route| route.only_reads = true)
    }

    /// Describes the body of an answer with another status, unless it is the usual error.
    #[must_use]
    pub fn answers<T: ToSchema>(mut self, status: StatusCode) -> Self {
        let body: Describe = |components| Some(components.add::<T>());
        self.answers.push((status, body));
        self
    }

    /// Sets the media types of a success's body, which is otherwise JSON.
    #[must_use]
    pub fn of_types(mut self, types: &'static [&'static str]) -> Self {
        self.types = types;
        self
    }

    /// Adds `code` to errors, as clients of InfluxDB read it.
    #[must_use]
    pub fn errors_with_code(mut self) -> Self {
        self.errors = |error| {
            let code = match error.kind {
                ErrorKind::Unauthorized => "unauthorized",
                ErrorKind::Forbidden => "forbidden",
                ErrorKind::NotFound => "not found",
                ErrorKind::PayloadTooLarge => "request too large",
                ErrorKind::TooManyRequests => "too many requests",
                ErrorKind::Unavailable => "unavailable",
                ErrorKind::Internal => "internal error",
                _ => "invalid",
            };
            error.with_extra(Some(ErrorExtra::Code(code)))
        };
        self
    }

    /// Adds to every 400 how many samples were written: none, unless the handler says how many.
    #[must_use]
    pub fn errors_with_counts(mut self) -> Self {
        self.errors = |error| match (error.kind, &error.extra) {
            (ErrorKind::Validation, None) => {
                error.with_extra(Some(ErrorExtra::SamplesWritten(SamplesWritten::default())))
            }
            _ => error,
        };
        self
    }

    /// Changes how the nodes of a cluster pass its requests on.
    #[must_use]
    pub fn forwarded(mut self, change: impl FnOnce(&mut Forwarding)) -> Self {
        change(&mut self.forwarding);
        self
    }

    /// Describes a header of the request that the handler reads.
    #[must_use]
    pub fn reads_header(mut self, header: Value) -> Self {
        self.parameters.push(header);
        self
    }

    /// Describes a header of every answer below 400.
    #[must_use]
    pub fn writes_header(mut self, name: &'static str, what: &'static str) -> Self {
        let header = json!({"description": what, "schema": {"type": "string"}});
        self.headers.insert(name.to_owned(), header);
        self
    }

    /// Makes the route. `GET` also takes `HEAD`: the listener omits the body of its answer (RFC 9110, 9.3.2).
    pub fn route(self) -> Route {
        let success = (self.success.0, self.least_role);
        let route = (self.make_route)(success, self.errors, self.forwarding);
        // The guards of the library also note each method for its own answer to a wrong one, which is never sent here.
        let takes = move |sent: &Method| {
            *sent == self.method || (self.method == Method::GET && *sent == Method::HEAD)
        };
        route.guard(fn_guard(move |context| takes(&context.head().method)))
    }
}

/// What most handlers return.
pub type Reply<T> = Result<Answer<T>, ServiceError>;
