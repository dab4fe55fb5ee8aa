//! Annotations: their ranges, their order, and what they go with.

use super::super::*;
use super::alerts::{annotation, with_rule};
use super::{check_indexes, create_bucket, id};
use crate::ids::ObjectId;

fn listed(catalog: &Catalog, bucket: u64) -> Vec<ObjectId> {
    let of_bucket = catalog.annotations_of(id(bucket));
    of_bucket.map(|(_, annotation)| annotation.id).collect()
}

fn of_source(number: u64) -> Annotation {
    let mut annotation = annotation(number, id(3), 5);
    annotation.settings.source_id = Some(id(10));
    annotation
}

fn create(catalog: &mut Catalog, annotation: Annotation) {
    catalog.apply(&Command::AnnotationCreated { annotation });
}

#[test]
fn both_ends_of_range_and_annotation_belong_to_them() {
    let settings = |until_ns| AnnotationSettings {
        source_id: None,
        at_ns: 10,
        until_ns,
        text: "note".into(),
    };
    for (range, overlaps) in [
        ((i64::MIN, i64::MAX), [true, true]),
        ((i64::MIN, 9), [false, false]),
        ((i64::MIN, 10), [true, true]),
        ((10, 10), [true, true]),
        ((11, 11), [false, true]),
        ((20, i64::MAX), [false, true]),
        ((21, i64::MAX), [false, false]),
    ] {
        let found = [None, Some(20)].map(|until_ns| settings(until_ns).overlaps(range));
        assert_eq!(found, overlaps, "{range:?}");
    }
}

#[test]
fn annotations_keep_their_order_and_go_with_their_source_or_bucket() {
    let mut catalog = with_rule();
    catalog.apply(&create_bucket(4, "other"));
    let empty = catalog.holdings(id(1));
    create(&mut catalog, annotation(79, id(3), 5));
    create(&mut catalog, of_source(70));
    create(&mut catalog, annotation(75, id(3), 4));
    create(&mut catalog, annotation(71, id(4), 5));
    assert_eq!(listed(&catalog, 3), [id(79), id(70), id(75)]);
    let ordinals: Vec<_> = catalog
        .annotations_of(id(4))
        .map(|(ordinal, _)| ordinal)
        .collect();
    assert_eq!(ordinals, [4], "ordinals number the annotations of all buckets");
    let mut settings = catalog.annotation(id(79)).unwrap().settings.clone();
    settings.text = "a longer text than before".into();
    catalog.apply(&Command::AnnotationUpdated {
        annotation_id: id(79),
        settings: settings.clone(),
        at_ns: 8,
    });
    let changed = catalog.annotation(id(79)).unwrap();
    assert_eq!((&changed.settings, changed.updated_at_ns), (&settings, 8));
    assert_eq!(listed(&catalog, 3), [id(79), id(70), id(75)]);
    // Neither bucket nor source, and a source of another bucket.
    create(&mut catalog, annotation(80, id(999), 5));
    let mut elsewhere = of_source(81);
    elsewhere.bucket_id = id(4);
    create(&mut catalog, elsewhere);
    assert_eq!(catalog.holdings(id(1)).annotations, 4);
    check_indexes(&catalog);
    catalog.apply(&Command::SourceDeleted { source_id: id(10) });
    assert_eq!(listed(&catalog, 3), [id(79), id(75)], "they go with their source");
    catalog.apply(&Command::AnnotationDeleted {
        annotation_id: id(75),
    });
    catalog.apply(&Command::BucketDeleted { bucket_id: id(3) });
    assert!(catalog.annotation(id(79)).is_none(), "they go with their bucket");
    assert_eq!(listed(&catalog, 4), [id(71)]);
    catalog.apply(&Command::AnnotationDeleted {
        annotation_id: id(71),
    });
    check_indexes(&catalog);
    assert_eq!(catalog.holdings(id(1)).annotations, empty.annotations);
}
