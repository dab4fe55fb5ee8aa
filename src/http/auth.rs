//! Authentication: from request headers to a caller. Every authenticated route begins here, before its body is read.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use base64::prelude::{BASE64_STANDARD, Engine};

use super::endpoint::Arrived;
use super::inside;
use super::server::request_context::{set_caller, set_renewal};
use super::session_cookie;
use crate::catalog::{KeyType, Role};
use crate::error::ServiceError;
use crate::service::{Access, Admission, Caller, Location, Node, Service, ShardService};

pub static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// A new token of the session, in answers to a bearer whose token is in the second half of its life.
static SESSION_TOKEN: HeaderName = HeaderName::from_static("x-session-token");
const SCHEME: &str = "bearer";

/// Authenticates the caller of a request, with the checks in the contract's order: two credentials at once (400), none
/// or a wrong one (401), an exhausted monthly quota (429), a credential of a kind that the route does not take or a
/// person without the role that it needs (403).
/// The dashboard's cookie is used only when there is no other credential, and does not count as a second one.
pub fn authenticate(
    request: &HttpRequest,
    service: &Service,
    schemes: Schemes,
    access: Access,
    least: Role,
) -> Result<Caller, ServiceError> {
    let presented = presented(request, schemes)?;
    let address = inside::address_of(request);
    let Admission {
        caller,
        renewed,
        call,
    } = match presented {
        Presented::Key(ref key) => service.admit_key(key, address)?,
        Presented::Token(token) | Presented::Cookie(token) => {
            service.admit_token(token, access.counts_bearer(), address)?
        }
        Presented::Nothing => return Err(nothing()),
    };
    set_caller(request, caller.organization_id, call.quota);
    if let Some(issued) = renewed {
        let mut headers = HeaderMap::new();
        if matches!(presented, Presented::Cookie(_)) {
            let tls = service.config.server.tls().is_some();
            session_cookie::set(request, &mut headers, &issued, service.now_ns(), tls);
        } else if let Ok(token) = HeaderValue::try_from(issued.token) {
            headers.insert(SESSION_TOKEN.clone(), token);
        }
        set_renewal(request, Some(headers));
    }
    call.check(|| service.now_ns())?;
    if matches!(presented, Presented::Cookie(_)) {
        session_cookie::check_origin(request)?;
    }
    access.check(&caller)?;
    caller.check_role(least)?;
    Ok(caller)
}

/// Finds where the caller of a request is known, by the credential that it presents. Whether the credential is right is
/// said there.
///
/// # Errors
/// 400 for two credentials at once, 401 for one that no shard has issued, 503 if its shard is served by nobody.
pub async fn locate(
    arrived: &Arrived,
    node: &Node,
    schemes: Schemes,
) -> Result<Location<ShardService>, ServiceError> {
    if let Some(location) = arrived.known_location(node).await? {
        return Ok(location);
    }
    let until = arrived.until;
    match presented(&arrived.request, schemes)? {
        Presented::Key(key) => node.locate_key(&key, until).await,
        Presented::Token(token) | Presented::Cookie(token) => node.locate_token(token, until).await,
        Presented::Nothing => Err(nothing()),
    }
}

/// Checks that the credential of a request is known here. The call does not count.
///
/// # Errors
/// 400 for two credentials at once, 401 for none or one that is not known.
pub fn check(request: &HttpRequest, service: &Service) -> Result<(), ServiceError> {
    // Whether the route takes this scheme is said by the route.
    match presented(request, Schemes::Agents)? {
        Presented::Key(key) => service.check_key(&key),
        Presented::Token(token) | Presented::Cookie(token) => service.check_token(token),
        Presented::Nothing => Err(nothing()),
    }
}

fn nothing() -> ServiceError {
    ServiceError::unauthorized(
        "send an API key as X-API-Key, or the bearer token of a sign-in as Authorization",
    )
}

/// Authenticates the operator by the token of the configuration.
pub fn authenticate_operator(request: &HttpRequest, node: &Node) -> Result<(), ServiceError> {
    let token = match presented(request, Schemes::Api)? {
        Presented::Token(token) => Some(token),
        Presented::Key(_) | Presented::Cookie(_) | Presented::Nothing => None,
    };
    node.check_operator(token)
}

/// In which ways a route takes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schemes {
    /// As `X-API-Key`.
    Api,
    /// Also as `Authorization: Bearer` or `Token`, or as the password of `Basic`, whose user is not looked at.
    Agents,
}

enum Presented<'a> {
    Key(Cow<'a, [u8]>),
    Token(&'a str),
    /// A page's session token; read only when no header has a credential.
    Cookie(&'a str),
    Nothing,
}

/// Checks that there are not two credentials at once, on a route that needs none.
///
/// # Errors
/// 400 if there are.
pub fn check_one_credential(request: &HttpRequest) -> Result<(), ServiceError> {
    let headers = request.headers();
    match headers.contains_key(&API_KEY) && headers.contains_key(AUTHORIZATION) {
        true => Err(two_credentials()),
        false => Ok(()),
    }
}

fn two_credentials() -> ServiceError {
    ServiceError::validation("X-API-Key and Authorization were both sent; send one of them")
}

fn presented(request: &HttpRequest, schemes: Schemes) -> Result<Presented<'_>, ServiceError> {
    let headers = request.headers();
    match (headers.get(&API_KEY), headers.get(AUTHORIZATION)) {
        (Some(_), Some(_)) => Err(two_credentials()),
        (Some(key), None) => Ok(Presented::Key(key.as_bytes().trim_ascii().into())),
        (None, Some(authorization)) => {
            let words = authorization.to_str().ok();
            let words = words.and_then(|text| text.trim().split_once(' '));
            let presented = words.and_then(|(scheme, rest)| authorized(scheme, rest.trim(), schemes));
            Ok(presented.unwrap_or(Presented::Nothing))
        }
        (None, None) => Ok(session_cookie::token(request).map_or(Presented::Nothing, Presented::Cookie)),
    }
}

/// The credential of an `Authorization` header, whose scheme is read without case.
fn authorized<'a>(scheme: &str, credential: &'a str, schemes: Schemes) -> Option<Presented<'a>> {
    let key = |text: &'a str| Presented::Key(text.as_bytes().into());
    match (scheme.to_ascii_lowercase().as_str(), schemes) {
        (SCHEME, Schemes::Agents) if KeyType::of_text(credential).is_some() => Some(key(credential)),
        (SCHEME, _) => Some(Presented::Token(credential)),
        ("token", Schemes::Agents) => Some(key(credential)),
        ("basic", Schemes::Agents) => {
            let decoded = BASE64_STANDARD.decode(credential).ok()?;
            let colon = decoded.iter().position(|byte| *byte == b':')?;
            Some(Presented::Key(decoded[colon + 1..].to_vec().into()))
        }
        _ => None,
    }
}
