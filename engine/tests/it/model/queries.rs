//! Queries of rows and groups, on the store and on the naive model.

use std::sync::Arc;

use engine::query::{
    Budget, GroupQuery, Grouping, Groups, Position, ScanQuery, Selection, Wanted, group, scan,
};
use engine::{Aggregate, Step, Unit, Values, Zone};

use super::bucket::Bucket;
use super::{FIELDS, SECOND};
use crate::in_parts::compare_page;
use crate::naive::{Filter, Value, compare};

impl Bucket {
    pub(super) fn range(&mut self) -> (i64, i64) {
        let mut bound = |all: i64| match self.rng.u8(0..4) {
            0 => all,
            _ if self.naive.points.is_empty() => all,
            1 => {
                let point = self.rng.usize(0..self.naive.points.len());
                self.naive.points[point].timestamp_ns
            }
            _ => self.clock_ns - self.rng.i64(0..1_000_000) * SECOND / 3,
        };
        let (a, b) = (bound(i64::MIN), bound(i64::MAX));
        (a.min(b).max(self.cutoff_ns), a.max(b))
    }

    /// A calendar unit or a fixed length.
    pub(super) fn step(&mut self) -> Step {
        match self.rng.bool() {
            true => Step::from(*self.rng.choice(&Unit::ALL).unwrap()),
            false => {
                let seconds = [1, 5, 15, 30, 300, 900, 1_800, 10_800, 21_600, 43_200];
                Step::seconds(*self.rng.choice(&seconds).unwrap()).unwrap()
            }
        }
    }

    /// A zone with a few clock changes.
    pub(super) fn zone(&mut self) -> Zone {
        let unit = *self
            .rng
            .choice(&[3_600 * SECOND, 1_800 * SECOND, SECOND])
            .unwrap();
        let mut at_ns = self.clock_ns - 400_000 * SECOND;
        let mut changes = Vec::new();
        for _ in 0..self.rng.usize(0..4) {
            at_ns = at_ns / unit * unit + unit * self.rng.i64(1..200_000 * SECOND / unit);
            changes.push((at_ns, unit * self.rng.i64(-12..12)));
        }
        Zone::new(unit * self.rng.i64(-12..12), changes)
    }

    pub(super) fn check_rows(&mut self) {
        let range_ns = self.range();
        let sources: Vec<u32> = self
            .sources
            .iter()
            .copied()
            .filter(|_| self.rng.u8(0..3) > 0)
            .collect();
        let fields: Option<Vec<u16>> = self
            .rng
            .bool()
            .then(|| (0..FIELDS).filter(|_| self.rng.bool()).collect::<Vec<u16>>())
            .filter(|f| !f.is_empty());
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let descending = self.rng.bool();
        let filter = Filter {
            sources: &sources,
            range_ns,
            fields: fields.as_deref(),
            metadata,
        };
        let expected = self.naive.rows(&filter, descending);
        let limit = self.rng.usize(1..3_000);
        let skip = if expected.is_empty() {
            0
        } else {
            self.rng.usize(0..expected.len() + 10)
        };
        let after: Option<Position> = (self.rng.bool() && skip > 0 && skip <= expected.len())
            .then(|| (expected[skip - 1].timestamp_ns, expected[skip - 1].sequence));
        let metadata_filter = |text: Option<&str>| text == metadata;
        let snapshot = self.snapshot(&sources);
        let selections: Vec<Selection<'_>> = snapshot
            .iter()
            .map(|series| Selection::new(series, fields.as_deref().map(Arc::from)))
            .collect();
        let query = ScanQuery {
            range_ns,
            descending,
            after,
            skip: if after.is_some() { 0 } else { skip as u64 },
            limit,
            metadata: metadata.map(|_| &metadata_filter as _),
            stop: &|| false,
        };
        let page = scan(&selections, &query).unwrap();
        let expected = &expected[skip.min(expected.len())..];
        assert_eq!(page.more, expected.len() > limit, "whether more follows");
        assert_eq!(page.rows.len(), expected.len().min(limit), "rows of the page");
        for ((run, row), point) in page.rows.iter().zip(expected) {
            let (run, row) = (&page.runs[*run as usize], *row as usize);
            assert_eq!(run.source, point.source);
            assert_eq!(run.columns.key(row), (point.timestamp_ns, point.sequence));
            let text = run
                .columns
                .metadata
                .as_ref()
                .filter(|column| column.has(row))
                .map(|column| match &column.values {
                    Values::Texts(texts) => texts.get(row).to_string(),
                    _ => panic!("metadata is text"),
                });
            assert_eq!(text, point.metadata);
            for field in 0..FIELDS {
                if fields.as_ref().is_some_and(|fields| !fields.contains(&field)) {
                    continue;
                }
                let value = run
                    .columns
                    .field(field)
                    .filter(|column| column.has(row))
                    .map(|column| match &column.values {
                        Values::Numbers { values, .. } => Value::Number(values[row]),
                        Values::Booleans(values) => Value::Boolean(values[row]),
                        Values::Texts(texts) => Value::Text(texts.get(row).to_string()),
                    });
                assert_eq!(
                    value.as_ref(),
                    point.values.get(&field),
                    "field {field} of {point:?}"
                );
            }
        }
    }

    pub(super) fn check_groups(&mut self) {
        let range_ns = self.range();
        let zone = self.zone();
        let step = match self.rng.bool() {
            true => self.step().into(),
            false => self.step().by(Some(&zone)),
        };
        let fields: Vec<u16> = (0..FIELDS).filter(|_| self.rng.bool()).collect();
        let metadata = (self.rng.u8(0..4) == 0).then_some("{\"room\":1}");
        let metadata_filter = |text: Option<&str>| text == metadata;
        let query = GroupQuery {
            range_ns,
            step,
            fields: &fields,
            metadata: metadata.map(|_| &metadata_filter as _),
            stop: &|| false,
            values: &[],
        };
        let snapshot = self.snapshot(&self.sources);
        let budget = Budget::unlimited();
        let mut merged = Grouping::new(Wanted::ALL, &budget);
        for series in &snapshot {
            let groups = group(series, &query).unwrap();
            let sources = [series.source];
            let filter = Filter {
                sources: &sources,
                range_ns,
                fields: None,
                metadata,
            };
            compare(&groups, &self.naive.groups(&filter, step, &fields), fields.len());
            self.cells_shared += compare_page(series, &query, &mut self.rng);
            merged.add(0, series, &query, None).unwrap();
        }
        let filter = Filter {
            sources: &self.sources,
            range_ns,
            fields: None,
            metadata,
        };
        let mut groups = Groups::default();
        for cell in &merged.finish().unwrap().cells {
            groups.starts_ns.push(cell.start_ns);
            let first = groups.aggregates.len();
            groups
                .aggregates
                .resize(first + fields.len(), Aggregate::default());
            for (field, aggregate) in cell.values() {
                groups.aggregates[first + field as usize] = *aggregate;
            }
        }
        compare(&groups, &self.naive.groups(&filter, step, &fields), fields.len());
    }
}
