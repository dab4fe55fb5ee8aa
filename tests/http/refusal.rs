//! The required form of refusals.

use serde_json::Value;

use crate::support::client::Answer;

impl Answer {
    /// The body of a refusal: asserts its status and the form of the spec.
    #[track_caller]
    pub fn refused(&self, status: u16, sentence: &str) -> Value {
        let body = self.expect(status, sentence);
        let rule = "contract 1: errors always have the spec's body";
        assert_eq!(
            body["error"],
            error_name(status),
            "{rule} (`error` by status): {self}"
        );
        assert!(
            body["message"].as_str().is_some_and(|text| !text.is_empty()),
            "{rule} (`message`): {self}"
        );
        assert!(
            self.header("content-type")
                .is_some_and(|kind| kind.starts_with("application/json")),
            "{rule} (JSON): {self}"
        );
        assert!(
            self.header("x-request-id").is_some(),
            "contract 1: every response has X-Request-Id: {self}"
        );
        if let Some(details) = body.get("details") {
            let well_formed = |detail: &Value| {
                detail["message"].is_string()
                    && detail["path"]
                        .as_array()
                        .is_some_and(|path| path.iter().all(Value::is_string))
            };
            let details = details
                .as_array()
                .unwrap_or_else(|| panic!("{rule} (`details` is an array): {self}"));
            assert!(
                details.iter().all(well_formed),
                "{rule} (`details` have path and message): {self}"
            );
        }
        body
    }

    /// `details[].path` of a refusal, joined by `/`, sorted.
    pub fn faults(&self) -> Vec<String> {
        let body = self.json();
        let details = body["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let join = |detail: &Value| {
            let members = detail["path"].as_array().map(Vec::as_slice).unwrap_or_default();
            members
                .iter()
                .map(|member| member.as_str().unwrap_or("?"))
                .collect::<Vec<_>>()
                .join("/")
        };
        let mut paths: Vec<String> = details.iter().map(join).collect();
        paths.sort();
        paths
    }
}

fn error_name(status: u16) -> &'static str {
    match status {
        400 => "Validation Error",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        412 => "Precondition Failed",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
