//! The catalog as a state machine: a snapshot and later commands give the same state as all commands.

mod alerts;
mod annotations;
mod audit;
mod boards;
mod calls;
mod commands;
mod fan_out;
mod fixture;
mod holdings;
mod loading;
mod objects;
mod people;
mod silences;
mod written;

use std::sync::Arc;

use commands::CommandGenerator;

use super::*;
use crate::clock::DAY_NS;
use crate::ids::ObjectId;
use crate::limits::SCHEMA_FIELDS_MAX;

fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn field(name: &str, kind: FieldType) -> Field {
    Field {
        name: name.into(),
        kind,
        unit: None,
        description: None,
    }
}

fn settings(name: &str, fields: Vec<Field>) -> SourceSettings {
    SourceSettings {
        name: name.into(),
        kind: "sensor".into(),
        description: None,
        fields,
        schema_mode: SchemaMode::Strict,
        downsampling: true,
        status: SourceStatus::Active,
        dimensions: None,
        duplicates: Default::default(),
        expected_interval_seconds: None,
    }
}

fn password(byte: u8) -> PasswordHash {
    PasswordHash {
        memory_kib: 1,
        passes: 1,
        lanes: 1,
        salt: Bytes([byte; 16]),
        hash: Bytes([byte; 32]),
    }
}

/// A key of the test's organization, or of a bucket.
fn key(id_of_key: u64, bucket_id: Option<ObjectId>, hash: [u8; 32]) -> Key {
    Key {
        id: id(id_of_key),
        organization_id: id(1),
        bucket_id,
        kind: KeyType::Read,
        name: "k".into(),
        hash: Bytes(hash),
        shown_prefix: "svc".into(),
        created_at_ns: 0,
        expires_at_ns: None,
        former: None,
        last_used_minute: LastUse::default(),
        calls: KeyCalls::default(),
    }
}

#[test]
fn a_key_accepts_its_values_until_their_ends() {
    let mut catalog = with_bucket();
    let with_end = Key {
        expires_at_ns: Some(1_000),
        ..key(7, None, [1; 32])
    };
    catalog.apply(&Command::KeyCreated { key: with_end });
    let works = |catalog: &Catalog, value: u8, now_ns: i64| {
        let hash = Bytes([value; 32]);
        let key = catalog.key_by_hash(&hash.0);
        key.is_some_and(|key| key.accepts(&hash, now_ns))
    };
    assert!(
        works(&catalog, 1, 999) && !works(&catalog, 1, 1_000),
        "it has expired"
    );
    let rotate = |catalog: &mut Catalog, value: u8, former_until_ns| {
        catalog.apply(&Command::KeyRotated {
            key_id: id(7),
            hash: Bytes([value; 32]),
            shown_prefix: "new".into(),
            former_until_ns,
        });
    };
    catalog.key(id(7)).unwrap().calls.count(20_000);
    rotate(&mut catalog, 2, Some(500));
    assert!(
        works(&catalog, 1, 499) && !works(&catalog, 1, 500),
        "the former value has ended"
    );
    assert!(works(&catalog, 2, 999) && !works(&catalog, 2, 1_000));
    assert_eq!(
        catalog.key(id(7)).unwrap().calls.in_month(20_000),
        1,
        "counts stay"
    );
    rotate(&mut catalog, 3, Some(900));
    assert!(!works(&catalog, 1, 0), "one former value at most");
    assert!(works(&catalog, 2, 0) && works(&catalog, 3, 0));
    rotate(&mut catalog, 4, None);
    assert_eq!(
        [1, 2, 3, 4].map(|value| works(&catalog, value, 0)),
        [false, false, false, true]
    );
    rotate(&mut catalog, 5, Some(900));
    catalog.apply(&Command::KeyDeleted { key_id: id(7) });
    assert!(catalog.key_by_hash.is_empty(), "deletion ends all");
}

/// Asserts that every index agrees with the resources.
fn check_indexes(catalog: &Catalog) {
    let mut sources = 0;
    for bucket in catalog.buckets() {
        assert_eq!(catalog.bucket_by_ordinal(bucket.ordinal).unwrap(), bucket);
        assert_eq!(
            catalog
                .bucket_by_name(bucket.organization_id, &bucket.name)
                .unwrap(),
            bucket
        );
        assert!(
            catalog
                .buckets_of(bucket.organization_id)
                .any(|it| Arc::ptr_eq(it, bucket))
        );
        let mut last = None;
        for source in catalog.sources_of(bucket.id) {
            assert!(last < Some(source.ordinal));
            last = Some(source.ordinal);
            sources += 1;
            assert!(Arc::ptr_eq(catalog.source(source.id).unwrap(), source));
            assert!(Arc::ptr_eq(
                catalog.source_by_ordinal(bucket.id, source.ordinal).unwrap(),
                source
            ));
            assert!(Arc::ptr_eq(
                catalog.source_by_name(bucket.id, &source.name).unwrap(),
                source
            ));
        }
        for key in catalog.keys_of(bucket.id) {
            assert!(Arc::ptr_eq(catalog.key_by_hash(&key.hash.0).unwrap(), key));
        }
    }
    assert_eq!(
        catalog.source_total(),
        sources,
        "the index by id holds sources that no bucket has"
    );
    people::check_indexes(catalog);
    catalog.organizations().for_each(|it| {
        assert_eq!(
            catalog.holdings(it.id),
            holdings::counted(catalog, it.id),
            "{}",
            it.id
        );
        assert_eq!(
            catalog.owed(it.id),
            holdings::counted_owed(catalog, it.id),
            "{}",
            it.id
        );
    });
}

#[test]
fn a_snapshot_and_later_commands_equal_all_commands() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut generator = CommandGenerator::new(seed);
        let commands: Vec<Command> = (0..400).map(|_| generator.next()).collect();
        let mut whole = Catalog::default();
        commands.iter().for_each(|command| whole.apply(command));
        check_indexes(&whole);
        let expected = whole.freeze().encode(&[]).unwrap();
        for cut in [0, 1, 57, 200, 399, 400] {
            let mut early = Catalog::default();
            commands[..cut].iter().for_each(|command| early.apply(command));
            let mut restored = Catalog::decode(&early.freeze().encode(&[]).unwrap())
                .unwrap()
                .catalog;
            for command in &commands[cut..] {
                restored.apply(&Command::decode(&command.encode().unwrap()).unwrap());
            }
            check_indexes(&restored);
            assert!(
                restored.freeze().encode(&[]).unwrap() == expected,
                "seed {seed}, cut {cut}"
            );
        }
    }
}

fn with_bucket() -> Catalog {
    let mut catalog = Catalog::default();
    let organization = Organization {
        id: id(1),
        name: "o".into(),
        plan: Plan::Free,
        invitations: Vec::new(),
        created_at_ns: 0,
        updated_at_ns: 0,
    };
    let user = User::new(id(2), id(1), "a@example.com", "a", password(0), 0);
    catalog.apply(&Command::SignedUp { organization, user });
    catalog.apply(&create_bucket(3, "b"));
    catalog
}

fn create_bucket(number: u64, name: &str) -> Command {
    Command::BucketCreated {
        bucket: NewBucket {
            id: id(number),
            organization_id: id(1),
            name: name.into(),
            description: None,
            retention_days: 30,
            created_at_ns: 0,
        },
    }
}

fn create_source(number: u64, name: &str, fields: Vec<Field>) -> Command {
    let settings = settings(name, fields);
    Command::SourceCreated {
        source: NewSource {
            id: id(number),
            bucket_id: id(3),
            settings,
            metric_type: None,
            created_at_ns: 0,
        },
    }
}

#[test]
fn ordinals_are_never_reused_even_after_a_restart() {
    let mut catalog = with_bucket();
    catalog.apply(&create_source(10, "s", vec![field("a", FieldType::Number)]));
    catalog.apply(&Command::SourceDeleted { source_id: id(10) });
    catalog.apply(&create_bucket(4, "gone"));
    catalog.apply(&Command::BucketDeleted { bucket_id: id(4) });
    let mut catalog = Catalog::decode(&catalog.freeze().encode(&[]).unwrap())
        .unwrap()
        .catalog;
    catalog.apply(&create_source(11, "s", vec![field("a", FieldType::Number)]));
    catalog.apply(&create_bucket(5, "next"));
    assert_eq!(catalog.source(id(11)).unwrap().ordinal, 1);
    assert_eq!(catalog.bucket(id(5)).unwrap().ordinal, 3);
}

#[test]
fn points_expired_by_shorter_retention_stay_expired() {
    let mut catalog = with_bucket();
    let change = |days, day: i64| Command::BucketUpdated {
        bucket_id: id(3),
        name: "b".into(),
        description: None,
        retention_days: days,
        at_ns: day * DAY_NS,
        next_sequence: None,
        deliveries: Vec::new(),
        fan_out: None,
    };
    let cutoff_days = |catalog: &Catalog, day: i64| {
        catalog
            .bucket(id(3))
            .unwrap()
            .retention_cutoff_ns(day * DAY_NS)
            .div_euclid(DAY_NS)
    };
    assert_eq!(cutoff_days(&catalog, 100), 70);
    catalog.apply(&change(10, 100));
    assert_eq!(cutoff_days(&catalog, 100), 90);
    catalog.apply(&change(30, 105));
    assert_eq!(cutoff_days(&catalog, 105), 95);
    assert_eq!(cutoff_days(&catalog, 200), 170);
    catalog.apply(&change(1_000_000, 200));
    assert_eq!(cutoff_days(&catalog, 200), 170);
}

/// Regression: without a logged sequence, a change of retention hid everything older than the old retention,
/// including points that arrived later, and ingest refused them.
#[test]
fn growing_retention_revives_no_points_and_admits_later_ones() {
    let mut catalog = with_bucket();
    let change = |days, day: i64, next_sequence| Command::BucketUpdated {
        bucket_id: id(3),
        name: "b".into(),
        description: None,
        retention_days: days,
        at_ns: day * DAY_NS,
        next_sequence: Some(next_sequence),
        deliveries: Vec::new(),
        fan_out: None,
    };
    let cutoffs_at = |catalog: &Catalog, day: i64| {
        let bucket = catalog.bucket(id(3)).unwrap();
        let expired = bucket.expired_at(day * DAY_NS);
        let expired: Vec<_> = expired
            .map(|it| (it.before_ns.div_euclid(DAY_NS), it.before_sequence))
            .collect();
        (
            bucket.retention_cutoff_ns(day * DAY_NS).div_euclid(DAY_NS),
            expired,
        )
    };
    assert_eq!(cutoffs_at(&catalog, 100), (70, vec![]));
    catalog.apply(&change(10, 100, 5));
    assert_eq!(
        cutoffs_at(&catalog, 100),
        (90, vec![]),
        "a shorter retention hides more than that"
    );
    catalog.apply(&change(30, 105, 8));
    assert_eq!(cutoffs_at(&catalog, 105), (75, vec![(95, 8)]));
    assert_eq!(cutoffs_at(&catalog, 120), (90, vec![(95, 8)]));
    assert_eq!(
        cutoffs_at(&catalog, 125),
        (95, vec![]),
        "the retention has caught up"
    );
    catalog.apply(&change(40, 106, 9));
    assert_eq!(cutoffs_at(&catalog, 106), (66, vec![(95, 8), (76, 9)]));
    let catalog = Catalog::decode(&catalog.freeze().encode(&[]).unwrap())
        .unwrap()
        .catalog;
    assert_eq!(
        cutoffs_at(&catalog, 106),
        (66, vec![(95, 8), (76, 9)]),
        "across a snapshot"
    );
}

#[test]
fn the_remembered_retention_changes_are_bounded() {
    let mut catalog = with_bucket();
    for step in 0..600 {
        catalog.apply(&Command::BucketUpdated {
            bucket_id: id(3),
            name: "b".into(),
            description: None,
            retention_days: 31 + step,
            at_ns: 1_000 * DAY_NS,
            next_sequence: Some(u64::from(step)),
            deliveries: Vec::new(),
            fan_out: None,
        });
    }
    let expired = catalog.bucket(id(3)).unwrap().expired_at(1_000 * DAY_NS).count();
    assert!((1..=256).contains(&expired), "{expired}");
}

#[test]
fn schemas_are_shared_and_keep_their_ordinals_when_extended() {
    let mut catalog = with_bucket();
    let first = vec![field("a", FieldType::Number), field("b", FieldType::String)];
    catalog.apply(&create_source(10, "s", first.clone()));
    catalog.apply(&create_source(11, "t", first));
    let schema = |catalog: &Catalog, number| Arc::clone(&catalog.source(id(number)).unwrap().schema);
    assert!(Arc::ptr_eq(&schema(&catalog, 10), &schema(&catalog, 11)));
    let patched = vec![
        field("c", FieldType::Boolean),
        field("b", FieldType::String),
        Field {
            unit: Some("m".into()),
            ..field("a", FieldType::Number)
        },
    ];
    catalog.apply(&Command::SourceUpdated {
        source_id: id(10),
        settings: settings("s", patched),
        at_ns: 1,
    });
    let grown = schema(&catalog, 10);
    let names: Vec<_> = grown.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(grown.fields[0].unit.as_deref(), Some("m"));
    let added = (0..SCHEMA_FIELDS_MAX)
        .map(|n| field(&format!("x{n}"), FieldType::Number))
        .collect();
    catalog.apply(&Command::SchemaExtended {
        source_id: id(10),
        fields: added,
        at_ns: 2,
    });
    let full = schema(&catalog, 10);
    assert_eq!(full.fields.len(), SCHEMA_FIELDS_MAX);
    for (ordinal, field) in full.fields.iter().enumerate() {
        assert_eq!(full.field(&field.name), Some(ordinal as u16));
    }
    assert_eq!(full.field("absent"), None);
}

#[test]
fn unused_schemas_are_dropped() {
    let mut catalog = with_bucket();
    for round in 0..1_000 {
        catalog.apply(&create_source(
            10 + round,
            "s",
            vec![field(&format!("f{round}"), FieldType::Number)],
        ));
        catalog.apply(&Command::SourceDeleted {
            source_id: id(10 + round),
        });
    }
    assert!(catalog.schemas.len() < 100);
}

#[test]
fn unknown_members_are_ignored_and_missing_ones_get_defaults() {
    #[derive(serde::Serialize)]
    enum Command2 {
        KeyDeleted { key_id: ObjectId, reason: &'static str },
    }
    let newer = rmp_serde::to_vec_named(&Command2::KeyDeleted {
        key_id: id(7),
        reason: "lost",
    })
    .unwrap();
    assert!(matches!(Command::decode(&newer).unwrap(), Command::KeyDeleted { key_id } if key_id == id(7)));
    #[derive(serde::Serialize)]
    struct Image2 {
        version: u32,
        surprises: Vec<u32>,
    }
    let newer = rmp_serde::to_vec_named(&Image2 {
        version: 1,
        surprises: vec![1],
    })
    .unwrap();
    assert_eq!(Catalog::decode(&newer).unwrap().catalog.organizations().len(), 0);
    let newest = rmp_serde::to_vec_named(&Image2 {
        version: 2,
        surprises: vec![],
    })
    .unwrap();
    assert!(matches!(
        Catalog::decode(&newest),
        Err(SnapshotError::UnknownVersion { found: 2, known: 1 })
    ));
    assert!(matches!(
        Catalog::decode(b"junk"),
        Err(SnapshotError::Malformed(_))
    ));
}

#[test]
fn a_new_password_raises_the_version_and_last_used_never_decreases() {
    let mut catalog = with_bucket();
    catalog.apply(&Command::PasswordChanged {
        user_id: id(2),
        password: password(9),
        session: None,
    });
    let user = catalog.user_by_email("a@example.com").unwrap();
    assert_eq!((user.password_version, user.password.clone()), (1, password(9)));
    catalog.apply(&Command::KeyCreated {
        key: key(9, None, [1; 32]),
    });
    catalog.apply(&Command::KeysTouched {
        touches: vec![(id(9), 50), (id(9), 40), (id(77), 1)],
    });
    let last = catalog.key_by_hash(&[1; 32]).unwrap().last_used_at_ns();
    assert_eq!(last, Some(50 * crate::clock::MINUTE_NS));
}
