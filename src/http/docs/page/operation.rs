//! Renders one operation: who may call it, what it takes, what it returns.

use serde_json::Value;

use super::markdown;
use super::schema;
use super::text::escaped;
use super::text_of;

pub struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    about: &'a Value,
}

/// Returns all operations, in the document's order.
pub fn all(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, about)| Operation { method, path, about })
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
        let mut html = format!(
            "<article aria-labelledby=\"{id}\">\n<h3 id=\"{id}\"><a href=\"#{id}\">{summary}</a></h3>\n\
             <p class=\"route\"><span class=\"method {}\">{method}</span> <code>{path}</code></p>\n{}{}",
            self.method,
            markdown::html(text_of(&self.about["description"])),
            self.callers()
        );
        html.push_str(&self.parameters(document));
        html.push_str(&self.body(document));
        html.push_str(&self.answers(document));
        html.push_str("</article>\n");
        html
    }

    /// Describes who may call it.
    fn callers(&self) -> String {
        let mut callers = Vec::new();
        for (scheme, types) in self.about["security"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .flatten()
        {
            match scheme.as_str() {
                "apiKey" => {
                    let types = types.as_array().into_iter().flatten().map(text_of);
                    callers.extend(types.map(|kind| format!("{kind} key")));
                }
                "bearer" => callers.push("bearer token".to_owned()),
                other => callers.push(format!("{other}'s token")),
            }
        }
        let callers = if callers.is_empty() {
            "anyone, without a credential".to_owned()
        } else {
            callers.join(", ")
        };
        format!(
            "<p class=\"callers\"><strong>Who may call it:</strong> {}</p>\n",
            escaped(&callers)
        )
    }

    fn parameters(&self, document: &Value) -> String {
        let mut rows = String::new();
        for parameter in self.about["parameters"].as_array().into_iter().flatten() {
            let required = if parameter["required"] == true {
                "required"
            } else {
                "optional"
            };
            let row = schema::Row {
                name: text_of(&parameter["name"]),
                depth: 0,
                kind: schema::kind(document, &parameter["schema"]),
                notes: format!("{}, {required}", text_of(&parameter["in"])),
                limits: schema::limits(schema::resolved(document, &parameter["schema"])),
                about: text_of(&parameter["description"]),
            };
            rows.push_str(&row.html());
        }
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
        let (mut successes, mut errors) = (String::new(), String::new());
        for (status, response) in self.about["responses"].as_object().into_iter().flatten() {
            let response = schema::resolved(document, response);
            let about = markdown::inline(text_of(&response["description"]));
            if status.starts_with('2') {
                successes.push_str(&format!(
                    "<h4>Answer <code>{status}</code></h4>\n<p>{about}</p>\n{}",
                    answer_headers(document, response)
                ));
                for (kind, content) in response["content"].as_object().into_iter().flatten() {
                    if kind != "application/json" {
                        successes.push_str(&format!("<p>As <code>{}</code>.</p>\n", escaped(kind)));
                    }
                    let title = "Fields of the answer";
                    successes.push_str(&schema::table(title, &schema::rows(document, &content["schema"])));
                    successes.push_str(&examples("Example of the answer", content));
                }
            } else {
                let name = text_of(&example_of(response)["error"]);
                errors.push_str(&format!(
                    "<tr><th scope=\"row\"><code>{status}</code></th><td>{}</td><td>{about}</td></tr>\n",
                    escaped(name)
                ));
            }
        }
        let errors = format!(
            "<h4>Errors</h4>\n<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Status</th><th scope=\"col\">\
             <code>error</code></th><th scope=\"col\">When</th></tr></thead><tbody>{errors}</tbody></table></div>\n"
        );
        let own = self.about["responses"].as_object().into_iter().flatten();
        let own = own.filter(|(status, response)| !status.starts_with('2') && response.get("$ref").is_none());
        let bodies: String = own
            .map(|(status, response)| {
                examples(
                    &format!("Example of a {status}"),
                    &response["content"]["application/json"],
                )
            })
            .collect();
        format!("{successes}{errors}{bodies}")
    }
}

/// Renders the headers that only some answers have. The introduction lists the headers of every answer.
fn answer_headers(document: &Value, response: &Value) -> String {
    let headers = response["headers"].as_object().into_iter().flatten();
    let own = headers.filter(|(_, header)| header.get("$ref").is_none());
    let rows: String = own
        .map(|(name, header)| {
            let row = schema::Row {
                name,
                depth: 0,
                kind: schema::kind(document, &header["schema"]),
                notes: "header".to_owned(),
                limits: String::new(),
                about: text_of(&header["description"]),
            };
            row.html()
        })
        .collect();
    schema::table("Headers of the answer", &rows)
}

fn example_of(response: &Value) -> &Value {
    &response["content"]["application/json"]["example"]
}

/// Renders the examples of a body, collapsed.
fn examples(title: &str, content: &Value) -> String {
    let one = content.get("example").map(|example| (title.to_owned(), example));
    let named = content["examples"].as_object().into_iter().flatten();
    let named = named.map(|(name, example)| (format!("{title}: {name}"), &example["value"]));
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
