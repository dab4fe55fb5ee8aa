//! `GET /`: the page embedded in the binary. Its behaviour in a browser is tested in `dashboard/tests`.

use crate::scene;

/// Quoted attributes of a page that name another file.
fn references(page: &str) -> Vec<&str> {
    ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[test]
fn the_page_loads_only_from_this_server_and_has_no_inline_code() {
    let server = scene::server();
    let page = server.client.get("/").header("Accept", "text/html").send();
    assert_eq!(page.status, 200, "contract 9: GET /: the dashboard: {page}");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(
        page.header("cache-control"),
        Some("no-cache"),
        "a new version is seen"
    );
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(
        ["inline", "eval", "http"]
            .iter()
            .all(|word| !policy.contains(word)),
        "{policy}"
    );
    let text = page.text();
    assert!(
        !text.contains("<style") && !text.contains(" style="),
        "no inline style"
    );
    let scripts = text.matches("<script").count();
    assert_eq!(
        scripts,
        text.matches("src=\"").count(),
        "no inline script: {text}"
    );
    let references = references(&text);
    assert!(
        references.len() >= 3,
        "a script, a style, an icon: {references:?}"
    );
    for reference in references.into_iter().filter(|it| *it != "/api/docs") {
        assert!(reference.starts_with("/assets/"), "another place: {reference}");
        let part = server.client.get(reference).send();
        assert_eq!(part.status, 200, "{reference}: {part}");
        let kept = part.header("cache-control").unwrap_or_default();
        assert!(kept.contains("immutable"), "{reference} is kept for ever: {kept}");
        let kind = part.header("content-type").unwrap_or_default();
        let expected = match reference.rsplit_once('.').map(|(_, extension)| extension) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(kind, expected, "{reference}");
    }
}

#[test]
fn a_missing_asset_is_404_with_the_error_body() {
    let server = scene::server();
    for path in ["/assets/none.js", "/assets/..%2findex.html", "/assets/"] {
        let answer = server.client.get(path).send();
        answer.refused(
            404,
            "contract 1: unknown routes and things are 404 with the error body",
        );
    }
}
