//! Groups in columns. Where the values of a group are stored together, each group is visited once, and adds to the texts
//! of all arrays: to visit the groups once for each array would read all of them from memory again. Where they are stored
//! by fields, array by array is written.

use std::mem::take;
use std::sync::Arc;

use super::Columns;
use super::texts::ArrayText;
use crate::error::ServiceError;
use crate::http::write::{QueryMetadata, write_dimension, write_quoted, write_value};
use crate::ingest::json::write_number;
use crate::service::query::{
    Aggregations, Answer, FieldNames, GroupColumn, GroupColumns, GroupField, GroupRow, Groups, Held,
};
use crate::timestamp::TimestampFormatter;

pub(super) fn write_groups(groups: &Groups<'_>, answer: &mut Answer<'_>) -> Result<usize, ServiceError> {
    let has_stats = groups.downsampled.is_some();
    let mut values = FieldTexts::of(Which::Values, groups, has_stats, answer)?;
    let mut columns = Columns::begin(answer)?;
    let mut timestamps = TimestampFormatter::default();
    columns.array("timestamp", groups.rows(), |row, out| {
        write_quoted(timestamps.format(row.start_ns).as_bytes(), out);
    })?;
    if !groups.is_merged() {
        let source_ids = groups.rows().filter_map(|row| row.source_id);
        // Neighbouring rows often have the same id.
        let mut before = None;
        columns.array("dataSourceId", source_ids, |source_id, out| {
            let (_, digits) = match before {
                Some(before @ (id, _)) if id == source_id => before,
                _ => *before.insert((source_id, source_id.to_hex())),
            };
            write_quoted(&digits, out);
        })?;
    }
    if !groups.dimensions().is_empty() {
        columns.object("dimensions")?;
        for (index, name) in groups.dimensions().iter().enumerate() {
            columns.array(name, groups.rows(), |row, out| {
                write_dimension(&row.dimensions[index], out)
            })?;
        }
        columns.end_object()?;
    }
    values.write("values", groups.aggregations, &mut columns)?;
    if has_stats {
        values.write_stats(&mut columns)?;
    }
    if groups.is_compared() {
        // Not before the texts of the values are released.
        let mut previous = FieldTexts::of(Which::Previous, groups, false, columns.answer)?;
        previous.write("previous", groups.aggregations, &mut columns)?;
    }
    columns.end_object()?;
    QueryMetadata::of_groups(groups).write(answer)?;
    Ok(groups.len())
}

/// A name, and its index in the answer once it is known.
type KnownName<'a> = (&'a Arc<str>, Option<u32>);

/// Arrays of minima, maxima and counts.
type StatsTexts<'b> = [ArrayText<'b>; 3];

/// Which fields of the groups.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Values,
    Previous,
}

/// The arrays of fields.
struct FieldTexts<'a, 'b> {
    names: FieldNames<'a>,
    /// The names of each schema; empty for one that has not occurred.
    by_schema: Vec<Vec<KnownName<'a>>>,
    /// By the indexes of the names.
    fields: Vec<FieldText<'b>>,
    /// The memory of all but the texts.
    held: Held<'b>,
}

/// The arrays of a field.
struct FieldText<'b> {
    /// By the indexes of the aggregations.
    values: Vec<ArrayText<'b>>,
    /// The results of expressions have none.
    stats: Option<StatsTexts<'b>>,
}

impl<'a, 'b> FieldTexts<'a, 'b> {
    /// The arrays of these fields of all rows.
    fn of(
        which: Which,
        groups: &Groups<'a>,
        has_stats: bool,
        answer: &Answer<'b>,
    ) -> Result<Self, ServiceError> {
        let mut texts = FieldTexts {
            names: FieldNames::default(),
            by_schema: Vec::new(),
            fields: Vec::new(),
            held: answer.hold(),
        };
        let mut before = 0;
        for part in groups.parts() {
            match part.columns().filter(|_| which == Which::Values) {
                Some(columns) => texts.add_columns(before, &columns, groups, has_stats, answer)?,
                None => {
                    for (index, row) in (before..).zip(part.rows()) {
                        texts.add_row((index, row), which, groups, has_stats, answer)?;
                    }
                }
            }
            before += part.count();
        }
        Ok(texts)
    }

    #[inline]
    fn add_row(
        &mut self,
        (index, row): (usize, GroupRow<'a>),
        which: Which,
        groups: &Groups<'a>,
        has_stats: bool,
        answer: &Answer<'b>,
    ) -> Result<(), ServiceError> {
        let fields = match which {
            Which::Values => groups.fields(row),
            Which::Previous => groups.previous(row),
        };
        for field in fields {
            let text = self.field(row.schema, field.index, groups, answer)?;
            text.add_values(index, field, groups.aggregations)?;
            if has_stats && let Some(stats) = field.stats() {
                text.add_stats(index, stats, groups, answer)?;
            }
        }
        Ok(())
    }

    /// Adds groups whose values are stored by fields, behind this number of others.
    fn add_columns(
        &mut self,
        before: usize,
        columns: &GroupColumns<'_, 'a>,
        groups: &Groups<'a>,
        has_stats: bool,
        answer: &Answer<'b>,
    ) -> Result<(), ServiceError> {
        for column in columns.fields() {
            if column.has_values() {
                let text = self.field(columns.schema, column.index, groups, answer)?;
                text.add_column(before, &column, groups.aggregations)?;
                if has_stats {
                    text.add_stats_column(before, &column, groups, answer)?;
                }
            }
        }
        Ok(())
    }

    /// The arrays of a field, by its index among the names of its schema.
    #[inline]
    fn field(
        &mut self,
        schema: usize,
        index: u32,
        groups: &Groups<'a>,
        answer: &Answer<'b>,
    ) -> Result<&mut FieldText<'b>, ServiceError> {
        if self.by_schema.get(schema).is_none_or(Vec::is_empty) {
            self.add_names(schema, groups)?;
        }
        let FieldTexts {
            names,
            by_schema,
            fields,
            held,
        } = self;
        let (name, known) = &mut by_schema[schema][index as usize];
        let place = match known {
            Some(place) => *place,
            None => *known.insert(names.index(name, held)?),
        } as usize;
        if place == fields.len() {
            held.reserve(fields, 1)?;
            fields.push(FieldText::new(groups, answer, held)?);
        }
        Ok(&mut fields[place])
    }

    /// Adds the names of a schema that has not occurred.
    fn add_names(&mut self, schema: usize, groups: &Groups<'a>) -> Result<(), ServiceError> {
        if schema >= self.by_schema.len() {
            let more = schema + 1 - self.by_schema.len();
            self.held.reserve(&mut self.by_schema, more)?;
            self.by_schema.resize_with(schema + 1, Vec::new);
        }
        let own = &mut self.by_schema[schema];
        if own.is_empty() {
            let names = groups.names(schema);
            self.held.reserve(own, names.len())?;
            own.extend(names.into_iter().map(|name| (name, None)));
        }
        Ok(())
    }

    /// Writes an object with the arrays of values, whose memory is released.
    fn write(
        &mut self,
        member: &str,
        aggregations: &Aggregations,
        columns: &mut Columns<'_, 'b>,
    ) -> Result<(), ServiceError> {
        columns.object(member)?;
        for (name, field) in self.names.names().iter().zip(&mut self.fields) {
            let values = take(&mut field.values).into_iter().zip(aggregations.all());
            match aggregations {
                Aggregations::One(_) => {
                    for (text, _) in values {
                        columns.text(name, text)?;
                    }
                }
                Aggregations::Several(_) => {
                    columns.object(name)?;
                    for (text, aggregation) in values.filter(|(text, _)| !text.is_empty()) {
                        columns.text(&aggregation.name(), text)?;
                    }
                    columns.end_object()?;
                }
            }
        }
        columns.end_object()
    }

    /// The same for statistics.
    fn write_stats(&mut self, columns: &mut Columns<'_, 'b>) -> Result<(), ServiceError> {
        columns.object("stats")?;
        for (name, field) in self.names.names().iter().zip(&mut self.fields) {
            let Some(texts) = field.stats.take() else { continue };
            columns.object(name)?;
            for (stat, text) in ["min", "max", "count"].into_iter().zip(texts) {
                columns.text(stat, text)?;
            }
            columns.end_object()?;
        }
        columns.end_object()
    }
}

impl<'b> FieldText<'b> {
    /// The arrays of a field, without entries.
    fn new(groups: &Groups<'_>, answer: &Answer<'b>, held: &mut Held<'_>) -> Result<Self, ServiceError> {
        let aggregations = groups.aggregations.all();
        held.grow(aggregations.len() * size_of::<ArrayText<'_>>())?;
        let text = |_| ArrayText::new(groups.len(), answer);
        Ok(FieldText {
            values: aggregations.iter().map(text).collect(),
            stats: None,
        })
    }

    #[inline]
    fn add_values(
        &mut self,
        row: usize,
        field: GroupField<'_>,
        aggregations: &Aggregations,
    ) -> Result<(), ServiceError> {
        let values = self.values.iter_mut().zip(aggregations.all());
        for (index, (text, aggregation)) in values.enumerate() {
            match (field.value(index, *aggregation), aggregations) {
                // Of several, each has an array if any row has a value.
                (None, Aggregations::Several(_)) => {}
                (value, _) => text.put(row, |out| write_value(value, out))?,
            }
        }
        Ok(())
    }

    /// The same for a field of consecutive groups, whose values are numbers, behind this number of others.
    fn add_column(
        &mut self,
        before: usize,
        column: &GroupColumn<'_>,
        aggregations: &Aggregations,
    ) -> Result<(), ServiceError> {
        let are_several = matches!(aggregations, Aggregations::Several(_));
        for (index, (text, aggregation)) in self.values.iter_mut().zip(aggregations.all()).enumerate() {
            for group in 0..column.count() {
                let Some(field) = column.field(group) else {
                    continue;
                };
                let value = field.value(index, *aggregation);
                if value.is_some() || !are_several {
                    text.put_short(before + group, |out| write_value(value, out))?;
                }
            }
        }
        Ok(())
    }

    fn add_stats(
        &mut self,
        row: usize,
        stats: [f64; 3],
        groups: &Groups<'_>,
        answer: &Answer<'b>,
    ) -> Result<(), ServiceError> {
        let mut texts = self.stats(groups, answer).iter_mut().zip(stats);
        texts.try_for_each(|(text, stat)| text.put(row, |out| write_number(stat, out)))
    }

    fn add_stats_column(
        &mut self,
        before: usize,
        column: &GroupColumn<'_>,
        groups: &Groups<'_>,
        answer: &Answer<'b>,
    ) -> Result<(), ServiceError> {
        for (index, text) in self.stats(groups, answer).iter_mut().enumerate() {
            for group in 0..column.count() {
                if let Some(stats) = column.field(group).and_then(|field| field.stats()) {
                    text.put_short(before + group, |out| write_number(stats[index], out))?;
                }
            }
        }
        Ok(())
    }

    fn stats(&mut self, groups: &Groups<'_>, answer: &Answer<'b>) -> &mut StatsTexts<'b> {
        self.stats
            .get_or_insert_with(|| std::array::from_fn(|_| ArrayText::new(groups.len(), answer)))
    }
}
