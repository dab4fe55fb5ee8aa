//! The columns of an export, and the values of a row by column.

use std::collections::{HashMap, HashSet};

use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::service::query::{
    Aggregations, Column, ColumnType, ExportShape, GroupField, GroupRow, GroupShape, GroupValue, Groups,
    Held, Points, Run, RunExpression,
};

pub const TIMESTAMP: &str = "timestamp";
pub const SOURCE: &str = "dataSourceId";
pub const POINT: &str = "_id";
pub const METADATA: &str = "metadata";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Timestamp,
    SourceId,
    PointId,
    /// Values of the dimension with this index.
    Dimension(usize),
    /// Values of this type.
    Value(ColumnType),
    Metadata,
}

/// A column of an export.
#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: String,
    pub holds: Holds,
}

/// The columns of an export. Of the values, expressions are columns of numbers behind the fields.
pub struct Table {
    pub columns: Vec<TableColumn>,
    /// Whether rows name their sources.
    pub has_sources: bool,
    shape: ExportShape,
    /// Of points: the ordinals of the fields, by schema.
    ordinals: HashMap<usize, Vec<Option<u16>>>,
    /// Of groups: for each field and expression, the column of each aggregation.
    places: Vec<Vec<Option<usize>>>,
    /// Number of columns of values, without those of the time before.
    values: usize,
}

impl Table {
    pub fn new(shape: &ExportShape) -> Self {
        let mut table = Table {
            columns: Vec::new(),
            has_sources: shape.groups.as_ref().is_none_or(|groups| !groups.is_merged),
            shape: shape.clone(),
            ordinals: HashMap::new(),
            places: Vec::new(),
            values: 0,
        };
        let mut names = Names::default();
        table.columns.push(names.fixed(TIMESTAMP, Holds::Timestamp));
        if table.has_sources {
            table.columns.push(names.fixed(SOURCE, Holds::SourceId));
        }
        match &shape.groups {
            None => table.add_points(names),
            Some(groups) => table.add_groups(names, groups),
        }
        table
    }

    fn add_points(&mut self, mut names: Names) {
        self.columns.push(names.fixed(POINT, Holds::PointId));
        let metadata = names.fixed(METADATA, Holds::Metadata);
        for field in &self.shape.fields {
            self.columns.push(names.value(&field.name, field.column_type()));
        }
        for name in &self.shape.expressions {
            self.columns.push(names.value(name, NUMBER));
        }
        self.columns.push(metadata);
    }

    fn add_groups(&mut self, mut names: Names, groups: &GroupShape) {
        for (index, name) in groups.dimensions.iter().enumerate() {
            self.columns
                .push(names.fixed(&format!("dimensions.{name}"), Holds::Dimension(index)));
        }
        let fields = self.shape.fields.iter().map(|field| (&field.name, Some(field)));
        let results = self.shape.expressions.iter().map(|name| (name, None));
        let mut compared = Vec::new();
        for (name, field) in fields.chain(results) {
            let mut places = Vec::new();
            for aggregation in groups.aggregations.all() {
                let column_type = match field {
                    Some(field) => groups.column_type(field, *aggregation),
                    None => Some(NUMBER),
                };
                places.push(column_type.map(|column_type| {
                    let name = match &groups.aggregations {
                        Aggregations::One(_) => name.to_string(),
                        Aggregations::Several(_) => format!("{name}.{}", aggregation.name()),
                    };
                    compared.push((format!("previous.{name}"), column_type));
                    self.columns.push(names.value(&name, column_type));
                    self.values += 1;
                    self.values - 1
                }));
            }
            self.places.push(places);
        }
        if groups.is_compared {
            let previous = compared
                .iter()
                .map(|(name, column_type)| names.value(name, *column_type));
            self.columns.extend(previous);
        }
    }

    /// The columns of each run's fields and expressions.
    pub fn runs<'a>(
        &mut self,
        points: &Points<'a>,
        held: &mut Held<'_>,
    ) -> Result<Vec<RunColumns<'a>>, ServiceError> {
        let mut runs = Vec::new();
        held.reserve(&mut runs, points.runs().len())?;
        let fields = &self.shape.fields;
        for run in points.runs() {
            let ordinals = self.ordinals.entry(run.schema).or_insert_with(|| {
                let by_name: HashMap<&str, u16> =
                    run.fields().map(|(ordinal, name)| (&**name, ordinal)).collect();
                fields
                    .iter()
                    .map(|field| by_name.get(&*field.name).copied())
                    .collect()
            });
            held.grow(ordinals.len() * size_of::<Option<&Column>>())?;
            let fields = ordinals.iter().map(|ordinal| run.column((*ordinal)?)).collect();
            let expressions = run.expressions().collect();
            runs.push(RunColumns {
                run,
                fields,
                expressions,
            });
        }
        Ok(runs)
    }

    /// Reads groups.
    pub fn groups<'a, 't>(&'t self, groups: &'t Groups<'a>) -> GroupReader<'a, 't> {
        let columns = self.values * (1 + usize::from(groups.is_compared()));
        GroupReader {
            table: self,
            groups,
            items: HashMap::new(),
            values: vec![None; columns],
        }
    }
}

/// Expressions give numbers.
const NUMBER: ColumnType = ColumnType::One(FieldType::Number);

/// A run of points by column.
pub struct RunColumns<'a> {
    pub run: Run<'a>,
    /// The columns of the fields; `None` for a field that no row has.
    pub fields: Vec<Option<&'a Column>>,
    pub expressions: Vec<RunExpression<'a>>,
}

/// The values of groups by column.
pub struct GroupReader<'a, 't> {
    table: &'t Table,
    groups: &'t Groups<'a>,
    /// By schema, for each of its fields the index in the table.
    items: HashMap<usize, Vec<Option<usize>>>,
    values: Vec<Option<GroupValue<'a>>>,
}

impl<'a> GroupReader<'a, '_> {
    /// The values of a group, in the order of the columns.
    pub fn values(&mut self, row: GroupRow<'a>) -> &[Option<GroupValue<'a>>] {
        let (table, groups) = (self.table, self.groups);
        let items = self.items.entry(row.schema).or_insert_with(|| {
            let shape = &table.shape;
            let names = shape
                .fields
                .iter()
                .map(|field| &field.name)
                .chain(&shape.expressions);
            let by_name: HashMap<&str, usize> = names.map(|name| &**name).zip(0..).collect();
            let own = groups.names(row.schema).into_iter();
            own.map(|name| by_name.get(&**name).copied()).collect()
        });
        self.values.fill(None);
        let aggregations = groups.aggregations.all();
        let mut add = |field: GroupField<'a>, first: usize| {
            let Some(item) = items[field.index as usize] else {
                return;
            };
            for (index, aggregation) in aggregations.iter().enumerate() {
                if let Some(place) = table.places[item][index] {
                    self.values[first + place] = field.value(index, *aggregation);
                }
            }
        };
        for field in groups.fields(row) {
            add(field, 0);
        }
        if groups.is_compared() {
            for field in groups.previous(row) {
                add(field, table.values);
            }
        }
        &self.values
    }
}

/// The names of columns, each once.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn fixed(&mut self, name: &str, holds: Holds) -> TableColumn {
        self.0.insert(name.to_owned());
        TableColumn {
            name: name.to_owned(),
            holds,
        }
    }

    /// A column of values. If another column has its name, it is a member of `values`.
    fn value(&mut self, name: &str, column_type: ColumnType) -> TableColumn {
        let mut name = name.to_owned();
        while !self.0.insert(name.clone()) {
            name = format!("values.{name}");
        }
        TableColumn {
            name,
            holds: Holds::Value(column_type),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once() {
        let mut names = Names::default();
        let fixed = names.fixed(TIMESTAMP, Holds::Timestamp);
        let fields = ["timestamp", "level", "values.timestamp"];
        let fields = fields.map(|name| names.value(name, NUMBER).name);
        assert_eq!(fixed.name, "timestamp");
        assert_eq!(fields, ["values.timestamp", "level", "values.values.timestamp"]);
    }
}
