//! `/api/docs`: the interface as OpenAPI 3.1, gathered from the handlers' own descriptions.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{KnownFormat, RefOr, Schema, SchemaFormat};
use utoipa::{Modify, OpenApi, PartialSchema, ToSchema};

use super::{
    accounts, alert_history, alerts, analytics, bucket_keys, buckets, data, evaluations, health, metrics,
    operator, organization, organization_keys, query, respond, sources, webhook_deliveries, webhooks,
};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// The interface. A test in the parent compares it with the route table.
#[derive(OpenApi)]
#[openapi(
    info(title = "tidewatch", description = "A time-series monitoring service."),
    modifiers(&Security),
    paths(
        health::alive,
        health::ready,
        metrics::expose,
        describe,
        accounts::sign_up,
        accounts::log_in,
        accounts::me,
        accounts::change_password,
        organization::show,
        organization::update,
        organization_keys::list,
        organization_keys::create,
        organization_keys::remove,
        buckets::list,
        buckets::create,
        buckets::show,
        buckets::update,
        buckets::remove,
        bucket_keys::list,
        bucket_keys::create,
        bucket_keys::remove,
        sources::list,
        sources::create,
        sources::show,
        sources::update,
        sources::remove,
        data::ingest,
        data::ingest_batch,
        query::query,
        alerts::list,
        alerts::create,
        alerts::show,
        alerts::update,
        alerts::remove,
        alert_history::list,
        webhook_deliveries::list_of_rule,
        evaluations::due,
        evaluations::verdict,
        analytics::bucket,
        analytics::overview,
        webhooks::list,
        webhooks::create,
        webhooks::show,
        webhooks::update,
        webhooks::remove,
        webhook_deliveries::list,
        webhook_deliveries::test,
        webhook_deliveries::redeliver,
        operator::list,
        operator::change_plan,
    )
)]
pub struct ApiDoc;

/// Body of every error.
#[derive(ToSchema)]
#[schema(title = "Error")]
pub struct ErrorDoc {
    /// The type, such as `Validation Error`.
    pub error: String,
    /// What happened and what to change.
    pub message: String,
    /// All faults of the request, each at its place.
    pub details: Option<Vec<DetailDoc>>,
    /// To quote, on 500.
    #[schema(rename = "requestId")]
    pub request_id: Option<String>,
}

/// One fault.
#[derive(ToSchema)]
pub struct DetailDoc {
    /// Member names from the outside in.
    pub path: Vec<String>,
    /// What is wrong.
    pub message: String,
}

/// A schema: field name to definition.
#[derive(ToSchema)]
pub struct SchemaDoc(pub BTreeMap<String, FieldDoc>);

/// A field's definition.
#[derive(ToSchema)]
pub struct FieldDoc {
    /// `number`, `string` or `boolean`.
    #[schema(rename = "type")]
    pub kind: String,
    /// Unit of measurement.
    pub unit: Option<String>,
    /// Free text.
    pub description: Option<String>,
}

/// This description.
#[utoipa::path(get, path = "/api/docs", tag = "operation",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")))]
pub async fn describe(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    if TEXT.get().is_none() {
        let text = serde_json::to_vec(&ApiDoc::openapi()).map_err(ServiceError::internal)?;
        let _ = TEXT.set(text);
    }
    respond::respond(&request, StatusCode::OK, TEXT.get().cloned().unwrap_or_default()).await
}

struct Security;

impl Modify for Security {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let components = api.components.get_or_insert_default();
        let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
        components.add_security_scheme("apiKey", key);
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

impl PartialSchema for ObjectId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9a-f]{24}$"))
            .into()
    }
}

impl ToSchema for ObjectId {}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(format))
            .into()
    }
}

impl ToSchema for Timestamp {}
