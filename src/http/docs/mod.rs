//! `/api/docs`: the interface, as OpenAPI 3.1 for programs and as a page for people.
//!
//! Both are made of the handlers' own descriptions, once, when they are first asked for: `openapi` gathers them,
//! `shared` adds what operations have in common, `examples` shows them at work, `page` renders the result. Nothing here
//! knows a request but `describe`.

mod accept;
mod examples;
mod openapi;
mod page;
mod schemas;
mod shared;

use std::sync::OnceLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY};
use actix_web::{HttpRequest, HttpResponse};

use super::respond;
use crate::error::ServiceError;
use page::Page;

pub use openapi::document;
pub use schemas::*;

/// Describes the whole interface.
///
/// As OpenAPI 3.1 in JSON; a browser gets a page to read.
#[utoipa::path(get, path = "/api/docs", operation_id = "describeApi", tag = "operation",
    responses((status = 200, description = "OpenAPI 3.1, or for browsers a page to read.",
        content((Object = "application/json"), (String = "text/html")),
        headers(("Vary" = String, description = "Names `accept`: there are two forms.")))))]
pub async fn describe(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    let forms = match FORMS.get() {
        Some(forms) => forms,
        None => {
            let made = Forms::make().map_err(ServiceError::internal)?;
            FORMS.get_or_init(|| made)
        }
    };
    let accepts = request
        .headers()
        .get_all(ACCEPT)
        .filter_map(|value| value.to_str().ok());
    let mut response = if accept::prefers_html(accepts) {
        let mut response = respond::respond(&request, StatusCode::OK, forms.page.html.clone()).await?;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, forms.policy.clone());
        response
    } else {
        respond::respond(&request, StatusCode::OK, forms.json.clone()).await?
    };
    let varies = HeaderValue::from_static("accept, accept-encoding");
    response.headers_mut().insert(VARY, varies);
    Ok(response)
}

/// The document in both of its forms.
struct Forms {
    json: Vec<u8>,
    page: Page,
    policy: HeaderValue,
}

impl Forms {
    fn make() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let document = document()?;
        let page = Page::of(&document);
        Ok(Self {
            json: serde_json::to_vec(&document)?,
            policy: HeaderValue::from_str(&page.content_security_policy)?,
            page,
        })
    }
}
