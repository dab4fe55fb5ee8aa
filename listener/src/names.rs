//! Headers that most requests and answers have. They are converted between the two libraries without a copy; others are
//! parsed again.

use actix_web::http::header as router;
use hyper::header as library;

const API_KEY: router::HeaderName = router::HeaderName::from_static("x-api-key");
const REQUEST_ID: library::HeaderName = library::HeaderName::from_static("x-request-id");
// Constants, because making one checks every byte of it.
const JSON: library::HeaderValue = library::HeaderValue::from_static("application/json");
const NO_STORE: library::HeaderValue = library::HeaderValue::from_static("no-store");
const ACCEPT_ENCODING: library::HeaderValue = library::HeaderValue::from_static("accept-encoding");

/// Converts the name of a request's header; `None` if the router's library does not accept it.
pub(crate) fn of_request(name: &library::HeaderName) -> Option<router::HeaderName> {
    Some(match name.as_str() {
        "host" => router::HOST,
        "x-api-key" => API_KEY,
        "authorization" => router::AUTHORIZATION,
        "content-type" => router::CONTENT_TYPE,
        "content-length" => router::CONTENT_LENGTH,
        "content-encoding" => router::CONTENT_ENCODING,
        "transfer-encoding" => router::TRANSFER_ENCODING,
        "accept" => router::ACCEPT,
        "accept-encoding" => router::ACCEPT_ENCODING,
        "user-agent" => router::USER_AGENT,
        "connection" => router::CONNECTION,
        other => router::HeaderName::from_bytes(other.as_bytes()).ok()?,
    })
}

/// Converts the name of an answer's header; `None` if the HTTP library does not accept it.
pub(crate) fn of_answer(name: &router::HeaderName) -> Option<library::HeaderName> {
    Some(match name.as_str() {
        "x-request-id" => REQUEST_ID,
        "content-type" => library::CONTENT_TYPE,
        "content-encoding" => library::CONTENT_ENCODING,
        "cache-control" => library::CACHE_CONTROL,
        "vary" => library::VARY,
        other => library::HeaderName::from_bytes(other.as_bytes()).ok()?,
    })
}

/// Converts the value of an answer's header; `None` if the HTTP library does not accept it.
pub(crate) fn value_of_answer(value: &router::HeaderValue) -> Option<library::HeaderValue> {
    Some(match value.as_bytes() {
        b"application/json" => JSON,
        b"no-store" => NO_STORE,
        b"accept-encoding" => ACCEPT_ENCODING,
        other => library::HeaderValue::from_bytes(other).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_both_libraries() {
        for name in [
            "host",
            "x-api-key",
            "authorization",
            "content-type",
            "content-length",
            "content-encoding",
            "transfer-encoding",
            "accept",
            "accept-encoding",
            "user-agent",
            "connection",
            "x-request-id",
            "cache-control",
            "vary",
            "x-other",
        ] {
            let of_library = library::HeaderName::from_bytes(name.as_bytes()).unwrap();
            let of_router = router::HeaderName::from_bytes(name.as_bytes()).unwrap();
            assert_eq!(of_request(&of_library).unwrap(), of_router);
            assert_eq!(of_answer(&of_router).unwrap(), of_library);
        }
    }

    #[test]
    fn a_value_is_the_same_in_both_libraries() {
        for value in [
            "application/json",
            "no-store",
            "accept-encoding",
            "text/csv",
            "",
            "\u{e4}",
        ] {
            let of_router = router::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            assert_eq!(value_of_answer(&of_router).unwrap(), value.as_bytes());
        }
    }
}
