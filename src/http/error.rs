//! The only place where errors become statuses and bodies.

use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;
use utoipa::ToSchema;

use super::resources::evaluations::StandingView;
use super::server::rate_limit;
use super::server::request_id::RequestId;
use crate::error::{Detail, EntryError, ErrorExtra, ErrorKind, SamplesWritten, ServiceError};
use crate::service::quota::Quota;

impl ErrorKind {
    /// The status and the `error` member of this kind.
    pub const fn status(self) -> (StatusCode, &'static str) {
        match self {
            Self::Validation => (StatusCode::BAD_REQUEST, "Validation Error"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "Forbidden"),
            Self::NotFound => (StatusCode::NOT_FOUND, "Not Found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
            Self::Conflict => (StatusCode::CONFLICT, "Conflict"),
            Self::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, "Precondition Failed"),
            Self::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large"),
            Self::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type"),
            Self::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
        }
    }

    /// Returns the kind of an error that the HTTP library itself answered.
    pub fn of_status(status: StatusCode) -> Self {
        let exact = Self::ALL.into_iter().find(|kind| kind.status().0 == status);
        match exact {
            Some(kind) => kind,
            None if status.is_client_error() => Self::Validation,
            None => Self::Internal,
        }
    }
}

/// Carries the error out of a handler. `error_response` writes the body, because it knows the request's id.
impl ResponseError for ServiceError {
    fn status_code(&self) -> StatusCode {
        self.kind.status().0
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.status_code())
    }
}

/// Makes the complete response of an error.
pub fn error_response(error: &ServiceError, request_id: RequestId) -> HttpResponse {
    let (status, _) = error.kind.status();
    let mut builder = HttpResponse::build(status);
    if let Some(seconds) = error.retry_after_seconds {
        builder.insert_header((header::RETRY_AFTER, HeaderValue::from(seconds)));
    }
    if error.kind == ErrorKind::Unauthorized {
        builder.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
    }
    if error.kind == ErrorKind::PayloadTooLarge {
        // The rest of the body is not read, so the connection cannot be reused.
        builder.force_close();
    }
    let mut response = finished(builder, &ErrorBody::of(error, request_id), request_id);
    if let Some(ErrorExtra::SamplesWritten(written)) = error.extra {
        write_samples_written(written, response.headers_mut());
    }
    response
}

/// The headers in which remote write 2.0 counts what was written.
pub fn write_samples_written(written: SamplesWritten, headers: &mut header::HeaderMap) {
    let SamplesWritten { values, histograms } = written;
    for (what, count) in [("samples", values), ("histograms", histograms), ("exemplars", 0)] {
        let name = format!("x-prometheus-remote-write-{what}-written");
        if let Ok(name) = header::HeaderName::try_from(name) {
            headers.insert(name, HeaderValue::from(count));
        }
    }
}

/// Makes the response to a head that never becomes a request, with a status that no [`ErrorKind`] has.
pub fn refused_head(status: StatusCode, message: &str, request_id: RequestId) -> HttpResponse {
    let body = ErrorBody {
        error: status.canonical_reason().unwrap_or_default(),
        message,
        details: &[],
        extra: None,
        request_id: None,
    };
    finished(HttpResponse::build(status), &body, request_id)
}

fn finished(mut builder: HttpResponseBuilder, body: &ErrorBody<'_>, request_id: RequestId) -> HttpResponse {
    builder.content_type("application/json");
    builder.insert_header((header::CACHE_CONTROL, "no-store"));
    // Serializing strings and JSON values cannot fail.
    let mut response = builder.body(serde_json::to_vec(body).unwrap_or_default());
    request_id.write(response.headers_mut());
    response
}

/// An error that ends a request outside of its handler: a timeout or a panic.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Ended {
    pub error: ServiceError,
    pub request_id: RequestId,
    /// The caller's quota, if the caller is on a limited plan.
    pub quota: Option<Quota>,
}

impl ResponseError for Ended {
    fn status_code(&self) -> StatusCode {
        self.error.kind.status().0
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = error_response(&self.error, self.request_id);
        rate_limit::write(self.quota, response.headers_mut());
        // The request has used up its time: do not wait for the rest of its body.
        response.head_mut().set_connection_type(ConnectionType::Close);
        response
    }
}

/// Body of every error response.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    /// Error type, such as `Validation Error`.
    error: &'static str,
    /// What went wrong and how to fix the request.
    message: &'a str,
    /// All faults of the request, each with its path.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    details: &'a [Detail],
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Option<ExtraBody<'a>>,
    /// Request ID to quote in a support request; present on 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<String>,
}

/// Members of some errors alone.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum ExtraBody<'a> {
    Batch {
        inserted_count: u64,
        failed_count: u64,
        errors: &'a [EntryError],
    },
    Standing {
        evaluation: StandingView,
    },
    Code {
        code: &'static str,
    },
}

impl<'a> ErrorBody<'a> {
    fn of(error: &'a ServiceError, request_id: RequestId) -> Self {
        let extra = error.extra.as_ref().and_then(|extra| {
            Some(match extra {
                ErrorExtra::Batch(errors) => ExtraBody::Batch {
                    inserted_count: 0,
                    failed_count: errors.len() as u64,
                    errors,
                },
                ErrorExtra::Import(failed_count, errors) => ExtraBody::Batch {
                    inserted_count: 0,
                    failed_count: *failed_count,
                    errors,
                },
                ErrorExtra::Standing(standing) => ExtraBody::Standing {
                    evaluation: StandingView::of(standing),
                },
                ErrorExtra::Code(code) => ExtraBody::Code { code },
                ErrorExtra::SamplesWritten(_) => return None,
            })
        });
        Self {
            error: error.kind.status().1,
            message: &error.message,
            details: &error.details,
            extra,
            request_id: (error.kind == ErrorKind::Internal).then(|| request_id.to_string()),
        }
    }
}
