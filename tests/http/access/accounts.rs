//! Sign-up, `me`, and changes of the password.

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, members};
use crate::support::client::{Answer, Client};
use crate::support::given::{Account, PASSWORD, text};

fn sign_up(client: &Client, email: &str, password: &str) -> Answer {
    client
        .post("/api/auth/signup")
        .json(&json!({"email": email, "password": password, "name": "Ada"}))
        .send()
}

fn log_in(client: &Client, email: &str, password: &str) -> Answer {
    client
        .post("/api/auth/login")
        .json(&json!({"email": email, "password": password}))
        .send()
}

fn me(client: &Client, token: &str) -> Answer {
    client.get("/api/auth/me").bearer(token).send()
}

#[test]
fn sign_up_creates_a_user_and_an_organization() {
    let server = crate::support::process::Server::start_with(
        crate::support::process::Setup::unlimited().set("accounts.default_plan", "Free"),
    );
    let body = json!({
        "email": "  Ada@Example.com ", "password": PASSWORD, "name": " Ada Lovelace ", "organizationName": " Engines ",
    });
    let answer = server.client.post("/api/auth/signup").json(&body).send();
    let answer = answer.expect(201, "contract 2: POST /api/auth/signup");
    assert_eq!(
        members(&answer),
        ["expiresAt", "message", "organization", "token", "user"],
        "contract 2: the members of a sign-up's answer"
    );
    let user = &answer["user"];
    assert_eq!(
        members(user),
        ["_id", "email", "name", "role"],
        "contract 2: user {{_id, email, name}}; chapter 14, no. 60: and role"
    );
    let email = user["email"].as_str().unwrap_or_default();
    assert!(
        email.eq_ignore_ascii_case("ada@example.com"),
        "contract 2: emails are trimmed: {user}"
    );
    assert_eq!(
        user["name"], "Ada Lovelace",
        "contract 10: names of everything are stored trimmed"
    );
    let organization = &answer["organization"];
    assert_eq!(
        organization["name"], "Engines",
        "contract 10: names of everything are stored trimmed"
    );
    let plan = json!({"name": "Free", "maxBuckets": 3, "maxRetentionDays": 30, "maxApiCalls": 10_000});
    assert_eq!(
        organization["plan"], plan,
        "contract 2: the plan of accounts.default_plan, its limits"
    );
    assert!(
        !answer.to_string().contains(PASSWORD),
        "no answer repeats a password"
    );

    let me = me(&server.client, &text(&answer, "/token")).expect(200, "contract 2: GET /api/auth/me");
    assert_eq!(
        me,
        json!({"user": user, "organization": organization}),
        "contract 2: me is {{user, organization}}"
    );
}

#[test]
fn an_organization_name_is_optional() {
    let server = scene::server();
    let answer =
        sign_up(&server.client, "ada@example.com", PASSWORD).expect(201, "contract 2: organizationName?");
    let name = text(&answer, "/organization/name");
    assert!(
        !name.trim().is_empty(),
        "contract 2: sign-up creates the organization, named somehow"
    );
    let plan =
        json!({"name": "Enterprise", "maxBuckets": null, "maxRetentionDays": null, "maxApiCalls": null});
    assert_eq!(
        answer["organization"]["plan"], plan,
        "contract 2: Enterprise unlimited, shown as null"
    );
}

#[test]
fn passwords_have_10_to_128_characters() {
    let server = scene::server();
    let wide = |length: usize| "é".repeat(length);
    for (nth, password) in ["x".repeat(9), wide(9), "x".repeat(129), wide(129), String::new()]
        .iter()
        .enumerate()
    {
        let answer = sign_up(&server.client, &format!("short{nth}@example.com"), password);
        assert_faults(&answer, &["password"], "contract 2: password (10-128 chars)");
    }
    for (nth, password) in ["x".repeat(10), wide(10), "x".repeat(128), wide(128)]
        .iter()
        .enumerate()
    {
        let email = format!("ok{nth}@example.com");
        sign_up(&server.client, &email, password).expect(201, "contract 2: password (10-128 chars)");
        log_in(&server.client, &email, password).expect(200, "a password of that length logs in");
        let other_end = format!(
            "{}y",
            &password[..password.len() - password.chars().last().unwrap().len_utf8()]
        );
        log_in(&server.client, &email, &other_end)
            .refused(401, "contract 2: every character of a password counts");
    }
}

#[test]
fn emails_are_unique_regardless_of_case() {
    let server = scene::server();
    sign_up(&server.client, "ada@example.com", PASSWORD).expect(201, "contract 2: sign-up");
    for email in ["ada@example.com", "ADA@example.COM", "  ada@Example.com  "] {
        let answer = sign_up(&server.client, email, "another password");
        answer.refused(409, &format!("contract 2: duplicate email is 409 (`{email}`)"));
        log_in(&server.client, email, PASSWORD)
            .expect(200, "contract 2: emails are trimmed and compared without case");
    }
}

/// Argon2 is slow: another sign-up may occur between the look-up and the record.
#[test]
fn one_of_concurrent_sign_ups_with_one_email_wins() {
    let server = scene::server();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| sign_up(&server.client, "ada@example.com", PASSWORD).status))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!(
        (count(201), count(409)),
        (1, 5),
        "contract 2: duplicate email is 409: {statuses:?}"
    );
}

#[test]
fn sign_up_can_be_closed() {
    let server = scene::server_with("accounts.signup", "false");
    sign_up(&server.client, "ada@example.com", PASSWORD)
        .refused(403, "contract 2: with accounts.signup = false: 403");
}

#[test]
fn a_changed_password_invalidates_only_earlier_tokens() {
    let (mut server, account, _) = scene::bucket();
    let client = account.client.clone();
    let second = text(&log_in(&client, &account.email, PASSWORD).json(), "/token");
    let bystander = Account::sign_up(&client);
    let change = |token: &str, current: &str, new: &str| {
        let body = json!({"currentPassword": current, "newPassword": new});
        client.post("/api/auth/password").bearer(token).json(&body).send()
    };
    change(&account.token, "not the password", "a new password")
        .refused(401, "contract 2: wrong current password: 401");
    me(&client, &account.token).expect(200, "contract 2: a refused change ends nothing");
    assert_faults(
        &change(&account.token, PASSWORD, "too short"),
        &["newPassword"],
        "contract 2: 10-128 chars",
    );

    let changed =
        change(&account.token, PASSWORD, "a new password").expect(200, "contract 2: POST /api/auth/password");
    let token = text(&changed, "/token");
    let ended = "contract 2: older tokens stop working";
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        me(&client, &account.token).refused(401, ended);
        me(&client, &second).refused(401, ended);
        client
            .get("/api/buckets")
            .bearer(&second)
            .send()
            .refused(401, ended);
        me(&client, &token).expect(
            200,
            "contract 2: the new token works, though made within the same second",
        );
        me(&client, &bystander.token).expect(200, "another user's token is untouched");
        client
            .get("/api/buckets")
            .key(&account.admin)
            .send()
            .expect(200, "keys stay valid until deleted");
        log_in(&client, &account.email, PASSWORD).refused(401, "the old password no longer logs in");
        log_in(&client, &account.email, "a new password").expect(200, "the new password logs in");
    }
}

#[test]
fn an_api_key_on_a_bearer_only_route_is_403() {
    let (_server, account, bucket) = scene::bucket();
    let integration = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let integration = integration
        .json(&json!({"name": "i", "type": "integration"}))
        .send()
        .json();
    for key in [
        &account.admin,
        &bucket.key("write"),
        &bucket.key("read"),
        &text(&integration, "/apiKey/key"),
    ] {
        for (method, path) in [("GET", "/api/auth/me"), ("POST", "/api/auth/password")] {
            let body = if method == "GET" { Value::Null } else { json!({}) };
            let answer = scene::call(&account.client, key, method, path, &body);
            answer.refused(403, "contract 10: an API key on a bearer-only route: 403");
        }
    }
}
