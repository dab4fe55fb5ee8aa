//! Faults of a query that depend on the fields of its sources.

use std::collections::BTreeSet;

use super::plan::Resolved;
use super::{Literal, QueryInput, RequestedField, Test};
use crate::catalog::FieldType;
use crate::error::{Detail, shown_names};

/// All of them.
pub(super) fn faults_of(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let mut faults = check_fields(input, schemas);
    faults.extend(check_conditions(input, schemas));
    faults.extend(check_expressions(input, schemas));
    faults.extend(check_top(input, schemas));
    faults
}

/// The types that the selected sources declare a field with.
fn declared_kinds(schemas: &[Resolved], name: &str) -> Vec<FieldType> {
    let declares = |kind: &FieldType| {
        let mut kinds = schemas
            .iter()
            .filter_map(|resolved| Some(resolved.kind(resolved.schema.field(name)?)));
        kinds.any(|other| other == *kind)
    };
    FieldType::ALL.into_iter().filter(declares).collect()
}

/// The fields of the selected sources. They are listed once, not for each unknown name, because there may be many of both.
struct Available<'s> {
    schemas: &'s [Resolved],
    are_listed: bool,
}

impl<'s> Available<'s> {
    fn of(schemas: &'s [Resolved]) -> Self {
        Available {
            schemas,
            are_listed: false,
        }
    }

    /// The message about a name that is not among them.
    fn unknown(&mut self, name: &str) -> String {
        let message = format!("no selected data source has a field {name:?}");
        if std::mem::replace(&mut self.are_listed, true) {
            return message;
        }
        let fields = self.schemas.iter().flat_map(|resolved| &resolved.schema.fields);
        let names: BTreeSet<&str> = fields.map(|field| &*field.name).collect();
        format!("{message}; available: {}", shown_names(names.into_iter()))
    }
}

/// Finds conditions on fields that no selected source declares, and values that are of no type that one declares.
fn check_conditions(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let mut faults = Vec::new();
    let mut available = Available::of(schemas);
    for condition in &input.values {
        let kinds = declared_kinds(schemas, &condition.field);
        let field = &*condition.field;
        let mut fault = |below: &[String], message: String| {
            let path = ["filters", "values", field].map(str::to_owned);
            faults.push(Detail {
                path: path.into_iter().chain(below.iter().cloned()).collect(),
                message,
            });
        };
        if kinds.is_empty() {
            fault(&[], available.unknown(field));
            continue;
        }
        let declared = shown_names(kinds.iter().map(|kind| kind.name()));
        for test in &condition.tests {
            for (index, kind) in test.operands().iter().map(Literal::kind).enumerate() {
                if !kinds.contains(&kind) {
                    let mut below = vec![test.name().to_owned()];
                    if matches!(test, Test::In(_)) {
                        below.push(index.to_string());
                    }
                    let is_for = kind.name();
                    fault(
                        &below,
                        format!("is for a {is_for} field, and {field:?} is declared as {declared}"),
                    );
                }
            }
        }
    }
    faults
}

/// Finds fields that no selected source declares, and numeric aggregations of other types.
fn check_fields(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let aggregations = input.grouping.as_ref().map(|(aggregations, _)| aggregations);
    let is_covered = |kind: FieldType| aggregations.is_none_or(|aggregations| aggregations.cover(kind));
    let mut faults = Vec::new();
    let mut available = Available::of(schemas);
    for RequestedField { index, name } in &input.fields {
        let mut kinds = schemas
            .iter()
            .filter_map(|resolved| Some(resolved.kind(resolved.schema.field(name)?)))
            .peekable();
        let message = match kinds.peek().copied() {
            None => available.unknown(name),
            Some(_) if kinds.clone().any(is_covered) => continue,
            Some(kind) => {
                let names = aggregations.iter().flat_map(|aggregations| aggregations.all());
                let names: Vec<_> = names.map(|aggregation| aggregation.name()).collect();
                format!(
                    "is declared as {}, which {} does not aggregate: {name:?}; use count, or leave it out",
                    kind.name(),
                    names.join(", ")
                )
            }
        };
        let mut path: Vec<String> = input.fields_path.iter().map(ToString::to_string).collect();
        path.push(index.to_string());
        faults.push(Detail { path, message });
    }
    faults
}

/// Finds expressions over fields that no selected source declares, and names of results that are those of fields.
fn check_expressions(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let mut faults = Vec::new();
    let mut available = Available::of(schemas);
    for (index, named) in input.expressions.iter().enumerate() {
        let mut fault = |member: &str, message: String| {
            let path = ["expressions", &index.to_string(), member].map(str::to_owned);
            faults.push(Detail {
                path: path.to_vec(),
                message,
            });
        };
        if !declared_kinds(schemas, &named.name).is_empty() {
            let name = &*named.name;
            fault(
                "name",
                format!("is also a field of a selected data source: {name:?}; choose another"),
            );
        }
        let operands = named.expression.operands().iter();
        for operand in operands.filter(|operand| declared_kinds(schemas, operand).is_empty()) {
            fault("expression", available.unknown(operand));
        }
    }
    faults
}

/// Finds a field of `top` that no selected source declares as a number.
fn check_top(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let Some((_, field)) = input.top_field() else {
        return Vec::new();
    };
    let kinds = declared_kinds(schemas, field);
    let message = match kinds.as_slice() {
        [] => Available::of(schemas).unknown(field),
        kinds if kinds.contains(&FieldType::Number) => return Vec::new(),
        kinds => format!(
            "must be a number field, and {field:?} is declared as {}",
            shown_names(kinds.iter().map(|kind| kind.name()))
        ),
    };
    vec![Detail::at(&["top", "field"], message)]
}
