//! Slow path for the values of a point: every member is parsed, the last of duplicate names wins, and every fault is
//! found. A single point always takes this path, because the answer echoes its values; of a batch, only entries in
//! which `columns` found something unusual do.

use std::borrow::Cow;
use std::collections::HashMap;

use engine::rows::RowsWriter;

use crate::catalog::{FieldType, SchemaMode, Source};
use crate::error::{Detail, shown_names};
use crate::limits::{FIELD_NAME_CHARS_MAX, SCHEMA_FIELDS_MAX};

use super::extend::{NewField, NewFields, name_fault};
use super::json::{Kind, Malformed, Number, Scanner, write_number, write_string};

/// Maximum members kept of one `values`. Far above what a schema can hold, so that faults are still found, but limits
/// the memory that a hostile body can use.
const MEMBERS_MAX: usize = 4 * SCHEMA_FIELDS_MAX;

/// Up to this many members, a linear search for a name is faster than a map.
const LINEAR_MAX: usize = 16;

/// A value as sent.
#[derive(Debug, Clone)]
enum Scalar<'a> {
    Null,
    Boolean(bool),
    Number(Number),
    String(Cow<'a, str>),
    Nested(Kind),
}

impl Scalar<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Boolean(_) => Kind::Boolean,
            Self::Number(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Nested(kind) => *kind,
        }
    }

    fn field_type(&self) -> Option<FieldType> {
        match self {
            Self::Boolean(_) => Some(FieldType::Boolean),
            Self::Number(_) => Some(FieldType::Number),
            Self::String(_) => Some(FieldType::String),
            Self::Null | Self::Nested(_) => None,
        }
    }
}

/// The members of `values`, each name once.
#[derive(Debug, Clone, Default)]
pub(super) struct Values<'a> {
    members: Vec<(Cow<'a, str>, Scalar<'a>)>,
    has_too_many: bool,
}

impl<'a> Values<'a> {
    /// Parses the next object. See [`Scanner::skip_value`] for `depth`; the object itself does not count.
    pub(super) fn read(scan: &mut Scanner<'a>, depth: u32) -> Result<Self, Malformed> {
        let mut values = Self::default();
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let mut more = scan.open(b'}')?;
        while more {
            let name = scan.name()?.into_cow();
            let scalar = read_scalar(scan, depth + 1)?;
            let members = &mut values.members;
            let place = match members.len() {
                ..=LINEAR_MAX => members.iter().position(|(earlier, _)| *earlier == name),
                _ => places.get(&name).copied(),
            };
            match place {
                Some(place) => members[place].1 = scalar,
                None if members.len() == MEMBERS_MAX => values.has_too_many = true,
                None => {
                    members.push((name, scalar));
                    if members.len() > LINEAR_MAX {
                        let new = places.len()..members.len();
                        places.extend(new.map(|place| (members[place].0.clone(), place)));
                    }
                }
            }
            more = scan.more(b'}')?;
        }
        Ok(values)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The fault of values that are all null.
    pub(super) fn null_fault(&self) -> Option<Detail> {
        let mut members = self.members.iter();
        let are_null = members.all(|(_, scalar)| scalar.kind() == Kind::Null);
        are_null.then(|| Detail::at(&["values"], "must have at least one field that is not null"))
    }

    /// Adds the other faults that can be found without a schema.
    pub(super) fn shape_faults(&self, out: &mut Vec<Detail>) {
        if self.has_too_many {
            let message = format!("has over {MEMBERS_MAX} fields, a schema at most {SCHEMA_FIELDS_MAX}");
            out.push(Detail::at(&["values"], message));
        }
        for (name, scalar) in &self.members {
            if matches!(scalar, Scalar::Number(number) if number.is_infinite()) {
                let message = format!(
                    "field {} must be a finite number of double precision",
                    shown_name(name)
                );
                out.push(Detail::at(&["values", name], message));
            }
        }
    }

    /// Adds the faults with regard to the source's schema. Returns the fields to be added to it; `new_fields` of
    /// earlier points count as declared.
    pub(super) fn schema_faults(
        &self,
        source: &Source,
        new_fields: &NewFields,
        out: &mut Vec<Detail>,
    ) -> Vec<NewField> {
        let mut pending = Vec::new();
        // Listed once, not for each unknown name, because there may be many of both.
        let mut declared_names = Some(|| declared_names(source));
        for (name, scalar) in &self.members {
            let declared = match source.schema.field(name) {
                Some(ordinal) => Some(source.schema.fields[usize::from(ordinal)].kind),
                None => new_fields.kind(source, name),
            };
            let fault = match (declared, scalar.field_type()) {
                (Some(_), _) if scalar.kind() == Kind::Null => None,
                (Some(declared), Some(sent)) if sent == declared => None,
                (Some(declared), _) => Some(format!(
                    "field {} is declared {}, not {}",
                    shown_name(name),
                    declared.name(),
                    scalar.kind()
                )),
                (None, sent) if source.schema_mode == SchemaMode::Extend => {
                    let has_room = new_fields.has_room(source, pending.len());
                    let fault = extension_fault(name, scalar, has_room);
                    if let (None, Some(kind)) = (&fault, sent) {
                        pending.push(NewField {
                            source_id: source.id,
                            name: name.to_string(),
                            kind,
                        });
                    }
                    fault
                }
                (None, _) => {
                    let names = declared_names.take();
                    let names = names.map(|names| format!(" (declared: {})", names()));
                    Some(format!(
                        "field {} is not declared{}, but {} was sent",
                        shown_name(name),
                        names.unwrap_or_default(),
                        scalar.kind()
                    ))
                }
            };
            out.extend(fault.map(|message| Detail::at(&["values", name], message)));
        }
        pending
    }

    /// Writes the values into the open row. Values without a field in the schema are skipped; there are none if
    /// [`Values::schema_faults`] found neither faults nor new fields.
    pub(super) fn write_row(&self, source: &Source, rows: &mut RowsWriter) {
        for (name, scalar) in &self.members {
            let Some(field) = source.schema.field(name) else {
                continue;
            };
            match scalar {
                Scalar::Boolean(value) => rows.boolean(field, *value),
                Scalar::Number(number) => rows.number(field, number.value, number.decimals),
                Scalar::String(value) => rows.string(field, value),
                Scalar::Null | Scalar::Nested(_) => {}
            }
        }
    }

    /// Appends the values as a JSON object in the order sent, without nulls.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let start = out.len();
        for (name, scalar) in &self.members {
            if scalar.field_type().is_none() {
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            write_string(name, out);
            out.push(b':');
            match scalar {
                Scalar::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
                Scalar::Number(number) => write_number(number.value, out),
                Scalar::String(value) => write_string(value, out),
                Scalar::Null | Scalar::Nested(_) => {}
            }
        }
        out.push(b'}');
    }
}

fn read_scalar<'a>(scan: &mut Scanner<'a>, depth: u32) -> Result<Scalar<'a>, Malformed> {
    Ok(match scan.kind()? {
        Kind::Null => scan.null().map(|()| Scalar::Null)?,
        Kind::Boolean => Scalar::Boolean(scan.boolean()?),
        Kind::Number => Scalar::Number(scan.number()?),
        Kind::String => Scalar::String(scan.string()?.into_cow()),
        kind @ (Kind::Array | Kind::Object) => {
            scan.skip_value(depth)?;
            Scalar::Nested(kind)
        }
    })
}

/// Why an undeclared field cannot be added. `null` adds no field.
fn extension_fault(name: &str, scalar: &Scalar<'_>, has_room: bool) -> Option<String> {
    let kind = scalar.kind();
    let fault = match (scalar, name_fault(name)) {
        (Scalar::Null, _) => return None,
        (Scalar::Nested(_), _) => format!("must be a number, string or boolean, not {kind}"),
        (_, Some(fault)) => format!("cannot be added: {fault}, but {kind} was sent"),
        (_, None) if has_room => return None,
        (_, None) => format!(
            "is not declared, and the schema has its {SCHEMA_FIELDS_MAX} fields already, but {kind} was sent"
        ),
    };
    Some(format!("field {} {fault}", shown_name(name)))
}

/// A field name for a message: quoted, and truncated if it is too long.
fn shown_name(name: &str) -> String {
    match name.char_indices().nth(FIELD_NAME_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &name[..end]),
        None => format!("{name:?}"),
    }
}

/// The declared fields of a source, for a message.
fn declared_names(source: &Source) -> String {
    shown_names(source.schema.fields.iter().map(|field| &*field.name))
}
