//! What happens to every request, whatever its route: an id, a deadline, a net under panics, the
//! error body, and the log line about failures.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::Next;
use actix_web::web::Data;

use super::error::{Ended, error_response};
use super::rate_limit::{self, Noted};
use super::request_id::{REQUEST_ID_HEADER, RequestId};
use crate::error::{ErrorKind, ServiceError};
use crate::service::Service;
use crate::service::quota::Quota;

/// What a request that ran out of time should wait: the server is slow, not down.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Wraps every request.
pub async fn serve<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let request_id = RequestId::next();
    let noted = Noted::of(&request);
    let deadline = request
        .app_data::<Data<Service>>()
        .map_or(Duration::from_secs(30), |service| {
            service.config.server.request_timeout
        });
    match tokio::time::timeout(deadline, without_panic(next.call(request))).await {
        Ok(Ok(answered)) => {
            let mut answer = finish(answered?.map_into_boxed_body(), request_id);
            rate_limit::write(noted.quota(), answer.headers_mut());
            Ok(answer)
        }
        Ok(Err(panic)) => {
            let error = ServiceError::internal(describe(&*panic));
            Err(ended(error, request_id, noted.quota()))
        }
        Err(_) => {
            let message = format!(
                "the request took more than {} s and was cancelled",
                deadline.as_secs()
            );
            let error = ServiceError::unavailable(message, RETRY_AFTER_SECONDS);
            Err(ended(error, request_id, noted.quota()))
        }
    }
}

/// Gives the answer its id, and an error its body.
fn finish(answer: ServiceResponse<BoxBody>, request_id: RequestId) -> ServiceResponse<BoxBody> {
    let status = answer.status();
    let written = answer.headers().contains_key(header::CONTENT_TYPE) && answer.response().error().is_none();
    if !(status.is_client_error() || status.is_server_error()) || written {
        return with_id(answer, request_id);
    }
    let response = match answer
        .response()
        .error()
        .and_then(|error| error.as_error::<ServiceError>())
    {
        Some(error) => {
            log(
                error,
                request_id,
                answer.request().method().as_str(),
                answer.request().path(),
            );
            error_response(error, request_id)
        }
        None => error_response(&unwritten(&answer), request_id),
    };
    // What stands around the handlers has set headers too: `Allow`, and those that let a page of
    // another origin read the error.
    let headers = answer.headers().clone();
    let mut finished = answer.into_response(response);
    for (name, value) in headers {
        if !finished.headers().contains_key(&name) {
            finished.headers_mut().append(name, value);
        }
    }
    finished
}

/// The error behind an answer that the router or the origin check gave by itself.
fn unwritten(answer: &ServiceResponse<BoxBody>) -> ServiceError {
    let kind = ErrorKind::of_status(answer.status());
    let allowed = answer
        .headers()
        .get(header::ALLOW)
        .and_then(|allowed| allowed.to_str().ok());
    match (allowed, answer.response().error()) {
        (Some(allowed), _) => ServiceError::new(kind, format!("this route takes {allowed}")),
        (None, Some(error)) if kind == ErrorKind::Validation => ServiceError::new(kind, error.to_string()),
        (None, _) => ServiceError::new(kind, kind.status().1.to_lowercase()),
    }
}

fn with_id(mut answer: ServiceResponse<BoxBody>, request_id: RequestId) -> ServiceResponse<BoxBody> {
    if let Some(id) = request_id.header_value() {
        answer.headers_mut().insert(REQUEST_ID_HEADER.clone(), id);
    }
    answer
}

fn ended(error: ServiceError, request_id: RequestId, quota: Option<Quota>) -> Error {
    log(&error, request_id, "", "");
    let ended = Ended {
        error,
        request_id,
        quota,
    };
    ended.into()
}

/// Failures of the server are logged here, once, with their private cause.
fn log(error: &ServiceError, request_id: RequestId, method: &str, path: &str) {
    let cause = error.cause().map(ToString::to_string);
    match error.kind {
        ErrorKind::Internal => {
            tracing::error!(%request_id, method, path, cause, "request failed");
        }
        ErrorKind::Unavailable => {
            // Overload refuses thousands a second: the log gets one line a second, and the count.
            if let Some(refused) = REFUSALS.tick() {
                tracing::warn!(%request_id, method, path, cause, refused, "requests refused: {}", error.message);
            }
        }
        ErrorKind::Validation
        | ErrorKind::Unauthorized
        | ErrorKind::Forbidden
        | ErrorKind::NotFound
        | ErrorKind::MethodNotAllowed
        | ErrorKind::Conflict
        | ErrorKind::PayloadTooLarge
        | ErrorKind::UnsupportedMediaType
        | ErrorKind::TooManyRequests => {
            tracing::debug!(%request_id, method, path, kind = ?error.kind, "request refused");
        }
    }
}

static REFUSALS: Throttle = Throttle {
    second: AtomicU64::new(0),
    count: AtomicU64::new(0),
};

/// Lets one line a second through.
struct Throttle {
    second: AtomicU64,
    count: AtomicU64,
}

impl Throttle {
    /// How many there were since the last line, when it is time for one.
    fn tick(&self) -> Option<u64> {
        static START: OnceLock<Instant> = OnceLock::new();
        self.count.fetch_add(1, Ordering::Relaxed);
        // From one: the very first refusal gets its line.
        let second = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
        let is_due = self.second.fetch_max(second, Ordering::Relaxed) < second;
        is_due.then(|| self.count.swap(0, Ordering::Relaxed))
    }
}

/// Runs a future to its end or to its panic, which is then one request's matter, not its worker's.
async fn without_panic<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        // A future that panicked is dropped and never polled again, so no broken state is seen.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("of unknown kind"))
}
