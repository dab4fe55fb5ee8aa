//! Who may call a route: each set of credentials is a type that authenticates the caller and describes itself.

use actix_web::HttpRequest;
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::http::auth;
use crate::service::{Access, Caller, Service};

/// The credentials that a route takes.
pub trait Credential: 'static {
    /// What the handler learns about the caller.
    type Caller;

    /// Finds the caller, before the body is read.
    fn authenticate(request: &HttpRequest, service: &Service) -> Result<Self::Caller, ServiceError>;

    /// The OpenAPI security requirements; none where it is not overridden.
    fn security() -> Value {
        json!([])
    }
}

/// Credentials of routes that take the bearer token, and API keys of some types or none.
macro_rules! callers {
    ($($(#[$about:meta])* $name:ident: $access:expr;)*) => {$(
        $(#[$about])*
        pub struct $name;

        impl Credential for $name {
            type Caller = Caller;

            fn authenticate(request: &HttpRequest, service: &Service) -> Result<Caller, ServiceError> {
                auth::authenticate(request, service, $access)
            }

            fn security() -> Value {
                match $access.key_types() {
                    none if none.is_empty() => json!([{"bearer": []}]),
                    types => json!([{"apiKey": types}, {"bearer": []}]),
                }
            }
        }
    )*};
}

const WRITER: Access = Access::ADMIN.or(Access::WRITE);
const READER: Access = WRITER.or(Access::READ);

callers! {
    /// Only the bearer token.
    Bearer: Access::BEARER;
    /// Admin keys and the bearer token.
    Admin: Access::ADMIN;
    /// Admin and write keys, and the bearer token.
    Writer: WRITER;
    /// Admin, write and read keys, and the bearer token.
    Reader: READER;
    /// All keys and the bearer token.
    Querier: READER.or(Access::INTEGRATION);
    /// Admin and integration keys, and the bearer token.
    Evaluator: Access::ADMIN.or(Access::INTEGRATION);
    /// As `Writer`, but calls with the bearer token count as well: for sending points.
    Sender: WRITER.counting_bearer();
}

/// Everybody, without a credential.
pub struct Anyone;

impl Credential for Anyone {
    type Caller = ();

    fn authenticate(_: &HttpRequest, _: &Service) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Everybody, as long as sign-up is open.
pub struct NewUser;

impl Credential for NewUser {
    type Caller = ();

    fn authenticate(_: &HttpRequest, service: &Service) -> Result<(), ServiceError> {
        service.check_signup_open()
    }
}

/// Whoever runs the server.
pub struct OperatorToken;

impl Credential for OperatorToken {
    type Caller = ();

    fn authenticate(request: &HttpRequest, service: &Service) -> Result<(), ServiceError> {
        auth::authenticate_operator(request, service)
    }

    fn security() -> Value {
        json!([{"operator": []}])
    }
}
