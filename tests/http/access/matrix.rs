//! Every route × every kind of caller × the owner of the named ids. Expectations follow from the route table alone:
//! listing a new route covers it, and a served route that is not listed fails a test here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::callers::{self, Caller, IdOwner, Relation, Scene};
use crate::routes::{AGENT_ROUTES, Ids, OPERATOR_ROUTES, PUBLIC_ROUTES, ROUTES, Role, Route, shape};
use crate::scene::{self, call};
use crate::support::client::{Answer, Client};

/// The expected status: decided first by the credential, then by the route, then by the owner of the ids.
fn expected(route: &Route, caller: &Caller, owner: IdOwner) -> u16 {
    let of_operator = route.roles.contains(&Role::Operator);
    match caller.relation {
        Relation::Both => return 400,
        Relation::Nobody => return 401,
        // The operator's token is invalid elsewhere, and other credentials are invalid for the operator's routes.
        _ if of_operator != (caller.role == Role::Operator) => return 401,
        _ if !route.roles.contains(&caller.role) => return 403,
        _ => {}
    }
    if !route.names_a_resource() {
        return route.success;
    }
    match (caller.relation, owner) {
        (_, IdOwner::Malformed) => 400,
        (_, IdOwner::Own | IdOwner::Foreign) if of_operator => route.success,
        (_, IdOwner::Foreign | IdOwner::Deleted | IdOwner::NeverExisted) | (Relation::Foreign, _) => 404,
        // For a key of another bucket, all other ids in the request are irrelevant.
        (Relation::OtherBucket, _) => 403,
        (_, IdOwner::OtherBucket) if is_of_bucket(caller) => 403,
        (_, IdOwner::Own | IdOwner::OtherBucket) => route.success,
        // A batch reports the fault of an entry as 400, and here it is the only fault.
        _ if route.path == "/api/data/batch" => 400,
        (_, IdOwner::PartOfOtherBucket) if is_of_bucket(caller) => 403,
        _ => 404,
    }
}

/// The kinds of ids that make a difference for a caller on a route.
fn relevant_ids(route: &Route, caller: &Caller) -> Vec<IdOwner> {
    let mut all = vec![IdOwner::Own];
    if route.names_a_resource() {
        all.extend([IdOwner::Deleted, IdOwner::NeverExisted, IdOwner::Malformed]);
        match caller.relation {
            Relation::Own => {
                all.push(IdOwner::Foreign);
                if is_of_bucket(caller) || !uses_up(route) {
                    all.push(IdOwner::OtherBucket);
                }
            }
            Relation::OtherBucket => all.push(IdOwner::Foreign),
            Relation::Foreign | Relation::Nobody | Relation::Both => {}
        }
    }
    if route.names_a_part() && caller.relation == Relation::Own {
        all.extend([IdOwner::PartOfOtherBucket, IdOwner::PartOfForeign]);
        all.extend([IdOwner::PartDeleted, IdOwner::PartThatNeverExisted]);
    }
    all
}

fn is_of_bucket(caller: &Caller) -> bool {
    matches!(caller.role, Role::Write | Role::Read)
}

/// Whether a successful request uses up its objects.
pub fn uses_up(route: &Route) -> bool {
    route.method == "DELETE" || route.path.ends_with("/verdict")
}

/// Creates the objects that a successful request may use up.
pub fn disposable_ids(scene: &Scene, route: &Route) -> Ids {
    let mut ids = scene.ids(IdOwner::Own);
    let name = format!("expendable {}", fastrand::u64(..));
    if route.path.ends_with("{organizationKey}") {
        ids.organization_key = callers::integration(&scene.account).0;
    } else if route.path.ends_with("{key}") {
        ids.key = callers::bucket_key(&scene.bucket).0;
    } else if route.path.ends_with("{source}") {
        ids.source = scene.bucket.source(&name, &["level"]);
    } else if route.path.ends_with("{plainRule}") {
        ids.plain_rule = callers::plain_rule(&scene.bucket, &ids.source);
    } else if route.path.contains("{rule}") {
        ids.rule = scene.bucket.evaluated_rule("expendable", &ids.source);
    } else if route.path.ends_with("{silence}") {
        ids.silence = scene.bucket.silence();
    } else if route.path.ends_with("{annotation}") {
        ids.annotation = scene.bucket.annotation();
    } else if route.path.ends_with("{board}") || route.path.ends_with("{share}") {
        (ids.board, ids.share) = scene.bucket.board();
    } else if route.path.ends_with("{member}") {
        ids.member = scene.account.member("editor").id;
    } else if route.path.ends_with("{invitation}") {
        ids.invitation = scene.account.invitation("viewer").id;
    } else if route.path.ends_with("{session}") {
        ids.session = scene.account.session();
    } else if route.path.ends_with("{webhook}") {
        ids.webhook = callers::webhook(&scene.account).0;
    } else {
        ids.bucket = scene.account.bucket(&name).id;
    }
    ids
}

fn send_as(client: &Client, route: &Route, caller: &Caller, ids: &Ids) -> Answer {
    let mut request = client.request(route.method, &route.path(ids));
    for (header, value) in &caller.credentials {
        request = request.header(header, value.as_str());
    }
    match route.body(ids) {
        Some(body) => request.body(body).send(),
        None => request.send(),
    }
}

fn with_credentials() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(OPERATOR_ROUTES)
}

#[test]
fn every_route_answers_every_caller_as_listed() {
    let server = scene::server();
    let scene = Scene::on(&server);
    for route in with_credentials() {
        for caller in &scene.callers {
            for owner in relevant_ids(route, caller) {
                let expected = expected(route, caller, owner);
                let ids = if uses_up(route) && expected == 200 {
                    disposable_ids(&scene, route)
                } else {
                    scene.ids(owner)
                };
                let answer = send_as(&server.client, route, caller, &ids);
                let sentence = format!(
                    "contract 1, 2: {} {} by {} naming {owner:?}",
                    route.method, route.path, caller.name
                );
                if expected < 300 {
                    // Not always JSON.
                    assert!(
                        answer.status == expected,
                        "{sentence}: expected {expected}, got {answer}"
                    );
                    continue;
                }
                let body = answer.refused(expected, &sentence);
                if expected == 403 && route.roles.contains(&caller.role) {
                    assert_eq!(
                        body["message"], "API key does not have access to this bucket",
                        "spec: the message of 403 for another bucket ({sentence})"
                    );
                }
            }
        }
    }
    assert_refused_requests_had_no_effect(&server.client, &scene);
}

fn assert_refused_requests_had_no_effect(client: &Client, scene: &Scene) {
    let (bucket, own) = (&scene.bucket, scene.ids(IdOwner::Own));
    let there = |bucket: &crate::support::given::Bucket, ids: &Ids| {
        let show = |path: &str| call(client, &bucket.admin, "GET", path, &Value::Null);
        for path in [
            format!("/api/buckets/{}", ids.bucket),
            format!("/api/buckets/{}/sources/{}", ids.bucket, ids.source),
            format!("/api/alerts/{}", ids.plain_rule),
            format!("/api/silences/{}", ids.silence),
            format!("/api/annotations/{}", ids.annotation),
            format!("/api/boards/{}", ids.board),
            format!("/api/webhooks/{}", ids.webhook),
        ] {
            show(&path).expect(200, "an object that was not deleted is there");
        }
        for (path, key) in [
            (format!("/api/buckets/{}/keys?limit=1000", ids.bucket), &ids.key),
            (
                "/api/organization/keys?limit=1000".to_owned(),
                &ids.organization_key,
            ),
        ] {
            assert!(
                show(&path).text().contains(key),
                "the key was not deleted: {path}"
            );
        }
        assert_eq!(
            bucket.show(&ids.rule)["lastOutcome"],
            Value::Null,
            "no verdict was recorded for the rule"
        );
    };
    there(bucket, &own);
    let foreign = scene.ids(IdOwner::Foreign);
    there(&scene.foreign, &foreign);
    let allowed = ["admin", "bearer", "write"].len();
    let both_endpoints = 2 * allowed;
    assert_eq!(
        bucket.rows(&json!({})).len(),
        both_endpoints,
        "only the points that were acknowledged are stored"
    );
    assert!(
        scene.foreign.rows(&json!({})).is_empty(),
        "nothing was written there"
    );
    let lists = [
        (format!("/api/buckets/{}/sources", foreign.bucket), 1),
        (format!("/api/buckets/{}/alerts", foreign.bucket), 2),
        // The keys of its two callers, and the one that was not deleted.
        (format!("/api/buckets/{}/keys", foreign.bucket), 3),
    ];
    for (path, total) in lists {
        let list = call(client, &scene.foreign.admin, "GET", &path, &Value::Null).json();
        assert_eq!(
            list["pagination"]["total"], total,
            "nothing was made in {path}: {list}"
        );
    }
}

/// The comparable part of an answer: without members that differ in every answer.
fn comparable(answer: &Answer, ids: &Ids) -> String {
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        // Whether the connection stays open depends on how much of the body had arrived.
        .filter(|(name, _)| {
            !["date", "x-request-id", "content-length", "connection"].contains(&name.as_str())
        })
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort();
    let body = ids
        .each()
        .iter()
        .fold(answer.text(), |text, id| text.replace(id, "ID"));
    format!("{}\n{}\n\n{body}", answer.status, headers.join("\n"))
}

/// A caller cannot distinguish foreign and deleted ids from ids that never existed.
#[test]
fn foreign_deleted_and_missing_ids_get_equal_answers() {
    let server = scene::server();
    let scene = Scene::on(&server);
    let missing = scene.ids(IdOwner::NeverExisted);
    for route in ROUTES.iter().filter(|route| route.names_a_resource()) {
        let allowed = |caller: &&Caller| {
            matches!(caller.relation, Relation::Own | Relation::Foreign) && route.roles.contains(&caller.role)
        };
        for caller in scene.callers.iter().filter(allowed) {
            let expected = comparable(&send_as(&server.client, route, caller, &missing), &missing);
            let hidden = match caller.relation {
                Relation::Foreign => [IdOwner::Own, IdOwner::Deleted],
                _ => [IdOwner::Foreign, IdOwner::Deleted],
            };
            for owner in hidden {
                let ids = scene.ids(owner);
                assert_eq!(
                    comparable(&send_as(&server.client, route, caller, &ids), &ids),
                    expected,
                    "contract 1: answers do not reveal whether a foreign id exists ({} {} by {} naming {owner:?})",
                    route.method,
                    route.path,
                    caller.name
                );
            }
            assert!(expected.starts_with("404"), "contract 1: always 404: {expected}");
        }
    }
}

/// Valid or invalid credentials make no difference on routes that require none.
#[test]
fn public_routes_answer_every_caller_equally() {
    let server = scene::server();
    let scene = Scene::on(&server);
    let ids = scene.ids(IdOwner::Own);
    for route in PUBLIC_ROUTES {
        for caller in scene
            .callers
            .iter()
            .filter(|caller| caller.relation != Relation::Both)
        {
            let answer = send_as(&server.client, route, caller, &ids);
            assert_eq!(
                answer.status, route.success,
                "contract 2, 9: anyone may call {} ({}): {answer}",
                route.path, caller.name
            );
        }
    }
}

/// RFC 9110, 9.3.2: HEAD answers what GET would, without the body.
#[test]
fn head_answers_as_get_does_and_sends_no_body() {
    let server = scene::server();
    let scene = Scene::on(&server);
    let ids = scene.ids(IdOwner::Own);
    let readable = with_credentials().chain(PUBLIC_ROUTES);
    for route in readable.filter(|route| route.method == "GET") {
        let head = Route {
            method: "HEAD",
            ..*route
        };
        for caller in &scene.callers {
            let get = send_as(&server.client, route, caller, &ids);
            let head = send_as(&server.client, &head, caller, &ids);
            let what = format!("{} by {}: {head}", route.path, caller.name);
            assert_eq!(head.status, get.status, "{what}");
            assert_eq!(head.text(), "", "{what}");
            assert_eq!(head.header("content-type"), get.header("content-type"), "{what}");
            assert!(
                head.status == 204 || head.header("content-length").is_some(),
                "{what}"
            );
        }
    }
}

/// A test beside the server's route table compares it with the description; this test compares the description with
/// this list.
#[test]
fn every_documented_route_is_in_the_matrix_and_vice_versa() {
    let server = scene::server();
    let described = server.client.get("/api/docs").send();
    let described = described.expect(200, "contract 9: GET /api/docs (no key): OpenAPI 3.1 as JSON");
    let methods = [
        "get", "put", "post", "delete", "patch", "head", "options", "trace",
    ];
    let found: BTreeSet<(String, String)> = described["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(path, item)| {
            let methods = methods.iter().filter(|method| item.get(method).is_some());
            methods.map(move |method| (method.to_uppercase(), shape(path)))
        })
        .collect();
    let listed: BTreeSet<(String, String)> = with_credentials()
        .chain(PUBLIC_ROUTES)
        .chain(AGENT_ROUTES)
        .map(|route| (route.method.to_owned(), shape(route.path)))
        .collect();
    let untested: Vec<_> = found.difference(&listed).collect();
    assert!(
        untested.is_empty(),
        "no access is tested of {untested:?}: list them in routes.rs"
    );
    let undescribed: Vec<_> = listed.difference(&found).collect();
    assert!(
        undescribed.is_empty(),
        "contract 9: /api/docs lacks {undescribed:?}"
    );
}
