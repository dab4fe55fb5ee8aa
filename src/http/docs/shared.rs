//! What operations share, added in one place: credentials, the errors that any of their kind can answer, headers, and
//! the rules between members that the handlers' types cannot say.

use actix_web::http::StatusCode;
use serde_json::{Map, Value, json};

use super::openapi::for_each_operation;
use crate::error::ErrorKind;

/// Completes the handlers' own descriptions.
pub fn complete(document: &mut Value) {
    let components = &mut document["components"];
    components["securitySchemes"] = security_schemes();
    components["headers"] = headers();
    components["responses"] = ErrorKind::ALL
        .into_iter()
        .filter_map(shared_error)
        .collect::<Map<_, _>>()
        .into();
    for (schema, rules) in rules_between_members() {
        merge(&mut components["schemas"][schema], rules);
    }
    for (schema, names) in NAMES {
        for name in *names {
            components["schemas"][*schema]["properties"][*name]["pattern"] = json!(NOT_BLANK);
        }
    }
    for_each_operation(document, |_, path, operation| complete_operation(path, operation));
}

fn complete_operation(path: &str, operation: &mut Value) {
    let security = operation["security"].take();
    let has_credential = security.is_array();
    let is_operators = path.starts_with("/api/operator/");
    let parameters = operation["parameters"].as_array();
    let has_parameters = parameters.is_some_and(|parameters| !parameters.is_empty());
    let has_id = path.contains('{');
    let has_body = operation.get("requestBody").is_some();
    operation["security"] = if has_credential { security } else { json!([]) };
    let shared = [
        (
            ErrorKind::Validation,
            has_credential || has_parameters || has_body,
        ),
        (ErrorKind::Unauthorized, has_credential),
        (ErrorKind::Forbidden, has_credential && !is_operators),
        (
            ErrorKind::NotFound,
            has_id || is_operators || (has_credential && has_body),
        ),
        (ErrorKind::PayloadTooLarge, has_body),
        (ErrorKind::UnsupportedMediaType, has_body),
        (ErrorKind::TooManyRequests, has_credential && !is_operators),
        (ErrorKind::Internal, true),
        (ErrorKind::Unavailable, true),
    ];
    let Some(responses) = operation["responses"].as_object_mut() else {
        return;
    };
    for (kind, _) in shared.into_iter().filter(|(_, answers)| *answers) {
        let (status, _) = kind.status();
        let response = responses.entry(status.as_str()).or_insert(Value::Null);
        if response.is_null() {
            *response = json!({"$ref": format!("#/components/responses/{}", name_of(kind))});
        }
    }
    for (status, response) in responses
        .iter_mut()
        .filter(|(_, response)| response.get("$ref").is_none())
    {
        complete_response(status, response, has_credential && !is_operators);
    }
    responses.sort_keys();
}

/// Headers, and for errors the body, of an answer that a handler describes itself.
fn complete_response(status: &str, response: &mut Value, is_counted: bool) {
    let kind = ErrorKind::ALL
        .into_iter()
        .find(|kind| kind.status().0.as_str() == status);
    if let Some(kind) = kind {
        let content = response.as_object_mut().map(|response| response.entry("content"));
        if let Some(content) = content {
            content.or_insert_with(|| error_content(kind));
        }
    }
    let mut headers = headers_of(kind.map(|kind| kind.status().0), is_counted);
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        headers.insert(name.clone(), header.clone());
    }
    response["headers"] = headers.into();
}

/// An error as any operation can answer it; `None` for those that only one can describe.
fn shared_error(kind: ErrorKind) -> Option<(String, Value)> {
    let description = match kind {
        ErrorKind::Validation => {
            "The request is at fault; `details` names every fault at its place. Also: both credentials were sent."
        }
        ErrorKind::Unauthorized => "No credential, or one that is wrong, deleted or out of date.",
        ErrorKind::Forbidden => {
            "The credential is of a kind that the route does not take, or of another bucket."
        }
        ErrorKind::NotFound => "What an id names is not there, or not the caller's to see.",
        ErrorKind::PayloadTooLarge => {
            "The body is larger than the route takes (1 MiB where nothing else is said), decompressed."
        }
        ErrorKind::UnsupportedMediaType => "`Content-Encoding` is neither gzip nor zstd.",
        ErrorKind::TooManyRequests => "The month's calls are used up; the message says when they begin anew.",
        ErrorKind::Internal => "The server is at fault; `requestId` finds the line in its log.",
        ErrorKind::Unavailable => {
            "The server is saturated, or the request took over 30 seconds; nothing is known to be done."
        }
        ErrorKind::MethodNotAllowed | ErrorKind::Conflict => return None,
    };
    let status = kind.status().0;
    let is_counted = !matches!(
        kind,
        ErrorKind::Unauthorized | ErrorKind::Internal | ErrorKind::Unavailable
    );
    let response = json!({
        "description": description, "headers": headers_of(Some(status), is_counted), "content": error_content(kind),
    });
    Some((name_of(kind), response))
}

fn error_content(kind: ErrorKind) -> Value {
    let (_, error) = kind.status();
    let message = match kind {
        ErrorKind::Validation => {
            "2 faults: name is required; retentionDays must be an integer from 1 to 1000000, not 0"
        }
        ErrorKind::Unauthorized => {
            "send an API key as X-API-Key, or the bearer token of a sign-in as Authorization"
        }
        ErrorKind::Forbidden => "API key does not have access to this bucket",
        ErrorKind::NotFound => "bucket not found",
        ErrorKind::MethodNotAllowed => "the method is not one of the route's",
        ErrorKind::Conflict => "a bucket named \"plant\" exists already",
        ErrorKind::PayloadTooLarge => "the body is larger than 1048576 bytes",
        ErrorKind::UnsupportedMediaType => {
            "content-encoding \"br\" is not understood; send gzip, zstd or plain JSON"
        }
        ErrorKind::TooManyRequests => {
            "the month's 10000 calls are used up; they begin anew at 2026-12-01T00:00:00Z"
        }
        ErrorKind::Internal => "internal error; quote the request id",
        ErrorKind::Unavailable => "the server is saturated; try again later",
    };
    let mut example = json!({"error": error, "message": message});
    if kind == ErrorKind::Validation {
        example["details"] = json!([
            {"path": ["name"], "message": "is required"},
            {"path": ["retentionDays"], "message": "must be an integer from 1 to 1000000, not 0"},
        ]);
    }
    if kind == ErrorKind::Internal {
        example["requestId"] = json!("5f1e0c4a9b7d3e2100000c41");
    }
    json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}})
}

/// `Too Many Requests` → `TooManyRequests`
fn name_of(kind: ErrorKind) -> String {
    kind.status().1.replace(' ', "")
}

/// Names of the headers of an answer, as references. `is_counted`: it may tell the caller of the month's calls.
fn headers_of(error: Option<StatusCode>, is_counted: bool) -> Map<String, Value> {
    let mut names = vec!["X-Request-Id"];
    if is_counted {
        names.extend(["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]);
    }
    if matches!(
        error,
        Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    ) {
        names.push("Retry-After");
    }
    if error == Some(StatusCode::UNAUTHORIZED) {
        names.push("WWW-Authenticate");
    }
    let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    names
        .into_iter()
        .map(|name| (name.to_owned(), reference(name)))
        .collect()
}

fn headers() -> Value {
    let header = |required: bool, kind: &str, description: &str, example: Value| json!({"required": required, "description": description, "schema": {"type": kind}, "example": example});
    json!({
        "X-Request-Id": header(true, "string", "Finds the request in the server's log.", json!("5f1e0c4a9b7d3e2100000c41")),
        "X-RateLimit-Limit": header(false, "integer", "Calls a month; absent where the plan has no limit.", json!(10_000)),
        "X-RateLimit-Remaining": header(false, "integer", "Calls left this month; absent where the plan has no limit.", json!(9_987)),
        "X-RateLimit-Reset": header(false, "integer", "When the month ends, in Unix seconds; absent where the plan has no limit.", json!(1_796_083_200)),
        "Retry-After": header(true, "integer", "Seconds to wait before the next try.", json!(1)),
        "WWW-Authenticate": header(true, "string", "`Bearer`.", json!("Bearer")),
    })
}

fn security_schemes() -> Value {
    json!({
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "X-API-Key",
            "description": "An API key. Which types a route takes stands with the route. Never put a key into a URL."
        },
        "bearer": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The token of a sign-in, for 12 hours. It is taken wherever an admin key is. Send this or a key, not both. The dashboard, and no other page, gets it as a cookie, which counts where neither is sent."
        },
        "operator": {
            "type": "http", "scheme": "bearer",
            "description": "The `operator.token` of the server's configuration."
        },
    })
}

/// Members that hold a name, by schema: trimmed, a name must not be empty.
const NAMES: &[(&str, &[&str])] = &[
    ("SignUpBody", &["name", "organizationName"]),
    ("OrganizationPatchBody", &["name"]),
    ("NewBucketKeyBody", &["name", "label"]),
    ("NewOrganizationKeyBody", &["name", "label"]),
    ("BucketBody", &["name"]),
    ("BucketPatchBody", &["name"]),
    ("SourceBody", &["name", "type"]),
    ("SourcePatchBody", &["name", "type"]),
    ("RuleBody", &["name", "condition", "naturalLanguageQuery"]),
    ("RulePatchBody", &["name", "condition", "naturalLanguageQuery"]),
    ("InputBody", &["field"]),
];

/// A character that is not white space, as Unicode has it.
const NOT_BLANK: &str = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";

/// Rules between members, by schema.
fn rules_between_members() -> [(&'static str, Value); 9] {
    let name_or_label = json!({"anyOf": [
        {"required": ["name"], "properties": {"name": {"type": "string"}}},
        {"required": ["label"], "properties": {"label": {"type": "string"}, "name": {"type": "null"}}},
    ]});
    let text = |required: &[&str], name: &str, other: &str| {
        let mut rule =
            json!({"required": required, "properties": {name: {"type": "string"}, other: {"type": "null"}}});
        if required.contains(&"webhookUrl") {
            rule["properties"]["webhookUrl"] = json!({"type": "string"});
        }
        rule
    };
    [
        ("NewBucketKeyBody", name_or_label.clone()),
        ("NewOrganizationKeyBody", name_or_label),
        (
            "InputBody",
            json!({
                "additionalProperties": false,
                "anyOf": [
                    {"required": ["aggregation", "groupBy"],
                     "properties": {"aggregation": {"type": "string"}, "groupBy": {"type": "string"}}},
                    {"properties": {"aggregation": {"type": "null"}, "groupBy": {"type": "null"}}},
                ],
            }),
        ),
        (
            "EvaluationBody",
            json!({
                "additionalProperties": false,
                "properties": {"parameters": {"maxProperties": 256, "propertyNames": {"maxLength": 4096}}},
            }),
        ),
        (
            "RuleBody",
            json!({"oneOf": [
                text(&["condition", "webhookUrl"], "condition", "naturalLanguageQuery"),
                text(&["naturalLanguageQuery"], "naturalLanguageQuery", "condition"),
            ]}),
        ),
        (
            "RulePatchBody",
            json!({"anyOf": [
                {"properties": {"condition": {"type": "null"}}}, {"properties": {"naturalLanguageQuery": {"type": "null"}}},
            ]}),
        ),
        (
            "FieldsByName",
            json!({"minProperties": 1, "maxProperties": 256, "propertyNames": {
                "minLength": 1, "maxLength": 128, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$",
                "allOf": [{"pattern": NOT_BLANK}],
            }}),
        ),
        (
            "QueryBody",
            json!({"anyOf": [
                {"required": ["aggregation", "groupBy"],
                 "properties": {"aggregation": {"type": "string"}, "groupBy": {"type": "string"},
                     "maxPoints": {"type": "null"}}},
                {"properties": {"aggregation": {"type": "null"}, "groupBy": {"type": "null"},
                    "maxPoints": {"type": "null"}}},
                {"required": ["maxPoints"],
                 "properties": {"aggregation": {"type": "null"}, "groupBy": {"type": "null"},
                     "maxPoints": {"type": "integer"}, "downsampling": {"enum": [true, null]}}},
            ]}),
        ),
        (
            "QueryFilters",
            json!({"properties": {
                "dataSourceIds": {"maxItems": 10_000}, "fields": {"maxItems": 256}, "metadata": {"maxProperties": 64},
            }}),
        ),
    ]
}

/// Adds members to an object, deeply.
fn merge(value: &mut Value, more: Value) {
    match (value, more) {
        (Value::Object(members), Value::Object(more)) => {
            for (name, more) in more {
                merge(members.entry(name).or_insert(Value::Null), more);
            }
        }
        (value, more) => *value = more,
    }
}
