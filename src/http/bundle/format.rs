//! Requests and answers as bytes, one after the other. Each begins with its length, so that one which does not read spoils no
//! other:
//!
//! ```text
//! request: length of the rest (u32, little-endian), head and body as in HTTP/1.1
//! answer:  length of the rest (u32, little-endian), number of the request (u32, little-endian), head and body
//! ```

use actix_http::{Payload, Request};
use actix_web::dev::Response;
use actix_web::http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, Uri, Version};
use actix_web::web::{Bytes, BytesMut};
use actix_web::{HttpMessage, HttpResponse};
use httparse::{EMPTY_HEADER, Header, Status};

use crate::http::auth::API_KEY;
use crate::http::forward::is_passed_on;
use crate::http::inside::PassedOn;
use crate::http::server::request_id::REQUEST_ID_HEADER;

/// Headers of a request or an answer. A client may send more by HTTP/2.
const HEADERS_MAX: usize = 128;

/// Names that nearly every request or answer has, beside those that the HTTP library knows: they need no memory of their own.
static USUAL: [&HeaderName; 2] = [&API_KEY, &REQUEST_ID_HEADER];

/// Bytes that are no request or answer.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Head(#[from] httparse::Error),
    #[error("a head has no {0}")]
    Lacks(&'static str),
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
    write_with_length(out, |out| {
        for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        headers(&mut |name, value| write_header(out, name, value));
        let mut length = itoa::Buffer::new();
        write_header(out, &CONTENT_LENGTH, length.format(body.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    });
}

/// Appends the answer to the request with this number.
pub fn write_answer(out: &mut BytesMut, item: u32, head: &Response<()>, body: &[u8]) {
    write_with_length(out, |out| {
        out.extend_from_slice(&item.to_le_bytes());
        for part in ["HTTP/1.1 ", head.status().as_str(), " \r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        for (name, value) in head.headers() {
            if is_passed_on(name) {
                write_header(out, name, value.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    });
}

fn write_header(out: &mut BytesMut, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

fn write_with_length(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    // Below `ITEM_BYTES_MAX` and `ANSWER_BYTES_MAX`.
    let length = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// Splits a whole bundle into its requests.
///
/// # Errors
/// It breaks off.
pub fn split(mut bundle: Bytes) -> Result<Vec<Bytes>, Malformed> {
    let mut requests = Vec::new();
    while !bundle.is_empty() {
        let length = length_of(&bundle).ok_or(Malformed::BrokenOff)?;
        let rest = bundle.split_off(4);
        if rest.len() < length {
            return Err(Malformed::BrokenOff);
        }
        bundle = rest;
        requests.push(bundle.split_to(length));
    }
    Ok(requests)
}

/// The number in the first bytes.
fn length_of(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk().copied().map(u32::from_le_bytes);
    length.and_then(|length| usize::try_from(length).ok())
}

/// Reads one request of a bundle whose sender has shown the secret. Its headers are copied, because the router keeps heads to
/// use their memory again; its body shares the memory of the bundle.
///
/// # Errors
/// It has more headers than are taken, or a name that HTTP/1.1 does not have.
pub fn read_request(bytes: &Bytes) -> Result<Request, Malformed> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let Status::Complete(head_bytes) = parsed.parse(bytes)? else {
        return Err(Malformed::BrokenOff);
    };
    let mut request = Request::with_payload(Payload::from(bytes.slice(head_bytes..)));
    let head = request.head_mut();
    // The memory may be that of another request's head.
    head.peer_addr = None;
    head.version = Version::HTTP_11;
    head.method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes())
        .map_err(|_| Malformed::Invalid("method"))?;
    let target = parsed.path.ok_or(Malformed::Lacks("target"))?;
    head.uri = Uri::try_from(target).map_err(|_| Malformed::Invalid("target"))?;
    let mut passed_on = PassedOn::default();
    for header in parsed.headers.iter() {
        if !passed_on.note(header.name, header.value) {
            let value = HeaderValue::from_bytes(header.value);
            head.headers
                .append(name(header)?, value.map_err(|_| Malformed::Invalid("header"))?);
        }
    }
    request.extensions_mut().insert(passed_on);
    Ok(request)
}

/// Takes the first answer off the bytes that have arrived, with the number of its request; `None` if it has not arrived
/// completely. It is an error if it does not read.
pub fn take_answer(arrived: &mut BytesMut) -> Option<(usize, Result<HttpResponse, Malformed>)> {
    let length = length_of(arrived).filter(|length| arrived.len() - 4 >= *length)?;
    let mut answer = arrived.split_to(4 + length).freeze().split_off(4);
    match length_of(&answer) {
        Some(item) => Some((item, read_answer(&answer.split_off(4)))),
        // There is no such request.
        None => Some((usize::MAX, Err(Malformed::BrokenOff))),
    }
}

fn read_answer(bytes: &Bytes) -> Result<HttpResponse, Malformed> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let Status::Complete(head_bytes) = parsed.parse(bytes)? else {
        return Err(Malformed::BrokenOff);
    };
    let code = parsed.code.ok_or(Malformed::Lacks("status"))?;
    let status = StatusCode::from_u16(code).map_err(|_| Malformed::Invalid("status"))?;
    let mut response = HttpResponse::build(status);
    for header in parsed.headers.iter() {
        let value = HeaderValue::from_bytes(header.value);
        response.append_header((name(header)?, value.map_err(|_| Malformed::Invalid("header"))?));
    }
    Ok(response.body(bytes.slice(head_bytes..)))
}

fn name(header: &Header<'_>) -> Result<HeaderName, Malformed> {
    match USUAL.into_iter().find(|usual| usual.as_str() == header.name) {
        Some(usual) => Ok(usual.clone()),
        None => HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Malformed::Invalid("header")),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::http::header::{CONNECTION, CONTENT_TYPE};
    use actix_web::rt::System;
    use futures_util::StreamExt;
    use log_store::Shard;

    use super::*;
    use crate::http::inside;

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
        let requests = split(bundle()).unwrap();
        let [first, second] = [0, 1].map(|number| read_request(&requests[number]).unwrap());
        assert_eq!(
            (first.method(), first.uri()),
            (&Method::POST, &Uri::from_static("/a?b=%20c"))
        );
        assert_eq!(first.version(), Version::HTTP_11);
        let values = |name| {
            let values = first.headers().get_all(name).map(HeaderValue::as_bytes);
            values.collect::<Vec<_>>()
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
    fn what_the_sender_says_of_a_request_is_no_header_of_it() {
        let mut out = BytesMut::new();
        let headers = |add: &mut dyn FnMut(&HeaderName, &[u8])| {
            add(&inside::SHARD, b"17");
            add(&inside::CLIENT, b"192.0.2.7");
            add(&inside::REQUEST_ID, b"0123456789abcdef000000ff");
            add(&inside::TOO_LARGE, b"1");
            add(&inside::SECRET, b"s");
            add(&API_KEY, b"key");
        };
        write_request(&mut out, &Method::POST, "/", headers, b"");
        let request = read_request(&split(out.freeze()).unwrap()[0]).unwrap();
        let names: Vec<&str> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}: the key and the length");
        let passed_on = request.extensions().get::<PassedOn>().copied().unwrap();
        assert_eq!(passed_on.shard, Some(Shard(17)));
        assert_eq!(passed_on.client, Some([192, 0, 2, 7].into()));
        assert_eq!(
            passed_on.request_id.unwrap().to_string(),
            "0123456789abcdef000000ff"
        );
        assert!(passed_on.is_too_large);
    }

    #[test]
    fn a_bundle_that_breaks_off_is_refused() {
        let bundle = bundle();
        let ends: Vec<usize> = (0..bundle.len())
            .filter(|length| split(bundle.slice(..*length)).is_ok())
            .collect();
        assert_eq!(ends.len(), 2, "{ends:?}: nothing, and the first request alone");
        assert!(
            split(Bytes::from_static(&[0xff; 100])).is_err(),
            "longer than the bundle"
        );
    }

    /// HTTP/2 takes names and numbers of headers that HTTP/1.1 does not.
    #[test]
    fn a_request_whose_head_is_none_of_http_1_is_refused() {
        let with = |names: Vec<HeaderName>| {
            let mut out = BytesMut::new();
            let headers =
                |add: &mut dyn FnMut(&HeaderName, &[u8])| names.iter().for_each(|name| add(name, b"1"));
            write_request(&mut out, &Method::POST, "/", headers, b"");
            read_request(&split(out.freeze()).unwrap()[0])
        };
        let numbered = |count: usize| {
            let name = |number| HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
            with((0..count).map(name).collect())
        };
        assert!(numbered(HEADERS_MAX - 1).is_ok(), "and the length of the body");
        assert!(numbered(HEADERS_MAX).is_err());
        assert!(with(vec![HeaderName::from_bytes(b"x\"y").unwrap()]).is_err());
        for cut in 0..10 {
            assert!(read_request(&Bytes::from("GET / HTTP/1.1\r\n\r\n".as_bytes()[..cut].to_vec())).is_err());
        }
    }

    #[test]
    fn an_answer_is_taken_when_it_has_arrived_without_the_headers_of_its_connection() {
        let mut answer = HttpResponse::TooManyRequests();
        answer.insert_header((CONTENT_TYPE, "text/plain"));
        for value in ["a=b", "c=d"] {
            answer.append_header(("set-cookie", value));
        }
        answer.insert_header((CONNECTION, "close"));
        let (head, _) = Response::from(answer.finish()).into_parts();
        let mut sent = BytesMut::new();
        write_answer(&mut sent, 17, &head, b"one");
        let first = sent.len();
        write_answer(&mut sent, 2, &head, b"");
        for arrived in 0..first {
            assert!(take_answer(&mut BytesMut::from(&sent[..arrived])).is_none());
        }
        let mut take = || {
            take_answer(&mut sent)
                .map(|(item, answer)| (item, answer.unwrap()))
                .unwrap()
        };
        let (item, answer) = take();
        assert_eq!((item, answer.status()), (17, StatusCode::TOO_MANY_REQUESTS));
        let cookies: Vec<_> = answer.headers().get_all("set-cookie").collect();
        assert_eq!(cookies, ["a=b", "c=d"]);
        let names: Vec<_> = answer.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}: content-type and set-cookie");
        assert_eq!(now(to_bytes(answer.into_body())).unwrap(), &b"one"[..]);
        let (item, answer) = take();
        assert_eq!((item, now(to_bytes(answer.into_body())).unwrap().len()), (2, 0));
        assert!(sent.is_empty());
        for wrong in [
            &b""[..],
            b"\x01\0\0\0",
            b"\x01\0\0\0nonsense\r\n\r\n",
            b"\x01\0\0\0HTTP/1.1 200",
        ] {
            let mut arrived = BytesMut::new();
            write_with_length(&mut arrived, |out| out.extend_from_slice(wrong));
            assert!(take_answer(&mut arrived).unwrap().1.is_err(), "{wrong:?}");
            assert!(arrived.is_empty(), "what follows can be read");
        }
    }
}
