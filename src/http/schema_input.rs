//! Reading a schema: a map of field name to `{type, unit?, description?}`.

use serde_json::Value;

use super::faults::{Faults, Members, kind_of};
use super::values;
use crate::catalog::{Field, FieldType};
use crate::limits::{DESCRIPTION_CHARS_MAX, OPEN_NAME_CHARS_MAX, SCHEMA_FIELDS_MAX};

/// The fields of the body's `schema`, in the order sent. Faults go to their places; what is returned
/// is whole only when there were none.
pub(super) fn read(body: &Members<'_>, schema: &Value, faults: &mut Faults) -> Vec<Field> {
    let path = body.path_of("schema");
    if let Some(message) = wrong_count(schema) {
        faults.add(&path, message);
        return Vec::new();
    }
    let members = Members::at(schema, path, faults);
    let mut fields: Vec<Field> = Vec::new();
    for (name, definition) in members.iter() {
        let path = members.path_of(name);
        let trimmed = match Field::stored_name(name) {
            Ok(trimmed) if fields.iter().any(|field| *field.name == *trimmed) => {
                faults.add(&path, format!("is the second field named {trimmed:?}"));
                continue;
            }
            Ok(trimmed) => trimmed,
            Err(message) => {
                faults.add(&path, format!("field name {message}"));
                continue;
            }
        };
        let definition = Members::at(definition, path, faults);
        let kinds = FieldType::ALL.map(|kind| (kind.name(), kind));
        let kind = definition.required("type", faults, |v| values::one_of(v, &kinds));
        let unit = definition.optional("unit", faults, |v| values::text(v, OPEN_NAME_CHARS_MAX));
        let description =
            definition.optional("description", faults, |v| values::text(v, DESCRIPTION_CHARS_MAX));
        if let Some(kind) = kind {
            fields.push(Field {
                name: trimmed.into(),
                kind,
                unit: unit.map(Into::into),
                description: description.map(Into::into),
            });
        }
    }
    fields
}

fn wrong_count(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(fields) if (1..=SCHEMA_FIELDS_MAX).contains(&fields.len()) => None,
        Value::Object(fields) => Some(format!(
            "must declare 1 to {SCHEMA_FIELDS_MAX} fields, not {}",
            fields.len()
        )),
        other => Some(format!(
            "must be an object of field definitions, not {}",
            kind_of(other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(schema: &Value) -> Result<Vec<Field>, Vec<String>> {
        let mut faults = Faults::default();
        let body = json!({});
        let members = Members::of_body(&body, &mut faults);
        let fields = read(&members, schema, &mut faults);
        match faults.check() {
            Ok(()) => Ok(fields),
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
            "ok": {"type": "number", "unit": 5}, " ok": {"type": "number"}, &long: {"type": "number"}
        }))
        .unwrap_err();
        let expected = [
            "schema/a/type",
            "schema/b/type",
            "schema/c",
            "schema/",
            "schema/d\u{7}",
            "schema/ok/unit",
            "schema/ ok",
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
