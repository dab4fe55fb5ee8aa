//! What operations share: credentials, headers, and the errors that many of them return.

use serde_json::{Map, Value, json};

use crate::error::ErrorKind;

/// Returns the components that operations refer to, without the schemas.
pub fn components() -> Value {
    let errors = ErrorKind::ALL.into_iter().filter_map(shared_error);
    json!({
        "securitySchemes": security_schemes(), "headers": headers(), "responses": errors.collect::<Map<_, _>>(),
    })
}

/// Returns a reference to an error that any operation can return.
pub fn error_reference(kind: ErrorKind) -> Value {
    json!({"$ref": format!("#/components/responses/{}", name_of(kind))})
}

/// Describes an error that any operation can return; `None` for errors that are specific to an operation.
fn shared_error(kind: ErrorKind) -> Option<(String, Value)> {
    let description = match kind {
        ErrorKind::Validation => {
            "The request is invalid; `details` lists every fault with its path. Also when both credentials were sent."
        }
        ErrorKind::Unauthorized => "No credential, or one that is wrong, deleted or expired.",
        ErrorKind::Forbidden => {
            "The route does not accept this type of credential, the person's role does not allow it, or the key belongs to another bucket."
        }
        ErrorKind::NotFound => "The object does not exist, or the caller has no access to it.",
        ErrorKind::PayloadTooLarge => {
            "The decompressed body exceeds the route's limit: 1 MiB, unless the route states another."
        }
        ErrorKind::UnsupportedMediaType => "`Content-Encoding` is neither gzip nor zstd.",
        ErrorKind::TooManyRequests => {
            "The calls of this month are used up; the message says when the next month begins."
        }
        ErrorKind::Internal => "An error of the server; quote the `requestId`, which is in the server's log.",
        ErrorKind::Unavailable => {
            "The server is saturated and refused the request, or the request took over 30 seconds and may have been carried out."
        }
        ErrorKind::MethodNotAllowed | ErrorKind::Conflict | ErrorKind::PreconditionFailed => return None,
    };
    let is_counted = !matches!(
        kind,
        ErrorKind::Unauthorized | ErrorKind::Internal | ErrorKind::Unavailable
    );
    let response = json!({
        "description": description, "headers": headers_of(Some(kind), is_counted), "content": error_content(kind),
    });
    Some((name_of(kind), response))
}

/// Returns the body of an error of this kind.
pub fn error_content(kind: ErrorKind) -> Value {
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
        ErrorKind::Conflict => "a bucket named \"plant\" exists already; choose another name",
        ErrorKind::PreconditionFailed => {
            "the board has changed: its version is 4, which If-Match does not name; read it again and repeat the change"
        }
        ErrorKind::PayloadTooLarge => "the body is larger than 1048576 bytes",
        ErrorKind::UnsupportedMediaType => {
            "content-encoding \"br\" is not understood; send gzip, zstd or plain JSON"
        }
        ErrorKind::TooManyRequests => {
            "the Free plan's 10000 API calls of this month are used up; the next month's begin at 2026-12-01T00:00:00Z, or change the plan"
        }
        ErrorKind::Internal => "an unexpected error occurred; quote the requestId when you report it",
        ErrorKind::Unavailable => "the server is saturated; send it again in a moment",
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

/// Returns references to the headers of an answer. `is_counted`: the answer may have the headers of the monthly quota.
pub fn headers_of(error: Option<ErrorKind>, is_counted: bool) -> Map<String, Value> {
    let mut names = vec!["X-Request-Id"];
    if is_counted {
        names.extend([
            "X-RateLimit-Limit",
            "X-RateLimit-Remaining",
            "X-RateLimit-Reset",
            "X-Session-Token",
        ]);
    }
    match error {
        Some(ErrorKind::TooManyRequests | ErrorKind::Unavailable) => names.push("Retry-After"),
        Some(ErrorKind::Unauthorized) => names.push("WWW-Authenticate"),
        _ => {}
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
        "X-Request-Id": header(true, "string", "Identifies the request in the server's log.", json!("5f1e0c4a9b7d3e2100000c41")),
        "X-RateLimit-Limit": header(false, "integer", "Calls a month; absent where the plan has no limit.", json!(10_000)),
        "X-RateLimit-Remaining": header(false, "integer", "Calls left this month; absent where the plan has no limit.", json!(9_987)),
        "X-RateLimit-Reset": header(false, "integer", "When the month ends, in Unix seconds; absent where the plan has no limit.", json!(1_796_083_200)),
        "X-Session-Token": header(false, "string", "A new bearer token of the same session, when the one that was sent is in the second half of its life.", json!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI2NzQwYTFmMmMzZDRlNWY2MDcxODI5MDEifQ.c2lnbmF0dXJl")),
        "Retry-After": header(true, "integer", "Seconds to wait before the next try.", json!(1)),
        "WWW-Authenticate": header(true, "string", "`Bearer`.", json!("Bearer")),
    })
}

fn security_schemes() -> Value {
    json!({
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "X-API-Key",
            "description": "An API key. Each route states which types of keys it accepts. Never put a key into a URL."
        },
        "bearer": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "The token of a sign-in, valid for 12 hours. Each route states which roles of the organization's members it accepts. Routes that accept an admin key accept it too. Send this or a key, not both. The dashboard, and no other page, receives it as a cookie, which applies when neither is sent."
        },
        "operator": {
            "type": "http", "scheme": "bearer",
            "description": "The `operator.token` of the server's configuration."
        },
    })
}
