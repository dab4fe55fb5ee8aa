//! Files of earlier versions stay readable. `TIDEWATCH_WRITE_FIXTURES=1` writes those of the current versions, once for
//! each new version or kind.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::super::*;
use super::alerts::{annotation, attempt, delivery, rule_settings, silence, webhook};
use super::boards::{board, share};
use super::objects::{Objects, assert_equal, load, saved};
use super::people::{accept, invitation};
use super::{create_source, field, id, key, with_bucket};
use crate::ids::ObjectId;

/// A catalog with at least one object of every kind, as stored in the fixtures.
pub(super) fn one_of_each() -> Catalog {
    let mut catalog = with_bucket();
    catalog.apply(&Command::ServerSecretSet {
        secret: Bytes([5; 32]),
    });
    catalog.apply(&create_source(10, "s", vec![field("a", FieldType::Number)]));
    for (number, bucket_id) in [(7, None), (8, Some(id(3)))] {
        let key = key(u64::from(number), bucket_id, [number; 32]);
        catalog.apply(&Command::KeyCreated { key });
    }
    catalog.apply(&Command::RuleCreated {
        rule: NewRule {
            id: id(20),
            source_id: id(10),
            settings: rule_settings("a above 30"),
            created_at_ns: 5,
        },
    });
    catalog.apply(&Command::WebhookCreated {
        webhook: webhook(30, id(1)),
    });
    catalog.apply(&Command::CallsCounted {
        totals: vec![(id(1), 20_758, 7)],
    });
    catalog.apply(&Command::DeliveriesQueued {
        deliveries: vec![delivery(41, Receiver::Webhook(id(30)))],
    });
    catalog.apply(&Command::AttemptMade {
        made: attempt(id(41), 1_000, AfterAttempt::Retry(77)),
    });
    catalog
}

/// Reads the file of this name; writes it first with these bytes if fixtures are to be written.
pub(super) fn file(name: &str, present: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, present).unwrap();
    }
    std::fs::read(path).unwrap()
}

#[test]
fn a_snapshot_of_version_1_is_read() {
    let expected = one_of_each();
    let bytes = file("catalog-1.bin", &expected.freeze().encode(&[1, 4]).unwrap());
    let snapshot = Catalog::decode(&bytes).unwrap();
    assert_equal(&snapshot.catalog, &expected);
    assert_eq!(snapshot.manifests, [1, 4]);
}

#[test]
fn objects_of_version_2_are_read() {
    let expected = one_of_each();
    let objects = written("objects-2.bin", &expected);
    assert_eq!(kinds(&objects), BTreeSet::from_iter(1..=11));
    assert_equal(&load(&objects).unwrap(), &expected);
}

/// Kinds that were added later under the same version: events for several webhooks.
#[test]
fn events_and_their_deliveries_are_read() {
    let mut expected = one_of_each();
    expected.apply(&Command::WebhookCreated {
        webhook: webhook(31, id(1)),
    });
    let event_id = id(50);
    let text = format!("{{\"webhookId\":\"{event_id}\"}}");
    let fan_out = FanOut {
        event: Event::BucketUpdated,
        body: Arc::new(EventBody::new(event_id, id(1), 6, text.into_bytes())),
        deliveries: vec![(id(30), id(51), id(52)), (id(31), id(53), id(54))],
    };
    expected.apply(&Command::BucketUpdated {
        bucket_id: id(3),
        name: "b".into(),
        description: None,
        retention_days: 30,
        at_ns: 6,
        next_sequence: None,
        deliveries: Vec::new(),
        fan_out: Some(fan_out),
    });
    let objects = written("objects-2-events.bin", &expected);
    assert_eq!(kinds(&objects), BTreeSet::from_iter(1..=13));
    assert_equal(&load(&objects).unwrap(), &expected);
    let missing = |kind: i64| {
        let mut objects = objects.clone();
        objects.retain(|key, _| key.place >> 56 != kind);
        load(&objects).map(drop).unwrap_err().to_string()
    };
    assert!(
        missing(12).contains(&format!("event {event_id}")),
        "{}",
        missing(12)
    );
    assert!(missing(13).contains("the body of delivery"), "{}", missing(13));
}

/// Silences, which were added later under the same version.
#[test]
fn silences_are_read() {
    let mut expected = one_of_each();
    let of_rules = Silence {
        bucket_id: Some(id(3)),
        alert_ids: Some(vec![id(20)]),
        bucket_ids: vec![id(3)],
        ..silence(61, id(1), 7)
    };
    for silence in [silence(60, id(1), 6), of_rules] {
        expected.apply(&Command::SilenceCreated { silence });
    }
    let objects = written("objects-2-silences.bin", &expected);
    assert!(kinds(&objects).contains(&14));
    assert_equal(&load(&objects).unwrap(), &expected);
}

/// Annotations, which were added later under the same version.
#[test]
fn annotations_are_read() {
    let mut expected = one_of_each();
    let mut of_source = annotation(71, id(3), 7);
    of_source.settings.source_id = Some(id(10));
    of_source.settings.until_ns = Some(9);
    for annotation in [annotation(70, id(3), 6), of_source] {
        expected.apply(&Command::AnnotationCreated { annotation });
    }
    let objects = written("objects-2-annotations.bin", &expected);
    assert!(kinds(&objects).contains(&15));
    assert_equal(&load(&objects).unwrap(), &expected);
    let mut without_sources = objects.clone();
    without_sources.retain(|key, _| ![7, 8].contains(&(key.place >> 56)));
    let refused = load(&without_sources).map(drop).unwrap_err().to_string();
    assert!(refused.contains(&format!("data source {}", id(10))), "{refused}");
}

/// Boards, which were added later under the same version.
#[test]
fn boards_are_read() {
    let mut expected = one_of_each();
    let mut between = board(81, id(1), 7);
    between.settings = BoardSettings {
        range: BoardRange::Between {
            start_ns: -5,
            end_ns: 5,
        },
        timezone: None,
        refresh_seconds: None,
        variables: Vec::new(),
        panels: Vec::new(),
        ..between.settings
    };
    for board in [board(80, id(1), 6), between] {
        expected.apply(&Command::BoardCreated { board });
    }
    expected.apply(&Command::BoardShared {
        board_id: id(80),
        share: share(82, 7, 99),
    });
    let objects = written("objects-2-boards.bin", &expected);
    assert!(kinds(&objects).contains(&16));
    assert_equal(&load(&objects).unwrap(), &expected);
    let hash = share(82, 7, 99).hash;
    let loaded = load(&objects).unwrap();
    assert_eq!(loaded.board_by_share(&hash).unwrap().0.id, id(80));
}

/// Users who are not owners, with sessions and links, and invitations, which were added later under the same version.
#[test]
fn people_are_read() {
    let mut expected = one_of_each();
    for (number, role) in [(60, Role::Viewer), (61, Role::Editor), (62, Role::Owner)] {
        let email = format!("{}@example.com", role.name());
        expected.apply(&Command::InvitationCreated {
            organization_id: id(1),
            invitation: invitation(number, &email, role),
        });
        if role != Role::Owner {
            accept(&mut expected, number, number + 10, &email, role);
        }
    }
    let mut session = UserSession::new(id(80), 5, 7, Some("192.0.2.1".into()), Some("curl".into()));
    for number in [5, 6] {
        session.number = number;
        expected.apply(&Command::SessionBegun {
            user_id: id(70),
            session: session.clone(),
        });
    }
    expected.apply(&Command::SessionsTouched {
        touches: vec![(id(70), 6, 900)],
    });
    expected.apply(&Command::ResetCreated {
        user_id: id(2),
        reset: PasswordReset {
            hash: Bytes([9; 32]),
            expires_at_ns: 10,
        },
    });
    let objects = written("objects-2-people.bin", &expected);
    assert!(kinds(&objects).contains(&18));
    assert_equal(&load(&objects).unwrap(), &expected);
}

/// The states of pending deliveries without the names of their members, which `objects-2.bin` has.
#[test]
fn states_of_deliveries_without_names_are_read() {
    let expected = one_of_each();
    let objects = written("objects-2-states.bin", &expected);
    assert_equal(&load(&objects).unwrap(), &expected);
}

/// Attempts that failed like the one before them, whose errors are stored as empty since this file.
#[test]
fn repeated_errors_of_attempts_are_read() {
    let mut expected = one_of_each();
    for (at_ns, error) in [
        (2, "refused"),
        (3, "refused"),
        (4, "refused"),
        (5, "timed out"),
        (6, "refused"),
    ] {
        let mut made = attempt(id(41), at_ns, AfterAttempt::Retry(77 + at_ns));
        (made.attempt.status_code, made.attempt.error) = (None, Some(error.into()));
        expected.apply(&Command::AttemptMade { made });
    }
    let objects = written("objects-2-attempts.bin", &expected);
    assert_equal(&load(&objects).unwrap(), &expected);
    let state = objects.iter().find(|(key, _)| key.place >> 56 == 11);
    let stored = String::from_utf8_lossy(state.unwrap().1).into_owned();
    assert_eq!(stored.matches("refused").count(), 2, "{stored:?}");
}

/// Reads the objects in the file of this name; writes them first from this catalog if fixtures are to be written.
fn written(name: &str, present: &Catalog) -> Objects {
    type File = Vec<(ObjectId, i64, ObjectId, BodyBytes)>;
    let present: File = saved(present)
        .into_iter()
        .map(|(key, content)| (key.owner, key.place, key.id, BodyBytes(content.into())))
        .collect();
    let bytes = file(name, &rmp_serde::to_vec_named(&present).unwrap());
    let found: File = rmp_serde::from_slice(&bytes).unwrap();
    found
        .into_iter()
        .map(|(owner, place, id, content)| (ObjectKey { owner, place, id }, content.0.to_vec()))
        .collect()
}

fn kinds(objects: &Objects) -> BTreeSet<i64> {
    objects.keys().map(|key| key.place >> 56).collect()
}
