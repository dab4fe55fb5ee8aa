//! The transport over HTTP: whom it serves, and with whose key. The service behind it answers with the key it got.

use std::net::SocketAddr;

use actix_web::rt::spawn;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use awc::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::keys::Keys;
use crate::server::Server;
use crate::{HttpOptions, McpError, http, run_http};

const LOOPBACK: &str = "127.0.0.1:0";

struct Running {
    address: SocketAddr,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A service whose list of buckets is the caller's key.
fn service() -> String {
    let echo = |request: HttpRequest| async move {
        let key = request
            .headers()
            .get("x-api-key")
            .map(|key| key.to_str().unwrap().to_owned());
        HttpResponse::Ok().json(json!({"key": key}))
    };
    let server = HttpServer::new(move || App::new().route("/api/buckets", web::get().to(echo)))
        .workers(1)
        .disable_signals()
        .bind(LOOPBACK)
        .unwrap();
    let url = format!("http://{}", server.addrs()[0]);
    spawn(server.run());
    url
}

async fn start(key: Option<&str>, hosts: &[&str], origins: &[&str]) -> Running {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = HttpOptions {
        listen: address,
        hosts: owned(hosts),
        origins: owned(origins),
    };
    let api = Api::start(&service(), key).unwrap();
    let keys = Keys::of_callers(key.map(str::to_owned));
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    spawn(async move {
        http::serve(
            listener,
            Server::new(api, keys.clone()),
            &keys,
            &options,
            stopping,
        )
        .await
    });
    Running { address, stop }
}

/// Calls `list_buckets` with these headers.
async fn list(running: &Running, headers: &[(&str, &str)]) -> (StatusCode, Value) {
    call_at(running, "/mcp", headers).await
}

async fn call_at(running: &Running, path: &str, headers: &[(&str, &str)]) -> (StatusCode, Value) {
    let mut request = awc::Client::new()
        .post(format!("http://{}{path}", running.address))
        .insert_header(("accept", "application/json, text/event-stream"))
        .insert_header(("mcp-protocol-version", "2025-06-18"));
    for header in headers {
        request = request.insert_header(*header);
    }
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "list_buckets", "arguments": {}},
    });
    let mut answer = request.send_json(&call).await.unwrap();
    let body = answer.body().await.unwrap();
    (answer.status(), serde_json::from_slice(&body).unwrap_or_default())
}

/// The key with which the service was called.
fn key_of(answer: &(StatusCode, Value)) -> Value {
    assert_eq!(answer.0, StatusCode::OK, "{}", answer.1);
    let text = answer.1["result"]["content"][0]["text"].as_str().unwrap();
    serde_json::from_str::<Value>(text).unwrap()["key"].clone()
}

#[actix_web::test]
async fn a_caller_s_key_is_passed_on_and_callers_without_get_the_server_s() {
    let running = start(Some("svc_r_own"), &[], &[]).await;
    assert_eq!(key_of(&list(&running, &[]).await), "svc_r_own");
    let theirs = [("authorization", "Bearer svc_a_theirs")];
    assert_eq!(key_of(&list(&running, &theirs).await), "svc_a_theirs");
    assert_eq!(key_of(&list(&running, &[]).await), "svc_r_own");
}

#[actix_web::test]
async fn a_caller_without_a_key_is_refused_where_the_server_has_none() {
    let running = start(None, &[], &[]).await;
    assert_eq!(list(&running, &[]).await.0, StatusCode::UNAUTHORIZED);
    let basic = [("authorization", "Basic dTpw")];
    assert_eq!(list(&running, &basic).await.0, StatusCode::UNAUTHORIZED);
    let theirs = [("authorization", "Bearer svc_a_theirs")];
    assert_eq!(key_of(&list(&running, &theirs).await), "svc_a_theirs");
}

#[actix_web::test]
async fn a_server_that_others_can_reach_has_no_key_to_lend() {
    let options = HttpOptions {
        listen: "0.0.0.0:0".parse().unwrap(),
        hosts: vec![],
        origins: vec![],
    };
    let stop = CancellationToken::new();
    let ended = run_http("http://127.0.0.1:9", Some("svc_r_own".to_owned()), options, stop).await;
    let Err(McpError::KeyForStrangers(_)) = ended else {
        panic!("{ended:?}");
    };
}

#[actix_web::test]
async fn pages_in_a_browser_and_foreign_names_are_refused() {
    let running = start(
        Some("svc_r_own"),
        &["tools.example"],
        &["https://app.example:443"],
    )
    .await;
    for origin in ["http://evil.example", "http://localhost", "null"] {
        let refused = list(&running, &[("origin", origin)]).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{origin}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example"] {
        let refused = list(&running, &[("host", host)]).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{host}");
    }
    let allowed = [("host", "tools.example"), ("origin", "https://app.example")];
    assert_eq!(key_of(&list(&running, &allowed).await), "svc_r_own");
    for host in ["localhost:8090", "[::1]:8090"] {
        assert_eq!(
            key_of(&list(&running, &[("host", host)]).await),
            "svc_r_own",
            "{host}"
        );
    }
}

#[actix_web::test]
async fn there_is_one_path_and_bodies_are_bounded() {
    let running = start(Some("svc_r_own"), &[], &[]).await;
    assert_eq!(call_at(&running, "/", &[]).await.0, StatusCode::NOT_FOUND);
    let large = awc::Client::new()
        .post(format!("http://{}/mcp", running.address))
        .insert_header(("accept", "application/json, text/event-stream"))
        .content_type("application/json")
        .send_body(" ".repeat((1 << 20) + 1))
        .await
        .unwrap();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}
