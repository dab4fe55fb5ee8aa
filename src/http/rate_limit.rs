//! `X-RateLimit-*`: what every answer to a caller on a limited plan says of the month's quota, errors included.
//!
//! `edge` puts a [`Noted`] by each request, `auth` notes the quota there, `edge` writes the headers: only it sees
//! every answer, those that end a request from the outside too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpMessage, HttpRequest};

use crate::service::quota::Quota;

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

thread_local! {
    /// The last limit and the last reset with their texts: there are few plans, and one month at a time.
    static LIMIT_TEXT: RefCell<Text> = RefCell::default();
    static RESET_TEXT: RefCell<Text> = RefCell::default();
}

/// What is known of a request's quota, shared between those who find out and those who say.
#[derive(Clone, Default)]
pub(super) struct Noted(Rc<Cell<Option<Quota>>>);

impl Noted {
    /// Puts one by the request.
    pub fn of(request: &ServiceRequest) -> Self {
        let noted = Self::default();
        request.extensions_mut().insert(noted.clone());
        noted
    }

    pub fn quota(&self) -> Option<Quota> {
        self.0.get()
    }
}

/// Notes the quota of a request's caller; `None` on a plan without a limit.
pub(super) fn note(request: &HttpRequest, quota: Option<Quota>) {
    if let Some(noted) = request.extensions().get::<Noted>() {
        noted.0.set(quota);
    }
}

/// Writes the three headers, or none.
pub(super) fn write(quota: Option<Quota>, headers: &mut HeaderMap) {
    let Some(quota) = quota else { return };
    let limit = LIMIT_TEXT.with_borrow_mut(|text| text.of(quota.calls_max));
    let reset = RESET_TEXT.with_borrow_mut(|text| text.of(quota.resets_at_seconds.cast_unsigned()));
    headers.insert(LIMIT.clone(), limit);
    headers.insert(REMAINING.clone(), HeaderValue::from(quota.remaining));
    headers.insert(RESET.clone(), reset);
}

/// A number and its text.
#[derive(Default)]
struct Text(Option<(u64, HeaderValue)>);

impl Text {
    fn of(&mut self, number: u64) -> HeaderValue {
        match &self.0 {
            Some((last, text)) if *last == number => text.clone(),
            _ => self.0.insert((number, HeaderValue::from(number))).1.clone(),
        }
    }
}
