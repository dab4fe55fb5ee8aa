//! The monthly quota: which calls count, what is refused when it is exhausted, and its headers. `tests/loop` tests the
//! effects of the calendar with a simulated clock.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::log_in;
use crate::routes::{Ids, LOG_OUT, ROUTES, Role, Route};
use crate::scene::{self, UNKNOWN_ID};
use crate::support::client::{Answer, Client, Request};
use crate::support::given::{Account, Bucket, text};
use crate::support::process::{OPERATOR_TOKEN, Server};
use crate::support::time::{DAY, MINUTE, SECOND, date_of, now_ns, timestamp};
use crate::support::waiting::until_within;

const HEADERS: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
/// The only routes on which calls with a bearer token count.
const INGESTS: [&str; 2] = ["/api/data", "/api/data/batch"];
const FREE: u64 = 10_000;
const PRO: u64 = 1_000_000;

/// Limit, remaining and reset of an answer; `None` without these headers.
#[track_caller]
pub fn quota(answer: &Answer) -> Option<[u64; 3]> {
    let values = HEADERS.map(|name| answer.header(name).map(str::to_owned));
    if values.iter().all(Option::is_none) {
        return None;
    }
    Some(values.map(|value| {
        let number = value.as_deref().and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| panic!("contract 2: three headers, each a number: {value:?} of {answer}"))
    }))
}

#[track_caller]
fn remaining(answer: &Answer) -> u64 {
    let quota = quota(answer);
    quota.unwrap_or_else(|| panic!("contract 2: X-RateLimit-* stand on every answer: {answer}"))[1]
}

/// The start of the next month, 00:00 UTC, in seconds.
pub fn next_month() -> u64 {
    let today = now_ns() / DAY;
    let month = date_of(today).1;
    let first = (today..).find(|day| date_of(*day).1 != month);
    first.unwrap_or_default() as u64 * (DAY / SECOND) as u64
}

/// For the start of a test that counts calls: at the turn of a month the server begins to count anew. In the last
/// minute of one this waits for the next, since the server under test has the clock of this machine.
pub fn within_a_month() {
    let turn_ns = next_month() as i64 * SECOND;
    if turn_ns - now_ns() < MINUTE {
        until_within(Duration::from_secs(90), "the next month has begun", || {
            (now_ns() >= turn_ns).then_some(())
        });
    }
}

/// The same time as in the message of an error.
pub fn reset_in_words() -> String {
    timestamp(next_month() as i64 * SECOND)
}

pub fn on_plan(plan: &str) -> (Server, Account, Bucket) {
    let server = scene::server_with("accounts.default_plan", plan);
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    (server, account, bucket)
}

fn integration_key(account: &Account) -> String {
    let request = account
        .client
        .post("/api/organization/keys")
        .bearer(&account.token);
    let answer = request
        .json(&json!({"name": "evaluator", "type": "integration"}))
        .send();
    text(&answer.expect(201, "an integration key"), "/apiKey/key")
}

pub fn show(account: &Account) -> Answer {
    account.client.get("/api/organization").key(&account.admin).send()
}

fn set_plan(account: &Account, plan: &str) {
    let path = format!("/api/operator/organizations/{}", account.organization_id);
    let answer = account
        .client
        .request("PATCH", &path)
        .bearer(OPERATOR_TOKEN)
        .json(&json!({"plan": plan}))
        .send();
    answer.expect(200, "the operator changes a plan");
    assert_eq!(quota(&answer), None, "the operator has no quota");
}

fn with_body<'a>(request: Request<'a>, body: Option<String>) -> Request<'a> {
    match body {
        Some(body) => request.body(body),
        None => request,
    }
}

/// The expected headers.
struct Expected {
    left: u64,
    reset: u64,
}

impl Expected {
    #[track_caller]
    fn counted(&mut self, answer: &Answer) {
        self.left -= 1;
        self.unchanged(
            answer,
            "contract 2: every request with a key counts one call, whatever its answer",
        );
    }

    /// Calls with a bearer token count only on the two ingest endpoints.
    #[track_caller]
    fn by_bearer(&mut self, route: &Route, answer: &Answer) {
        if INGESTS.contains(&route.path) {
            self.counted(answer);
        } else {
            self.unchanged(
                answer,
                "contract 2: a bearer's requests count only on the two ingest endpoints",
            );
        }
    }

    #[track_caller]
    fn unchanged(&self, answer: &Answer, sentence: &str) {
        assert_eq!(
            quota(answer),
            Some([PRO, self.left, self.reset]),
            "{sentence}: {answer}"
        );
    }
}

/// Covers the whole route table and every kind of answer.
#[test]
fn every_request_with_a_key_counts_as_one_call() {
    within_a_month();
    let (_server, account, bucket) = on_plan("Pro");
    let (client, read) = (&account.client, bucket.key("read"));
    let integration = integration_key(&account);
    let mut expected = Expected {
        left: remaining(&show(&account)),
        reset: next_month(),
    };
    let (unknown, malformed) = (Ids::all(UNKNOWN_ID), Ids::all("NOT-AN-ID"));
    for route in ROUTES {
        let new_request = |ids: &Ids| client.request(route.method, &route.path(ids));
        let token = match route.path {
            LOG_OUT => log_in(&account),
            _ => account.token.clone(),
        };
        for ids in [&unknown, &malformed] {
            expected.counted(&with_body(new_request(ids).key(&account.admin), route.body(ids)).send());
            expected.by_bearer(
                route,
                &with_body(new_request(ids).bearer(&token), route.body(ids)).send(),
            );
            if route.path == LOG_OUT {
                break;
            }
        }
        expected.counted(&with_body(new_request(&unknown).key(&read), route.body(&unknown)).send());
        if route.body.is_some() {
            for (name, value, body) in [
                ("X-Of", "malformed", "{"),
                ("Content-Encoding", "br", "{}"),
                ("Content-Encoding", "gzip", "no gzip"),
            ] {
                let request = new_request(&unknown).key(&account.admin).header(name, value);
                expected.counted(&request.body(body).send());
                let request = new_request(&unknown).bearer(&account.token).header(name, value);
                expected.by_bearer(route, &request.body(body).send());
            }
        }
        let answer = with_body(new_request(&unknown).key(&integration), route.body(&unknown)).send();
        expected.unchanged(
            &answer,
            "contract 10: answers to integration keys have the headers, unchanged by the call",
        );
    }
}

#[test]
fn unauthenticated_requests_and_unknown_routes_count_nothing() {
    within_a_month();
    let (_server, account, _) = on_plan("Pro");
    let (client, admin) = (&account.client, &account.admin);
    let before = remaining(&show(&account));
    let answers = [
        (client.get("/api/organization").send(), 401),
        (client.get("/api/organization").key("svc_a_wrong").send(), 401),
        (client.get("/api/organization").bearer("wrong").send(), 401),
        (
            client
                .get("/api/organization")
                .key(admin)
                .bearer(&account.token)
                .send(),
            400,
        ),
        (client.get("/api/nothing").key(admin).send(), 404),
        (client.delete("/api/organization").key(admin).send(), 405),
        (client.get("/health").key(admin).send(), 200),
        (client.get("/api/docs").key(admin).send(), 200),
    ];
    for (answer, status) in answers {
        assert_eq!(answer.status, status, "{answer}");
        assert_eq!(
            quota(&answer),
            None,
            "contract 10: counts no call and has no rate headers: {answer}"
        );
    }
    assert_eq!(
        remaining(&show(&account)),
        before - 1,
        "contract 10: none of them was counted"
    );
}

#[test]
fn an_unlimited_plan_has_none_of_the_headers() {
    let (_server, account, bucket) = scene::bucket();
    let answers = [
        show(&account),
        client_get(&account.client, "/api/buckets/NOT-AN-ID", &account.admin),
        client_get(&account.client, "/api/buckets", &bucket.key("read")),
        client_get(
            &account.client,
            "/api/evaluations/due",
            &integration_key(&account),
        ),
    ];
    for (answer, status) in answers.iter().zip([200, 400, 403, 200]) {
        assert_eq!(answer.status, status, "{answer}");
        assert_eq!(
            quota(answer),
            None,
            "contract 2: an unlimited plan has none of the three: {answer}"
        );
    }
}

fn client_get(client: &Client, path: &str, key: &str) -> Answer {
    client.get(path).key(key).send()
}

/// Makes calls until the quota is exhausted.
pub fn use_up(account: &Account) {
    const CALLERS: u64 = 4;
    let left = remaining(&show(account));
    thread::scope(|scope| {
        for nth in 0..CALLERS {
            scope.spawn(move || {
                let calls = left / CALLERS + u64::from(nth < left % CALLERS);
                (0..calls).for_each(|_| drop(show(account).expect(200, "contract 2: within the quota")));
            });
        }
    });
}

#[test]
fn an_exhausted_quota_refuses_in_order_until_the_plan_changes() {
    within_a_month();
    let (mut server, account, bucket) = on_plan("Free");
    let client = server.client.clone();
    let read = bucket.key("read");
    let integration = integration_key(&account);
    use_up(&account);
    let reset = next_month();
    let full = "contract 2: 429 when the month's calls are used up";
    let refused = |answer: &Answer| {
        let body = answer.refused(429, full);
        let says = body["message"]
            .as_str()
            .is_some_and(|text| text.contains(&reset_in_words()));
        assert!(says, "spec: 429, the message states the reset time: {body}");
        let wait = answer
            .header("retry-after")
            .and_then(|text| text.parse::<u64>().ok());
        let until = wait.map(|wait| now_ns() as u64 / SECOND as u64 + wait);
        let in_time = until.is_some_and(|until| (reset - 2..=reset + 2).contains(&until));
        assert!(in_time, "contract 2: 429 carries Retry-After: {wait:?}");
        assert_eq!(
            quota(answer),
            Some([FREE, 0, reset]),
            "contract 2: on every answer: {answer}"
        );
    };
    for restarted in [false, true] {
        if restarted {
            assert!(server.stop().success(), "contract 9: SIGTERM, exit 0");
            server.launch();
        }
        refused(&show(&account));
    }
    let ids = Ids::all("NOT-AN-ID");
    for route in ROUTES {
        let new_request = || client.request(route.method, &route.path(&ids));
        // Checked before the route's 403 and before the body; after 401 and the check for two credentials.
        refused(&with_body(new_request().key(&read), route.body.map(|_| "{".to_owned())).send());
        let by_bearer = new_request()
            .bearer(&account.token)
            .header("Content-Encoding", "br")
            .body("{}")
            .send();
        if INGESTS.contains(&route.path) {
            refused(&by_bearer);
        } else {
            assert_ne!(
                by_bearer.status, 429,
                "contract 2: who looks is not refused: {by_bearer}"
            );
            assert_eq!(
                quota(&by_bearer),
                Some([FREE, 0, reset]),
                "small print 64: {by_bearer}"
            );
        }
        new_request()
            .key("svc_a_wrong")
            .send()
            .refused(401, "contract 1: 401, then 429");
        let both = new_request().key(&account.admin).bearer(&account.token).send();
        both.refused(
            400,
            "contract 10: both credentials at once is 400 before anything else",
        );
        let answer = new_request().key(&integration).body("{").send();
        let expected = if route.roles.contains(&Role::Integration) {
            400
        } else {
            403
        };
        // `due` takes no body and has no ids.
        let expected = if route.path.ends_with("/due") {
            200
        } else {
            expected
        };
        assert_eq!(
            answer.status, expected,
            "contract 2: integration keys are never refused: {answer}"
        );
        assert_eq!(
            quota(&answer),
            Some([FREE, 0, reset]),
            "contract 10: they have the headers: {answer}"
        );
    }
    client
        .get("/api/nothing")
        .key(&account.admin)
        .send()
        .refused(404, "contract 1: 404 of the route comes first");

    set_plan(&account, "Pro");
    let answer = show(&account);
    let left = PRO - FREE - 1;
    assert_eq!(
        quota(&answer),
        Some([PRO, left, reset]),
        "429 is not counted; the plan holds at once: {answer}"
    );
    answer.expect(200, "a larger plan takes effect with the next request");
    set_plan(&account, "Enterprise");
    assert_eq!(
        quota(&show(&account)),
        None,
        "contract 2: an unlimited plan has none of the three"
    );
    set_plan(&account, "Free");
    refused(&show(&account));
    set_plan(&account, "Pro");
    assert_eq!(
        remaining(&show(&account)),
        left - 2,
        "calls on an unlimited plan are counted, too"
    );
}

#[test]
fn a_crash_loses_the_last_second_at_most() {
    within_a_month();
    let (mut server, account, _) = on_plan("Pro");
    let started = Instant::now();
    let mut at = Vec::new();
    while started.elapsed() < Duration::from_secs(6) {
        at.push((started.elapsed(), remaining(&show(&account))));
    }
    server.kill();
    let end = started.elapsed();
    server.launch();
    // Allows two seconds for the commit itself on a busy machine.
    let kept = at
        .iter()
        .rev()
        .find(|(when, _)| *when + Duration::from_millis(3_000) < end);
    let (_, kept) = kept.unwrap_or_else(|| panic!("calls were made for six seconds"));
    let left = remaining(&show(&account));
    assert!(
        left < *kept && left + 1 >= at[at.len() - 1].1 - 1,
        "contract 2: a crash may lose the last second: {left} left, {kept} were left 3 s before"
    );
}

/// The bearer token and every key of an organization share one quota; another organization has its own.
#[test]
fn a_quota_is_shared_by_the_organization() {
    within_a_month();
    let (_server, account, bucket) = on_plan("Pro");
    let other = Account::sign_up(&account.client);
    let write = bucket.key("write");
    let before = remaining(&show(&account));
    let path = format!("/api/buckets/{}/sources", bucket.id);
    let answers = [
        account.client.get("/api/organization").key(&account.admin).send(),
        client_get(&account.client, &path, &write),
        show(&account),
    ];
    let left: Vec<u64> = answers.iter().map(remaining).collect();
    assert_eq!(
        left,
        [before - 1, before - 2, before - 3],
        "contract 2: the organization's quota"
    );
    assert_eq!(
        remaining(&show(&other)),
        PRO - 1,
        "another organization's calls are its own"
    );
}
