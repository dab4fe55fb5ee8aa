//! What the columns of a file are.
//!
//! An export of points has columns that are no fields: `_id`, `dataSourceId`, `metadata`, and in NDJSON `values`. A file
//! that has them is read as one, so that what was exported and is imported is the same.

use tabular::Rows;

use super::ImportSettings;
use crate::catalog::{SchemaMode, Source};
use crate::error::{Detail, ServiceError, shown_names};

/// The columns that have the time, if no other is named.
const TIME_COLUMNS: [&str; 2] = ["timestamp", "time"];
/// The columns that all exports of points have.
const EXPORTED: [&str; 3] = ["timestamp", "dataSourceId", "_id"];
/// Columns of exports whose names a field cannot have there.
const FIXED: [&str; 4] = ["timestamp", "dataSourceId", "_id", "metadata"];
/// What stands before the name of a field that is one of them.
const OF_VALUES: &str = "values.";

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Time,
    /// A dimension of this name.
    Dimension(String),
    /// A field of this name.
    Field(String),
    /// The source that an exported point had.
    ExportedSource,
    /// All metadata of an exported point.
    ExportedMetadata,
    /// All values of an exported point, by NDJSON.
    ExportedValues,
    /// The id that an exported point had.
    ExportedId,
}

/// The roles of the columns, in their order.
pub struct Columns {
    roles: Vec<Role>,
    /// Names of columns that the request names and no row has.
    missing: Vec<Detail>,
}

impl Columns {
    /// Finds out what the columns are.
    ///
    /// # Errors
    /// 400 if no column has the time and none is named.
    pub fn of(rows: &Rows, settings: &ImportSettings) -> Result<Self, ServiceError> {
        let names: Vec<&str> = rows.columns().collect();
        let time = match &settings.time {
            Some(named) => Some(named.as_str()),
            None => TIME_COLUMNS.into_iter().find(|time| names.contains(time)),
        };
        let is_export = time == Some(EXPORTED[0]) && EXPORTED.iter().all(|name| names.contains(name));
        let has_values = is_export && names.contains(&"values");
        let role = |name: &str| {
            if Some(name) == time {
                return Role::Time;
            }
            if settings.dimensions.iter().any(|dimension| dimension == name) {
                return Role::Dimension(name.to_owned());
            }
            match name {
                "dataSourceId" if is_export => Role::ExportedSource,
                "_id" if is_export => Role::ExportedId,
                "metadata" if is_export => Role::ExportedMetadata,
                "values" if has_values => Role::ExportedValues,
                name if is_export => Role::Field(exported_field(name).to_owned()),
                name => Role::Field(name.to_owned()),
            }
        };
        let roles = names.iter().map(|name| role(name)).collect();
        let missing = |member: &str, name: &str| {
            let columns = shown_names(names.iter().copied());
            let message = format!("the file has no column {name:?}; its columns are {columns}");
            Detail::at(&[member], message)
        };
        let mut faults = Vec::new();
        match &settings.time {
            Some(time) if !names.contains(&time.as_str()) => faults.push(missing("time", time)),
            None if time.is_none() => {
                let fault = missing("time", TIME_COLUMNS[0]).message;
                faults.push(Detail::at(
                    &["time"],
                    format!("{fault}; name the column with the time"),
                ));
            }
            _ => {}
        }
        let unknown = settings
            .dimensions
            .iter()
            .filter(|name| !names.contains(&name.as_str()));
        faults.extend(unknown.map(|name| missing("dimensions", name)));
        Ok(Columns {
            roles,
            missing: faults,
        })
    }

    /// Checks them at the beginning of a file: all that the request names are there, and a source that takes no others has
    /// their fields.
    ///
    /// # Errors
    /// 400 with all that is wrong.
    pub fn check(&self, rows: &Rows, source: Option<&Source>) -> Result<(), ServiceError> {
        let mut faults = self.missing.clone();
        if let Some(source) = source.filter(|source| source.schema_mode == SchemaMode::Strict) {
            for (name, role) in rows.columns().zip(&self.roles) {
                if let Role::Field(field) = role
                    && source.schema.field(field).is_none()
                {
                    let message = format!(
                        "the data source {:?} does not declare this field, and its schemaMode is strict",
                        source.name
                    );
                    faults.push(Detail::at(&[name], message));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ServiceError::faults(faults)),
        }
    }

    pub fn role(&self, column: usize) -> &Role {
        &self.roles[column]
    }
}

/// The field that a column of an export holds: a field with the name of another column has `values.` before it.
fn exported_field(column: &str) -> &str {
    let mut base = column;
    while let Some(rest) = base.strip_prefix(OF_VALUES) {
        base = rest;
    }
    match column.strip_prefix(OF_VALUES) {
        Some(field) if FIXED.contains(&base) => field,
        _ => column,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_the_name_of_another_column_is_found() {
        for (column, field) in [
            ("level", "level"),
            ("values.level", "values.level"),
            ("values.timestamp", "timestamp"),
            ("values.values.timestamp", "values.timestamp"),
        ] {
            assert_eq!(exported_field(column), field);
        }
    }
}
