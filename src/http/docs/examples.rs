//! Requests and answers as they look, one for every operation: `examples.json`, by operation id.

use serde_json::{Map, Value, json};

use super::openapi::for_each_operation;

/// `{operationId: {request | "named requests", answers | "named answers": by status}}`
const EXAMPLES: &str = include_str!("examples.json");

/// Puts every example where it belongs.
///
/// # Errors
/// When the file is not JSON, which a test rules out.
pub fn place(document: &mut Value) -> Result<(), serde_json::Error> {
    let examples: Value = serde_json::from_str(EXAMPLES)?;
    for_each_operation(document, |_, _, operation| {
        let own = examples.get(operation["operationId"].as_str().unwrap_or_default());
        let Some(own) = own else { return };
        if let Some(body) = operation.get_mut("requestBody") {
            put(body, own.get("request"), own.get("named requests"));
        }
        for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
            let of = |kind: &str| own.get(kind)?.get(status);
            put(response, of("answers"), of("named answers"));
        }
    });
    Ok(())
}

/// Into the first form of a body or a response.
fn put(body: &mut Value, one: Option<&Value>, named: Option<&Value>) {
    let contents = body.get_mut("content").and_then(Value::as_object_mut);
    let Some((_, content)) = contents.and_then(|contents| contents.iter_mut().next()) else {
        return;
    };
    if let Some(example) = one {
        content["example"] = example.clone();
    }
    if let Some(named) = named.and_then(Value::as_object) {
        let named = named
            .iter()
            .map(|(name, value)| (name.clone(), json!({"value": value})));
        content["examples"] = named.collect::<Map<_, _>>().into();
    }
}
