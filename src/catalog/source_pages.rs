//! The sources of a bucket at one moment, as shared pages. A query about all sources copies one pointer per 1,024
//! sources while it holds the catalog's lock, and gets a summary of them without reading each one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::pages::Page;
use super::schema::Schema;
use super::source::Source;
use crate::ids::ObjectId;

/// All sources of a bucket at one moment.
pub struct SourcePages(pub(super) Vec<Arc<Page<Source>>>);

/// A summary of sources. That of a page is computed on first use and cached until the page changes.
#[derive(Default)]
pub(super) struct Common {
    /// The distinct schemas, each with the least id of a source that has it.
    schemas: Vec<(Arc<Schema>, ObjectId)>,
    downsampling: bool,
}

impl Common {
    fn of<'a>(sources: impl Iterator<Item = &'a Arc<Source>>) -> Self {
        let mut schemas = Schemas::default();
        let mut downsampling = true;
        for source in sources {
            schemas.add(&source.schema, source.id);
            downsampling &= source.downsampling;
        }
        Common {
            schemas: schemas.list,
            downsampling,
        }
    }
}

/// Distinct schemas, identified by their address, because the catalog interns them.
#[derive(Default)]
struct Schemas {
    places: HashMap<*const Schema, usize>,
    list: Vec<(Arc<Schema>, ObjectId)>,
}

impl Schemas {
    fn add(&mut self, schema: &Arc<Schema>, id: ObjectId) {
        match self.places.entry(Arc::as_ptr(schema)) {
            Entry::Occupied(place) => {
                let least = &mut self.list[*place.get()].1;
                *least = id.min(*least);
            }
            Entry::Vacant(place) => {
                place.insert(self.list.len());
                self.list.push((Arc::clone(schema), id));
            }
        }
    }
}

impl SourcePages {
    /// The source with this ordinal.
    pub fn get(&self, ordinal: u32) -> Option<&Arc<Source>> {
        let number = Page::<Source>::number_of(ordinal);
        // If no page before it was removed, its index is its number.
        let page = match self.0.get(number as usize) {
            Some(page) if page.number() == number => page,
            _ => &self.0[self.0.binary_search_by_key(&number, |page| page.number()).ok()?],
        };
        page.get(ordinal)
    }

    /// The distinct schemas, in the order of their first use when sources are sorted by id.
    pub fn schemas(&self) -> Vec<Arc<Schema>> {
        let mut schemas = Schemas::default();
        for (schema, id) in self.common().flat_map(|common| &common.schemas) {
            schemas.add(schema, *id);
        }
        schemas.list.sort_by_key(|(_, id)| *id);
        schemas.list.into_iter().map(|(schema, _)| schema).collect()
    }

    /// Whether large raw queries are aggregated automatically for all sources.
    pub fn all_downsampling(&self) -> bool {
        self.common().all(|common| common.downsampling)
    }

    fn common(&self) -> impl Iterator<Item = &Common> {
        self.0
            .iter()
            .map(|page| page.common.get_or_init(|| Common::of(page.iter())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::super::schema::{Field, FieldType, SchemaMode};
    use super::super::source::SourceStatus;
    use super::*;

    fn schema(name: &str) -> Arc<Schema> {
        let field = Field {
            name: name.into(),
            kind: FieldType::Number,
            unit: None,
            description: None,
        };
        Arc::new(Schema::from(vec![field]))
    }

    fn source(ordinal: u32, id: u8, schema: &Arc<Schema>, downsampling: bool) -> Arc<Source> {
        let mut bytes = [0; 12];
        bytes[0] = id;
        bytes[8..].copy_from_slice(&ordinal.to_be_bytes());
        Arc::new(Source {
            id: ObjectId::from_bytes(bytes),
            ordinal,
            bucket_id: ObjectId::from_bytes([0; 12]),
            name: ordinal.to_string().into(),
            kind: "sensor".into(),
            description: None,
            schema: Arc::clone(schema),
            schema_mode: SchemaMode::Strict,
            downsampling,
            status: SourceStatus::Active,
            created_at_ns: 0,
            updated_at_ns: 0,
        })
    }

    /// Also if a page has changed since its summary was cached.
    #[test]
    fn page_summaries_agree_with_their_sources() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            let schemas: Vec<Arc<Schema>> = ["a", "b", "c", "d"].map(schema).into();
            let mut pages = Pages::default();
            for _ in 0..200 {
                let ordinal = random.u32(0..4) * 1_000 + random.u32(0..6);
                if random.u8(..3) == 0 {
                    pages.remove(ordinal);
                } else {
                    let schema = &schemas[random.usize(..schemas.len())];
                    let new = source(ordinal, random.u8(..), schema, random.u8(..20) > 0);
                    pages.insert(ordinal, new);
                }
                let shared = SourcePages(pages.pages().cloned().collect());
                let mut sources: Vec<&Arc<Source>> = pages.iter().collect();
                assert_eq!(
                    shared.all_downsampling(),
                    sources.iter().all(|source| source.downsampling)
                );
                sources.sort_by_key(|source| source.id);
                let mut expected: Vec<Arc<Schema>> = Vec::new();
                for source in sources {
                    assert!(Arc::ptr_eq(shared.get(source.ordinal).unwrap(), source));
                    if !expected.iter().any(|it| Arc::ptr_eq(it, &source.schema)) {
                        expected.push(Arc::clone(&source.schema));
                    }
                }
                let same = |(one, other): (&Arc<Schema>, &Arc<Schema>)| Arc::ptr_eq(one, other);
                let told = shared.schemas();
                assert!(told.len() == expected.len() && told.iter().zip(&expected).all(same));
                assert!(shared.get(9_999).is_none());
            }
        }
    }
}
