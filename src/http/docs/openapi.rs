//! The OpenAPI document: the endpoints of the table, each with its description.

use serde_json::{Map, Value, json};

use super::operations::operations;
use super::shared;
use crate::http::endpoint::Components;
use crate::http::error::ErrorBody;
use crate::http::table::{Section, sections};
use crate::ids::ObjectId;
use crate::service::query::DATABASE_VERSION;

/// Builds the complete document.
///
/// # Errors
/// Fails when the file of texts is malformed, which a test rules out.
pub fn document() -> Result<Value, serde_json::Error> {
    let (sections, texts) = (sections(true), operations()?);
    let mut schemas = Components::default();
    schemas.add::<ErrorBody>();
    schemas.add::<ObjectId>();
    let mut paths: Map<String, Value> = Map::new();
    for Section { tag, endpoints, .. } in &sections {
        for endpoint in endpoints {
            // A test of the documents reports an endpoint without texts.
            let Some(texts) = texts.get(endpoint.id) else {
                continue;
            };
            let mut operation = endpoint.operation(tag, &texts.answers, &mut schemas);
            texts.complete(&mut operation);
            let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
            methods[endpoint.method.as_str().to_ascii_lowercase()] = operation;
        }
    }
    let tags: Vec<_> = sections
        .iter()
        .map(|section| json!({"name": section.tag, "description": section.about}))
        .collect();
    let introduction = include_str!("introduction.md");
    let mut components = shared::components();
    components["schemas"] = schemas.into_json();
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tidewatch", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "MIT", "identifier": "MIT"},
            "description": format!(
                "{introduction}\n\nTime zones are those of the IANA database {DATABASE_VERSION}."
            ),
        },
        "servers": [{"url": "/", "description": "This server."}],
        "tags": tags,
        "paths": paths,
        "components": components,
    }))
}
