//! The encoding of sources. Schemas, which many sources share, are written once.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::schema::{Schema, SchemaMode};
use super::source::{Source, SourceStatus};
use super::state::Catalog;
use crate::ids::ObjectId;

/// A source whose schema is an index into the schemas written with it.
#[derive(Serialize, Deserialize)]
pub(super) struct SourceImage {
    id: ObjectId,
    ordinal: u32,
    bucket_id: ObjectId,
    name: Box<str>,
    kind: Arc<str>,
    description: Option<Box<str>>,
    schema: u32,
    schema_mode: SchemaMode,
    downsampling: bool,
    status: SourceStatus,
    created_at_ns: i64,
    updated_at_ns: i64,
}

/// The images of these sources, and the schemas they share, in order of their first use.
pub(super) fn images<'a>(
    sources: impl Iterator<Item = &'a Arc<Source>>,
) -> (Vec<Arc<Schema>>, Vec<SourceImage>) {
    // Equal schemas have one address, because the catalog interns them.
    let mut numbers: HashMap<*const Schema, u32> = HashMap::new();
    let mut schemas = Vec::new();
    let images = sources.map(|source| {
        let number = *numbers.entry(Arc::as_ptr(&source.schema)).or_insert_with(|| {
            schemas.push(Arc::clone(&source.schema));
            schemas.len() as u32 - 1
        });
        SourceImage::of(source, number)
    });
    let images = images.collect();
    (schemas, images)
}

impl SourceImage {
    fn of(source: &Source, schema: u32) -> Self {
        Self {
            id: source.id,
            ordinal: source.ordinal,
            bucket_id: source.bucket_id,
            name: source.name.clone(),
            kind: Arc::clone(&source.kind),
            description: source.description.clone(),
            schema,
            schema_mode: source.schema_mode,
            downsampling: source.downsampling,
            status: source.status,
            created_at_ns: source.created_at_ns,
            updated_at_ns: source.updated_at_ns,
        }
    }

    fn with(self, kind: Arc<str>, schema: Arc<Schema>) -> Source {
        Source {
            id: self.id,
            ordinal: self.ordinal,
            bucket_id: self.bucket_id,
            name: self.name,
            kind,
            description: self.description,
            schema,
            schema_mode: self.schema_mode,
            downsampling: self.downsampling,
            status: self.status,
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.updated_at_ns,
        }
    }
}

impl Catalog {
    /// Interns the schemas of images.
    pub(super) fn shared_schemas(&mut self, schemas: Vec<Arc<Schema>>) -> Vec<Arc<Schema>> {
        schemas
            .into_iter()
            .map(|schema| self.schemas.intern(schema))
            .collect()
    }

    /// The source of an image, whose schema is one of these. It is not added to the catalog.
    pub(super) fn source_of(
        &mut self,
        image: SourceImage,
        schemas: &[Arc<Schema>],
    ) -> Result<Arc<Source>, SnapshotError> {
        let schema = schemas
            .get(image.schema as usize)
            .ok_or(SnapshotError::MissingSchema { source_id: image.id })?;
        let kind = self.kinds.intern(Arc::clone(&image.kind));
        Ok(Arc::new(image.with(kind, Arc::clone(schema))))
    }
}
