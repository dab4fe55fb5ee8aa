//! Renders one operation: who may call it, what it takes, what it returns.

use serde_json::Value;

use super::text::escaped;
use super::{items, markdown, members, schema, table, text_of};

pub struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    about: &'a Value,
}

/// Returns all operations, in the document's order.
pub fn all(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    members(&document["paths"]).flat_map(|(path, methods)| {
        members(methods).map(move |(method, about)| Operation { method, path, about })
    })
}

impl Operation<'_> {
    pub fn tag(&self) -> &str {
        text_of(&self.about["tags"][0])
    }

    fn id(&self) -> &str {
        text_of(&self.about["operationId"])
    }

    /// Renders its line in the table of contents.
    pub fn link(&self) -> String {
        let summary = markdown::inline(text_of(&self.about["summary"]).trim_end_matches('.'));
        format!("<li><a href=\"#{}\">{summary}</a></li>", escaped(self.id()))
    }

    /// Renders the complete operation.
    pub fn html(&self, document: &Value) -> String {
        let (id, method) = (escaped(self.id()), self.method.to_uppercase());
        let path = escaped(self.path).replace('/', "/<wbr>");
        let summary = markdown::inline(text_of(&self.about["summary"]));
        format!(
            "<article aria-labelledby=\"{id}\">\n<h3 id=\"{id}\"><a href=\"#{id}\">{summary}</a></h3>\n\
             <p class=\"route\"><span class=\"method {}\">{method}</span> <code>{path}</code></p>\n{}{}{}{}{}</article>\n",
            self.method,
            markdown::html(text_of(&self.about["description"])),
            self.callers(),
            self.parameters(document),
            self.body(document),
            self.answers(document)
        )
    }

    /// Describes who may call it.
    fn callers(&self) -> String {
        let mut callers = Vec::new();
        for (scheme, types) in items(&self.about["security"]).flat_map(members) {
            match scheme {
                "apiKey" => callers.extend(items(types).map(|kind| format!("{} key", text_of(kind)))),
                "bearer" => {
                    let roles: Vec<_> = items(types).map(text_of).collect();
                    callers.push(format!("bearer token ({})", roles.join(", ")));
                }
                other => callers.push(format!("{other}'s token")),
            }
        }
        if callers.is_empty() {
            callers.push("anyone, without a credential".to_owned());
        }
        format!(
            "<p class=\"callers\"><strong>Who may call it:</strong> {}</p>\n",
            escaped(&callers.join(", "))
        )
    }

    fn parameters(&self, document: &Value) -> String {
        let row = |parameter: &Value| {
            let required = if parameter["required"] == true {
                "required"
            } else {
                "optional"
            };
            let notes = format!("{}, {required}", text_of(&parameter["in"]));
            let (name, about) = (text_of(&parameter["name"]), text_of(&parameter["description"]));
            schema::row(document, name, 0, &parameter["schema"], &notes, about)
        };
        let rows: String = items(&self.about["parameters"]).map(row).collect();
        schema::table("Parameters", &rows)
    }

    fn body(&self, document: &Value) -> String {
        let content = &self.about["requestBody"]["content"]["application/json"];
        if content.is_null() {
            return String::new();
        }
        let fields = schema::table("Body", &schema::rows(document, &content["schema"]));
        format!("{fields}{}", examples("Example of a body", content))
    }

    fn answers(&self, document: &Value) -> String {
        let (mut successes, mut errors, mut error_examples) = (String::new(), String::new(), String::new());
        for (status, response) in members(&self.about["responses"]) {
            let is_shared = response.get("$ref").is_some();
            let response = schema::resolved(document, response);
            let about = markdown::inline(text_of(&response["description"]));
            if status.starts_with('2') {
                successes.push_str(&format!(
                    "<h4>Answer <code>{status}</code></h4>\n<p>{about}</p>\n{}",
                    answer_headers(document, response)
                ));
                for (kind, content) in members(&response["content"]) {
                    if kind != "application/json" {
                        successes.push_str(&format!("<p>As <code>{}</code>.</p>\n", escaped(kind)));
                    }
                    let title = "Fields of the answer";
                    successes.push_str(&schema::table(title, &schema::rows(document, &content["schema"])));
                    successes.push_str(&examples("Example of the answer", content));
                }
            } else {
                let content = &response["content"]["application/json"];
                errors.push_str(&format!(
                    "<tr><th scope=\"row\"><code>{status}</code></th><td>{}</td><td>{about}</td></tr>\n",
                    escaped(text_of(&content["example"]["error"]))
                ));
                if !is_shared {
                    error_examples.push_str(&examples(&format!("Example of a {status}"), content));
                }
            }
        }
        let errors = table("Errors", ["Status", "<code>error</code>", "When"], &errors);
        format!("{successes}{errors}{error_examples}")
    }
}

/// Renders the headers that only some answers have. The introduction lists the headers of every answer.
fn answer_headers(document: &Value, response: &Value) -> String {
    let rows: String = members(&response["headers"])
        .filter(|(_, header)| header.get("$ref").is_none())
        .map(|(name, header)| {
            let about = text_of(&header["description"]);
            schema::row(document, name, 0, &header["schema"], "header", about)
        })
        .collect();
    schema::table("Headers of the answer", &rows)
}

/// Renders the examples of a body, collapsed.
fn examples(title: &str, content: &Value) -> String {
    let one = content.get("example").map(|example| (title.to_owned(), example));
    let named =
        members(&content["examples"]).map(|(name, example)| (format!("{title}: {name}"), &example["value"]));
    let folded = |(title, example): (String, &Value)| {
        let text = match example {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        format!(
            "<details><summary>{}</summary><pre tabindex=\"0\"><code>{}</code></pre></details>\n",
            escaped(&title),
            escaped(&text)
        )
    };
    one.into_iter().chain(named).map(folded).collect()
}
