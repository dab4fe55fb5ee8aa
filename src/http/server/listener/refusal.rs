//! Answers to heads that never become a request: malformed, too long, or too late.

use std::time::SystemTime;

use actix_web::http::StatusCode;
use actix_web::http::header::HttpDate;
use serde_json::json;

use crate::error::ErrorKind;
use crate::http::server::request_id::{REQUEST_ID_HEADER, RequestId};

/// Why a head was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not HTTP/1; the text says where.
    Malformed(String),
    /// The request line is longer than the limit for a head.
    TargetTooLong,
    /// The head is too long or has too many headers.
    HeadTooLarge,
    /// The head did not arrive in time.
    Late,
}

impl Fault {
    /// The whole response. It is the last one on its connection.
    pub fn answer(&self, id: RequestId) -> Vec<u8> {
        let (status, message) = match self {
            Self::Malformed(what) => (
                StatusCode::BAD_REQUEST,
                format!("the request's head cannot be read: {what}"),
            ),
            Self::TargetTooLong => (
                StatusCode::URI_TOO_LONG,
                "the request line is too long".to_owned(),
            ),
            Self::HeadTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the request has too many headers, or too long ones".to_owned(),
            ),
            Self::Late => (
                StatusCode::REQUEST_TIMEOUT,
                "the request's head did not arrive in time".to_owned(),
            ),
        };
        let error = match ErrorKind::Validation.status() {
            (of_kind, error) if of_kind == status => error,
            _ => status.canonical_reason().unwrap_or_default(),
        };
        let body = json!({"error": error, "message": message}).to_string();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
             {name}: {id}\r\nconnection: close\r\ncontent-length: {length}\r\ndate: {date}\r\n\r\n{body}",
            name = REQUEST_ID_HEADER.as_str(),
            length = body.len(),
            date = HttpDate::from(SystemTime::now()),
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_an_error_body() {
        for (fault, status, error) in [
            (
                Fault::Malformed(String::from("\"why\"\r\n")),
                "400 Bad Request",
                "Validation Error",
            ),
            (Fault::TargetTooLong, "414 URI Too Long", "URI Too Long"),
            (
                Fault::HeadTooLarge,
                "431 Request Header Fields Too Large",
                "Request Header Fields Too Large",
            ),
            (Fault::Late, "408 Request Timeout", "Request Timeout"),
        ] {
            let answer = String::from_utf8(fault.answer(RequestId::next())).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert!(
                head.contains(&format!("content-length: {}\r\n", body.len())),
                "{head}"
            );
            assert!(head.contains("\r\nx-request-id: "), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["error"], error);
            assert!(!body["message"].as_str().unwrap().is_empty());
        }
    }
}
