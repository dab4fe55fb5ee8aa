//! Who may call a route: each set of credentials is a type that authenticates the caller and describes itself.

use actix_web::HttpRequest;
use actix_web::web::Data;
use serde_json::{Value, json};

use crate::error::ServiceError;
use crate::http::auth;
use crate::service::accounts::check_signup_open;
use crate::service::{Access, Caller, Node, ShardService};

/// The credentials that a route takes.
pub trait Credential: 'static {
    /// What the handler learns about the caller.
    type Caller;
    /// What serves the call: the caller's shard, or the node.
    type Scope: 'static;

    /// Finds what serves the call.
    fn scope(node: Data<Node>) -> Self::Scope;

    /// Finds the caller, before the body is read.
    fn authenticate(request: &HttpRequest, scope: &Self::Scope) -> Result<Self::Caller, ServiceError>;

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
            type Scope = ShardService;

            fn scope(node: Data<Node>) -> ShardService {
                node.shard()
            }

            fn authenticate(request: &HttpRequest, shard: &ShardService) -> Result<Caller, ServiceError> {
                auth::authenticate(request, shard, $access)
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
    type Scope = Data<Node>;

    fn scope(node: Data<Node>) -> Data<Node> {
        node
    }

    fn authenticate(_: &HttpRequest, _: &Data<Node>) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Everybody with an email address that has an account or gets one: it says which shard serves the call.
pub struct Visitor;

impl Credential for Visitor {
    type Caller = ();
    type Scope = ShardService;

    fn scope(node: Data<Node>) -> ShardService {
        node.shard()
    }

    fn authenticate(_: &HttpRequest, _: &ShardService) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Like `Visitor`, as long as sign-up is open.
pub struct NewUser;

impl Credential for NewUser {
    type Caller = ();
    type Scope = ShardService;

    fn scope(node: Data<Node>) -> ShardService {
        node.shard()
    }

    fn authenticate(_: &HttpRequest, shard: &ShardService) -> Result<(), ServiceError> {
        check_signup_open(&shard.config)
    }
}

/// Whoever runs the server.
pub struct OperatorToken;

impl Credential for OperatorToken {
    type Caller = ();
    type Scope = Data<Node>;

    fn scope(node: Data<Node>) -> Data<Node> {
        node
    }

    fn authenticate(request: &HttpRequest, node: &Data<Node>) -> Result<(), ServiceError> {
        auth::authenticate_operator(request, node)
    }

    fn security() -> Value {
        json!([{"operator": []}])
    }
}
