//! Fields that points bring and their sources, in `schemaMode: extend`, do not declare yet. They are gathered
//! here over a whole body; the caller adds them durably and then parses again, so that no row is ever written
//! against a schema that is not on disk.

use std::collections::HashMap;

use crate::catalog::{Field, FieldType, Source};
use crate::ids::ObjectId;
use crate::limits::SCHEMA_FIELDS_MAX;

/// A field to add to a source's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewField {
    /// The source whose schema is to grow.
    pub source_id: ObjectId,
    /// The field's name, valid as one.
    pub name: String,
    /// The type of its first value.
    pub kind: FieldType,
}

/// The new fields of one body.
#[derive(Debug, Default)]
pub(super) struct NewFields {
    list: Vec<NewField>,
    kinds: HashMap<ObjectId, HashMap<String, FieldType>>,
}

impl NewFields {
    /// The type an earlier point of this body gave the field.
    pub(super) fn kind(&self, source: &Source, name: &str) -> Option<FieldType> {
        self.kinds.get(&source.id)?.get(name).copied()
    }

    /// Whether the schema has room for one more, behind `pending` of a point not yet accepted.
    pub(super) fn has_room(&self, source: &Source, pending: usize) -> bool {
        let added = self.kinds.get(&source.id).map_or(0, HashMap::len);
        source.schema.fields.len() + added + pending < SCHEMA_FIELDS_MAX
    }

    /// Takes over the fields of an accepted point.
    pub(super) fn add(&mut self, fields: Vec<NewField>) {
        for field in fields {
            self.kinds
                .entry(field.source_id)
                .or_default()
                .insert(field.name.clone(), field.kind);
            self.list.push(field);
        }
    }

    pub(super) fn into_list(self) -> Vec<NewField> {
        self.list
    }
}

/// Why a field cannot be added under the name it came with. Names are stored trimmed, but a value's name is what the
/// client will send again: one with white space around it is refused rather than stored as another.
pub(super) fn name_fault(name: &str) -> Option<String> {
    match Field::stored_name(name) {
        Ok(stored) if stored == name => None,
        Ok(stored) => Some(format!("names are stored trimmed, send {stored:?}")),
        Err(fault) => Some(format!("a field name {fault}")),
    }
}
