//! The counted holdings of an organization, compared with a full count.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::*;
use super::{create_source, field, id, settings, with_bucket};
use crate::ids::ObjectId;

pub(super) fn counted(catalog: &Catalog, organization_id: ObjectId) -> Holdings {
    let organization = catalog.organization(organization_id).unwrap();
    let users = catalog
        .users
        .values()
        .filter(|it| it.organization_id == organization_id);
    let user_bytes: usize = users.map(|user| text_bytes::of_user(user)).sum();
    let mut text_bytes = organization.name.len() + user_bytes;
    let (mut sources, mut keys, mut rules, mut annotations) = (0, 0, 0, 0);
    let mut schemas = HashMap::new();
    let mut count_keys = |owner| {
        keys += catalog.key_count(owner) as u64;
        let of_keys = catalog.keys_of(owner).map(|key| text_bytes::of_key(&key.name));
        of_keys.sum::<usize>()
    };
    text_bytes += count_keys(organization_id);
    for bucket in catalog.buckets_of(organization_id) {
        text_bytes += text_bytes::of_bucket(&bucket.name, bucket.description.as_deref());
        text_bytes += count_keys(bucket.id);
        for source in catalog.sources_of(bucket.id) {
            sources += 1;
            let description = source.description.as_deref();
            text_bytes += text_bytes::of_source(&source.name, &source.kind, description);
            schemas.insert(Arc::as_ptr(&source.schema), Arc::clone(&source.schema));
        }
        for rule in catalog.rules_of(bucket.id) {
            rules += 1;
            text_bytes += text_bytes::of_rule(&rule.settings);
        }
        for (_, annotation) in catalog.annotations_of(bucket.id) {
            annotations += 1;
            text_bytes += text_bytes::of_annotation(&annotation.settings.text);
        }
    }
    let webhooks = catalog.webhooks_of(organization_id);
    text_bytes += webhooks
        .map(|it| text_bytes::of_webhook(&it.settings))
        .sum::<usize>();
    let silences = catalog.silences_of(organization_id);
    text_bytes += silences
        .map(|it| text_bytes::of_silence(&it.reason, it.alert_ids.as_ref().map_or(1, Vec::len)))
        .sum::<usize>();
    let boards = catalog.boards_of(organization_id);
    text_bytes += boards.map(|it| text_bytes::of_board(&it.settings)).sum::<usize>();
    let of_schemas = schemas
        .values()
        .map(|schema| text_bytes::of_schema(&schema.fields));
    Holdings {
        sources,
        keys,
        rules,
        annotations,
        text_bytes: (text_bytes + of_schemas.sum::<usize>()) as u64,
    }
}

pub(super) fn counted_owed(catalog: &Catalog, organization_id: ObjectId) -> PendingTotals {
    let mut events = HashMap::new();
    let mut figures = PendingTotals::default();
    for delivery in catalog.pending_deliveries() {
        if delivery.organization_id == Some(organization_id) {
            figures.deliveries += 1;
            figures.bytes += delivery.owed_bytes() as u64;
            if let Body::Shared(body) = &delivery.body {
                events.insert(body.id, body.bytes() as u64);
            }
        }
    }
    figures.bytes += events.values().sum::<u64>();
    figures
}

#[test]
fn deleting_sources_releases_their_holdings() {
    let mut catalog = with_bucket();
    let empty = catalog.holdings(id(1));
    let fields = || vec![field("temperature", FieldType::Number)];
    catalog.apply(&create_source(10, "s", fields()));
    let one = catalog.holdings(id(1));
    assert_eq!(one.sources, 1);
    catalog.apply(&create_source(11, "t", fields()));
    let two = catalog.holdings(id(1));
    let own = text_bytes::of_source("t", &settings("t", fields()).kind, None) as u64;
    assert_eq!(
        two.text_bytes - one.text_bytes,
        own,
        "the schema is there already"
    );
    assert!(catalog.has_schema(id(1), &Schema::from(fields())));
    catalog.apply(&Command::SourceDeleted { source_id: id(10) });
    catalog.apply(&Command::SourceDeleted { source_id: id(11) });
    assert_eq!(catalog.holdings(id(1)), empty);
    assert!(!catalog.has_schema(id(1), &Schema::from(fields())));
    assert_eq!(catalog.holdings(id(999)), Holdings::default());
}
