//! The dashboard: a page and its assets, embedded in the binary. It is an ordinary client of the API: these routes
//! serve no data.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::Embed;

use crate::error::ServiceError;
use crate::http::endpoint::{Anyone, Call, Endpoint, get};
use crate::http::kept_body::KeptBody;

/// Output of the build of `dashboard/`.
#[derive(Embed)]
#[folder = "$OUT_DIR/dashboard"]
struct Files;

/// Allows only files of this server and nothing inline, so that user-supplied text can never run as a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'";
/// Asset names change with their content, so assets are cached forever. The page is revalidated on every load: it is as
/// small as a 304 response.
const FOREVER: &str = "public, max-age=31536000, immutable";

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/", "showDashboard", page).of_types(&["text/html"]),
        get("/assets/{file}", "getDashboardAsset", asset).of_types(&[
            "text/javascript",
            "text/css",
            "image/svg+xml",
        ]),
    ]
}

async fn page(call: Call<Anyone>) -> Result<HttpResponse, ServiceError> {
    let page = file("index.html").ok_or_else(|| ServiceError::internal("BUG: no page is embedded"))?;
    let mut response = respond_file(&call.request, page, "text/html; charset=utf-8", "no-cache")?;
    let headers: [(HeaderName, &str); 2] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

async fn asset(call: Call<Anyone>) -> Result<HttpResponse, ServiceError> {
    let name = call.request.match_info().get("file").unwrap_or_default();
    let file = file(&format!("assets/{name}")).ok_or_else(|| ServiceError::not_found("file"))?;
    let kind = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    respond_file(&call.request, file, kind, FOREVER)
}

/// An embedded file. A client that takes it slowly holds no copy of it.
fn file(name: &str) -> Option<&'static KeptBody> {
    static KEPT: OnceLock<HashMap<Cow<'static, str>, KeptBody>> = OnceLock::new();
    let kept = KEPT.get_or_init(|| {
        let body = |name: &str| {
            let body = match Files::get(name)?.data {
                Cow::Borrowed(data) => Bytes::from_static(data),
                Cow::Owned(data) => data.into(),
            };
            Some(KeptBody::new(body))
        };
        let with_body = |name: Cow<'static, str>| body(&name).map(|body| (name, body));
        Files::iter().filter_map(with_body).collect()
    });
    kept.get(name)
}

fn respond_file(
    request: &HttpRequest,
    file: &KeptBody,
    kind: &'static str,
    keep: &'static str,
) -> Result<HttpResponse, ServiceError> {
    let mut response = file.respond(request)?;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
