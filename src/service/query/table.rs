//! Rows of groups as values, for all that changes them after aggregation: expressions, filled steps, comparison.

use std::sync::Arc;

use engine::query::{Cell, Held, Value};

use super::coverage::Coverage;
use super::reading::Aggregated;
use super::{Aggregation, NamedExpression};
use crate::catalog::FieldType;
use crate::error::ServiceError;

/// A row of groups.
#[derive(Debug)]
pub struct TableRow {
    /// Start of the step.
    pub start_ns: i64,
    /// Index of the group of series.
    pub source: u32,
    /// Ascending by field and aggregation.
    pub values: Vec<TableValue>,
    /// The values of the time before, if they were asked for.
    pub previous: Option<Vec<TableValue>>,
}

/// A value of a row.
#[derive(Clone, Debug)]
pub struct TableValue {
    /// Index of the field; expressions follow the fields.
    pub field: u32,
    /// Index of the aggregation.
    pub aggregation: u32,
    /// The value.
    pub value: Computed,
}

/// The result of an aggregation or an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Computed {
    /// It has no result.
    Null,
    /// A finite double.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(Arc<str>),
}

impl Computed {
    /// A number, if there is a finite one.
    pub(super) fn of(number: Option<f64>) -> Self {
        let finite = number.filter(|number| number.is_finite());
        finite.map_or(Computed::Null, Computed::Number)
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Computed::Number(number) => Some(*number),
            Computed::Null | Computed::Boolean(_) | Computed::Text(_) => None,
        }
    }

    fn text_bytes(&self) -> usize {
        match self {
            Computed::Text(text) => text.len(),
            Computed::Null | Computed::Number(_) | Computed::Boolean(_) => 0,
        }
    }
}

impl From<&Value> for Computed {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => Computed::Number(*number),
            Value::Boolean(boolean) => Computed::Boolean(*boolean),
            Value::Text(text) => Computed::Text(Arc::clone(text)),
        }
    }
}

/// What a table computes of each field.
pub(super) struct TableShape<'r> {
    pub(super) coverage: &'r Coverage<'r>,
    pub(super) aggregations: &'r [Aggregation],
    /// Whether booleans are aggregated as numbers: the share of time in which they are true.
    pub(super) shares: bool,
}

impl TableShape<'_> {
    /// Whether an aggregation has a value of fields of this type.
    pub(super) fn covers(&self, aggregation: Aggregation, kind: FieldType) -> bool {
        aggregation.covers(kind) || (self.shares && kind == FieldType::Boolean)
    }

    /// The rows of these cells. `schema` returns the index of the schema of a group.
    pub(super) fn rows<C: Aggregated>(
        &self,
        cells: Vec<Cell<C>>,
        schema: impl Fn(u32) -> usize,
        held: &mut Held<'_>,
    ) -> Result<Vec<TableRow>, ServiceError> {
        let mut rows = Vec::new();
        held.reserve(&mut rows, cells.len())?;
        let mut parts: Vec<(FieldType, C)> = Vec::new();
        for cell in cells {
            let (start_ns, source) = (cell.start_ns, cell.source);
            let schema = schema(source);
            let values = cell.values().map(|(number, _)| {
                let (_, kind) = self.coverage.field_of(schema, number);
                let covering = self.aggregations.iter().filter(|one| self.covers(**one, kind));
                covering.count()
            });
            let mut row = TableRow {
                start_ns,
                source,
                values: Vec::with_capacity(values.sum()),
                previous: None,
            };
            let mut contents = cell
                .into_values()
                .map(|(number, content)| (self.coverage.field_of(schema, number), content))
                .peekable();
            while let Some(((field, kind), content)) = contents.next() {
                parts.clear();
                parts.push((kind, content));
                while let Some(((_, kind), content)) = contents.next_if(|((other, _), _)| *other == field) {
                    parts.push((kind, content));
                }
                self.add_values(field, &mut parts, &mut row.values);
            }
            row.hold(held)?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Adds the values of a field, whose parts are its values of each type.
    fn add_values<C: Aggregated>(
        &self,
        field: u32,
        parts: &mut [(FieldType, C)],
        values: &mut Vec<TableValue>,
    ) {
        for (index, aggregation) in (0..).zip(self.aggregations) {
            let mut covered = parts
                .iter_mut()
                .filter(|(kind, _)| self.covers(*aggregation, *kind))
                .map(|(_, content)| content);
            let Some(one) = covered.next() else {
                continue;
            };
            let value = match covered.next() {
                None => one.value(*aggregation),
                Some(other) => of_several([one, other].into_iter().chain(covered), *aggregation),
            };
            values.push(TableValue {
                field,
                aggregation: index,
                value,
            });
        }
    }
}

/// The value of a field that has values of several types.
fn of_several<'c, C: Aggregated + 'c>(
    several: impl Iterator<Item = &'c mut C>,
    aggregation: Aggregation,
) -> Computed {
    let several = several.map(|content| &*content);
    match aggregation {
        Aggregation::Count => Computed::Number(several.map(C::count).sum::<u64>() as f64),
        Aggregation::Distinct => Computed::Number(several.map(C::distinct).sum::<u64>() as f64),
        _ => {
            let ends = several.filter_map(C::ends);
            let end = match aggregation {
                Aggregation::First => ends.map(|ends| &ends.first).min_by_key(|first| first.0),
                _ => ends.map(|ends| &ends.last).max_by_key(|last| last.0),
            };
            end.map_or(Computed::Null, |(_, value)| value.into())
        }
    }
}

impl TableRow {
    /// Reserves the memory of its values.
    pub(super) fn hold(&self, held: &mut Held<'_>) -> Result<(), ServiceError> {
        let texts: usize = self.values.iter().map(|value| value.value.text_bytes()).sum();
        Ok(held.grow(texts + self.values.capacity() * size_of::<TableValue>())?)
    }
}

/// Adds the results of expressions to values that are sorted by field and aggregation. `index_of` returns the index of a
/// field by its name, if the source has it; `first_field` is that of the first result.
pub(super) fn add_expressions(
    values: &mut Vec<TableValue>,
    expressions: &[NamedExpression],
    index_of: impl Fn(&String) -> Option<u32>,
    first_field: u32,
    aggregations: u32,
) {
    let fields = values.len();
    for (field, named) in (first_field..).zip(expressions) {
        let operands: Vec<Option<u32>> = named.expression.operands().iter().map(&index_of).collect();
        for aggregation in 0..aggregations {
            let operand = |index: usize| {
                let key = (operands[index]?, aggregation);
                let found =
                    values[..fields].binary_search_by_key(&key, |value| (value.field, value.aggregation));
                values[found.ok()?].value.number()
            };
            let value = Computed::of(named.expression.evaluate(operand));
            values.push(TableValue {
                field,
                aggregation,
                value,
            });
        }
    }
}
