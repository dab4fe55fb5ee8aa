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

/// A rendered page.
pub struct Page {
    pub html: Vec<u8>,
    /// The value of its `Content-Security-Policy` header.
    pub content_security_policy: String,
}

impl Page {
    /// Renders the document.
    pub fn of(document: &Value) -> Self {
        let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        Self {
            html: render(document).into_bytes(),
            content_security_policy: format!(
                "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
        }
    }
}

fn render(document: &Value) -> String {
    let title = escaped(text_of(&document["info"]["title"]));
    let version = escaped(text_of(&document["info"]["version"]));
    let groups: Vec<Group<'_>> = groups(document);
    let contents: String = groups.iter().map(Group::contents).collect();
    let operations: String = groups.iter().map(|group| group.html(document)).collect();
    let introduction = text_of(&document["info"]["description"]);
    let headings: String = markdown::headings(introduction)
        .map(|heading| format!("<li><a href=\"#{}\">{}</a></li>", slug(heading), escaped(heading)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} {version}: interface</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the text</a>\n\
         <nav aria-label=\"Contents\">\n<p class=\"name\"><a href=\"#main\">{title}</a> <small>{version}</small></p>\n\
         <ul>{headings}</ul>\n{contents}</nav>\n<main id=\"main\" tabindex=\"-1\">\n<h1>{title}: the interface</h1>\n\
         <p class=\"note\">The same as OpenAPI 3.1, for programs: <code>curl $BASE/api/docs</code></p>\n{}\n{operations}\
         </main>\n</body>\n</html>\n",
        markdown::html(introduction)
    )
}

struct Group<'a> {
    tag: &'a Value,
    operations: Vec<operation::Operation<'a>>,
}

/// Groups the operations in the order of the document's tags.
fn groups(document: &Value) -> Vec<Group<'_>> {
    let tags = document["tags"].as_array().into_iter().flatten();
    let of_tag = |tag| Group {
        tag,
        operations: operation::all(document)
            .filter(|operation| operation.tag() == text_of(&tag["name"]))
            .collect(),
    };
    tags.map(of_tag).collect()
}

impl Group<'_> {
    fn name(&self) -> &str {
        text_of(&self.tag["name"])
    }

    fn contents(&self) -> String {
        let links: String = self.operations.iter().map(|operation| operation.link()).collect();
        let (name, slug) = (escaped(self.name()), slug(self.name()));
        format!("<h2><a href=\"#{slug}\">{name}</a></h2>\n<ul>{links}</ul>\n")
    }

    fn html(&self, document: &Value) -> String {
        let operations: String = self
            .operations
            .iter()
            .map(|operation| operation.html(document))
            .collect();
        let (name, slug) = (escaped(self.name()), slug(self.name()));
        let about = markdown::html(text_of(&self.tag["description"]));
        format!(
            "<section aria-labelledby=\"{slug}\">\n<h2 id=\"{slug}\">{name}</h2>\n{about}\n{operations}</section>\n"
        )
    }
}

/// Returns a member's text; empty if there is none.
fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
