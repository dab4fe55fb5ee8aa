//! What happens to every request, whatever its route: an id, a deadline, a net under panics, the
//! error body, a count, and a log line.

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
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::Next;
use actix_web::web::Data;

use super::answer_budget::AnswerBudget;
use super::error::{Ended, error_response};
use super::listener::Counts;
use super::noted::Noted;
use super::rate_limit;
use super::request_id::{REQUEST_ID_HEADER, RequestId};
use super::respond::forbid_sniffing;
use super::traffic::Traffic;
use crate::error::{ErrorKind, ServiceError};

/// What a request that ran out of time should wait: the server is slow, not down.
const RETRY_AFTER_SECONDS: u32 = 1;

/// What the requests of a worker share at the edge.
pub struct Edge {
    /// Time for a whole request, its body included.
    pub request_timeout: Duration,
    /// Counts them.
    pub traffic: Traffic,
    /// What their answers may hold.
    pub answers: AnswerBudget,
    /// They came by.
    pub connections: Counts,
}

/// A request, for whoever tells of it.
struct Told {
    id: RequestId,
    method: Method,
    noted: Noted,
    edge: Data<Edge>,
    began: Instant,
}

/// Wraps every request.
pub async fn serve<B: MessageBody + 'static>(
    edge: Data<Edge>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let told = Told {
        id: RequestId::next(),
        method: request.method().clone(),
        noted: Noted::of(&request),
        edge,
        began: Instant::now(),
    };
    let deadline = told.edge.request_timeout;
    match tokio::time::timeout(deadline, without_panic(next.call(request))).await {
        Ok(Ok(answered)) => {
            let answer = finish(answered?.map_into_boxed_body(), &told);
            let counted = told.edge.answers.count(told.noted.organization(), answer);
            let mut answer = counted.map_err(|refused| told.ended(refused))?;
            rate_limit::write(told.noted.quota(), answer.headers_mut());
            told.served(answer.status());
            Ok(answer)
        }
        Ok(Err(panic)) => Err(told.ended(ServiceError::internal(describe(&*panic)))),
        Err(_) => {
            let message = format!(
                "the request took more than {} s and was cancelled",
                deadline.as_secs()
            );
            Err(told.ended(ServiceError::unavailable(message, RETRY_AFTER_SECONDS)))
        }
    }
}

impl Told {
    fn route(&self) -> &'static str {
        self.edge.traffic.pattern(self.noted.route())
    }

    fn served(&self, status: StatusCode) {
        let took = self.began.elapsed();
        let traffic = &self.edge.traffic;
        traffic.served(self.noted.route(), &self.method, status, took);
        // The pattern, never the path or the query: people put keys and tokens there by mistake.
        tracing::debug!(request_id = %self.id, method = %self.method, route = self.route(), status = status.as_u16(),
            took_us = took.as_micros() as u64, "request served");
    }

    /// The answer to a request that is gone.
    fn ended(&self, error: ServiceError) -> Error {
        log(&error, self);
        self.served(error.kind.status().0);
        let ended = Ended {
            error,
            request_id: self.id,
            quota: self.noted.quota(),
        };
        ended.into()
    }
}

/// Gives the answer its id, and an error its body.
fn finish(answer: ServiceResponse<BoxBody>, told: &Told) -> ServiceResponse<BoxBody> {
    let status = answer.status();
    let written = answer.headers().contains_key(header::CONTENT_TYPE) && answer.response().error().is_none();
    if !(status.is_client_error() || status.is_server_error()) || written {
        return with_id(answer, told.id);
    }
    let response = match answer
        .response()
        .error()
        .and_then(|error| error.as_error::<ServiceError>())
    {
        Some(error) => {
            log(error, told);
            error_response(error, told.id)
        }
        None => error_response(&unwritten(&answer), told.id),
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
    forbid_sniffing(answer.headers_mut());
    answer
}

/// Failures of the server are logged here, once, with their private cause.
fn log(error: &ServiceError, told: &Told) {
    let cause = || error.cause().map(ToString::to_string);
    let (request_id, method, route) = (told.id, &told.method, told.route());
    let took_us = told.began.elapsed().as_micros() as u64;
    match error.kind {
        ErrorKind::Internal => {
            tracing::error!(%request_id, %method, route, status = 500, took_us, cause = cause(), "request failed");
        }
        ErrorKind::Unavailable => {
            // Overload refuses thousands a second: the log gets one line a second, and the count.
            if let Some(refused) = REFUSALS.tick() {
                tracing::warn!(%request_id, %method, route, status = 503, took_us, cause = cause(), refused,
                    "requests refused: {}", error.message);
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
        // Told by `served` like every other answer.
        | ErrorKind::TooManyRequests => {}
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
