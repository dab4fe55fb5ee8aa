//! Who may call a route: each set of credentials is a type that authenticates the caller and describes itself.

use actix_web::HttpRequest;
use actix_web::web::Data;
use serde_json::{Value, json};

use super::Arrived;
use crate::catalog::Role;
use crate::error::ServiceError;
use crate::http::auth::Schemes;
use crate::http::server::request_context::set_caller;
use crate::http::{auth, inside, shape};
use crate::limits::BODY_BYTES_MAX;
use crate::service::accounts::check_signup_open;
use crate::service::shares::SharedBoard;
use crate::service::{Access, Caller, Location, Node, ShardService};

/// The credentials that a route takes.
pub trait Credential: 'static {
    /// What the handler learns about the caller.
    type Caller;
    /// What serves the call: the caller's shard, or the node.
    type Scope: 'static;
    /// Whether a caller without a known credential is refused.
    const IS_NEEDED: bool = true;

    /// Finds where the call is served, by the credential that it presents. Returns the request, too, whose body may have
    /// been read for that.
    fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> impl Future<Output = Result<(Location<Self::Scope>, Arrived), ServiceError>>;

    /// Finds the caller, before the body is read. `least`: the role that a person needs.
    fn authenticate(
        request: &HttpRequest,
        scope: &Self::Scope,
        least: Role,
    ) -> Result<Self::Caller, ServiceError>;

    /// The OpenAPI security requirements; none where it is not overridden.
    fn security(_: Role) -> Value {
        json!([])
    }
}

/// Credentials of routes that take the bearer token, and API keys of some types or none.
macro_rules! callers {
    ($($(#[$about:meta])* $name:ident: $access:expr, $schemes:expr;)*) => {$(
        $(#[$about])*
        pub struct $name;

        impl Credential for $name {
            type Caller = Caller;
            type Scope = ShardService;

            async fn locate(
                arrived: Arrived,
                node: &Data<Node>,
            ) -> Result<(Location<ShardService>, Arrived), ServiceError> {
                Ok((auth::locate(&arrived, node, $schemes).await?, arrived))
            }

            fn authenticate(
                request: &HttpRequest,
                shard: &ShardService,
                least: Role,
            ) -> Result<Caller, ServiceError> {
                auth::authenticate(request, shard, $schemes, $access, least)
            }

            fn security(least: Role) -> Value {
                let roles = Role::ALL.into_iter().filter(|role| *role >= least);
                let roles: Vec<_> = roles.map(Role::name).collect();
                match $access.key_types() {
                    none if none.is_empty() => json!([{"bearer": roles}]),
                    types => json!([{"apiKey": types}, {"bearer": roles}]),
                }
            }
        }
    )*};
}

const WRITER: Access = Access::ADMIN.or(Access::WRITE);
const READER: Access = WRITER.or(Access::READ);

callers! {
    /// Only the bearer token.
    Bearer: Access::BEARER, Schemes::Api;
    /// Admin keys and the bearer token.
    Admin: Access::ADMIN, Schemes::Api;
    /// Admin and write keys, and the bearer token.
    Writer: WRITER, Schemes::Api;
    /// Admin, write and read keys, and the bearer token.
    Reader: READER, Schemes::Api;
    /// All keys and the bearer token.
    Querier: READER.or(Access::INTEGRATION), Schemes::Api;
    /// Admin and integration keys, and the bearer token.
    Evaluator: Access::ADMIN.or(Access::INTEGRATION), Schemes::Api;
    /// As `Writer`, but calls with the bearer token count as well: for sending points.
    Sender: WRITER.counting_bearer(), Schemes::Api;
    /// As `Sender`, with the key in the ways in which agents send it.
    AgentWriter: WRITER.counting_bearer(), Schemes::Agents;
    /// As `Reader`, with the key in the ways in which agents send it.
    AgentReader: READER, Schemes::Agents;
}

/// Everybody, without a credential.
pub struct Anyone;

impl Credential for Anyone {
    type Caller = ();
    type Scope = Data<Node>;
    const IS_NEEDED: bool = false;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<Data<Node>>, Arrived), ServiceError> {
        Ok((Location::Here(node.clone()), arrived))
    }

    fn authenticate(_: &HttpRequest, _: &Data<Node>, _: Role) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Everybody with an email address that has an account or gets one: it says which shard serves the call.
pub struct Visitor;

impl Credential for Visitor {
    type Caller = ();
    type Scope = ShardService;
    const IS_NEEDED: bool = false;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<ShardService>, Arrived), ServiceError> {
        locate_email(arrived, node).await
    }

    fn authenticate(_: &HttpRequest, _: &ShardService, _: Role) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// Like `Visitor`, as long as sign-up is open.
pub struct NewUser;

impl Credential for NewUser {
    type Caller = ();
    type Scope = ShardService;
    const IS_NEEDED: bool = false;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<ShardService>, Arrived), ServiceError> {
        check_signup_open(&node.config)?;
        locate_email(arrived, node).await
    }

    fn authenticate(_: &HttpRequest, shard: &ShardService, _: Role) -> Result<(), ServiceError> {
        check_signup_open(&shard.config)
    }
}

/// Everybody with the link of an invitation or a password reset: the token in the body says which shard serves the call.
pub struct LinkHolder;

impl Credential for LinkHolder {
    type Caller = ();
    type Scope = ShardService;
    const IS_NEEDED: bool = false;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<ShardService>, Arrived), ServiceError> {
        if let Some(location) = arrived.known_location(node).await? {
            return Ok((location, arrived));
        }
        let (token, arrived) = arrived.member("token", BODY_BYTES_MAX).await?;
        let location = node.locate_link(token.as_deref(), arrived.until).await?;
        Ok((location, arrived))
    }

    fn authenticate(_: &HttpRequest, _: &ShardService, _: Role) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// The holder of a link, whose token is in the path. It is no credential of other routes, and no other
/// admits to this one.
pub struct Link;

/// The token in the path.
fn token_of(request: &HttpRequest) -> &str {
    request.match_info().get("token").unwrap_or_default()
}

impl Credential for Link {
    type Caller = SharedBoard;
    type Scope = ShardService;
    const IS_NEEDED: bool = false;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<ShardService>, Arrived), ServiceError> {
        let location = match arrived.known_location(node).await? {
            Some(location) => location,
            None => {
                node.locate_share(token_of(&arrived.request), arrived.until)
                    .await?
            }
        };
        Ok((location, arrived))
    }

    fn authenticate(
        request: &HttpRequest,
        shard: &ShardService,
        _: Role,
    ) -> Result<SharedBoard, ServiceError> {
        let board = shard.admit_link(token_of(request))?;
        // Answers to the holders of links count for their organization.
        set_caller(request, board.caller.organization_id, None);
        Ok(board)
    }
}

/// Finds the shard of the email address in the body.
async fn locate_email(
    arrived: Arrived,
    node: &Data<Node>,
) -> Result<(Location<ShardService>, Arrived), ServiceError> {
    if let Some(location) = arrived.known_location(node).await? {
        return Ok((location, arrived));
    }
    let (email, arrived) = arrived.member("email", BODY_BYTES_MAX).await?;
    let email = email.and_then(|text| shape::email(&text).ok());
    let location = node.locate_email(email.as_deref(), arrived.until).await?;
    Ok((location, arrived))
}

/// Whoever runs the server.
pub struct OperatorToken;

/// What serves a call of the operator.
pub struct OperatorScope {
    pub node: Data<Node>,
    /// The only shard that the call is about; `None` for all shards of a cluster.
    pub shard: Option<ShardService>,
}

impl Credential for OperatorToken {
    type Caller = ();
    type Scope = OperatorScope;

    async fn locate(
        arrived: Arrived,
        node: &Data<Node>,
    ) -> Result<(Location<OperatorScope>, Arrived), ServiceError> {
        let scope = |shard| OperatorScope {
            node: node.clone(),
            shard,
        };
        let location = match inside::shard_of(&arrived.request) {
            None => Location::Here(scope(node.only_shard())),
            Some(shard) => match node.locate(shard, arrived.until).await? {
                Location::Here(shard) => Location::Here(scope(Some(shard))),
                Location::At(owner) => Location::At(owner),
            },
        };
        Ok((location, arrived))
    }

    fn authenticate(request: &HttpRequest, scope: &OperatorScope, _: Role) -> Result<(), ServiceError> {
        auth::authenticate_operator(request, &scope.node)
    }

    fn security(_: Role) -> Value {
        json!([{"operator": []}])
    }
}
