//! What the rows of an export have: the fields in the order of their columns, and the types of their values.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::coverage::Coverage;
use super::super::plan::Plan;
use super::super::{Aggregation, Aggregations, Grouping};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// The type of a column of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// All values have this type.
    One(FieldType),
    /// The selected sources declare the field with different types.
    Several,
}

/// What the rows of an export have.
#[derive(Clone, Debug)]
pub struct ExportShape {
    /// The fields: as requested, otherwise by name.
    pub fields: Vec<ExportField>,
    /// The names of expressions, in their order.
    pub expressions: Vec<Arc<str>>,
    /// `None` for points.
    pub groups: Option<GroupShape>,
}

/// A field of an export.
#[derive(Clone, Debug)]
pub struct ExportField {
    /// Its name.
    pub name: Arc<str>,
    /// The types that selected sources declare.
    kinds: Vec<FieldType>,
}

/// What groups of an export have.
#[derive(Clone, Debug)]
pub struct GroupShape {
    /// The aggregations.
    pub aggregations: Aggregations,
    /// Whether each group contains the points of all sources.
    pub is_merged: bool,
    /// Whether each group has the values of the time before.
    pub is_compared: bool,
    /// The names of the dimensions by which series are grouped.
    pub dimensions: Vec<String>,
    /// Whether booleans are numbers: the share of time in which they are true.
    shares: bool,
}

impl ExportField {
    /// The type of its values in points.
    pub fn column_type(&self) -> ColumnType {
        match self.kinds.as_slice() {
            [one] => ColumnType::One(*one),
            _ => ColumnType::Several,
        }
    }

    fn add(&mut self, kind: FieldType) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }
}

impl GroupShape {
    /// The type of an aggregation's values of a field; `None` if it covers none of the field's types.
    pub fn column_type(&self, field: &ExportField, aggregation: Aggregation) -> Option<ColumnType> {
        let is_covered =
            |kind: &FieldType| aggregation.covers(*kind) || (self.shares && *kind == FieldType::Boolean);
        if !field.kinds.iter().any(is_covered) {
            return None;
        }
        Some(match aggregation {
            Aggregation::First | Aggregation::Last => field.column_type(),
            _ => ColumnType::One(FieldType::Number),
        })
    }
}

impl ExportShape {
    pub(super) fn of(plan: &Plan, grouping: Option<&Grouping>, stop: &Stop) -> Result<Self, ServiceError> {
        let mut fields: HashMap<Arc<str>, ExportField> = HashMap::new();
        let mut add = |name: &Arc<str>, kind: FieldType| {
            let field = fields.entry(Arc::clone(name)).or_insert_with(|| ExportField {
                name: Arc::clone(name),
                kinds: Vec::new(),
            });
            field.add(kind);
        };
        let groups = match grouping {
            None => {
                for resolved in &plan.schemas {
                    for ordinal in resolved.ordinals() {
                        add(resolved.name(ordinal), resolved.kind(ordinal));
                    }
                }
                None
            }
            Some(grouping) => {
                let coverage = Coverage::of(plan, grouping, &mut stop.budget().hold())?;
                let covered = coverage.fields.iter().flatten().filter(|field| !field.is_hidden);
                for field in covered {
                    field.kinds().for_each(|kind| add(field.name, kind));
                }
                Some(GroupShape {
                    aggregations: grouping.aggregations.clone(),
                    is_merged: coverage.is_merged,
                    is_compared: plan.input.compare.is_some(),
                    dimensions: plan.input.group_by_dimensions.clone(),
                    shares: grouping.shares,
                })
            }
        };
        let requested = &plan.input.fields;
        let fields = if requested.is_empty() {
            let mut fields: Vec<_> = fields.into_values().collect();
            fields.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            fields
        } else {
            let requested = requested.iter();
            requested
                .filter_map(|field| fields.remove(&*field.name))
                .collect()
        };
        let expressions = plan.input.expressions.iter();
        Ok(ExportShape {
            fields,
            expressions: expressions.map(|named| Arc::clone(&named.name)).collect(),
            groups,
        })
    }
}
