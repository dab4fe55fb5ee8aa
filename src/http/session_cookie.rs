//! The dashboard's session in a cookie that no script can read and only the dashboard itself can use.
//!
//! The cookie holds the bearer token and is ignored for requests with a key or a token in a header. Browsers add
//! cookies by themselves, so a request that changes something must come from a page of this server; browsers say so in
//! a header that pages cannot set. Only such a page gets the cookie, so that another site cannot sign somebody in.

use actix_web::HttpRequest;
use actix_web::http::Method;
use actix_web::http::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE};

use crate::clock::SECOND_NS;
use crate::error::ServiceError;
use crate::service::tokens::IssuedToken;

const NAME: &str = "tidewatch_session";
static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SECURE_SCHEME: &str = "https";

/// Returns the token of the request's cookie.
pub fn token(request: &HttpRequest) -> Option<&str> {
    let cookies = request.headers().get_all(COOKIE);
    let pairs = cookies
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = named.find(|(name, _)| *name == NAME)?;
    (!value.is_empty()).then_some(value)
}

/// Checks whether a request that is authenticated by cookie may do what it asks for.
///
/// # Errors
/// 403 for a change that does not come from a page of this server.
pub fn check_origin(request: &HttpRequest) -> Result<(), ServiceError> {
    if matches!(*request.method(), Method::GET | Method::HEAD) || is_of_page(request) {
        return Ok(());
    }
    Err(ServiceError::forbidden(
        "the session's cookie changes things only for this server's own page; send an API key or the bearer token",
    ))
}

/// Sets the cookie if a page of this server signs in; other clients have no use for it. `tls`: whether this server
/// terminates TLS.
pub fn set(request: &HttpRequest, headers: &mut HeaderMap, issued: &IssuedToken, now_ns: i64, tls: bool) {
    if is_of_page(request) {
        let seconds = issued.expires_at_ns.saturating_sub(now_ns) / SECOND_NS;
        put(request, headers, &issued.token, seconds, tls);
    }
}

/// Removes the cookie.
pub fn clear(request: &HttpRequest, headers: &mut HeaderMap, tls: bool) {
    put(request, headers, "", 0, tls);
}

fn put(request: &HttpRequest, headers: &mut HeaderMap, token: &str, seconds: i64, tls: bool) {
    let secure = if is_encrypted(request, tls) {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!("{NAME}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    // Always a valid header value: a token is base64url and dots.
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        headers.append(SET_COOKIE, cookie);
    }
}

/// Whether the client reaches the server by TLS. Behind a proxy that terminates it, the scheme of the page's origin is
/// used.
pub fn is_encrypted(request: &HttpRequest, tls: bool) -> bool {
    let scheme = origin(request).map(|(scheme, _)| scheme);
    tls || scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SECURE_SCHEME))
}

/// The host and port that the client has addressed.
pub fn host(request: &HttpRequest) -> Option<&str> {
    match request.headers().get(HOST) {
        Some(host) => host.to_str().ok(),
        // HTTP/2 has the authority in the URI.
        None => request.uri().authority().map(|authority| authority.as_str()),
    }
}

/// Whether a page of this server sent the request. Browsers say so in `Sec-Fetch-Site`; old browsers, and requests
/// without TLS, are checked by the origin alone.
fn is_of_page(request: &HttpRequest) -> bool {
    if let Some(site) = request.headers().get(&FETCH_SITE) {
        return site == "same-origin";
    }
    let origin = origin(request).map(|(_, host)| host);
    host(request)
        .zip(origin)
        .is_some_and(|(host, origin)| host.eq_ignore_ascii_case(origin))
}

/// Returns the scheme, and the host with port.
fn origin(request: &HttpRequest) -> Option<(&str, &str)> {
    request.headers().get(ORIGIN)?.to_str().ok()?.split_once("://")
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn request(method: Method, headers: &[(&str, &str)]) -> HttpRequest {
        let request = TestRequest::default().method(method).uri("/api/buckets");
        let add = |request: TestRequest, (name, value): &(&str, &str)| request.append_header((*name, *value));
        headers.iter().fold(request, add).to_http_request()
    }

    #[test]
    fn the_token_is_found_among_other_cookies() {
        let found = |cookies: &[&str]| {
            let headers: Vec<_> = cookies.iter().map(|cookie| ("cookie", *cookie)).collect();
            token(&request(Method::GET, &headers)).map(str::to_owned)
        };
        assert_eq!(found(&["tidewatch_session=a.b.c"]).as_deref(), Some("a.b.c"));
        assert_eq!(
            found(&["x=1; tidewatch_session=a.b.c;y=2"]).as_deref(),
            Some("a.b.c")
        );
        assert_eq!(found(&["x=1", "tidewatch_session=a"]).as_deref(), Some("a"));
        for none in [
            "",
            "tidewatch_session",
            "tidewatch_session=",
            "a_tidewatch_session=x",
            "x=tidewatch_session",
        ] {
            assert_eq!(found(&[none]), None, "{none:?}");
        }
    }

    #[test]
    fn changes_are_accepted_only_from_the_same_origin() {
        for (headers, own) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("host", "a:1"),
                    ("origin", "http://a:1"),
                ],
                false,
            ),
            (&[("host", "a.example"), ("origin", "https://a.example")], true),
            (
                &[("host", "A.example:8080"), ("origin", "http://a.example:8080")],
                true,
            ),
            (
                &[("host", "a.example:8080"), ("origin", "http://a.example:8081")],
                false,
            ),
            (&[("host", "a.example"), ("origin", "https://b.example")], false),
            (
                &[
                    ("host", "a.example"),
                    ("origin", "https://a.example.evil.example"),
                ],
                false,
            ),
            (&[("host", "a.example"), ("origin", "null")], false),
            (&[("host", "a.example")], false),
            (&[("origin", "https://a.example")], false),
            (&[], false),
        ] {
            for method in [Method::POST, Method::PATCH, Method::DELETE] {
                let checked = check_origin(&request(method, headers));
                assert_eq!(checked.is_ok(), own, "{headers:?}");
            }
            assert!(check_origin(&request(Method::GET, headers)).is_ok());
        }
    }

    #[test]
    fn the_cookie_has_the_strictest_attributes() {
        let issued = IssuedToken {
            token: "a.b.c".to_owned(),
            expires_at_ns: 90 * SECOND_NS,
        };
        let cookie_of = |headers: &[(&str, &str)], tls| {
            let mut written = HeaderMap::new();
            set(
                &request(Method::POST, headers),
                &mut written,
                &issued,
                30 * SECOND_NS,
                tls,
            );
            written.get(SET_COOKIE).map(|it| it.to_str().unwrap().to_owned())
        };
        let cookie = |headers| cookie_of(headers, false);
        assert_eq!(cookie(&[]), None);
        assert_eq!(cookie(&[("sec-fetch-site", "cross-site")]), None);
        let plain = "tidewatch_session=a.b.c; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(cookie(&[("sec-fetch-site", "same-origin")]).unwrap(), plain);
        let of_page = [("sec-fetch-site", "same-origin")];
        assert_eq!(cookie_of(&of_page, true).unwrap(), format!("{plain}; Secure"));
        let behind_a_proxy = [("sec-fetch-site", "same-origin"), ("origin", "https://a.example")];
        assert_eq!(cookie(&behind_a_proxy).unwrap(), format!("{plain}; Secure"));
        let mut written = HeaderMap::new();
        clear(&request(Method::POST, &[]), &mut written, false);
        let cleared = written.get(SET_COOKIE).unwrap().to_str().unwrap();
        assert!(
            cleared.starts_with("tidewatch_session=; Path=/; Max-Age=0;"),
            "{cleared}"
        );
    }
}
