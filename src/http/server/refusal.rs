//! Answers to requests that the listener refuses before the router gets them.

use actix_web::body::BoxBody;
use actix_web::dev::Response;
use actix_web::http::StatusCode;
use listener::Refusal;

use super::request_id::RequestId;
use crate::error::ServiceError;
use crate::http::error::{error_response, refused_head};

/// `Retry-After` of a refused request: requests finish within seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Makes the answer to a refused request.
pub(super) fn answer(refusal: &Refusal) -> Response<BoxBody> {
    let id = RequestId::next();
    let answer = match refusal {
        Refusal::Crowded => {
            let message =
                "the server has as many requests open as it has room for; send it again in a moment";
            error_response(&ServiceError::unavailable(message, RETRY_AFTER_SECONDS), id)
        }
        Refusal::Malformed(what) => {
            let message = format!("the request's head cannot be read: {what}");
            error_response(&ServiceError::validation(message), id)
        }
        Refusal::TargetTooLong => refused_head(StatusCode::URI_TOO_LONG, "the request line is too long", id),
        Refusal::HeadTooLarge => refused_head(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has too many headers, or too long ones",
            id,
        ),
        Refusal::Late => refused_head(
            StatusCode::REQUEST_TIMEOUT,
            "the request's head did not arrive in time",
            id,
        ),
    };
    answer.into()
}

#[cfg(test)]
mod tests {
    use actix_web::body::MessageBody;

    use super::*;

    #[test]
    fn every_refusal_has_an_error_body() {
        for (refusal, status, error) in [
            (
                Refusal::Malformed(String::from("\"why\"\r\n")),
                400,
                "Validation Error",
            ),
            (Refusal::TargetTooLong, 414, "URI Too Long"),
            (Refusal::HeadTooLarge, 431, "Request Header Fields Too Large"),
            (Refusal::Late, 408, "Request Timeout"),
            (Refusal::Crowded, 503, "Service Unavailable"),
        ] {
            let answer = answer(&refusal);
            assert_eq!(answer.status().as_u16(), status);
            assert_eq!(answer.headers().get("content-type").unwrap(), "application/json");
            assert!(answer.headers().contains_key("x-request-id"));
            let body = answer.into_body().try_into_bytes().unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"], error);
            assert!(!body["message"].as_str().unwrap().is_empty());
        }
    }
}
