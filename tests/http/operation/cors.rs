//! `server.cors_origins`: which web pages may call the API.

use crate::scene;
use crate::support::client::{Answer, Client};

const ALLOWED: &str = "access-control-allow-origin";

fn preflight(client: &Client, origin: &str) -> Answer {
    let request = client.request("OPTIONS", "/api/buckets").header("Origin", origin);
    let request = request.header("Access-Control-Request-Method", "POST");
    request
        .header("Access-Control-Request-Headers", "x-api-key,content-type")
        .send()
}

fn simple_request(client: &Client, origin: &str) -> Answer {
    client.get("/health").header("Origin", origin).send()
}

#[test]
fn no_origin_is_allowed_by_default() {
    let server = scene::server();
    for answer in [
        preflight(&server.client, "https://a.example"),
        simple_request(&server.client, "https://a.example"),
    ] {
        assert!(
            answer.header(ALLOWED).is_none(),
            "contract 9: server.cors_origins (none): {answer}"
        );
    }
}

#[test]
fn only_listed_origins_are_allowed() {
    let server = scene::server_with("server.cors_origins", "https://a.example,https://b.example");
    for origin in ["https://a.example", "https://b.example"] {
        let answer = preflight(&server.client, origin);
        assert!(
            answer.status < 300,
            "contract 10: cors_origins, comma-separated in the environment: {answer}"
        );
        assert_eq!(
            answer.header(ALLOWED),
            Some(origin),
            "contract 10: cors_origins, comma-separated in the environment"
        );
        let methods = answer
            .header("access-control-allow-methods")
            .unwrap_or_default()
            .to_owned();
        assert!(
            methods.contains("POST"),
            "a listed page may use the API's methods, not only {methods}"
        );
        let headers = answer
            .header("access-control-allow-headers")
            .unwrap_or_default()
            .to_lowercase();
        assert!(
            headers.contains("x-api-key"),
            "a listed page may send its key, not only {headers}"
        );
        let answer = simple_request(&server.client, origin);
        assert_eq!(
            answer.header(ALLOWED),
            Some(origin),
            "the answer itself allows it too"
        );
        let readable = answer.header("access-control-expose-headers").unwrap_or_default();
        let readable = readable.to_lowercase();
        for header in ["x-request-id", "etag", "content-disposition"] {
            assert!(
                readable.contains(header),
                "a listed page may read {header}, not only {readable}"
            );
        }
    }
    for origin in [
        "https://c.example",
        "http://a.example",
        "https://a.example.evil.example",
        "null",
    ] {
        for answer in [
            preflight(&server.client, origin),
            simple_request(&server.client, origin),
        ] {
            assert!(
                answer.header(ALLOWED).is_none(),
                "contract 9: an origin that is not listed ({origin}): {answer}"
            );
        }
    }
}
