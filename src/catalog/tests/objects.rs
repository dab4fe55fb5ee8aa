//! The objects that a checkpoint writes, and that they load as the same catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::super::*;
use super::alerts::{attempt, delivery, webhook};
use super::commands::CommandGenerator;
use super::{check_indexes, create_bucket, create_source, field, id, with_bucket};

/// The objects in the runs after all checkpoints: the newest version of each that has not been removed.
pub(super) type Objects = BTreeMap<ObjectKey, Vec<u8>>;

pub(super) fn changes(now: &Frozen, saved: &Frozen) -> Vec<Change> {
    let changes = now.changes_since(saved);
    let expected = changes.len();
    let changes: Vec<Change> = changes.map(|change| change.unwrap()).collect();
    assert_eq!(changes.len(), expected);
    assert!(
        changes.is_sorted_by(|a, b| a.key < b.key),
        "in order, each key once"
    );
    changes
}

pub(super) fn all(catalog: &Catalog) -> Vec<Change> {
    changes(&catalog.freeze(), &Frozen::default())
}

pub(super) fn saved(catalog: &Catalog) -> Objects {
    let all = all(catalog).into_iter();
    all.map(|change| (change.key, change.content.unwrap())).collect()
}

fn save(objects: &mut Objects, changes: Vec<Change>) {
    for Change { key, content } in changes {
        match content {
            Some(content) => {
                let before = objects.insert(key, content.clone());
                assert!(before != Some(content), "{key} did not change");
            }
            None => assert!(objects.remove(&key).is_some(), "{key} was never there"),
        }
    }
}

pub(super) fn load(objects: &Objects) -> Result<Catalog, SnapshotError> {
    let mut loader = CatalogLoader::default();
    for (key, content) in objects {
        loader.push(key, content)?;
    }
    loader.finish()
}

/// All ordered lists of the catalog.
fn lists(catalog: &Catalog) -> String {
    let mut lists = String::new();
    let mut list = |ids: &mut dyn Iterator<Item = String>| {
        writeln!(lists, "{}", ids.collect::<Vec<_>>().join(" ")).unwrap();
    };
    list(&mut catalog.organizations().map(|it| it.id.to_string()));
    let mut owners = Vec::new();
    for organization in catalog.organizations() {
        let id = organization.id;
        list(&mut catalog.keys_of(id).map(|it| it.id.to_string()));
        list(&mut catalog.buckets_of(id).map(|it| it.id.to_string()));
        list(&mut catalog.webhooks_of(id).map(|it| it.id.to_string()));
        list(&mut catalog.silences_of(id).map(|it| it.id.to_string()));
        list(&mut catalog.boards_of(id).map(|it| it.id.to_string()));
        list(&mut catalog.members_of(id).map(|it| it.id.to_string()));
        owners.extend(catalog.webhooks_of(id).map(|it| it.id));
        for bucket in catalog.buckets_of(id) {
            list(&mut catalog.keys_of(bucket.id).map(|it| it.id.to_string()));
            list(&mut catalog.sources_of(bucket.id).map(|it| it.id.to_string()));
            list(&mut catalog.rules_of(bucket.id).map(|it| it.id.to_string()));
            list(&mut catalog.annotations_of(bucket.id).map(|(_, it)| it.id.to_string()));
            owners.extend(catalog.rules_of(bucket.id).map(|it| it.id));
        }
    }
    for owner in owners {
        list(&mut catalog.pending_deliveries_of(owner).map(|it| it.id.to_string()));
    }
    lists
}

pub(super) fn assert_equal(loaded: &Catalog, catalog: &Catalog) {
    check_indexes(loaded);
    let encoded = |catalog: &Catalog| catalog.freeze().encode(&[]).unwrap();
    assert!(encoded(loaded) == encoded(catalog));
    assert_eq!(lists(loaded), lists(catalog));
    assert_eq!(all(loaded), all(catalog), "equal catalogs give equal bytes");
    assert_eq!(
        changes(&loaded.freeze(), &catalog.freeze()),
        [],
        "equal objects behind different pointers are not a change"
    );
}

/// Every command has a name here, and the generator of commands must produce each.
fn name(command: &Command) -> &'static str {
    match command {
        Command::ServerSecretSet { .. } => "ServerSecretSet",
        Command::BucketOrdinalsBegun { .. } => "BucketOrdinalsBegun",
        Command::SignedUp { .. } => "SignedUp",
        Command::PasswordChanged { .. } => "PasswordChanged",
        Command::SessionBegun { .. } => "SessionBegun",
        Command::SessionsTouched { .. } => "SessionsTouched",
        Command::SessionEnded { .. } => "SessionEnded",
        Command::InvitationCreated { .. } => "InvitationCreated",
        Command::InvitationDeleted { .. } => "InvitationDeleted",
        Command::InvitationAccepted { .. } => "InvitationAccepted",
        Command::MemberRoleChanged { .. } => "MemberRoleChanged",
        Command::MemberRemoved { .. } => "MemberRemoved",
        Command::ResetCreated { .. } => "ResetCreated",
        Command::OrganizationRenamed { .. } => "OrganizationRenamed",
        Command::PlanChanged { .. } => "PlanChanged",
        Command::CallsCounted { .. } => "CallsCounted",
        Command::KeyCreated { .. } => "KeyCreated",
        Command::KeyRotated { .. } => "KeyRotated",
        Command::KeyCallsCounted { .. } => "KeyCallsCounted",
        Command::KeyDeleted { .. } => "KeyDeleted",
        Command::KeysTouched { .. } => "KeysTouched",
        Command::BucketCreated { .. } => "BucketCreated",
        Command::BucketUpdated { .. } => "BucketUpdated",
        Command::BucketDeleted { .. } => "BucketDeleted",
        Command::SourceCreated { .. } => "SourceCreated",
        Command::SourceUpdated { .. } => "SourceUpdated",
        Command::SchemaExtended { .. } => "SchemaExtended",
        Command::MetricTyped { .. } => "MetricTyped",
        Command::FreshnessChanged { .. } => "FreshnessChanged",
        Command::SourceDeleted { .. } => "SourceDeleted",
        Command::RuleCreated { .. } => "RuleCreated",
        Command::RuleUpdated { .. } => "RuleUpdated",
        Command::RuleAcknowledged { .. } => "RuleAcknowledged",
        Command::RuleDeleted { .. } => "RuleDeleted",
        Command::VerdictRecorded { .. } => "VerdictRecorded",
        Command::RuleResolved { .. } => "RuleResolved",
        Command::RuleOverdue { .. } => "RuleOverdue",
        Command::WebhookCreated { .. } => "WebhookCreated",
        Command::WebhookUpdated { .. } => "WebhookUpdated",
        Command::WebhookDeleted { .. } => "WebhookDeleted",
        Command::SilenceCreated { .. } => "SilenceCreated",
        Command::SilenceDeleted { .. } => "SilenceDeleted",
        Command::AnnotationCreated { .. } => "AnnotationCreated",
        Command::AnnotationUpdated { .. } => "AnnotationUpdated",
        Command::AnnotationDeleted { .. } => "AnnotationDeleted",
        Command::BoardCreated { .. } => "BoardCreated",
        Command::BoardUpdated { .. } => "BoardUpdated",
        Command::BoardDeleted { .. } => "BoardDeleted",
        Command::BoardShared { .. } => "BoardShared",
        Command::BoardUnshared { .. } => "BoardUnshared",
        Command::DeliveriesQueued { .. } => "DeliveriesQueued",
        Command::AttemptMade { .. } => "AttemptMade",
        Command::DeliveriesCounted { .. } => "DeliveriesCounted",
        Command::Audited { .. } => "Audited",
        Command::PointsDeleted { .. } => "PointsDeleted",
    }
}

const COMMANDS: usize = 55;

#[test]
fn incremental_checkpoints_load_as_the_same_catalog() {
    let (mut names, mut gone) = (BTreeSet::new(), 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut generator = CommandGenerator::recent(seed);
        // Several pages of sources in some of the runs.
        let mut commands = if seed % 8 == 0 {
            generator.bucket_of_many_sources(2_500)
        } else {
            Vec::new()
        };
        commands.extend((0..500).map(|_| generator.next()));
        // One catalog is never restarted, the other one is restarted occasionally.
        let (mut whole, mut catalog) = (Catalog::default(), Catalog::default());
        let (mut objects, mut last) = (Objects::new(), Frozen::default());
        let mut last_encoded = last.encode(&[]).unwrap();
        for command in &commands {
            names.insert(name(command));
            whole.apply(command);
            catalog.apply(command);
            if random.u8(0..20) > 0 {
                continue;
            }
            assert!(
                last.encode(&[]).unwrap() == last_encoded,
                "what was frozen changed"
            );
            let frozen = catalog.freeze();
            let changes = changes(&frozen, &last);
            gone += changes.iter().filter(|it| it.content.is_none()).count();
            save(&mut objects, changes);
            last_encoded = frozen.encode(&[]).unwrap();
            last = frozen;
            if random.u8(0..4) == 0 {
                catalog = load(&objects).unwrap();
                assert_equal(&catalog, &whole);
                last = catalog.freeze();
            }
        }
        save(&mut objects, changes(&catalog.freeze(), &last));
        assert_equal(&load(&objects).unwrap(), &whole);
        let expected: Vec<_> = all(&whole)
            .into_iter()
            .map(|it| (it.key, it.content.unwrap()))
            .collect();
        assert!(objects.into_iter().eq(expected), "no object remains");
    }
    assert_eq!(names.len(), COMMANDS, "{names:?}");
    assert!(gone > 100, "{gone}");
}

#[test]
fn a_snapshot_of_an_older_format_is_converted() {
    let mut generator = CommandGenerator::new(7);
    let mut catalog = Catalog::default();
    (0..600).for_each(|_| catalog.apply(&generator.next()));
    let old = Catalog::decode(&catalog.freeze().encode(&[1, 2]).unwrap()).unwrap();
    assert_eq!(old.manifests, [1, 2]);
    let loaded = load(&saved(&old.catalog)).unwrap();
    assert!(loaded.freeze().encode(&[]).unwrap() == catalog.freeze().encode(&[]).unwrap());
    assert_eq!(lists(&loaded), lists(&catalog));
}

/// Creates a key of the test's bucket.
fn key(number: u64) -> Command {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    let key = super::key(number, Some(id(3)), hash);
    Command::KeyCreated { key }
}

/// The changes made by the commands, as names.
fn changed(catalog: &mut Catalog, commands: &[Command]) -> Vec<(String, Option<usize>)> {
    let before = catalog.freeze();
    commands.iter().for_each(|command| catalog.apply(command));
    changes(&catalog.freeze(), &before)
        .into_iter()
        .map(|it| (it.key.to_string(), it.content.map(|content| content.len())))
        .collect()
}

fn names(changed: &[(String, Option<usize>)]) -> Vec<&str> {
    changed.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn an_unchanged_catalog_writes_nothing() {
    let mut generator = CommandGenerator::new(3);
    let mut catalog = Catalog::default();
    assert_eq!(changed(&mut catalog, &[]), []);
    (0..500).for_each(|_| catalog.apply(&generator.next()));
    assert_eq!(changed(&mut catalog, &[]), []);
    // A source created and deleted advances the next ordinal of its bucket and leaves the page unchanged.
    let mut catalog = with_bucket();
    catalog.apply(&create_source(10, "s", vec![field("a", FieldType::Number)]));
    let came_and_went = [
        create_source(11, "t", vec![field("a", FieldType::Number)]),
        Command::SourceDeleted { source_id: id(11) },
    ];
    let changed = changed(&mut catalog, &came_and_went);
    assert_eq!(names(&changed), [format!("bucket {}", id(3))]);
}

#[test]
fn using_one_of_ten_thousand_keys_is_one_change() {
    let mut catalog = with_bucket();
    (100..10_100).for_each(|number| catalog.apply(&key(number)));
    let used = Command::KeysTouched {
        touches: vec![(id(777), 50)],
    };
    let written = changed(&mut catalog, &[used]);
    assert_eq!(names(&written), [format!("key {}", id(777))]);
    // Requests change it ahead of the log, while a checkpoint holds the key.
    let before = catalog.freeze();
    catalog.keys_of(id(3)).next().unwrap().touch(51);
    let first = changes(&catalog.freeze(), &before);
    assert_eq!(first.len(), 1);
    assert_eq!(first, changes(&catalog.freeze(), &before));
}

#[test]
fn counting_calls_does_not_rewrite_the_organization() {
    let mut catalog = with_bucket();
    catalog.apply(&create_bucket(4, "c"));
    let count = |calls| Command::CallsCounted {
        totals: vec![(id(1), 20_758, calls)],
    };
    let calls = format!("the calls of organization {}", id(1));
    for total in [1, 2] {
        assert_eq!(names(&changed(&mut catalog, &[count(total)])), [&calls]);
    }
    assert_eq!(
        changed(&mut catalog, &[count(1)]),
        [],
        "a total never lowers the count"
    );
    let before = catalog.freeze();
    let (_, counts) = catalog.organization_with_calls(id(1)).unwrap();
    counts.count(20_758, None).unwrap();
    let counted = changes(&catalog.freeze(), &before);
    assert_eq!(counted.len(), 1, "calls that the log does not have yet");
}

#[test]
fn an_attempt_does_not_write_the_body_again() {
    let mut catalog = with_bucket();
    catalog.apply(&Command::WebhookCreated {
        webhook: webhook(30, id(1)),
    });
    let large = Delivery {
        body: Body::whole(vec![b'x'; 1 << 20]),
        ..delivery(41, Receiver::Webhook(id(30)))
    };
    let queued = Command::DeliveriesQueued {
        deliveries: vec![large],
    };
    let written = changed(&mut catalog, &[queued]);
    let webhook = format!("webhook {}", id(30));
    let body = format!("the body of delivery {}", id(41));
    let state = format!("the state of delivery {}", id(41));
    assert_eq!(names(&written), [&webhook, &body, &state]);
    assert!(written[1].1.unwrap() > 1 << 20);
    let attempt = |then| Command::AttemptMade {
        made: attempt(id(41), 1_000, then),
    };
    let written = changed(&mut catalog, &[attempt(AfterAttempt::Retry(77))]);
    assert_eq!(names(&written), [&state]);
    assert!(written[0].1.unwrap() < 1 << 10, "{written:?}");
    let written = changed(&mut catalog, &[attempt(AfterAttempt::Delivered)]);
    assert_eq!(names(&written), [&webhook, &body, &state]);
    assert_eq!((written[1].1, written[2].1), (None, None), "both are gone");
}

#[test]
fn one_new_source_among_a_hundred_thousand_writes_one_page() {
    let mut catalog = with_bucket();
    let create = |number| create_source(number, &format!("s{number}"), vec![field("a", FieldType::Number)]);
    (100..100_100).for_each(|number| catalog.apply(&create(number)));
    assert_eq!(all(&catalog).len(), 4 + 100_000_usize.div_ceil(1_024));
    let bucket = format!("bucket {}", id(3));
    let page = |number| format!("page {number} of the data sources of bucket {}", id(3));
    let written = changed(&mut catalog, &[create(200_000)]);
    assert_eq!(names(&written), [&bucket, &page(100_000 / 1_024)]);
    assert!(written[1].1.unwrap() < 512 << 10, "{written:?}");
    let written = changed(
        &mut catalog,
        &[Command::SourceDeleted {
            source_id: id(100 + 5_000),
        }],
    );
    assert_eq!(names(&written), [&page(5_000 / 1_024)]);
    let all_of_a_page: Vec<_> = (100 + 1_024..100 + 2_048)
        .map(|number| Command::SourceDeleted {
            source_id: id(number),
        })
        .collect();
    assert_eq!(
        changed(&mut catalog, &all_of_a_page),
        [(page(1), None)],
        "an empty page is gone"
    );
    assert_equal(&load(&saved(&catalog)).unwrap(), &catalog);
}

#[test]
fn a_deleted_bucket_removes_its_objects() {
    let mut catalog = with_bucket();
    catalog.apply(&create_bucket(4, "kept"));
    let expected: BTreeSet<_> = saved(&catalog).into_keys().collect();
    (100..200).for_each(|number| catalog.apply(&key(number)));
    catalog.apply(&create_source(10, "s", vec![field("a", FieldType::Number)]));
    let mut objects = saved(&catalog);
    let before = catalog.freeze();
    catalog.apply(&Command::BucketDeleted { bucket_id: id(3) });
    save(&mut objects, changes(&catalog.freeze(), &before));
    let left: BTreeSet<_> = objects.into_keys().collect();
    assert_eq!(expected.difference(&left).count(), 1, "the bucket");
    assert!(left.is_subset(&expected));
}
