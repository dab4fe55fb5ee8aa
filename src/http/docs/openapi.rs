//! The document: the handlers' own descriptions, gathered, and completed by what they share.

use serde_json::Value;
use utoipa::OpenApi;

use super::{examples, shared};
use crate::http::{
    accounts, alert_history, alerts, analytics, bucket_keys, buckets, changes, dashboard, data, docs,
    evaluations, health, metrics, operator, organization, organization_keys, query, sources,
    webhook_deliveries, webhooks,
};
use crate::service::query::DATABASE_VERSION;

/// Descriptions of all handlers. A test of the parent compares it with the route table.
#[derive(OpenApi)]
#[openapi(
    info(title = "tidewatch", description = include_str!("introduction.md")),
    servers((url = "/", description = "This server.")),
    components(schemas(docs::ErrorDoc)),
    tags(
        (name = "accounts", description = "Signing up and in. The bearer token of a sign-in opens what its account owns."),
        (name = "organization", description = "The organization that the account belongs to, and its plan."),
        (name = "keys", description = "API keys: of the organization (admin, integration) and of a bucket (write, read)."),
        (name = "buckets", description = "Containers of data sources, with a retention of their own."),
        (name = "data sources", description = "Sensors and applications, each with a schema of named fields."),
        (name = "data", description = "Points, in and out."),
        (name = "alert rules", description = "What is wrong, in words; where each rule stands, and what it has done."),
        (name = "evaluations", description = "For external evaluators: which rules are due, and what was found."),
        (name = "webhooks", description = "Receivers of events, and every delivery to them."),
        (name = "analytics", description = "Counts and usage, of a bucket and of the organization."),
        (name = "operator", description = "For whoever runs the server. These routes are there when the server has an `operator.token`."),
        (name = "operation", description = "Whether the server lives and is ready, what it counts, this description, and the dashboard."),
    ),
    paths(
        accounts::sign_up_state,
        accounts::sign_up,
        accounts::log_in,
        accounts::me,
        accounts::change_password,
        accounts::renew,
        accounts::log_out,
        changes::show,
        organization::show,
        organization::update,
        organization_keys::list,
        organization_keys::create,
        organization_keys::remove,
        bucket_keys::list,
        bucket_keys::create,
        bucket_keys::remove,
        buckets::list,
        buckets::create,
        buckets::show,
        buckets::update,
        buckets::remove,
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
        webhooks::list,
        webhooks::create,
        webhooks::show,
        webhooks::update,
        webhooks::remove,
        webhook_deliveries::list,
        webhook_deliveries::test,
        webhook_deliveries::redeliver,
        analytics::bucket,
        analytics::overview,
        operator::list,
        operator::change_plan,
        health::alive,
        health::ready,
        metrics::expose,
        docs::describe,
        dashboard::page,
        dashboard::asset,
    )
)]
struct Handlers;

/// The whole document.
///
/// # Errors
/// When it cannot be written as JSON, which a test rules out.
pub fn document() -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(Handlers::openapi())?;
    shared::complete(&mut document);
    examples::place(&mut document)?;
    let zones = format!("Time zones are those of the IANA database {DATABASE_VERSION}.");
    if let Some(Value::String(introduction)) = document.pointer_mut("/info/description") {
        introduction.push_str(&format!("\n\n{zones}"));
    }
    Ok(document)
}

/// Calls `each` with the method, the path and the description of every operation.
pub fn for_each_operation(document: &mut Value, mut each: impl FnMut(&str, &str, &mut Value)) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            each(method, path, operation);
        }
    }
}
