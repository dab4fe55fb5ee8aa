//! Plans and their limits, and the operator's changes of plans.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_faults, call};
use crate::support::client::{Answer, Client};
use crate::support::given::Account;
use crate::support::process::{OPERATOR_TOKEN, Server, Setup};

fn create_bucket(account: &Account, body: &Value) -> Answer {
    call(&account.client, &account.admin, "POST", "/api/buckets", body)
}

fn set_plan(client: &Client, organization: &str, plan: &Value) -> Answer {
    let path = format!("/api/operator/organizations/{organization}");
    client
        .request("PATCH", &path)
        .bearer(OPERATOR_TOKEN)
        .json(&json!({"plan": plan}))
        .send()
}

fn free() -> (Server, Account) {
    let server = scene::server_with("accounts.default_plan", "Free");
    let account = Account::sign_up(&server.client);
    (server, account)
}

#[test]
fn the_free_plan_has_three_buckets_of_thirty_days() {
    let (_server, account) = free();
    let first = create_bucket(&account, &json!({"name": "a"})).expect(201, "contract 2: Free has 3 buckets");
    assert_eq!(
        first["bucket"]["retentionDays"], 30,
        "contract 2: default retentionDays: the plan's maximum"
    );
    let body = json!({"name": "b", "retentionDays": 30});
    create_bucket(&account, &body).expect(201, "contract 2: 30 days on Free");
    let sentence = "contract 2: retentionDays beyond the plan: 400";
    assert_faults(
        &create_bucket(&account, &json!({"name": "c", "retentionDays": 31})),
        &["retentionDays"],
        sentence,
    );
    let third = create_bucket(&account, &json!({"name": "c", "retentionDays": 1}))
        .expect(201, "contract 2: integer from 1");
    let path = format!(
        "/api/buckets/{}",
        third["bucket"]["_id"].as_str().unwrap_or_default()
    );
    let patch = |days: u32| {
        call(
            &account.client,
            &account.admin,
            "PATCH",
            &path,
            &json!({"retentionDays": days}),
        )
    };
    assert_faults(&patch(31), &["retentionDays"], sentence);
    patch(30).expect(200, "contract 3: PATCH retentionDays within the plan");

    let fourth = create_bucket(&account, &json!({"name": "d"}));
    let fourth = fourth.refused(403, "contract 2: one bucket too many: 403");
    let message = fourth["message"].as_str().unwrap_or_default();
    assert!(
        message.contains('3'),
        "contract 2: 403 naming the plan's limit: {message}"
    );
    call(&account.client, &account.admin, "DELETE", &path, &Value::Null).expect(200, "a bucket is deleted");
    create_bucket(&account, &json!({"name": "d"}))
        .expect(201, "contract 2: the limit is of buckets that exist");
}

/// Another request may be executed between counting and creating.
#[test]
fn the_bucket_limit_holds_for_concurrent_requests() {
    let (_server, account) = free();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let create = |nth: usize| create_bucket(&account, &json!({"name": format!("b{nth}")})).status;
        let threads: Vec<_> = (0..8).map(|nth| scope.spawn(move || create(nth))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let created = statuses.iter().filter(|status| **status == 201).count();
    assert_eq!(created, 3, "contract 2: Free has 3 buckets: {statuses:?}");
}

#[test]
fn pro_and_enterprise_have_their_own_defaults() {
    for (plan, days) in [("Pro", 365), ("Enterprise", 365)] {
        let server = scene::server_with("accounts.default_plan", plan);
        let account = Account::sign_up(&server.client);
        let bucket = create_bucket(&account, &json!({"name": "a"})).expect(201, "a bucket");
        assert_eq!(
            bucket["bucket"]["retentionDays"], days,
            "contract 2: default retentionDays of {plan}"
        );
        let longer = create_bucket(&account, &json!({"name": "b", "retentionDays": 366}));
        let expected = if plan == "Pro" { 400 } else { 201 };
        assert_eq!(
            longer.status, expected,
            "contract 2: Pro 365 days, Enterprise unlimited ({plan}): {longer}"
        );
        for nth in 0..25 {
            let answer = create_bucket(&account, &json!({"name": format!("n{nth}")}));
            let beyond = plan == "Pro" && nth == 24;
            let expected = if beyond { 403 } else { 201 };
            assert_eq!(
                answer.status, expected,
                "contract 2: Pro 25 buckets, Enterprise unlimited ({plan}): {answer}"
            );
        }
    }
}

#[test]
fn the_operator_changes_plans() {
    let (mut server, account) = free();
    let client = account.client.clone();
    let limits = [
        (
            "Pro",
            json!({"name": "Pro", "maxBuckets": 25, "maxRetentionDays": 365, "maxApiCalls": 1_000_000}),
        ),
        (
            "Enterprise",
            json!({"name": "Enterprise", "maxBuckets": null, "maxRetentionDays": null, "maxApiCalls": null}),
        ),
        (
            "Free",
            json!({"name": "Free", "maxBuckets": 3, "maxRetentionDays": 30, "maxApiCalls": 10_000}),
        ),
        (
            "Pro",
            json!({"name": "Pro", "maxBuckets": 25, "maxRetentionDays": 365, "maxApiCalls": 1_000_000}),
        ),
    ];
    for (plan, shown) in &limits {
        let answer = set_plan(&client, &account.organization_id, &json!(plan));
        let answer = answer.expect(200, "contract 2: PATCH /api/operator/organizations/:id");
        assert!(
            answer["message"].is_string(),
            "contract 2: {{message, organization}}"
        );
        assert_eq!(
            answer["organization"]["plan"], *shown,
            "contract 2: the limits of {plan}"
        );
    }
    server.kill();
    server.launch();
    let shown = call(&client, &account.admin, "GET", "/api/organization", &Value::Null).json();
    assert_eq!(
        shown["organization"]["plan"]["name"], "Pro",
        "a plan survives a restart"
    );
    let listed = client
        .get("/api/operator/organizations")
        .bearer(OPERATOR_TOKEN)
        .send();
    let listed = listed.expect(200, "contract 2: GET /api/operator/organizations");
    assert_eq!(
        array(&listed, "/organizations").len(),
        1,
        "contract 10: {{organizations, pagination}}"
    );
    assert_eq!(
        listed["organizations"][0]["_id"], account.organization_id,
        "contract 10: every organization is listed"
    );
    assert_eq!(
        listed["pagination"]["total"], 1,
        "contract 10: {{organizations, pagination}}"
    );

    for plan in [json!("free"), json!("Gold"), json!(5), Value::Null] {
        let answer = set_plan(&client, &account.organization_id, &plan);
        assert_faults(&answer, &["plan"], "contract 2: plan is Free, Pro or Enterprise");
    }
    set_plan(&client, UNKNOWN_ID, &json!("Pro")).refused(404, "contract 1: an unknown id is 404");
    set_plan(&client, "not-an-id", &json!("Pro")).refused(400, "contract 1: a malformed id is 400");
}

#[test]
fn a_downgrade_keeps_existing_buckets() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    for nth in 0..5 {
        account.bucket_with(&json!({"name": format!("b{nth}"), "retentionDays": 400}));
    }
    set_plan(&account.client, &account.organization_id, &json!("Free")).expect(200, "a downgrade");
    let listed = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/buckets",
        &Value::Null,
    )
    .json();
    assert_eq!(
        listed["pagination"]["total"], 5,
        "contract 2: after a downgrade what exists stays"
    );
    for bucket in array(&listed, "/buckets") {
        assert_eq!(
            bucket["retentionDays"], 400,
            "contract 2: after a downgrade what exists stays"
        );
    }
    let id = listed["buckets"][0]["_id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let rename = call(
        &account.client,
        &account.admin,
        "PATCH",
        &format!("/api/buckets/{id}"),
        &json!({"name": "still"}),
    );
    rename.expect(200, "contract 2: only new things are refused");
    create_bucket(&account, &json!({"name": "new"})).refused(403, "contract 2: only new things are refused");
}

#[test]
fn operator_routes_are_for_the_operator_only() {
    let (_server, account) = free();
    let path = format!("/api/operator/organizations/{}", account.organization_id);
    for token in [
        "wrong",
        "",
        &account.token,
        &account.admin,
        &OPERATOR_TOKEN[1..],
        &format!("{OPERATOR_TOKEN}x"),
    ] {
        let sentence = "contract 2: a wrong operator token: 401";
        account
            .client
            .get("/api/operator/organizations")
            .bearer(token)
            .send()
            .refused(401, sentence);
        let patch = account
            .client
            .request("PATCH", &path)
            .bearer(token)
            .json(&json!({"plan": "Enterprise"}));
        patch.send().refused(401, sentence);
    }
    account
        .client
        .get("/api/operator/organizations")
        .send()
        .refused(401, "contract 2: no operator token: 401");
    let as_user = account.client.get("/api/buckets").bearer(OPERATOR_TOKEN).send();
    as_user.refused(
        401,
        "contract 2: the operator's token opens the operator's routes, and no other",
    );
    let shown = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/organization",
        &Value::Null,
    )
    .json();
    assert_eq!(
        shown["organization"]["plan"]["name"], "Free",
        "a refused PATCH changes nothing"
    );
}

#[test]
fn without_an_operator_token_there_are_no_operator_routes() {
    let server = Server::start_with(Setup::default().set("accounts.default_plan", "Enterprise"));
    let account = Account::sign_up(&server.client);
    let sentence = "contract 2: without operator.token in the config those routes are 404";
    let path = format!("/api/operator/organizations/{}", account.organization_id);
    for token in [OPERATOR_TOKEN, "", &account.token] {
        for path in ["/api/operator/organizations", "/api/operator/cluster"] {
            let answer = server.client.get(path).bearer(token).send();
            answer.refused(404, sentence);
        }
        let patch = server
            .client
            .request("PATCH", &path)
            .bearer(token)
            .json(&json!({"plan": "Pro"}));
        patch.send().refused(404, sentence);
    }
}
