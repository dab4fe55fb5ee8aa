//! The dashboard: a page and its assets, embedded in the binary. It is an ordinary client of the API: these routes
//! serve no data.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
};
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{Embed, EmbeddedFile};

use crate::error::ServiceError;
use crate::http::endpoint::{Anyone, Call, Endpoint, get};
use crate::http::respond;

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
    let page = Files::get("index.html").ok_or_else(|| ServiceError::internal("BUG: no page is embedded"))?;
    let mut response = respond_file(&call.request, page, "text/html; charset=utf-8", "no-cache").await?;
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
    let file = Files::get(&format!("assets/{name}")).ok_or_else(|| ServiceError::not_found("file"))?;
    let kind = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    respond_file(&call.request, file, kind, FOREVER).await
}

async fn respond_file(
    request: &HttpRequest,
    file: EmbeddedFile,
    kind: &'static str,
    keep: &'static str,
) -> Result<HttpResponse, ServiceError> {
    let mut response = respond::respond(request, StatusCode::OK, file.data.into_owned()).await?;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
