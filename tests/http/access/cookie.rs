//! The session cookie of the page: issued only to the page, accepted only from it, and never in place of a
//! credential in the request.

use serde_json::json;

use crate::scene;
use crate::support::client::{Answer, Request};
use crate::support::given::{Account, PASSWORD};
use crate::support::process::Server;

const OF_PAGE: &[(&str, &str)] = &[("Sec-Fetch-Site", "same-origin")];
const NAME: &str = "tidewatch_session=";

fn with<'a>(request: Request<'a>, headers: &[(&str, &str)]) -> Request<'a> {
    let add = |request: Request<'a>, (name, value): &(&str, &str)| request.header(name, *value);
    headers.iter().fold(request, add)
}

fn log_in(server: &Server, account: &Account, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"email": account.email, "password": PASSWORD});
    with(server.client.post("/api/auth/login"), headers)
        .json(&body)
        .send()
}

/// The cookie as the page sends it after this answer.
fn cookie_of(answer: &Answer) -> String {
    let set = answer
        .header("set-cookie")
        .unwrap_or_else(|| panic!("a cookie is set: {answer}"));
    set.split(';').next().unwrap_or_default().to_owned()
}

#[test]
fn a_page_gets_the_session_as_an_http_only_cookie() {
    let (server, account, _) = scene::bucket();
    let answer = log_in(&server, &account, OF_PAGE);
    let body = answer.expect(200, "contract 2: the token stays in the body");
    let set = answer.header("set-cookie").unwrap_or_default();
    assert!(
        set.starts_with(&format!("{NAME}{}; ", body["token"].as_str().unwrap_or_default())),
        "{set}"
    );
    for attribute in ["Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(set.split("; ").any(|it| it == attribute), "{attribute}: {set}");
    }
    assert!(
        !set.contains("Secure"),
        "a browser would not send it over plain HTTP: {set}"
    );
    let proxied = [("Origin", "https://tides.example"), ("Host", "tides.example")];
    let set = log_in(&server, &account, &proxied);
    assert!(
        set.header("set-cookie")
            .is_some_and(|set| set.ends_with("; Secure")),
        "behind a proxy with TLS"
    );
    for headers in [
        &[][..],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Origin", "https://evil.example")],
    ] {
        let answer = log_in(&server, &account, headers);
        answer.expect(200, "a log-in");
        assert_eq!(
            answer.header("set-cookie"),
            None,
            "other origins are not logged in by it: {headers:?}"
        );
    }
}

#[test]
fn the_cookie_counts_only_without_other_credentials() {
    let (server, account, bucket) = scene::bucket();
    let cookie = cookie_of(&log_in(&server, &account, OF_PAGE));
    let me = server
        .client
        .get("/api/auth/me")
        .header("Cookie", cookie.as_str())
        .send();
    assert_eq!(
        me.expect(200, "the cookie's user")["user"]["email"],
        account.email
    );
    let path = format!("/api/buckets/{}", bucket.id);
    let page = server
        .client
        .request("PATCH", &path)
        .header("Cookie", cookie.as_str());
    with(page, OF_PAGE)
        .json(&json!({"description": "seen"}))
        .send()
        .expect(200, "the page changes things");
    // A key or a token takes precedence, and in combination with the cookie is not a second credential.
    let stale = format!("{NAME}stale");
    for request in [
        server.client.get("/api/buckets").key(&account.admin),
        server.client.get("/api/buckets").bearer(&account.token),
    ] {
        request
            .header("Cookie", stale.as_str())
            .send()
            .expect(200, "the header counts");
    }
    let wrong = server
        .client
        .get("/api/buckets")
        .key("svc_a_wrong")
        .header("Cookie", cookie.as_str());
    wrong.send().refused(401, "a wrong key is not made up for");
    server
        .client
        .get("/api/buckets")
        .header("Cookie", stale)
        .send()
        .refused(401, "no token of this server");
    let read = server
        .client
        .get("/api/buckets")
        .header("Cookie", format!("a=1; {cookie}; b=2"));
    read.send().expect(200, "among others");
    // The cookie does not authenticate an operator.
    let operator = server
        .client
        .get("/api/operator/organizations")
        .header("Cookie", cookie);
    operator
        .send()
        .refused(401, "the operator's token stands in a header");
}

#[test]
fn other_origins_cannot_make_changes_with_the_cookie() {
    let (server, account, bucket) = scene::bucket();
    let cookie = cookie_of(&log_in(&server, &account, OF_PAGE));
    let host = server.client.base().replace("http://", "");
    let own = format!("http://{host}");
    let foreign: &[&[(&str, &str)]] = &[
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", &own)],
    ];
    let path = format!("/api/buckets/{}", bucket.id);
    for headers in foreign {
        for (method, path) in [
            ("POST", "/api/buckets"),
            ("PATCH", &path),
            ("DELETE", &path),
            ("POST", "/api/auth/logout"),
        ] {
            let request = server
                .client
                .request(method, path)
                .header("Cookie", cookie.as_str());
            let answer = with(request, headers).json(&json!({"name": "taken"})).send();
            answer.refused(403, &format!("{method} {path} of another page: {headers:?}"));
        }
    }
    let request = server
        .client
        .request("PATCH", &path)
        .header("Cookie", cookie.as_str());
    let answer = request
        .header("Origin", own)
        .json(&json!({"name": "renamed"}))
        .send();
    answer.expect(200, "an old browser says the origin alone");
}

#[test]
fn logging_out_clears_the_cookie_and_a_new_password_replaces_it() {
    let (server, account, _) = scene::bucket();
    let cookie = cookie_of(&log_in(&server, &account, OF_PAGE));
    let body = json!({"currentPassword": PASSWORD, "newPassword": "another battery"});
    let request = server
        .client
        .post("/api/auth/password")
        .header("Cookie", cookie.as_str());
    let changed = with(request, OF_PAGE).json(&body).send();
    changed.expect(200, "the page changes the password");
    let replaced = cookie_of(&changed);
    let me = |cookie: &str| server.client.get("/api/auth/me").header("Cookie", cookie).send();
    me(&cookie).refused(401, "older ones stop working");
    me(&replaced).expect(200, "the new one works");
    let request = server
        .client
        .post("/api/auth/logout")
        .header("Cookie", replaced.as_str());
    let left = with(request, OF_PAGE).send();
    assert_eq!(left.expect(200, "logged out")["message"], "logged out");
    let set = left.header("set-cookie").unwrap_or_default();
    assert!(
        set.starts_with(&format!("{NAME}; ")) && set.contains("Max-Age=0"),
        "{set}"
    );
    server
        .client
        .post("/api/auth/logout")
        .send()
        .refused(401, "the session has ended");
    server
        .client
        .post("/api/auth/logout")
        .key(&account.admin)
        .send()
        .refused(403, "a key has no session");
}
