//! The `X-RateLimit-*` headers: the month's quota, on every answer to a caller on a limited plan, errors included.
//!
//! `auth` records the quota in the request, `middleware` writes the headers: only it sees every answer, including those
//! made outside the handler.

use std::cell::RefCell;
use std::thread::LocalKey;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::service::quota::Quota;

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A number and its text.
type Text = RefCell<Option<(u64, HeaderValue)>>;

thread_local! {
    /// Caches the text of the last limit and the last reset: there are few plans, and one month at a time.
    static LIMIT_TEXT: Text = RefCell::default();
    static RESET_TEXT: Text = RefCell::default();
}

/// Writes the three headers, or none without a quota.
pub(in crate::http) fn write(quota: Option<Quota>, headers: &mut HeaderMap) {
    let Some(quota) = quota else { return };
    let limit = text_of(quota.calls_max, &LIMIT_TEXT);
    let reset = text_of(quota.resets_at_seconds.cast_unsigned(), &RESET_TEXT);
    headers.insert(LIMIT.clone(), limit);
    headers.insert(REMAINING.clone(), HeaderValue::from(quota.remaining));
    headers.insert(RESET.clone(), reset);
}

fn text_of(number: u64, cached: &'static LocalKey<Text>) -> HeaderValue {
    cached.with_borrow_mut(|cached| match cached {
        Some((last, text)) if *last == number => text.clone(),
        _ => cached.insert((number, HeaderValue::from(number))).1.clone(),
    })
}
