//! The texts and examples of all operations: `operations.json`, by operation id.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What is said of an operation, and how it looks.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub summary: String,
    pub description: String,
    /// What its own answers mean, by status; those that all of its kind share are left out.
    pub answers: BTreeMap<String, String>,
    request: Option<Value>,
    #[serde(rename = "named requests", default)]
    named_requests: Map<String, Value>,
    /// By status.
    #[serde(default)]
    examples: BTreeMap<String, Value>,
    #[serde(rename = "named examples", default)]
    named_examples: BTreeMap<String, Map<String, Value>>,
}

/// What the ids of Prometheus's queries begin with.
const PROMQL: &str = "promql";

/// All of them, by operation id. Prometheus's queries are the same by two methods and two paths.
///
/// # Errors
/// When the file is not as described, which a test rules out.
pub fn operations() -> Result<BTreeMap<String, Operation>, serde_json::Error> {
    let mut operations: BTreeMap<String, Operation> = serde_json::from_str(include_str!("operations.json"))?;
    let queries = operations.iter().filter(|(id, _)| id.starts_with(PROMQL));
    let variants = queries.flat_map(|(id, operation)| {
        ["ByForm", "OfBucket", "ByFormOfBucket"].map(|variant| (format!("{id}{variant}"), operation.clone()))
    });
    let variants: Vec<_> = variants.collect();
    operations.extend(variants);
    Ok(operations)
}

impl Operation {
    /// Puts texts and examples where they belong.
    pub fn complete(&self, operation: &mut Value) {
        operation["summary"] = json!(self.summary);
        operation["description"] = json!(self.description);
        if let Some(body) = operation.get_mut("requestBody") {
            put(body, self.request.as_ref(), Some(&self.named_requests));
        }
        for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
            put(
                response,
                self.examples.get(status),
                self.named_examples.get(status),
            );
        }
    }
}

/// Into the first form of a body or a response.
fn put(body: &mut Value, one: Option<&Value>, named: Option<&Map<String, Value>>) {
    let contents = body.get_mut("content").and_then(Value::as_object_mut);
    let Some((_, content)) = contents.and_then(|contents| contents.iter_mut().next()) else {
        return;
    };
    if let Some(example) = one {
        content["example"] = example.clone();
    }
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let named = named
            .iter()
            .map(|(name, value)| (name.clone(), json!({"value": value})));
        content["examples"] = named.collect::<Map<_, _>>().into();
    }
}
