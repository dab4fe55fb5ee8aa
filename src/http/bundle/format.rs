//! Requests and answers as bytes, one after the other.

use actix_http::{Payload, Request};
use actix_web::HttpResponse;
use actix_web::dev::Response;
use actix_web::http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, Uri, Version};
use actix_web::web::{Bytes, BytesMut};
use httparse::{EMPTY_HEADER, Header, Status};

use super::ITEMS_MAX;
use crate::http::auth::API_KEY;
use crate::http::forward::is_of_hop;
use crate::http::inside;
use crate::http::server::request_id::REQUEST_ID_HEADER;

/// Headers of a request or an answer: the HTTP library takes 100 of a client.
const HEADERS_MAX: usize = 128;
/// The number of the request in the bundle that an answer is for.
static ITEM: HeaderName = HeaderName::from_static("x-tidewatch-item");

/// Names that nearly every request or answer has, beside those that the HTTP library knows: they need no memory of their own.
static USUAL: [&HeaderName; 6] = [
    &ITEM,
    &inside::SHARD,
    &inside::CLIENT,
    &inside::REQUEST_ID,
    &API_KEY,
    &REQUEST_ID_HEADER,
];

/// Bytes that are not a sequence of requests, or of answers.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Head(#[from] httparse::Error),
    #[error("a head has no {0}")]
    Lacks(String),
    #[error("the {0} of a head is not valid")]
    Invalid(&'static str),
    #[error("it breaks off")]
    BrokenOff,
}

/// Appends a request. `headers` calls its argument with each header but the length of the body.
pub fn write_request(
    out: &mut BytesMut,
    method: &Method,
    target: &str,
    headers: impl FnOnce(&mut dyn FnMut(&HeaderName, &[u8])),
    body: &[u8],
) {
    for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    headers(&mut |name, value| write_header(out, name, value));
    write_body(out, body);
}

/// Appends the answer to the request with this number.
pub fn write_answer(out: &mut BytesMut, item: usize, head: &Response<()>, body: &[u8]) {
    for part in ["HTTP/1.1 ", head.status().as_str(), " \r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    write_header(out, &ITEM, itoa::Buffer::new().format(item).as_bytes());
    for (name, value) in head.headers() {
        if *name != CONTENT_LENGTH {
            write_header(out, name, value.as_bytes());
        }
    }
    write_body(out, body);
}

fn write_header(out: &mut BytesMut, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Ends a head and appends the body.
fn write_body(out: &mut BytesMut, body: &[u8]) {
    let mut length = itoa::Buffer::new();
    write_header(out, &CONTENT_LENGTH, length.format(body.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// Reads a whole bundle. The requests share its bytes.
///
/// # Errors
/// The bytes are no sequence of requests.
pub fn read_requests(mut bytes: Bytes) -> Result<Vec<Request>, Malformed> {
    let mut requests = Vec::with_capacity(ITEMS_MAX);
    while !bytes.is_empty() {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let Status::Complete(head_bytes) = parsed.parse(&bytes)? else {
            return Err(Malformed::BrokenOff);
        };
        let target = parsed.path.ok_or(Malformed::Lacks("target".to_owned()))?;
        let whole_bytes = head_bytes + number(parsed.headers, &CONTENT_LENGTH)?;
        if bytes.len() < whole_bytes {
            return Err(Malformed::BrokenOff);
        }
        let mut request = Request::with_payload(Payload::from(bytes.slice(head_bytes..whole_bytes)));
        let head = request.head_mut();
        head.version = Version::HTTP_11;
        head.method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes())
            .map_err(|_| Malformed::Invalid("method"))?;
        head.uri = Uri::from_maybe_shared(bytes.slice_ref(target.as_bytes()))
            .map_err(|_| Malformed::Invalid("target"))?;
        for header in parsed.headers.iter() {
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value));
            head.headers
                .append(name(header)?, value.map_err(|_| Malformed::Invalid("header"))?);
        }
        requests.push(request);
        bytes = bytes.split_off(whole_bytes);
    }
    Ok(requests)
}

/// Takes the first answer off the bytes that have arrived, and says for which request it is; `None` if it has not arrived
/// completely. Headers of a connection are left out.
///
/// # Errors
/// The bytes are not an answer.
pub fn take_answer(arrived: &mut BytesMut) -> Result<Option<(usize, HttpResponse)>, Malformed> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let Status::Complete(head_bytes) = parsed.parse(arrived)? else {
        return Ok(None);
    };
    let whole_bytes = head_bytes + number(parsed.headers, &CONTENT_LENGTH)?;
    if arrived.len() < whole_bytes {
        return Ok(None);
    }
    let code = parsed.code.ok_or(Malformed::Lacks("status".to_owned()))?;
    let status = StatusCode::from_u16(code).map_err(|_| Malformed::Invalid("status"))?;
    let item = number(parsed.headers, &ITEM)?;
    let mut answer = HttpResponse::build(status);
    for header in parsed.headers.iter() {
        let name = name(header)?;
        if name != ITEM && name != CONTENT_LENGTH && !is_of_hop(&name) {
            let value = HeaderValue::from_bytes(header.value);
            answer.append_header((name, value.map_err(|_| Malformed::Invalid("header"))?));
        }
    }
    let body = arrived.split_to(whole_bytes).freeze().split_off(head_bytes);
    Ok(Some((item, answer.body(body))))
}

fn name(header: &Header<'_>) -> Result<HeaderName, Malformed> {
    match USUAL.into_iter().find(|usual| usual.as_str() == header.name) {
        Some(usual) => Ok(usual.clone()),
        None => HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Invalid("header")),
    }
}

/// The value of a header that is a number.
fn number(headers: &[Header<'_>], name: &HeaderName) -> Result<usize, Malformed> {
    let header = headers.iter().find(|header| header.name == name.as_str());
    let value = header.and_then(|header| str::from_utf8(header.value).ok()?.parse().ok());
    value.ok_or_else(|| Malformed::Lacks(name.to_string()))
}

#[cfg(test)]
mod tests {
    use actix_web::HttpMessage;
    use actix_web::body::to_bytes;
    use actix_web::http::header::{CONNECTION, CONTENT_TYPE};
    use actix_web::rt::System;
    use futures_util::StreamExt;

    use super::*;

    /// The bodies of requests, and all of an answer, come from memory.
    fn now<T>(reading: impl Future<Output = T>) -> T {
        System::new().block_on(reading)
    }

    fn bundle() -> Bytes {
        let mut out = BytesMut::new();
        let headers = |add: &mut dyn FnMut(&HeaderName, &[u8])| {
            add(&CONTENT_TYPE, b"text/plain");
            for value in [&b"1"[..], b"\xe4\xf6"] {
                add(&HeaderName::from_static("x-twice"), value);
            }
        };
        write_request(
            &mut out,
            &Method::POST,
            "/a?b=%20c",
            headers,
            b"GET / HTTP/1.1\r\n\r\n",
        );
        write_request(&mut out, &Method::from_bytes(b"BREW").unwrap(), "/", |_| {}, b"");
        out.freeze()
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        let [first, second] = <[Request; 2]>::try_from(read_requests(bundle()).unwrap())
            .ok()
            .unwrap();
        assert_eq!(
            (first.method(), first.uri()),
            (&Method::POST, &Uri::from_static("/a?b=%20c"))
        );
        assert_eq!(first.version(), Version::HTTP_11);
        let values = |name| {
            first
                .headers()
                .get_all(name)
                .map(HeaderValue::as_bytes)
                .collect::<Vec<_>>()
        };
        assert_eq!(values("x-twice"), [&b"1"[..], b"\xe4\xf6"]);
        assert_eq!(values("content-type"), [b"text/plain"]);
        assert_eq!(values("content-length"), [b"18"]);
        let body = |mut request: Request| {
            let pieces = now(request
                .take_payload()
                .map(|piece| piece.unwrap())
                .collect::<Vec<_>>());
            pieces.concat()
        };
        assert_eq!((second.method().as_str(), second.path()), ("BREW", "/"));
        assert_eq!(body(first), b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(body(second), b"");
    }

    #[test]
    fn a_bundle_that_breaks_off_is_refused() {
        let bundle = bundle();
        let ends: Vec<usize> = (0..bundle.len())
            .filter(|length| read_requests(bundle.slice(..*length)).is_ok())
            .collect();
        assert_eq!(ends.len(), 2, "{ends:?}: nothing, and the first request alone");
    }

    #[test]
    fn an_answer_is_taken_when_it_has_arrived_without_the_headers_of_its_connection() {
        let mut answer = HttpResponse::TooManyRequests();
        answer.insert_header((CONTENT_TYPE, "text/plain"));
        answer
            .append_header(("set-cookie", "a=b"))
            .append_header(("set-cookie", "c=d"));
        answer.insert_header((CONNECTION, "close"));
        let (head, _) = Response::from(answer.finish()).into_parts();
        let mut sent = BytesMut::new();
        write_answer(&mut sent, 17, &head, b"one");
        let first = sent.len();
        write_answer(&mut sent, 2, &head, b"");
        for arrived in 0..first {
            assert!(
                take_answer(&mut BytesMut::from(&sent[..arrived]))
                    .unwrap()
                    .is_none()
            );
        }
        let (item, answer) = take_answer(&mut sent).unwrap().unwrap();
        assert_eq!((item, answer.status()), (17, StatusCode::TOO_MANY_REQUESTS));
        let cookies: Vec<_> = answer.headers().get_all("set-cookie").collect();
        assert_eq!(cookies, ["a=b", "c=d"]);
        let names: Vec<_> = answer.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}: content-type and set-cookie");
        assert_eq!(now(to_bytes(answer.into_body())).unwrap(), &b"one"[..]);
        let (item, answer) = take_answer(&mut sent).unwrap().unwrap();
        assert_eq!((item, now(to_bytes(answer.into_body())).unwrap().len()), (2, 0));
        assert!(sent.is_empty());
        for wrong in ["nonsense\r\n\r\n", "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n"] {
            assert!(take_answer(&mut BytesMut::from(wrong)).is_err(), "{wrong}");
        }
    }
}
