//! `/api/docs`: the interface, as OpenAPI 3.1 for programs and as a page for people.
//!
//! Both are generated from the table of endpoints when they are first requested: `openapi` collects the descriptions,
//! `shared` has what operations have in common, `operations` has texts and examples, and `page` renders the result.
//! Only `describe` handles a request.

mod accept;
mod openapi;
mod operations;
mod page;
pub mod points;
pub mod rows;
pub mod schemas;
mod shared;

use std::sync::OnceLock;

use actix_web::HttpResponse;
use actix_web::http::header::{
    Accept, CONTENT_SECURITY_POLICY, CONTENT_TYPE, Header as _, HeaderValue, VARY,
};

use super::endpoint::{Anyone, Call, Endpoint, get};
use super::kept_body::KeptBody;
use crate::error::ServiceError;

pub use openapi::document;
#[cfg(test)]
pub use operations::operations;
pub use schemas::*;
pub use shared::{error_content, error_reference, headers_of};

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/docs", "describeApi", describe)
            .of_types(&["application/json", "text/html"])
            .writes_header("Vary", "Names `accept`: there are two forms."),
    ]
}

async fn describe(call: Call<Anyone>) -> Result<HttpResponse, ServiceError> {
    static FORMS: OnceLock<Result<Forms, String>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| Forms::make().map_err(|fault| fault.to_string()));
    let forms = forms
        .as_ref()
        .map_err(|fault| ServiceError::internal(fault.as_str()))?;
    let as_html = Accept::parse(&call.request).is_ok_and(|accepted| accept::prefers_html(&accepted));
    let form = if as_html { &forms.html } else { &forms.json };
    let mut response = form.respond(&call.request)?;
    let headers = response.headers_mut();
    if as_html {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, forms.policy.clone());
    }
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    Ok(response)
}

struct Forms {
    json: KeptBody,
    html: KeptBody,
    /// The content security policy of the page.
    policy: HeaderValue,
}

impl Forms {
    fn make() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let document = document()?;
        Ok(Self {
            json: KeptBody::new(serde_json::to_vec(&document)?.into()),
            html: KeptBody::new(page::html(&document).into()),
            policy: HeaderValue::try_from(page::content_security_policy())?,
        })
    }
}
