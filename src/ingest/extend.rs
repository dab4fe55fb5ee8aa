//! Fields that occur in points but are not declared by their sources, with `schemaMode: extend`. They are collected
//! over a whole body. The caller makes them durable and parses the body again, so that no row is ever written with a
//! schema that is not on disk.

use std::collections::HashMap;

use crate::catalog::{Field, FieldType, Source};
use crate::ids::ObjectId;
use crate::limits::SCHEMA_FIELDS_MAX;

/// A field to add to a source's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewField {
    /// The source whose schema is extended.
    pub source_id: ObjectId,
    /// A valid field name.
    pub name: String,
    /// The type of its first value.
    pub kind: FieldType,
}

/// The new fields of one body.
#[derive(Debug, Default)]
pub(super) struct NewFields {
    pub(super) list: Vec<NewField>,
    kinds: HashMap<ObjectId, HashMap<String, FieldType>>,
}

impl NewFields {
    /// The type that an earlier point of this body gave the field.
    pub(super) fn kind(&self, source: &Source, name: &str) -> Option<FieldType> {
        self.kinds.get(&source.id)?.get(name).copied()
    }

    /// Whether the schema has room for one more field, after `pending` fields of a point that is not accepted yet.
    pub(super) fn has_room(&self, source: &Source, pending: usize) -> bool {
        let added = self.kinds.get(&source.id).map_or(0, HashMap::len);
        source.schema.fields.len() + added + pending < SCHEMA_FIELDS_MAX
    }

    /// Adds the fields of an accepted point.
    pub(super) fn add(&mut self, fields: Vec<NewField>) {
        for field in fields {
            self.kinds
                .entry(field.source_id)
                .or_default()
                .insert(field.name.clone(), field.kind);
            self.list.push(field);
        }
    }
}

/// Why a field cannot be added under this name. Names are stored trimmed, but clients will keep sending the untrimmed
/// name. So a name with surrounding white space is refused instead of being stored as a different one.
pub fn name_fault(name: &str) -> Option<String> {
    match Field::stored_name(name) {
        Ok(stored) if stored == name => None,
        Ok(stored) => Some(format!("names are stored trimmed, send {stored:?}")),
        Err(fault) => Some(format!("a field name {fault}")),
    }
}
