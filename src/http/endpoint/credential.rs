//! Who may call: each kind of route is a type, which authenticates and is described.

use actix_web::HttpRequest;
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::http::auth;
use crate::service::{Access, Caller, Service};

/// The credentials that a route takes.
pub trait Credential: 'static {
    /// What a handler knows of the caller.
    type Caller;

    /// Finds the caller, before the body is read.
    fn authenticate(request: &HttpRequest, service: &Service) -> Result<Self::Caller, ServiceError>;

    /// The OpenAPI security requirements; none where it is not overridden.
    fn security() -> Value {
        json!([])
    }
}

/// Routes that take some kinds of API keys, or none, and the bearer token.
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
    /// The bearer token alone.
    Bearer: Access::BEARER;
    /// Admin keys and the bearer token.
    Admin: Access::ADMIN;
    /// Those, and write keys.
    Writer: WRITER;
    /// Those, and read keys.
    Reader: READER;
    /// All keys.
    Querier: READER.or(Access::INTEGRATION);
    /// Admin and integration keys.
    Evaluator: Access::ADMIN.or(Access::INTEGRATION);
    /// Who sends points: a writer whose calls count with any credential.
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
