//! An endpoint as an OpenAPI operation: what its types say, its row's texts, and what all operations of its kind share.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::Endpoint;
use crate::error::ErrorKind;
use crate::http::docs::{error_content, error_reference, headers_of};
use crate::http::shape::{FromJson, Rule};
use crate::limits::BOARD_PANELS_MAX;

/// The schemas that a document refers to, by name.
#[derive(Default)]
pub struct Components(BTreeMap<String, Value>);

impl Components {
    /// Adds the schema of a type and those of its parts. Returns a reference to it.
    pub fn add<T: ToSchema>(&mut self) -> Value {
        let name = T::name().into_owned();
        let mut found = vec![(name.clone(), T::schema())];
        T::schemas(&mut found);
        for (name, schema) in found {
            self.0.entry(name).or_insert_with(|| json!(schema));
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Adds the type of a body, with the rules between its members.
    pub fn body<T: FromJson + ToSchema>(&mut self) -> Value {
        let reference = self.add::<T>();
        let mut all = Vec::new();
        T::rules(&mut all);
        for (name, rules) in all {
            let Some(schema) = self.0.get_mut(&name) else {
                continue;
            };
            if rules.iter().any(|rule| matches!(rule, Rule::Closed)) {
                schema["additionalProperties"] = json!(false);
            }
            for between in rules.iter().filter_map(Rule::schema) {
                match &mut schema["allOf"] {
                    Value::Array(known) if known.contains(&between) => {}
                    Value::Array(known) => known.push(between),
                    none => *none = json!([between]),
                }
            }
        }
        reference
    }

    /// The `requestBody` of an operation whose body has this schema.
    pub fn request_body(&self, schema: Value, is_required: bool) -> Value {
        json!({"required": is_required, "content": {"application/json": {"schema": schema}}})
    }

    /// Returns all schemas.
    pub fn into_json(self) -> Value {
        json!(self.0)
    }
}

/// Adds a schema and returns a reference to it; `None` where there is none.
pub(super) type Describe = fn(&mut Components) -> Option<Value>;

impl Endpoint {
    /// Returns the OpenAPI operation, under a tag. `texts`: what each of its own answers means, by status.
    pub fn operation(
        &self,
        tag: &str,
        texts: &BTreeMap<String, String>,
        components: &mut Components,
    ) -> Value {
        let request = (self.request)(components);
        let errors = self.shared_errors(request.is_some());
        let errors = errors.map(|kind| (kind.status().0.as_str().to_owned(), error_reference(kind)));
        let mut responses: BTreeMap<String, Value> = errors.collect();
        for (status, text) in texts {
            responses.insert(status.clone(), self.response(status, text, components));
        }
        let mut operation = json!({"tags": [tag], "operationId": self.id, "security": self.security()});
        if !self.parameters.is_empty() {
            operation["parameters"] = json!(self.parameters);
        }
        if let Some(body) = request {
            operation["requestBody"] = body;
        }
        operation["responses"] = json!(responses);
        operation
    }

    fn response(&self, status: &str, text: &str, components: &mut Components) -> Value {
        let kind = ErrorKind::ALL
            .into_iter()
            .find(|kind| kind.status().0.as_str() == status);
        let mut headers = headers_of(kind, self.is_counted());
        if kind.is_none() {
            headers.extend(self.headers.clone());
        }
        let mut response = json!({"description": text, "headers": headers});
        let mut own = [self.success].into_iter().chain(self.answers.iter().copied());
        let own = own.find(|(of, _)| of.as_str() == status);
        let content = match (own, kind) {
            (Some((_, describe)), _) => {
                let schema = describe(components);
                let by_type = |of: &&str| {
                    let kind = match *of {
                        "application/json" => "object",
                        _ => "string",
                    };
                    let schema = schema.clone().unwrap_or_else(|| json!({"type": kind}));
                    ((*of).to_owned(), json!({"schema": schema}))
                };
                self.types.iter().map(by_type).collect::<Map<_, _>>().into()
            }
            (None, Some(kind)) => error_content(kind),
            (None, None) => return response,
        };
        response["content"] = content;
        response
    }

    /// Errors that every operation of its kind can return.
    fn shared_errors(&self, has_body: bool) -> impl Iterator<Item = ErrorKind> {
        let has_credential = self.security() != json!([]);
        let may_be_invalid = has_credential || has_body || !self.parameters.is_empty();
        let names_an_id = |parameter: &Value| parameter["schema"]["$ref"] == "#/components/schemas/ObjectId";
        let may_be_missing = self.path.contains('{')
            || self.is_operators()
            || (has_credential && has_body)
            || self.parameters.iter().any(names_an_id);
        let shared = [
            (ErrorKind::Validation, may_be_invalid),
            (ErrorKind::Unauthorized, has_credential),
            (ErrorKind::Forbidden, self.is_counted()),
            (ErrorKind::NotFound, may_be_missing),
            (ErrorKind::PayloadTooLarge, has_body),
            (ErrorKind::UnsupportedMediaType, has_body),
            (ErrorKind::TooManyRequests, self.is_counted()),
            (ErrorKind::Internal, true),
            (ErrorKind::Unavailable, true),
        ];
        shared
            .into_iter()
            .filter_map(|(kind, may_occur)| may_occur.then_some(kind))
    }

    fn security(&self) -> Value {
        (self.security)(self.least_role)
    }

    fn is_operators(&self) -> bool {
        self.security() == json!([{"operator": []}])
    }

    /// Whether answers may have the headers of the monthly quota.
    fn is_counted(&self) -> bool {
        self.security() != json!([]) && !self.is_operators()
    }
}

/// Describes the ids of a path by the segment before each: that of `/api/buckets/{id}` is of a bucket.
pub(super) fn path_parameters(path: &str) -> Vec<Value> {
    let segments: Vec<&str> = path.split('/').collect();
    let parameters = segments.windows(2).filter_map(|pair| {
        let name = pair[1].strip_prefix('{')?.strip_suffix('}')?;
        let about = match pair[0] {
            "alerts" | "evaluations" => "The alert rule.",
            "boards" => "The board.",
            "assets" => "As the page names it.",
            "buckets" => "The bucket.",
            "deliveries" => "The delivery.",
            "invitations" => "The invitation.",
            "keys" => "The key.",
            "label" => "The label.",
            "prometheus" => "The bucket, by its id or name.",
            "panels" => "The place of the panel in the board, from 0.",
            "shared" => "The token of the link.",
            "shares" => "The link.",
            "members" => "The user.",
            "organizations" => "The organization.",
            "sessions" => "The session.",
            "sources" => "The data source.",
            "webhooks" => "The webhook.",
            _ => "",
        };
        let schema = match pair[0] {
            "assets" | "label" | "prometheus" => json!({"type": "string"}),
            "panels" => json!({"type": "integer", "minimum": 0, "maximum": BOARD_PANELS_MAX - 1}),
            "shared" => json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}),
            _ => json!({"$ref": "#/components/schemas/ObjectId"}),
        };
        Some(json!({"name": name, "in": "path", "description": about, "required": true, "schema": schema}))
    });
    parameters.collect()
}
