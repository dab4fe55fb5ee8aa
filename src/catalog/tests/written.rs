//! The snapshot format of older programs: used to test its reader and to compare catalogs for equality.

use std::collections::HashMap;

use crate::catalog::frozen::Frozen;
use crate::catalog::objects::{DeliveryBody, Object, SourcesImage};
use crate::catalog::snapshot::{Image, VERSION};

impl Frozen {
    /// The bytes of a snapshot, with the ordinals of the buckets that had a manifest. Equal catalogs give equal bytes.
    pub(super) fn encode(&self, manifests: &[u32]) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let mut image = Image {
            version: VERSION,
            manifests: manifests.to_vec(),
            ..Image::default()
        };
        let (mut organizations, mut pages, mut keys, mut webhooks) = (vec![], vec![], vec![], vec![]);
        for object in &self.objects {
            match object {
                Object::Root(root) => {
                    image.server_secret = root.server_secret;
                    image.last_bucket_ordinal = root.last_bucket_ordinal;
                    image.last_rule_ordinal = root.last_rule_ordinal;
                }
                Object::Organization(it) => organizations.push(it),
                Object::Calls(it) => {
                    let months = it.months.iter();
                    let calls = months.map(|(month, calls)| (it.organization_id, *month, *calls));
                    image.calls.extend(calls);
                }
                Object::User(it) => image.users.push(it.clone()),
                Object::Bucket(it) => image.buckets.push(it.clone()),
                Object::Key(it) => keys.push(it),
                Object::Sources(bucket_id, page) => pages.push((bucket_id, page)),
                Object::Rule(it) => image.rules.push(it.clone()),
                Object::Webhook(it) => webhooks.push(it),
                Object::DeliveryBody(DeliveryBody(it)) => image.deliveries.push((**it).clone()),
                // Later than this format.
                Object::DeliveryState(_)
                | Object::Event(_)
                | Object::Silence(_)
                | Object::Annotation(_)
                | Object::Board(_) => {}
            }
        }
        let ordinals: HashMap<_, _> = image
            .buckets
            .iter()
            .map(|it| (it.bucket.id, it.bucket.ordinal))
            .collect();
        organizations.sort_unstable_by_key(|it| it.position);
        image.organizations = organizations.iter().map(|it| it.organization.clone()).collect();
        // By organization, then month.
        image.calls.sort_unstable();
        image.users.sort_unstable_by_key(|it| it.id);
        image.buckets.sort_unstable_by_key(|it| it.bucket.ordinal);
        // Those of organizations, then those of buckets by the buckets' ordinals; oldest first.
        keys.sort_unstable_by_key(|it| (it.key.bucket_id.and_then(|id| ordinals.get(&id)), it.ordinal));
        image.keys = keys
            .iter()
            .map(|it| it.key.with_uses(it.last_used_minute, it.calls))
            .collect();
        pages.sort_unstable_by_key(|(bucket_id, page)| (ordinals[bucket_id], page.number()));
        let sources = SourcesImage::of(pages.iter().flat_map(|(_, page)| page.iter()));
        (image.schemas, image.sources) = (sources.schemas, sources.sources);
        image.rules.sort_unstable_by_key(|it| it.ordinal);
        webhooks.sort_unstable_by_key(|it| it.ordinal);
        image.webhooks = webhooks.iter().map(|it| (*it.webhook).clone()).collect();
        image.deliveries.sort_unstable_by_key(|it| it.id);
        rmp_serde::to_vec_named(&image)
    }
}
