//! The fields that a grouped query aggregates, and their numbers in the cells of the engine.

use std::sync::Arc;

use engine::query::{Held, NeededField, Needs};

use super::Aggregations;
use super::choice::Grouping;
use super::plan::{Plan, Resolved};
use super::result::FieldNames;
use crate::catalog::FieldType;
use crate::error::ServiceError;

/// The aggregated fields of a schema.
pub struct Covered {
    /// The fields that are aggregated by their values.
    pub(super) values: SourceFields,
    /// Boolean fields that are aggregated to the share of time in which they are true.
    pub(super) shares: SourceFields,
}

/// Fields of a source.
#[derive(Default)]
pub struct SourceFields {
    /// Their ordinals, ascending.
    pub(super) ordinals: Vec<u16>,
    /// Their numbers in cells.
    pub(super) numbers: Vec<u32>,
    /// The same with the statistics that are needed of them.
    pub(super) needed: Vec<NeededField>,
}

/// A field of the answer.
pub struct CoveredField<'p> {
    pub(super) name: &'p Arc<str>,
    /// The types that it has, by their index; in merged sources there may be several.
    kinds: [bool; FieldType::ALL.len()],
    /// Whether only expressions use it.
    pub(super) is_hidden: bool,
}

/// The aggregated fields of all schemas.
pub struct Coverage<'p> {
    pub(super) by_schema: Vec<Covered>,
    /// With merged sources, fields of the same name are one field. Its values of different types have different numbers,
    /// so that each aggregation finds those that it covers.
    pub(super) is_merged: bool,
    /// The fields of each schema; a single list if sources are merged.
    pub(super) fields: Vec<Vec<CoveredField<'p>>>,
}

impl<'p> CoveredField<'p> {
    fn new(name: &'p Arc<str>, plan: &Plan) -> Self {
        let requested = &plan.input.fields;
        CoveredField {
            name,
            kinds: Default::default(),
            is_hidden: !requested.is_empty() && !requested.iter().any(|field| *field.name == **name),
        }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = FieldType> {
        let kinds = FieldType::ALL.into_iter().zip(self.kinds);
        kinds.filter_map(|(kind, is_there)| is_there.then_some(kind))
    }
}

impl SourceFields {
    fn push(&mut self, field: u16, number: u32, needs: Needs) {
        self.ordinals.push(field);
        self.numbers.push(number);
        self.needed.push(NeededField { field, number, needs });
    }
}

impl Covered {
    /// All fields, ascending.
    pub(super) fn all(&self) -> Arc<[u16]> {
        let mut fields = [&*self.values.ordinals, &*self.shares.ordinals].concat();
        fields.sort_unstable();
        fields.into()
    }
}

impl<'p> Coverage<'p> {
    pub(super) fn of(plan: &'p Plan, grouping: &Grouping, held: &mut Held<'_>) -> Result<Self, ServiceError> {
        let mut coverage = Coverage {
            by_schema: Vec::new(),
            is_merged: plan.is_merged(),
            fields: Vec::new(),
        };
        let mut names = FieldNames::default();
        let mut merged = Vec::new();
        held.reserve(&mut coverage.by_schema, plan.schemas.len())?;
        for resolved in &plan.schemas {
            let mut own = Vec::new();
            let mut covered = Covered {
                values: SourceFields::default(),
                shares: SourceFields::default(),
            };
            for field in covered_fields(resolved, grouping) {
                held.grow(size_of::<CoveredField<'_>>() + size_of::<(u16, u32, NeededField)>())?;
                let (name, kind) = (resolved.name(field), resolved.kind(field));
                let fields = if coverage.is_merged { &mut merged } else { &mut own };
                let index = match coverage.is_merged {
                    true => names.index(name, held)?,
                    false => fields.len() as u32,
                };
                if index as usize == fields.len() {
                    fields.push(CoveredField::new(name, plan));
                }
                let kind_index = index_of(kind);
                fields[index as usize].kinds[kind_index as usize] = true;
                let number = match coverage.is_merged {
                    true => KINDS * index + kind_index,
                    false => index,
                };
                match grouping.shares && kind == FieldType::Boolean {
                    true => covered.shares.push(field, number, SHARE),
                    false => covered
                        .values
                        .push(field, number, grouping.aggregations.needs(kind)),
                }
            }
            coverage.by_schema.push(covered);
            if !coverage.is_merged {
                held.reserve(&mut coverage.fields, 1)?;
                coverage.fields.push(own);
            }
        }
        if coverage.is_merged {
            coverage.fields.push(merged);
        }
        Ok(coverage)
    }

    /// Covers only the number field with this name.
    pub(super) fn of_field(
        plan: &'p Plan,
        name: &str,
        by: &Aggregations,
        held: &mut Held<'_>,
    ) -> Result<Self, ServiceError> {
        let mut coverage = Coverage {
            by_schema: Vec::new(),
            is_merged: false,
            fields: Vec::new(),
        };
        held.reserve(&mut coverage.by_schema, plan.schemas.len())?;
        for resolved in &plan.schemas {
            let mut values = SourceFields::default();
            let number = resolved.schema.field(name);
            if let Some(field) = number.filter(|field| resolved.kind(*field) == FieldType::Number) {
                values.push(field, 0, by.needs(FieldType::Number));
            }
            coverage.by_schema.push(Covered {
                values,
                shares: SourceFields::default(),
            });
        }
        Ok(coverage)
    }

    /// The field with this number in cells, and the type of the values that have it.
    pub(super) fn field_of(&self, schema: usize, number: u32) -> (u32, FieldType) {
        if self.is_merged {
            return (number / KINDS, FieldType::ALL[(number % KINDS) as usize]);
        }
        let kind = self.fields[schema][number as usize].kinds().next();
        (number, kind.unwrap_or(FieldType::Number))
    }
}

const KINDS: u32 = FieldType::ALL.len() as u32;

/// What the share of time true needs.
const SHARE: Needs = Needs {
    over_time: true,
    ends: false,
    newest: false,
    moments: false,
    growth: false,
    values: false,
    distinct: false,
};

fn index_of(kind: FieldType) -> u32 {
    FieldType::ALL
        .into_iter()
        .zip(0..)
        .find(|(other, _)| *other == kind)
        .map_or(0, |(_, index)| index)
}

fn covered_fields(resolved: &Resolved, grouping: &Grouping) -> impl Iterator<Item = u16> {
    let covers = |field: &u16| {
        let kind = resolved.kind(*field);
        grouping.aggregations.cover(kind) || (grouping.shares && kind == FieldType::Boolean)
    };
    resolved.read_ordinals().into_iter().filter(covers)
}
