//! Which form of the document a client prefers.

use actix_web::http::header::{Accept, Quality};
use actix_web::mime::Mime;

/// Whether the client prefers HTML to JSON. A client that prefers neither (`*/*`, no header, `text/html,
/// application/json`) gets JSON.
pub fn prefers_html(accept: &Accept) -> bool {
    quality(accept, "text", "html") > quality(accept, "application", "json")
}

/// The weight of the range that names the type most closely (RFC 9110, 12.5.1).
fn quality(accept: &Accept, kind: &str, subtype: &str) -> Quality {
    let closeness = |range: &Mime| match (range.type_().as_str(), range.subtype().as_str()) {
        ("*", "*") => Some(0),
        (own, "*") if own == kind => Some(1),
        (own, sub) if own == kind && sub == subtype => Some(2),
        _ => None,
    };
    let named = accept
        .iter()
        .filter_map(|range| Some((closeness(&range.item)?, range.quality)));
    named
        .max_by_key(|(closeness, _)| *closeness)
        .map_or(Quality::ZERO, |(_, quality)| quality)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{ACCEPT, Header as _};
    use actix_web::test::TestRequest;

    use super::*;

    fn prefers(headers: &[&str]) -> bool {
        let request = TestRequest::default();
        let add = |request: TestRequest, value: &&str| request.append_header((ACCEPT, *value));
        let request = headers.iter().fold(request, add).to_http_request();
        prefers_html(&Accept::parse(&request).unwrap())
    }

    #[test]
    fn html_is_served_only_when_preferred() {
        for (accept, html) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("TEXT/HTML", true),
            ("text/*", true),
            ("application/json;q=0.1, text/html;q=0.2", true),
            ("text/html; charset=utf-8; q=0.5", true),
            ("text/html;q=0.1, */*;q=0", true),
            ("", false),
            ("*/*", false),
            ("application/json", false),
            ("image/png", false),
            ("text/html, application/json", false),
            ("text/html;q=0.5, application/json", false),
            ("text/html;q=0.5, */*", false),
            ("text/html;q=0", false),
            ("text/html;q=0, */*;q=0.1", false),
            ("text/html;q=nonsense", false),
            ("html", false),
        ] {
            assert_eq!(prefers(&[accept]), html, "{accept:?}");
        }
        assert!(prefers(&["application/json;q=0.5", "text/html"]), "two headers");
    }
}
