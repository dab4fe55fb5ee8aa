//! Inconsistent sets of objects: each is refused with an error that names the fault.

use super::super::*;
use super::fixture::one_of_each;
use super::objects::{Objects, load, saved};
use super::{create_source, field, id, key, with_bucket};
use crate::ids::ObjectId;

/// The key of the only object of this name.
fn key_of(objects: &Objects, name: &str) -> ObjectKey {
    *objects
        .keys()
        .find(|key| key.to_string() == name)
        .unwrap_or_else(|| panic!("{name} among {objects:?}"))
}

fn refusal(objects: &Objects) -> String {
    match load(objects) {
        Ok(_) => "loaded".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_missing_object_is_reported_with_the_object_that_needs_it() {
    let whole = saved(&one_of_each());
    assert_eq!(refusal(&whole), "loaded");
    let (one, three) = (id(1), id(3));
    let missing =
        |what: String, needed_by: String| format!("catalog: {what} is missing, which {needed_by} needs");
    let page = format!("page 0 of the data sources of bucket {three}");
    let cases = [
        ("the root".to_owned(), "catalog: the root is missing".to_owned()),
        (
            format!("organization {one}"),
            missing(
                format!("organization {one}"),
                format!("the calls of organization {one}"),
            ),
        ),
        (
            format!("bucket {three}"),
            missing(format!("bucket {three}"), format!("key {}", id(8))),
        ),
        (
            page.clone(),
            missing(
                format!("data source {}", id(10)),
                format!("alert rule {}", id(20)),
            ),
        ),
        (
            format!("the body of delivery {}", id(41)),
            missing(
                format!("the body of delivery {}", id(41)),
                format!("the state of delivery {}", id(41)),
            ),
        ),
        (
            format!("the state of delivery {}", id(41)),
            missing(
                format!("the state of delivery {}", id(41)),
                format!("the body of delivery {}", id(41)),
            ),
        ),
    ];
    for (lost, expected) in cases {
        let mut objects = whole.clone();
        objects.remove(&key_of(&whole, &lost));
        assert_eq!(refusal(&objects), expected);
    }
    let mut objects = whole.clone();
    objects.retain(|key, _| {
        !key.to_string().starts_with("key ") && *key != key_of(&whole, &format!("bucket {three}"))
    });
    assert_eq!(refusal(&objects), missing(format!("bucket {three}"), page));
    assert!(matches!(load(&Objects::new()), Err(SnapshotError::NoRoot)));
}

#[test]
fn a_delivery_does_not_need_its_receiver() {
    let mut objects = saved(&one_of_each());
    objects.retain(|key, _| !key.to_string().starts_with("webhook "));
    assert_eq!(load(&objects).unwrap().pending_deliveries_of(id(30)).count(), 1);
}

#[test]
fn damaged_content_is_refused_by_object_name() {
    let whole = saved(&one_of_each());
    for (key, content) in &whole {
        for damaged in [&content[..content.len() - 1], b"", b"\xc1junk", b"\x80"] {
            let mut objects = whole.clone();
            objects.insert(*key, damaged.to_vec());
            let refusal = refusal(&objects);
            assert!(
                refusal.starts_with(&format!("catalog: {key} is malformed: ")),
                "{refusal}"
            );
        }
    }
}

/// Altered bytes load as another value of a member or are refused; they never panic.
#[test]
fn altered_bytes_never_panic() {
    let whole = saved(&one_of_each());
    for (key, content) in &whole {
        for place in 0..content.len() {
            let mut objects = whole.clone();
            let changed = objects.get_mut(key).unwrap();
            changed[place] = changed[place].wrapping_add(1);
            let _ = refusal(&objects);
        }
    }
}

#[test]
fn content_stored_under_another_object_is_refused() {
    let whole = saved(&one_of_each());
    let other = ObjectId::from_bytes([9; 12]);
    for (key, content) in &whole {
        let moved = [
            ObjectKey { id: other, ..*key },
            ObjectKey { owner: other, ..*key },
            ObjectKey {
                place: key.place + 1,
                ..*key
            },
        ];
        for moved in moved {
            let mut objects = whole.clone();
            objects.remove(key);
            objects.insert(moved, content.clone());
            let refused = load(&objects).err();
            let by_name = match &refused {
                Some(SnapshotError::Misplaced { key }) => *key == moved,
                // The state of a delivery does not contain its owner: a moved one is found missing when it is joined with
                // its body.
                Some(SnapshotError::Missing { needed_by, .. }) => {
                    needed_by.to_string().contains("delivery") && moved.place == key.place
                }
                _ => false,
            };
            assert!(by_name, "{key} at {moved:?}: {refused:?}");
        }
    }
}

#[test]
fn objects_must_be_ordered_and_unique() {
    let whole = saved(&one_of_each());
    let mut loader = CatalogLoader::default();
    let (first, second) = (whole.iter().next().unwrap(), whole.iter().nth(1).unwrap());
    loader.push(second.0, second.1).unwrap();
    for (key, content) in [first, second] {
        let refused = loader.push(key, content);
        assert!(matches!(refused, Err(SnapshotError::OutOfOrder { key: it }) if it == *key));
    }
}

#[test]
fn objects_of_newer_programs_are_refused_or_understood() {
    let whole = saved(&one_of_each());
    let owner = id(3);
    for number in [0, 17, 99, 127] {
        let mut objects = whole.clone();
        let key = ObjectKey {
            owner,
            place: number << 56,
            id: owner,
        };
        objects.insert(key, b"\x80".to_vec());
        let expected = format!(
            "catalog: this program does not know an object of kind {number} (owner {owner}, id {owner}): \
             start the newer program"
        );
        assert_eq!(refusal(&objects), expected);
    }

    #[derive(serde::Serialize)]
    struct NewerRoot {
        version: u32,
        server_secret: u32,
    }
    #[derive(serde::Serialize)]
    struct LargerRoot {
        version: u32,
        last_bucket_ordinal: u32,
        surprises: Vec<u32>,
    }
    let root = key_of(&whole, "the root");
    let newer = rmp_serde::to_vec_named(&NewerRoot {
        version: 3,
        server_secret: 7,
    });
    let newer = Objects::from([(root, newer.unwrap())]);
    assert!(matches!(
        load(&newer),
        Err(SnapshotError::UnknownVersion { found: 3, known: 2 })
    ));
    let larger = rmp_serde::to_vec_named(&LargerRoot {
        version: 2,
        last_bucket_ordinal: 9,
        surprises: vec![1],
    });
    let loaded = load(&Objects::from([(root, larger.unwrap())])).unwrap();
    assert_eq!(
        loaded.last_bucket_ordinal(),
        9,
        "unknown members are ignored, others defaulted"
    );
}

#[test]
fn a_root_or_bucket_older_than_its_objects_is_refused() {
    let whole = saved(&one_of_each());
    let catalog = load(&whole).unwrap();
    // The objects of an empty catalog.
    let empty = saved(&Catalog::default());
    let mut objects = whole.clone();
    objects.extend(empty);
    assert!(refusal(&objects).ends_with("has an ordinal that was not given yet"));
    let page = key_of(&whole, &format!("page 0 of the data sources of bucket {}", id(3)));
    let mut with_more = catalog;
    with_more.apply(&create_source(11, "t", vec![field("a", FieldType::Number)]));
    let mut objects = whole;
    objects.insert(page, saved(&with_more)[&page].clone());
    assert_eq!(
        refusal(&objects),
        format!("catalog: {page} has an ordinal that was not given yet")
    );
}

#[test]
fn two_keys_with_one_ordinal_are_refused() {
    let with_key = |number: u8| {
        let mut catalog = with_bucket();
        let key = key(u64::from(number), None, [number; 32]);
        catalog.apply(&Command::KeyCreated { key });
        saved(&catalog)
    };
    let mut objects = with_key(7);
    objects.extend(with_key(8));
    let key = key_of(&objects, &format!("key {}", id(8)));
    assert_eq!(
        refusal(&objects),
        format!("catalog: {key} has the ordinal of another object")
    );
}
