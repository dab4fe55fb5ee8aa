//! Removes values from collected rows that are there already: stored before, or earlier in the same request.

use std::collections::HashSet;

use super::table::{Column, Table, Texts, Values};
use super::writer::RowsWriter;
use crate::ends::source_of_ends;

/// The timestamps and fields of values.
pub type KnownValues = HashSet<(i64, u16)>;

impl RowsWriter {
    /// Removes, from the tables for which `known` returns something, the values that are in it and those whose field has
    /// a value at the same time in an earlier row. Rows without values left are removed; ends of series stay. Returns the
    /// number of removed rows.
    pub fn drop_repeats<'k>(&mut self, known: impl Fn(u32) -> Option<&'k KnownValues>) -> u32 {
        let mut dropped = Vec::new();
        let wanted = |source, is_single: bool| {
            let known = known(source).filter(|_| source_of_ends(source).is_none());
            known.filter(|known| !is_single || !known.is_empty())
        };
        self.for_each_table(wanted, |table, known| table.drop_repeats(known, &mut dropped));
        if !dropped.is_empty() {
            dropped.sort_unstable();
            self.forget_rows(&dropped);
        }
        dropped.len() as u32
    }

    /// The timestamps of each table that has points.
    pub fn times(&self) -> impl Iterator<Item = (u32, &[i64])> {
        let sources = self.sources_with_points();
        sources.map(|(source, rows)| (source, rows.timestamps_ns()))
    }

    /// The same with the ordinals of the fields that occur, ascending.
    pub fn times_and_fields(&self) -> impl Iterator<Item = (u32, &[i64], Vec<u16>)> {
        let sources = self.sources_with_points();
        sources.map(|(source, rows)| (source, rows.timestamps_ns(), rows.fields()))
    }
}

impl Table {
    /// Adds the places of removed rows to `dropped`.
    fn drop_repeats(&mut self, known: &KnownValues, dropped: &mut Vec<u32>) {
        let is_ascending = self.timestamps_ns.windows(2).all(|pair| pair[0] < pair[1]);
        if is_ascending && known.is_empty() {
            return;
        }
        let mut seen = KnownValues::new();
        let mut has_value = vec![false; self.timestamps_ns.len()];
        let timestamps_ns = std::mem::take(&mut self.timestamps_ns);
        for (field, column) in self.columns_mut() {
            let is_new = |row: &u32| {
                let value = (timestamps_ns[*row as usize], field);
                !known.contains(&value) && (is_ascending || seen.insert(value))
            };
            let kept: Vec<bool> = column.rows.iter().map(is_new).collect();
            column.retain(&kept);
            for row in &column.rows {
                has_value[*row as usize] = true;
            }
        }
        self.timestamps_ns = timestamps_ns;
        if has_value.iter().all(|has_value| *has_value) {
            return;
        }
        let rows = has_value.iter().zip(&self.places);
        dropped.extend(
            rows.filter(|(has_value, _)| !**has_value)
                .map(|(_, place)| *place),
        );
        // The number of each row that is kept.
        let mut next = 0;
        let numbers: Vec<u32> = has_value
            .iter()
            .map(|has_value| {
                let number = next;
                next += u32::from(*has_value);
                number
            })
            .collect();
        for (_, column) in self.columns_mut() {
            column
                .rows
                .iter_mut()
                .for_each(|row| *row = numbers[*row as usize]);
        }
        let kept: Vec<bool> = self
            .metadata_rows
            .iter()
            .map(|row| has_value[*row as usize])
            .collect();
        retain(&mut self.metadata_rows, &kept);
        self.metadata_rows
            .iter_mut()
            .for_each(|row| *row = numbers[*row as usize]);
        self.metadata.retain(&kept);
        retain(&mut self.timestamps_ns, &has_value);
        retain(&mut self.places, &has_value);
    }
}

impl Column {
    fn retain(&mut self, kept: &[bool]) {
        if kept.iter().all(|kept| *kept) {
            return;
        }
        retain(&mut self.rows, kept);
        match &mut self.values {
            Values::Numbers { values, .. } => retain(values, kept),
            Values::Booleans(values) => retain(values, kept),
            Values::Texts(texts) => texts.retain(kept),
        }
    }
}

impl Texts {
    fn retain(&mut self, kept: &[bool]) {
        let all = std::mem::take(self);
        for (text, _) in all.iter().zip(kept).filter(|(_, kept)| **kept) {
            self.push(text);
        }
    }
}

fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    list.retain(|_| kept.next().copied().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::super::writer::SourceRows;
    use super::*;
    use crate::Store;

    fn writer(rows: &[(i64, &[(u16, f64)])]) -> RowsWriter {
        let mut writer = RowsWriter::new();
        for (timestamp_ns, values) in rows {
            writer.begin(3);
            for (field, value) in *values {
                writer.number(*field, *value, 0);
            }
            writer.metadata(&format!("{{\"at\":{timestamp_ns}}}"));
            writer.commit(*timestamp_ns);
        }
        writer
    }

    fn stored(writer: &RowsWriter) -> Vec<(i64, Vec<u16>)> {
        let tables = writer.sources_with_points().map(|(_, rows)| match rows {
            SourceRows::Several(table) => table,
            SourceRows::One(..) => panic!("several rows"),
        });
        let found = tables.flat_map(|table| {
            (0..table.timestamps_ns.len()).map(|row| {
                let has =
                    |(field, column): (u16, &Column)| column.rows.contains(&(row as u32)).then_some(field);
                (
                    table.timestamps_ns[row],
                    table.present_columns().filter_map(has).collect(),
                )
            })
        });
        found.collect()
    }

    #[test]
    fn fields_are_dropped_one_by_one_and_rows_without_any_left() {
        let mut rows = writer(&[
            (1, &[(0, 1.0), (1, 1.0)]),
            (1, &[(0, 2.0)]),
            (2, &[(0, 3.0), (2, 3.0)]),
            (1, &[(1, 4.0), (2, 4.0)]),
            (5, &[(0, 5.0)]),
        ]);
        let known = KnownValues::from([(2, 0), (5, 0)]);
        assert_eq!(rows.drop_repeats(|_| Some(&known)), 2);
        assert_eq!(stored(&rows), [(1, vec![0, 1]), (2, vec![2]), (1, vec![2])]);
        assert_eq!(rows.rows(), 3);
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        assert_eq!(
            Store::new().apply(&encoded, 1, &[]).unwrap(),
            3,
            "places are consecutive"
        );
    }

    #[test]
    fn tables_that_may_repeat_stay_as_they_are() {
        let mut rows = writer(&[(1, &[(0, 1.0)]), (1, &[(0, 2.0)])]);
        assert_eq!(rows.drop_repeats(|_| None), 0);
        assert_eq!(rows.rows(), 2);
    }
}
