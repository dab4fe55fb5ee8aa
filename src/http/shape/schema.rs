//! A source's schema: a map of field name to `{type, unit?, description?}`.

use std::borrow::Cow;

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{FromJson, Place, Text, body};
use crate::catalog::{Field, FieldType};
use crate::limits::{DESCRIPTION_CHARS_MAX, FIELD_NAME_CHARS_MAX, OPEN_NAME_CHARS_MAX, SCHEMA_FIELDS_MAX};

type Unit = Text<OPEN_NAME_CHARS_MAX>;
type Description = Text<DESCRIPTION_CHARS_MAX>;

body! {
    /// A field's definition.
    #[schema(as = Field)]
    pub struct FieldBody {
        /// What its values are.
        r#type: FieldType,
        /// Unit of measurement.
        unit: Option<Unit>,
        /// Free text.
        description: Option<Description>,
    }
}

/// No control characters, and at least one character that is not white space.
const FIELD_NAME: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f]*",
    r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    r"[^\u0000-\u001f\u007f-\u009f]*$"
);

/// The fields of a schema, in the order sent.
#[derive(Debug)]
pub struct Fields(pub Vec<Field>);

impl FromJson for Fields {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let members = place.typed(value.as_object(), "an object of field definitions", value)?;
        let count = members.len();
        if !(1..=SCHEMA_FIELDS_MAX).contains(&count) {
            place.fault(format!(
                "must declare 1 to {SCHEMA_FIELDS_MAX} fields, not {count}"
            ));
            return None;
        }
        let mut fields: Vec<Field> = Vec::new();
        for (name, definition) in members {
            let place = place.member(name);
            let stored = match Field::stored_name(name) {
                Ok(stored) if fields.iter().any(|field| *field.name == *stored) => {
                    Err(format!("is the second field named {stored:?}"))
                }
                Ok(stored) => Ok(stored),
                Err(message) => Err(format!("field name {message}")),
            };
            let Some(name) = place.check(stored) else { continue };
            fields.extend(FieldBody::read(definition, &place).map(|definition| Field {
                name: name.into(),
                kind: definition.r#type,
                unit: definition.unit.map(|unit| unit.0.into()),
                description: definition.description.map(|text| text.0.into()),
            }));
        }
        (fields.len() == count).then_some(Self(fields))
    }
}

impl PartialSchema for Fields {
    fn schema() -> RefOr<Schema> {
        let names = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(FIELD_NAME_CHARS_MAX))
            .pattern(Some(FIELD_NAME))
            .build();
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("Field name to definition: 1 to 256 fields."))
            .property_names(Some(Schema::Object(names)))
            .additional_properties(Some(AdditionalProperties::RefOr(RefOr::Ref(
                Ref::from_schema_name(FieldBody::name()),
            ))))
            .min_properties(Some(1))
            .max_properties(Some(SCHEMA_FIELDS_MAX))
            .into()
    }
}

impl ToSchema for Fields {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("FieldsByName")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((FieldBody::name().into_owned(), FieldBody::schema()));
        FieldBody::schemas(all);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Faults;
    use super::*;

    fn read_all(schema: &Value) -> Result<Vec<Field>, Vec<String>> {
        let faults = Faults::default();
        let read = Fields::read(schema, &faults.root().member("schema"));
        match faults.check() {
            Ok(()) => Ok(read.unwrap().0),
            Err(error) => Err(error
                .details
                .into_iter()
                .map(|detail| detail.path.join("/"))
                .collect()),
        }
    }

    #[test]
    fn fields_keep_their_order_and_are_trimmed() {
        let fields = read_all(&json!({
            "z": {"type": "number", "unit": "°C"}, " a ": {"type": "string", "unit": null}, "m": {"type": "boolean"}
        }))
        .unwrap();
        let names: Vec<_> = fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["z", "a", "m"]);
        assert_eq!(fields[0].unit.as_deref(), Some("°C"));
        assert_eq!(fields[1].unit, None);
    }

    #[test]
    fn every_fault_is_at_its_field() {
        let long = "x".repeat(129);
        let found = read_all(&json!({
            "a": {"type": "float"}, "b": {}, "c": 3, "": {"type": "number"}, "d\u{7}": {"type": "number"},
            "ok": {"type": "number", "unit": 5}, "fine": {"type": "number"}, " fine": {"type": "number"},
            &long: {"type": "number"}
        }))
        .unwrap_err();
        let expected = [
            "schema/a/type",
            "schema/b/type",
            "schema/c",
            "schema/",
            "schema/d\u{7}",
            "schema/ok/unit",
            "schema/ fine",
        ];
        assert_eq!(found[..7], expected);
        assert_eq!(found[7], format!("schema/{long}"));
    }

    #[test]
    fn a_schema_has_1_to_256_fields() {
        let of = |count: usize| -> Value {
            (0..count)
                .map(|n| (format!("f{n}"), json!({"type": "number"})))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        assert_eq!(read_all(&of(256)).unwrap().len(), 256);
        for wrong in [of(0), of(257), json!([]), json!(null), json!("number")] {
            assert_eq!(read_all(&wrong).unwrap_err(), ["schema"]);
        }
    }
}
