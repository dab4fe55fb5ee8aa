//! The encoding of sources. Schemas, which many sources share, are written once.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::schema::Schema;
use super::source::Source;
use super::state::Catalog;

/// Sources and their schemas, as stored on disk.
#[derive(Serialize, Deserialize)]
pub(super) struct SourcesImage {
    /// The schemas of the sources, in order of their first use.
    pub schemas: Vec<Arc<Schema>>,
    /// Each with the index of its schema.
    pub sources: Vec<Source<u32>>,
}

impl SourcesImage {
    pub fn of<'a>(sources: impl Iterator<Item = &'a Arc<Source>>) -> Self {
        // Equal schemas have one address, because the catalog interns them.
        let mut indexes: HashMap<*const Schema, u32> = HashMap::new();
        let mut schemas = Vec::new();
        let sources = sources.map(|source| {
            let index = *indexes.entry(Arc::as_ptr(&source.schema)).or_insert_with(|| {
                schemas.push(Arc::clone(&source.schema));
                schemas.len() as u32 - 1
            });
            (**source).clone().with_schema(index)
        });
        let sources = sources.collect();
        Self { schemas, sources }
    }

    /// The sources, which share schemas and types with those of the catalog. They are not added to it.
    ///
    /// # Errors
    /// A source refers to a schema that is not in the image.
    pub fn into_sources(self, catalog: &mut Catalog) -> Result<Vec<Arc<Source>>, SnapshotError> {
        let schemas = self.schemas.into_iter();
        let schemas: Vec<_> = schemas.map(|schema| catalog.schemas.intern(schema)).collect();
        let sources = self.sources.into_iter().map(|source| {
            let schema = schemas
                .get(source.schema as usize)
                .ok_or(SnapshotError::MissingSchema { source_id: source.id })?;
            let kind = catalog.kinds.intern(Arc::clone(&source.kind));
            let source = source.with_schema(Arc::clone(schema));
            Ok(Arc::new(Source { kind, ..source }))
        });
        sources.collect()
    }
}
