//! Requests that never reach the router: malformed, too long, too late, or too many.

use std::time::SystemTime;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::Response;
use actix_web::http::header::HttpDate;

use crate::convert::NO_SNIFFING;

/// Why a request does not reach the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The head is not HTTP; the text says where.
    Malformed(String),
    /// The request line is longer than the limit for a head.
    TargetTooLong,
    /// The head is too long or has too many headers.
    HeadTooLarge,
    /// The head did not arrive in time.
    Late,
    /// Too many HTTP/2 requests are open.
    Crowded,
}

/// Makes the answer to such a request.
pub type Refuse = fn(&Refusal) -> Response<BoxBody>;

/// The bytes of the last answer of an HTTP/1 connection, for a head that the HTTP library does not take.
pub(crate) fn last_answer(answer: Response<BoxBody>) -> Vec<u8> {
    let (head, body) = answer.into_parts();
    // An answer to a refused head is made in one piece.
    let body = body.try_into_bytes().unwrap_or_default();
    let mut bytes = format!(
        "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\ndate: {}\r\n\
         x-content-type-options: {NO_SNIFFING}\r\n",
        head.status(),
        body.len(),
        HttpDate::from(SystemTime::now()),
    )
    .into_bytes();
    for (name, value) in head.headers() {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes.extend(&body[..]);
    bytes
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn the_last_answer_states_its_length_and_closes_the_connection() {
        let mut answer = Response::new(StatusCode::URI_TOO_LONG).set_body("{}".boxed());
        answer.headers_mut().insert(
            HeaderName::from_static("x-request-id"),
            HeaderValue::from_static("7"),
        );
        let bytes = String::from_utf8(last_answer(answer)).unwrap();
        assert!(
            bytes
                .starts_with("HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 2\r\ndate: "),
            "{bytes}"
        );
        assert!(
            bytes.ends_with(" GMT\r\nx-content-type-options: nosniff\r\nx-request-id: 7\r\n\r\n{}"),
            "{bytes}"
        );
    }
}
