//! Takes bundles of other nodes apart, and gives each request to the router as if it had arrived by itself.

use actix_web::body::{BoxBody, to_bytes_limited};
use actix_web::dev::Response;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::web::{Bytes, BytesMut, Payload};
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::StreamExt;
use futures_util::stream::{self, FuturesUnordered};
use listener::WorkerRouter;

use super::{ALONE, ANSWER_BYTES_MAX, BYTES_MAX, ITEMS_MAX, format};
use crate::error::ServiceError;
use crate::http::inside;
use crate::http::server::answer_budget::HeldBytes;
use crate::http::server::request_context::{leave_uncounted, lift_deadline};

/// The path at which a node receives bundles of this format. Another format needs another path: a node that does not know it
/// answers 404, and is sent each request by itself.
pub const PATH: &str = "/cluster/bundle";
/// Bytes of the head of a usual answer.
const HEAD_BYTES: usize = 256;

/// The answer to one request.
struct Answer {
    item: u32,
    head: Response<()>,
    body: Bytes,
    /// The body as it was made, which counts in the budget of answers until it is dropped.
    _counted: BoxBody,
}

/// Answers each request of a bundle. The others do not wait for one that takes long: its answer follows theirs.
///
/// # Errors
/// The bundle does not read; none of its requests was carried out. What is wrong with one request is said in its own answer.
pub async fn receive(request: HttpRequest, payload: Payload) -> Result<HttpResponse, ServiceError> {
    let router = request.app_data::<WorkerRouter>();
    // Its requests need not show the secret again.
    let Some(router) = router.filter(|_| inside::is_inside(&request)) else {
        return Err(ServiceError::internal("BUG: bundles are not for clients"));
    };
    // Its requests are counted.
    leave_uncounted(&request);
    let read = match payload.to_bytes_limited(BYTES_MAX).await {
        Ok(Ok(bundle)) => format::split(bundle).map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("it is larger than {BYTES_MAX} bytes")),
    };
    let requests = match read {
        Ok(requests) if requests.len() <= ITEMS_MAX => requests,
        Ok(_) => return Err(unreadable(&format!("it has more than {ITEMS_MAX} requests"))),
        Err(fault) => return Err(unreadable(&fault)),
    };
    // From here on, each request has a deadline of its own.
    lift_deadline(&request);
    let answers: FuturesUnordered<_> = (0..)
        .zip(&requests)
        .map(|(item, bytes)| {
            let answering = format::read_request(bytes).map(|request| router.call(request));
            async move {
                match answering {
                    Ok(answering) => Answer::of(item, answering.await).await,
                    Err(fault) => {
                        tracing::debug!(%fault, "a request cannot be in a bundle");
                        Answer::alone(item)
                    }
                }
            }
        })
        .collect();
    // Answers that are ready at the same time are sent at once. They count until the next ones are asked for.
    let mut sending = Vec::new();
    let mut parts = answers.ready_chunks(ITEMS_MAX).map(move |answers| {
        sending.clear();
        sending.extend(answers);
        write(&sending)
    });
    // Then the head of the answer and the first part are sent at once, too.
    let first = parts.next().await;
    let mut response = HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")))
        .streaming(stream::iter(first).chain(parts).map(Ok::<_, Error>));
    // Each answer counts for its organization. The whole must not be refused: its requests were carried out.
    response.extensions_mut().insert(HeldBytes(0));
    Ok(response)
}

fn unreadable(fault: &str) -> ServiceError {
    ServiceError::validation(format!("the bundle of requests does not read: {fault}"))
}

impl Answer {
    async fn of(item: u32, response: Response<BoxBody>) -> Self {
        let (head, mut counted) = response.into_parts();
        // Borrowed: what counts it is kept.
        match to_bytes_limited(&mut counted, ANSWER_BYTES_MAX).await {
            Ok(Ok(body)) => Answer {
                item,
                head,
                body,
                _counted: counted,
            },
            fault => {
                let fault = fault.map(|read| read.map(drop));
                tracing::error!(?fault, "BUG: an answer is too large for a bundle, or breaks off");
                Answer::empty(item, Response::new(StatusCode::INTERNAL_SERVER_ERROR))
            }
        }
    }

    /// The request does not read as one of a bundle.
    fn alone(item: u32) -> Self {
        let mut response = Response::new(StatusCode::BAD_REQUEST);
        let headers = response.headers_mut();
        headers.insert(ALONE.clone(), HeaderValue::from_static("1"));
        Answer::empty(item, response)
    }

    fn empty(item: u32, response: Response<BoxBody>) -> Self {
        Answer {
            item,
            head: response.drop_body(),
            body: Bytes::new(),
            _counted: BoxBody::new(()),
        }
    }
}

fn write(answers: &[Answer]) -> Bytes {
    let bodies: usize = answers.iter().map(|answer| answer.body.len()).sum();
    let mut out = BytesMut::with_capacity(bodies + answers.len() * HEAD_BYTES);
    for answer in answers {
        format::write_answer(&mut out, answer.item, &answer.head, &answer.body);
    }
    out.freeze()
}
