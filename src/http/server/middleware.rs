//! The middleware around every handler: request id, deadline, panics, error bodies, metrics and the log.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::Next;
use actix_web::web::Data;
use futures_util::FutureExt;
use listener::Counts;

use super::answer_budget::AnswerBudget;
use super::deadlines::Deadlines;
use super::rate_limit;
use super::request_context::RequestContext;
use super::request_id::RequestId;
use super::request_metrics::RequestMetrics;
use crate::error::{ErrorKind, ServiceError};
use crate::http::endpoint::ErrorMembers;
use crate::http::error::{Ended, error_response};

/// `Retry-After` of a request that timed out: the server is slow, not down.
const RETRY_AFTER_SECONDS: u32 = 1;

/// State that all requests of a worker share.
pub struct Shared {
    /// Of whole requests, including their bodies.
    pub deadlines: Deadlines,
    pub metrics: Arc<RequestMetrics>,
    pub answers: AnswerBudget,
    /// Counts of the listener's connections.
    pub connections: Counts,
}

/// What is logged and counted for a request.
struct Record {
    id: RequestId,
    method: Method,
    context: Rc<RequestContext>,
    shared: Data<Shared>,
    began: Instant,
}

/// Runs a request and turns its outcome into an answer.
pub async fn serve<B: MessageBody + 'static>(
    shared: Data<Shared>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let context = RequestContext::of(&request);
    let record = Record {
        id: context.id,
        method: request.method().clone(),
        context,
        shared,
        began: Instant::now(),
    };
    let deadlines = &record.shared.deadlines;
    // A panic fails one request and not its worker. The future that panicked is dropped and never polled again, so no
    // broken state is seen.
    let mut answering = pin!(AssertUnwindSafe(next.call(request)).catch_unwind());
    let mut answered = deadlines.within(record.began, answering.as_mut()).await;
    if answered.is_none() && record.context.has_no_deadline.get() {
        answered = Some(answering.await);
    }
    match answered {
        Some(Ok(answered)) => {
            let answer = finish(answered?.map_into_boxed_body(), &record);
            let counted = record
                .shared
                .answers
                .count(record.context.organization.get(), answer);
            let mut answer = counted.map_err(|refused| record.failed(refused))?;
            rate_limit::write(record.context.quota.get(), answer.headers_mut());
            for (name, value) in record.context.renewal.take().into_iter().flatten() {
                answer.headers_mut().append(name, value);
            }
            record.served(answer.status());
            Ok(answer)
        }
        Some(Err(panic)) => Err(record.failed(ServiceError::internal(describe(&*panic)))),
        None => {
            let message = format!(
                "the request took more than {} s and was cancelled",
                deadlines.timeout().as_secs()
            );
            Err(record.failed(ServiceError::unavailable(message, RETRY_AFTER_SECONDS)))
        }
    }
}

impl Record {
    fn route(&self) -> &'static str {
        self.shared.metrics.pattern(self.context.route.get())
    }

    fn served(&self, status: StatusCode) {
        if self.context.is_uncounted.get() {
            return;
        }
        let took = self.began.elapsed();
        let metrics = &self.shared.metrics;
        metrics.served(self.context.route.get(), &self.method, status, took);
        // Logs the pattern, never the path or the query: people put keys and tokens there by mistake.
        tracing::debug!(request_id = %self.id, method = %self.method, route = self.route(), status = status.as_u16(),
            took_us = took.as_micros() as u64, "request served");
    }

    /// The error of a request whose handler did not return an answer.
    fn failed(&self, error: ServiceError) -> Error {
        log(&error, self);
        self.served(error.kind.status().0);
        let (request_id, quota) = (self.id, self.context.quota.get());
        Ended {
            error,
            request_id,
            quota,
        }
        .into()
    }
}

/// Sets the answer's request id, and the body of an error.
fn finish(mut answer: ServiceResponse<BoxBody>, record: &Record) -> ServiceResponse<BoxBody> {
    let status = answer.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_written =
        || answer.headers().contains_key(header::CONTENT_TYPE) && answer.response().error().is_none();
    if !is_error || is_written() {
        record.id.write(answer.headers_mut());
        return answer;
    }
    let error = answer.response().error();
    let response = match error.and_then(|error| error.as_error::<ServiceError>()) {
        Some(error) => {
            log(error, record);
            error_response(error, record.id)
        }
        None => error_response(&unwritten(&answer), record.id),
    };
    // The router has set `Allow`. actix-cors has set the headers that let a page of another origin read the error.
    let headers = answer.headers().clone();
    let mut finished = answer.into_response(response);
    for (name, value) in headers {
        if !finished.headers().contains_key(&name) {
            finished.headers_mut().append(name, value);
        }
    }
    finished
}

/// The error for an answer without a body, made by actix-web or actix-cors.
fn unwritten(answer: &ServiceResponse<BoxBody>) -> ServiceError {
    let kind = ErrorKind::of_status(answer.status());
    let allowed = answer
        .headers()
        .get(header::ALLOW)
        .and_then(|allowed| allowed.to_str().ok());
    let error = match (allowed, answer.response().error()) {
        (Some(allowed), _) => ServiceError::new(kind, format!("this route takes {allowed}")),
        (None, Some(error)) if kind == ErrorKind::Validation => ServiceError::new(kind, error.to_string()),
        (None, _) => ServiceError::new(kind, kind.status().1.to_lowercase()),
    };
    match answer.response().extensions().get::<ErrorMembers>() {
        Some(add_members) => add_members(error),
        None => error,
    }
}

/// Logs a server error with its private cause. It is logged nowhere else.
fn log(error: &ServiceError, record: &Record) {
    let cause = || error.cause().map(ToString::to_string);
    let (request_id, method, route) = (record.id, &record.method, record.route());
    let took_us = record.began.elapsed().as_micros() as u64;
    match error.kind {
        ErrorKind::Internal => {
            tracing::error!(%request_id, %method, route, status = 500, took_us, cause = cause(), "request failed");
        }
        ErrorKind::Unavailable => {
            // Overload refuses thousands of requests a second: log one line a second, with the count.
            if let Some(refused) = refusals_to_log() {
                tracing::warn!(%request_id, %method, route, status = 503, took_us, cause = cause(), refused,
                    "requests refused: {}", error.message);
            }
        }
        // `served` logs all others like every answer.
        _ => {}
    }
}

/// Counts a refusal. Once a second, returns the number since the last time.
fn refusals_to_log() -> Option<u64> {
    static START: OnceLock<Instant> = OnceLock::new();
    static LOGGED_SECOND: AtomicU64 = AtomicU64::new(0);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed);
    // Starts at one, so that the first refusal is logged.
    let second = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
    let is_due = LOGGED_SECOND.fetch_max(second, Ordering::Relaxed) < second;
    is_due.then(|| COUNT.swap(0, Ordering::Relaxed))
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("of unknown kind"))
}
