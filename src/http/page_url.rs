//! Addresses of pages of the dashboard, for links that people send each other.

use actix_web::HttpRequest;

use super::session_cookie::{host, is_encrypted};

/// The address of a page, as the client reaches the server; without the host if that is not known. `tls`: whether this
/// server terminates TLS.
pub fn page_url(request: &HttpRequest, path: &str, tls: bool) -> String {
    let scheme = if is_encrypted(request, tls) {
        "https"
    } else {
        "http"
    };
    host(request).map_or_else(|| path.to_owned(), |host| format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_page_is_reached_as_the_request_was() {
        let of = |headers: &[(&str, &str)], tls| {
            let add =
                |request: TestRequest, (name, value): &(&str, &str)| request.append_header((*name, *value));
            let request = headers.iter().fold(TestRequest::default(), add).to_http_request();
            page_url(&request, "/reset/x", tls)
        };
        let host = ("host", "a.example:8080");
        assert_eq!(of(&[host], false), "http://a.example:8080/reset/x");
        assert_eq!(of(&[host], true), "https://a.example:8080/reset/x");
        let behind_a_proxy = [host, ("origin", "https://a.example:8080")];
        assert_eq!(of(&behind_a_proxy, false), "https://a.example:8080/reset/x");
    }
}
