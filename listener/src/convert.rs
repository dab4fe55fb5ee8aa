//! Converts between the HTTP library's types (`http` 1) and the router's types (`http` 0.2).

use std::net::SocketAddr;

use actix_http::Request;
use actix_web::dev::{Payload, Response};
use actix_web::http::ConnectionType;
use actix_web::http::header::HeaderValue;
use actix_web::http::{Method, Uri, Version};
use actix_web::web::Bytes;
use hyper::header;

use crate::names;

/// Forbids browsers to guess the type of an answer, so that stored text is never shown as a page. Every answer with a
/// body has it.
pub(crate) const NO_SNIFFING: &str = "nosniff";
const NO_SNIFFING_VALUE: header::HeaderValue = header::HeaderValue::from_static(NO_SNIFFING);

/// Converts a request for the router; `None` when only one of the two libraries accepts its head.
pub(crate) fn request(
    head: &hyper::http::request::Parts,
    payload: Payload,
    peer: SocketAddr,
) -> Option<Request> {
    let mut request = Request::with_payload(payload);
    let converted = request.head_mut();
    converted.method = Method::from_bytes(head.method.as_str().as_bytes()).ok()?;
    converted.uri = uri(&head.uri)?;
    converted.version = version(head.version);
    converted.peer_addr = Some(peer);
    for (name, value) in &head.headers {
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        converted.headers.append(names::of_request(name)?, value);
    }
    Some(request)
}

/// Converts the head of an answer for the HTTP library.
pub(crate) fn answer<B>(head: &Response<()>, body: B) -> hyper::Response<B> {
    let mut answer = hyper::Response::new(body);
    // Both libraries accept every three-digit number.
    let status = hyper::StatusCode::from_u16(head.status().as_u16());
    *answer.status_mut() = status.unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.reserve(head.headers().len() + 1);
    for (name, value) in head.headers() {
        // Both libraries accept the same headers.
        if let Some(name) = names::of_answer(name)
            && let Some(value) = names::value_of_answer(value)
        {
            headers.append(name, value);
        }
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING_VALUE);
    if head.head().connection_type() == ConnectionType::Close {
        close(&mut answer);
    }
    answer
}

/// Makes this the last answer of its connection.
pub(crate) fn close<B>(answer: &mut hyper::Response<B>) {
    let close = header::HeaderValue::from_static("close");
    answer.headers_mut().insert(header::CONNECTION, close);
}

fn version(version: hyper::Version) -> Version {
    match version {
        hyper::Version::HTTP_2 => Version::HTTP_2,
        hyper::Version::HTTP_10 => Version::HTTP_10,
        _ => Version::HTTP_11,
    }
}

/// Returns the path and the query. The host is ignored: every host name means this server.
fn uri(uri: &hyper::Uri) -> Option<Uri> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let path = if path.is_empty() { "/" } else { path };
    Uri::from_maybe_shared(Bytes::copy_from_slice(path.as_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::HttpMessage;
    use actix_web::http::StatusCode;
    use actix_web::http::header::HeaderName;

    use super::*;

    fn converted(request: hyper::http::request::Builder) -> Request {
        let (head, ()) = request.body(()).unwrap().into_parts();
        let peer = "192.0.2.7:4711".parse().unwrap();
        super::request(&head, Payload::None, peer).expect("both libraries should accept it")
    }

    #[test]
    fn a_head_is_converted_unchanged() {
        let sent = hyper::Request::builder()
            .method("PATCH")
            .uri("http://example.com/api/buckets/1?x=%20y&z=%C3%A4")
            .version(hyper::Version::HTTP_10)
            .header("X-API-Key", "secret")
            .header("X-Twice", "1")
            .header("X-Twice", "2")
            .header("X-Bytes", &b"\xe4"[..]);
        let request = converted(sent);
        assert_eq!(request.method(), Method::PATCH);
        assert_eq!(request.uri(), "/api/buckets/1?x=%20y&z=%C3%A4");
        assert_eq!(request.version(), Version::HTTP_10);
        assert_eq!(request.peer_addr().unwrap().port(), 4_711);
        let header = |name: &str| {
            let values = request.headers().get_all(name);
            values.map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(header("x-api-key"), [b"secret"]);
        assert_eq!(header("x-twice"), [b"1", b"2"]);
        assert_eq!(header("x-bytes"), [b"\xe4"]);
    }

    #[test]
    fn methods_and_targets_of_any_kind_reach_the_router() {
        for (method, target, path) in [
            ("BREW", "/pot", "/pot"),
            ("OPTIONS", "*", "*"),
            ("CONNECT", "example.com:443", "/"),
            ("GET", "http://example.com", "/"),
        ] {
            let request = converted(hyper::Request::builder().method(method).uri(target));
            assert_eq!((request.method().as_str(), request.path()), (method, path));
        }
    }

    #[test]
    fn an_answer_is_converted_as_it_is_but_that_sniffing_is_forbidden_once() {
        let mut made = Response::new(StatusCode::from_u16(207).unwrap());
        for value in ["a", "b"] {
            made.headers_mut().append(
                HeaderName::from_static("x-twice"),
                HeaderValue::from_static(value),
            );
        }
        made.headers_mut().insert(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        );
        let (made, _) = made.into_parts();
        let sent = answer(&made, ());
        let of_sniffing: Vec<_> = sent.headers().get_all("x-content-type-options").iter().collect();
        assert_eq!(of_sniffing, ["nosniff"]);
        assert_eq!(sent.status(), 207);
        let values: Vec<_> = sent.headers().get_all("x-twice").iter().collect();
        assert_eq!(values, ["a", "b"]);
        assert!(!sent.headers().contains_key("connection"));
        let mut last = Response::new(StatusCode::OK).drop_body();
        last.head_mut().set_connection_type(ConnectionType::Close);
        let last = answer(&last, ());
        assert_eq!(last.headers()["connection"], "close");
        assert_eq!(last.headers()["x-content-type-options"], "nosniff");
    }
}
