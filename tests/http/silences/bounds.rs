//! The bounds of a silence's members, and of their number.

use serde_json::{Value, json};

use super::{at, create, in_seconds, listed, post};
use crate::scene::{self, UNKNOWN_ID, assert_faults};
use crate::support::given::Account;
use crate::support::process::{Server, Setup};

#[test]
fn members_have_their_bounds() {
    let (_server, account, bucket) = scene::bucket();
    let fault = |more: &Value, path: &str, sentence: &str| {
        assert_faults(&post(&account, &account.admin, more), &[path], sentence);
    };
    for until in [in_seconds(-1), "2001-01-01".to_owned()] {
        fault(&json!({"until": until}), "until", "small print 21: in the past");
    }
    for until in [json!("soon"), json!(5), Value::Null] {
        fault(&json!({"until": until}), "until", "contract 1: timestamps");
    }
    let longest = "ä".repeat(1_000);
    post(&account, &account.admin, &json!({"reason": longest})).expect(201, "small print 21");
    for reason in [json!(format!("{longest}.")), json!("  "), json!(""), Value::Null] {
        fault(
            &json!({"reason": reason}),
            "reason",
            "small print 21: 1 to 1,000 characters",
        );
    }
    fault(
        &json!({"alertIds": []}),
        "alertIds",
        "small print 20: 1 to 1,000 ids",
    );
    let ids = |count: usize| json!({"alertIds": vec![UNKNOWN_ID; count]});
    fault(&ids(1_001), "alertIds", "small print 20: 1 to 1,000 ids");
    post(&account, &account.admin, &ids(1_000)).expect(404, "small print 20: 1 to 1,000 ids");
    fault(
        &json!({"alertIds": ["x"]}),
        "alertIds/0",
        "contract 1: malformed ids",
    );
    fault(&json!({"bucketId": "x"}), "bucketId", "contract 1: malformed ids");
    let nulls = json!({"bucketId": null, "alertIds": null});
    post(&account, &account.admin, &nulls).expect(201, "an optional member that is null is as if absent");
    let empty = account
        .client
        .post("/api/silences")
        .key(&account.admin)
        .json(&json!({}));
    assert_faults(&empty.send(), &["until", "reason"], "small print 1: required");
    let unread = json!({"bucketId": UNKNOWN_ID, "until": in_seconds(-1)});
    fault(&unread, "until", "contract 1: shape before resources");
    assert_eq!(
        listed(&account, &bucket.key("read")).len(),
        2,
        "what was refused was not created"
    );
}

#[test]
fn silences_of_an_organization_are_bounded_and_those_that_ended_do_not_count() {
    let server = Server::start_with(Setup::unlimited().set("limits.silences_max", "3"));
    let account = Account::sign_up(&server.client);
    let made: Vec<_> = (0..3).map(|_| create(&account, &json!({}))).collect();
    let refused = post(&account, &account.admin, &json!({})).refused(403, "one too many");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("limits.silences_max"), "{message}");
    let neighbour = Account::sign_up(&server.client);
    create(&neighbour, &json!({}));
    at(&account, &account.admin, "DELETE", &made[1]).expect(200, "room is made");
    let last = create(&account, &json!({}));
    assert_eq!(
        listed(&account, &account.admin),
        [made[0].clone(), made[2].clone(), last]
    );
}
