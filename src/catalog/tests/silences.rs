//! Silences: which one is in force for a rule, and how they go.

use std::collections::BTreeSet;

use super::super::*;
use super::alerts::{rule_settings, silence, verdict, with_rule};
use super::{check_indexes, create_bucket, create_source, field, id};
use crate::clock::{HOUR_NS, MINUTE_NS};
use crate::ids::ObjectId;

const NOW_NS: i64 = 1_000 * HOUR_NS;

/// Rule 20 in bucket 3, and rule 21 in bucket 4.
fn with_rules() -> Catalog {
    let mut catalog = with_rule();
    catalog.apply(&create_bucket(4, "other"));
    let Command::SourceCreated { mut source } = create_source(11, "t", vec![field("a", FieldType::Number)])
    else {
        unreachable!("it creates a source")
    };
    source.bucket_id = id(4);
    catalog.apply(&Command::SourceCreated { source });
    catalog.apply(&Command::RuleCreated {
        rule: NewRule {
            id: id(21),
            source_id: id(11),
            settings: rule_settings("a above 30"),
            created_at_ns: 5,
        },
    });
    catalog
}

fn create(catalog: &mut Catalog, silence: Silence) {
    catalog.apply(&Command::SilenceCreated { silence });
}

fn about_bucket(number: u64, bucket: u64) -> Silence {
    Silence {
        bucket_id: Some(id(bucket)),
        bucket_ids: vec![id(bucket)],
        ..silence(number, id(1), NOW_NS)
    }
}

fn about_rules(number: u64, rules: &[u64], buckets: &[u64]) -> Silence {
    let ids = |numbers: &[u64]| numbers.iter().map(|number| id(*number)).collect();
    Silence {
        alert_ids: Some(ids(rules)),
        bucket_ids: ids(buckets),
        ..silence(number, id(1), NOW_NS)
    }
}

fn in_force(catalog: &Catalog, rule: u64, at_ns: i64) -> Option<ObjectId> {
    let rule = catalog.rule(id(rule)).unwrap();
    catalog.silence_of(rule, at_ns).map(|silence| silence.id)
}

fn held(catalog: &Catalog) -> BTreeSet<ObjectId> {
    catalog.silences_of(id(1)).map(|silence| silence.id).collect()
}

#[test]
fn a_silence_is_in_force_for_its_rules_from_its_creation_to_its_end() {
    for (silence, rules) in [
        (about_rules(50, &[20], &[3]), [true, false]),
        (about_rules(50, &[20, 21], &[3, 4]), [true, true]),
        (about_bucket(50, 3), [true, false]),
        (about_bucket(50, 4), [false, true]),
        (silence(50, id(1), NOW_NS), [true, true]),
        // Of another organization.
        (silence(50, id(2), NOW_NS), [false, false]),
    ] {
        let mut catalog = with_rules();
        let end_ns = silence.until_ns;
        create(&mut catalog, silence.clone());
        for at_ns in [NOW_NS, end_ns - 1] {
            let found = [20, 21].map(|rule| in_force(&catalog, rule, at_ns).is_some());
            assert_eq!(found, rules, "{silence:?} at {at_ns}");
        }
        for at_ns in [NOW_NS - 1, end_ns, end_ns + 1] {
            let found = [20, 21].map(|rule| in_force(&catalog, rule, at_ns));
            assert_eq!(found, [None, None], "{silence:?} at {at_ns}");
        }
        catalog.apply(&Command::SilenceDeleted { silence_id: id(50) });
        assert_eq!(in_force(&catalog, 20, NOW_NS), None, "{silence:?}");
        check_indexes(&catalog);
    }
}

#[test]
fn of_several_silences_any_that_is_in_force_counts() {
    let mut catalog = with_rules();
    // One that has ended and one that begins later do not hide the one between.
    let later = Silence {
        created_at_ns: NOW_NS + 3,
        until_ns: NOW_NS + HOUR_NS,
        ..about_bucket(52, 3)
    };
    let ended = Silence {
        until_ns: NOW_NS + 1,
        ..about_rules(50, &[20], &[3])
    };
    let between = Silence {
        until_ns: NOW_NS + 2,
        ..about_bucket(51, 3)
    };
    for silence in [ended, between, later] {
        create(&mut catalog, silence);
    }
    assert_eq!(in_force(&catalog, 20, NOW_NS), Some(id(50)));
    assert_eq!(in_force(&catalog, 20, NOW_NS + 1), Some(id(51)));
    assert_eq!(in_force(&catalog, 20, NOW_NS + 2), None);
    assert_eq!(in_force(&catalog, 20, NOW_NS + 3), Some(id(52)));
}

#[test]
fn new_silences_remove_a_few_that_have_ended_and_those_do_not_count() {
    let mut catalog = with_rules();
    let brief = |number| Silence {
        until_ns: NOW_NS + 1,
        ..silence(number, id(1), NOW_NS)
    };
    (100..130).for_each(|number| create(&mut catalog, brief(number)));
    assert_eq!(catalog.silence_count(id(1), NOW_NS), 30);
    let soon_ns = NOW_NS + MINUTE_NS;
    assert_eq!(
        catalog.silence_count(id(1), soon_ns),
        30,
        "what happened before their end may be decided a little later"
    );
    assert_eq!(catalog.silence_count(id(1), soon_ns + 1), 0);
    let empty = with_rules().holdings(id(1)).text_bytes;
    let each = text_bytes::of_silence("maintenance", 1);
    assert_eq!(catalog.silence_bytes_freed(id(1), soon_ns), 0);
    assert_eq!(catalog.silence_bytes_freed(id(1), soon_ns + 1), 8 * each);
    for (number, left) in [(200, 22 + 1), (201, 14 + 2), (202, 6 + 3), (203, 4), (204, 5)] {
        create(&mut catalog, silence(number, id(1), soon_ns + 1));
        assert_eq!(held(&catalog).len(), left);
    }
    check_indexes(&catalog);
    assert_eq!(
        held(&catalog),
        (200..205).map(id).collect(),
        "those in force stay"
    );
    (200..205).for_each(|number| {
        catalog.apply(&Command::SilenceDeleted {
            silence_id: id(number),
        })
    });
    assert_eq!(catalog.holdings(id(1)).text_bytes, empty);
    assert!(catalog.silences.is_empty(), "no index keeps what is gone");
}

#[test]
fn silences_go_with_the_last_of_their_buckets() {
    let mut catalog = with_rules();
    create(&mut catalog, about_bucket(50, 3));
    create(&mut catalog, about_rules(51, &[20, 21], &[3, 4]));
    create(&mut catalog, silence(52, id(1), NOW_NS));
    catalog.apply(&Command::RuleDeleted { rule_id: id(20) });
    assert_eq!(held(&catalog).len(), 3, "a silence stays when its rule goes");
    catalog.apply(&Command::BucketDeleted { bucket_id: id(3) });
    assert_eq!(held(&catalog), [id(51), id(52)].into());
    assert_eq!(in_force(&catalog, 21, NOW_NS), Some(id(51)));
    catalog.apply(&Command::BucketDeleted { bucket_id: id(4) });
    assert_eq!(held(&catalog), [id(52)].into());
    check_indexes(&catalog);
}

#[test]
fn the_trigger_in_the_history_names_the_silence() {
    let mut catalog = with_rules();
    let muted = Verdict {
        silence_id: Some(id(50)),
        ..verdict(60, id(20), NOW_NS)
    };
    for verdict in [muted, verdict(61, id(20), NOW_NS + 1)] {
        let command = Command::VerdictRecorded { verdict };
        catalog.apply(&Command::decode(&command.encode().unwrap()).unwrap());
    }
    let entries = catalog.ledger().of(Stream::History, id(20)).into_iter();
    let entries = entries.map(|(_, entry)| HistoryEntry::decode(&entry.payload.to_vec()).unwrap());
    let silences: Vec<_> = entries.map(|it| (it.kind, it.silence_id)).collect();
    let (verdict, trigger) = (HistoryKind::Verdict, HistoryKind::Trigger);
    assert_eq!(
        silences,
        [
            (verdict, None),
            (trigger, Some(id(50))),
            (verdict, None),
            (trigger, None)
        ]
    );
}
