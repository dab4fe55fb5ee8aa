//! The page: the document as one HTML file that loads nothing from other hosts and runs no script.

mod markdown;
mod operation;
mod schema;
mod text;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use text::{escaped, slug};

/// The only style. The content security policy allows it by its hash.
const STYLE: &str = include_str!("page.css");

/// The value of the page's `Content-Security-Policy` header.
pub fn content_security_policy() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// Renders the document.
pub fn html(document: &Value) -> String {
    let title = escaped(text_of(&document["info"]["title"]));
    let version = escaped(text_of(&document["info"]["version"]));
    let introduction = text_of(&document["info"]["description"]);
    let headings: String = markdown::headings(introduction)
        .map(|heading| format!("<li><a href=\"#{}\">{}</a></li>", slug(heading), escaped(heading)))
        .collect();
    let (contents, sections): (String, String) =
        items(&document["tags"]).map(|tag| section(document, tag)).unzip();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} {version}: interface</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the text</a>\n\
         <nav aria-label=\"Contents\">\n<p class=\"name\"><a href=\"#main\">{title}</a> <small>{version}</small></p>\n\
         <ul>{headings}</ul>\n{contents}</nav>\n<main id=\"main\" tabindex=\"-1\">\n<h1>{title}: the interface</h1>\n\
         <p class=\"note\">The same as OpenAPI 3.1, for programs: <code>curl $BASE/api/docs</code></p>\n{}\n{sections}\
         </main>\n</body>\n</html>\n",
        markdown::html(introduction)
    )
}

/// Renders the operations of a tag. Returns their part of the table of contents, and the section itself.
fn section(document: &Value, tag: &Value) -> (String, String) {
    let name = text_of(&tag["name"]);
    let operations = operation::all(document).filter(|operation| operation.tag() == name);
    let (links, operations): (String, String) = operations
        .map(|operation| (operation.link(), operation.html(document)))
        .unzip();
    let about = markdown::html(text_of(&tag["description"]));
    let (name, slug) = (escaped(name), slug(name));
    (
        format!("<h2><a href=\"#{slug}\">{name}</a></h2>\n<ul>{links}</ul>\n"),
        format!(
            "<section aria-labelledby=\"{slug}\">\n<h2 id=\"{slug}\">{name}</h2>\n{about}\n{operations}</section>\n"
        ),
    )
}

/// Renders a table. Wide tables scroll on their own, also with the keyboard.
fn table(title: &str, columns: [&str; 3], rows: &str) -> String {
    let columns = columns
        .map(|column| format!("<th scope=\"col\">{column}</th>"))
        .concat();
    format!(
        "<h4>{title}</h4>\n<div class=\"wide\" tabindex=\"0\"><table><thead><tr>{columns}</tr></thead>\
         <tbody>{rows}</tbody></table></div>\n"
    )
}

/// Returns a member's text; empty if there is none.
fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the entries of an array; none if the value is something else.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the members of an object; none if the value is something else.
fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, member)| (name.as_str(), member))
}
