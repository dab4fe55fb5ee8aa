//! Schemas: the fields that a data source's points may have.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names;
use crate::limits::{FIELD_NAME_CHARS_MAX, SCHEMA_FIELDS_MAX};

/// Up to this many fields, a linear search is faster than a binary search.
const LINEAR_SEARCH_FIELDS_MAX: usize = 8;

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// A finite double.
    Number,
    String,
    /// True or false.
    Boolean,
}

names!(FieldType: Number => "number", String => "string", Boolean => "boolean");

/// Whether an undeclared field of an ingested point is refused or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaMode {
    Strict,
    /// Added with the type of its first value.
    Extend,
}

names!(SchemaMode: Strict => "strict", Extend => "extend");

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Unique within the schema.
    pub name: Arc<str>,
    /// Never changes.
    pub kind: FieldType,
    /// Unit of measurement.
    pub unit: Option<Box<str>>,
    /// Free text.
    pub description: Option<Box<str>>,
}

impl Field {
    /// The name as it is stored, trimmed. The same rule holds for declared fields and for fields of points, so that a
    /// schema that was read can be sent back.
    ///
    /// # Errors
    /// What is wrong, as text that follows "field name".
    pub fn stored_name(name: &str) -> Result<&str, String> {
        let stored = name.trim();
        match stored.chars().count() {
            0 => Err("must not be blank".to_owned()),
            chars if chars > FIELD_NAME_CHARS_MAX => Err(format!(
                "must have at most {FIELD_NAME_CHARS_MAX} characters, not {chars}"
            )),
            _ if stored.chars().any(char::is_control) => Err("must have no control characters".to_owned()),
            _ => Ok(stored),
        }
    }
}

/// The fields of a data source. A field's ordinal is its index: fields are appended, never removed or moved, because
/// the engine numbers its columns by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Field>", into = "Vec<Field>")]
pub struct Schema {
    /// By ordinal.
    pub fields: Vec<Field>,
    /// Ordinals in order of name; empty if the search is linear.
    by_name: Box<[u16]>,
}

impl From<Vec<Field>> for Schema {
    fn from(fields: Vec<Field>) -> Self {
        let mut by_name: Vec<u16> = Vec::new();
        if fields.len() > LINEAR_SEARCH_FIELDS_MAX {
            by_name.extend(0..fields.len() as u16);
            by_name.sort_unstable_by(|a, b| fields[usize::from(*a)].name.cmp(&fields[usize::from(*b)].name));
        }
        Self {
            fields,
            by_name: by_name.into_boxed_slice(),
        }
    }
}

impl From<Schema> for Vec<Field> {
    fn from(schema: Schema) -> Self {
        schema.fields
    }
}

impl Schema {
    /// The ordinal of a field.
    pub fn field(&self, name: &str) -> Option<u16> {
        if self.by_name.is_empty() {
            return self
                .fields
                .iter()
                .position(|field| &*field.name == name)
                .map(|ordinal| ordinal as u16);
        }
        self.by_name
            .binary_search_by(|ordinal| (*self.fields[usize::from(*ordinal)].name).cmp(name))
            .ok()
            .map(|place| self.by_name[place])
    }

    /// This schema with `fields` merged into it: known names get the new unit and description, new ones are appended in
    /// their order, up to the limit. Types and ordinals do not change. Returns `None` if nothing changes.
    pub fn merged(&self, fields: &[Field]) -> Option<Self> {
        let mut merged = self.fields.clone();
        for field in fields {
            match self.field(&field.name) {
                Some(ordinal) => {
                    let known = &mut merged[usize::from(ordinal)];
                    known.unit.clone_from(&field.unit);
                    known.description.clone_from(&field.description);
                }
                None if merged.len() < SCHEMA_FIELDS_MAX => merged.push(field.clone()),
                None => {}
            }
        }
        (merged != self.fields).then(|| merged.into())
    }

    /// This schema with the fields appended that it does not have yet, up to the limit. Known fields do not change.
    /// Returns `None` if nothing changes.
    pub fn extended(&self, fields: &[Field]) -> Option<Self> {
        let room = SCHEMA_FIELDS_MAX.saturating_sub(self.fields.len());
        let new: Vec<Field> = fields
            .iter()
            .filter(|field| self.field(&field.name).is_none())
            .take(room)
            .cloned()
            .collect();
        (!new.is_empty()).then(|| self.fields.iter().cloned().chain(new).collect::<Vec<_>>().into())
    }
}
