//! Grouped rows, asked for or chosen by downsampling.

use std::collections::HashMap;
use std::sync::Arc;

use engine::query::{Downsampling, GroupQuery, Groups, group};
use engine::{Aggregate, Snapshot, Unit};

use super::plan::{Plan, Selected};
use super::{Aggregation, AnswerBytes, engine_error, member_names, unit_name};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::ingest::json::write_number;
use crate::query_pool::Stop;
use crate::timestamp::format_timestamp_ns;

/// A row's own members: a field of such a name stands in `values` only.
const ROW_MEMBERS: [&str; 5] = ["timestamp", "time", "dataSourceId", "values", "stats"];
/// Stands for a field that a source does not have: no schema has so many.
const NO_FIELD: u16 = u16::MAX;

/// Cells of one source, or of all merged, and how to write them.
struct Series {
    groups: Groups,
    source_id: Option<[u8; 24]>,
    /// Each aggregated field: its name as a JSON member, and whether it may stand flat in the row.
    fields: Arc<Vec<(Vec<u8>, bool)>>,
}

impl Plan {
    pub(super) fn grouped(
        &self,
        snapshot: &Snapshot,
        aggregation: Aggregation,
        unit: Unit,
        chosen: Option<Downsampling>,
        stop: &Stop,
    ) -> Result<AnswerBytes, ServiceError> {
        // `mergeSources` speaks of groups that were asked for.
        let series = if self.input.merge_sources && chosen.is_none() {
            self.merged(snapshot, aggregation, unit, stop)?
        } else {
            self.by_source(snapshot, aggregation, unit, stop)?
        };
        let touched = series
            .iter()
            .map(|series| series.groups.touched.rows + series.groups.touched.cells);
        stop.touched(touched.sum());
        // Sources come by id, so a stable sort by time gives the order of rows.
        let mut rows: Vec<(i64, u32, u32)> = Vec::new();
        for (index, series) in series.iter().enumerate() {
            let starts = series.groups.starts_ns.iter().enumerate();
            rows.extend(starts.map(|(cell, start)| (*start, index as u32, cell as u32)));
        }
        rows.sort_by_key(|(start, _, _)| *start);
        if self.input.descending {
            rows.reverse();
        }
        Ok(self.write_groups(&series, &rows, aggregation, unit, chosen))
    }

    /// The fields of a source that the aggregation covers.
    fn covered(selected: &Selected, aggregation: Aggregation) -> Vec<u16> {
        let schema = &selected.source.schema;
        let covers = |field: &u16| {
            aggregation == Aggregation::Count || schema.fields[usize::from(*field)].kind == FieldType::Number
        };
        selected.ordinals().into_iter().filter(covers).collect()
    }

    fn group_one(
        &self,
        series: &engine::SeriesSnapshot,
        fields: &[u16],
        unit: Unit,
        stop: &Stop,
    ) -> Result<Groups, ServiceError> {
        let filter = |text: Option<&str>| self.filter.as_ref().is_none_or(|filter| filter.passes(text));
        let query = GroupQuery {
            range_ns: self.range_ns,
            unit,
            fields,
            metadata: self.filter.as_ref().map(|_| &filter as _),
            stop: &|| stop.now(),
        };
        group(series, &query).map_err(engine_error)
    }

    fn by_source(
        &self,
        snapshot: &Snapshot,
        aggregation: Aggregation,
        unit: Unit,
        stop: &Stop,
    ) -> Result<Vec<Series>, ServiceError> {
        let series: HashMap<u32, &engine::SeriesSnapshot> = snapshot
            .series
            .iter()
            .map(|series| (series.source, series))
            .collect();
        let mut all = Vec::new();
        for selected in &self.sources {
            let Some(series) = series.get(&selected.source.ordinal) else {
                continue;
            };
            let fields = Self::covered(selected, aggregation);
            let names = fields
                .iter()
                .map(|field| &selected.source.schema.fields[usize::from(*field)].name);
            all.push(Series {
                groups: self.group_one(series, &fields, unit, stop)?,
                source_id: Some(selected.source.id.to_hex()),
                fields: Arc::new(writable(names)),
            });
        }
        Ok(all)
    }

    /// All sources as one: fields are the same when their names are.
    fn merged(
        &self,
        snapshot: &Snapshot,
        aggregation: Aggregation,
        unit: Unit,
        stop: &Stop,
    ) -> Result<Vec<Series>, ServiceError> {
        let mut names: Vec<&Arc<str>> = Vec::new();
        let mut place_of: HashMap<&str, usize> = HashMap::new();
        for selected in &self.sources {
            for field in Self::covered(selected, aggregation) {
                let name = &selected.source.schema.fields[usize::from(field)].name;
                place_of.entry(name).or_insert_with(|| {
                    names.push(name);
                    names.len() - 1
                });
            }
        }
        let series: HashMap<u32, &engine::SeriesSnapshot> = snapshot
            .series
            .iter()
            .map(|series| (series.source, series))
            .collect();
        let mut parts = Vec::new();
        for selected in &self.sources {
            let Some(series) = series.get(&selected.source.ordinal) else {
                continue;
            };
            let mut fields = vec![NO_FIELD; names.len()];
            for field in Self::covered(selected, aggregation) {
                fields[place_of[&*selected.source.schema.fields[usize::from(field)].name]] = field;
            }
            parts.push(self.group_one(series, &fields, unit, stop)?);
        }
        let groups = Groups::merge(parts, names.len());
        Ok(vec![Series {
            groups,
            source_id: None,
            fields: Arc::new(writable(names.into_iter())),
        }])
    }

    fn write_groups(
        &self,
        series: &[Series],
        rows: &[(i64, u32, u32)],
        aggregation: Aggregation,
        unit: Unit,
        chosen: Option<Downsampling>,
    ) -> AnswerBytes {
        let limit = self.grouped_limit();
        let offset = usize::try_from(self.input.offset)
            .unwrap_or(usize::MAX)
            .min(rows.len());
        let page = &rows[offset..rows.len().min(offset.saturating_add(limit))];
        let mut out = Vec::with_capacity(256 + 200 * page.len());
        out.extend_from_slice(br#"{"data":["#);
        for (index, (start, series_index, cell)) in page.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            series[*series_index as usize].write(
                *start,
                *cell as usize,
                aggregation,
                chosen.is_some(),
                &mut out,
            );
        }
        out.extend_from_slice(br#"],"metadata":{"count":"#);
        write_number(page.len() as f64, &mut out);
        out.extend_from_slice(br#","aggregation":""#);
        out.extend_from_slice(aggregation.name().as_bytes());
        out.extend_from_slice(br#"","groupBy":""#);
        out.extend_from_slice(unit_name(unit).as_bytes());
        out.extend_from_slice(br#"","bucketId":""#);
        out.extend_from_slice(&self.bucket.id.to_hex());
        out.extend_from_slice(br#"","limit":"#);
        write_number(limit as f64, &mut out);
        out.extend_from_slice(br#","offset":"#);
        write_number(self.input.offset as f64, &mut out);
        let more = offset + page.len() < rows.len();
        out.extend_from_slice(if more {
            br#","hasMore":true"#
        } else {
            br#","hasMore":false"#
        });
        if let Some(chosen) = chosen {
            out.extend_from_slice(br#","downsamplingApplied":true,"downsampling":{"groupBy":""#);
            out.extend_from_slice(unit_name(chosen.unit).as_bytes());
            out.extend_from_slice(br#"","expectedPoints":"#);
            write_number(chosen.expected_points as f64, &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
        out
    }
}

fn writable<'n>(names: impl Iterator<Item = &'n Arc<str>> + Clone) -> Vec<(Vec<u8>, bool)> {
    let flat = names.clone().map(|name| !ROW_MEMBERS.contains(&&**name));
    member_names(names.cloned()).into_iter().zip(flat).collect()
}

impl Series {
    fn write(&self, start_ns: i64, cell: usize, aggregation: Aggregation, stats: bool, out: &mut Vec<u8>) {
        let start = format_timestamp_ns(start_ns);
        out.extend_from_slice(br#"{"timestamp":""#);
        out.extend_from_slice(start.as_bytes());
        out.extend_from_slice(br#"","time":""#);
        out.extend_from_slice(start.as_bytes());
        out.push(b'"');
        if let Some(source_id) = &self.source_id {
            out.extend_from_slice(br#","dataSourceId":""#);
            out.extend_from_slice(source_id);
            out.push(b'"');
        }
        let present = || {
            self.fields
                .iter()
                .zip(self.groups.cell(cell))
                .filter(|(_, aggregate)| aggregate.count > 0)
        };
        out.extend_from_slice(br#","values":{"#);
        for (index, ((name, _), aggregate)) in present().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            write_number(value(aggregate, aggregation), out);
        }
        out.push(b'}');
        if stats {
            out.extend_from_slice(br#","stats":{"#);
            for (index, ((name, _), aggregate)) in present().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(name);
                out.extend_from_slice(br#"{"min":"#);
                write_number(aggregate.min, out);
                out.extend_from_slice(br#","max":"#);
                write_number(aggregate.max, out);
                out.extend_from_slice(br#","count":"#);
                write_number(aggregate.count as f64, out);
                out.push(b'}');
            }
            out.push(b'}');
        }
        for ((name, _), aggregate) in present().filter(|((_, flat), _)| *flat) {
            out.push(b',');
            out.extend_from_slice(name);
            write_number(value(aggregate, aggregation), out);
        }
        out.push(b'}');
    }
}

fn value(aggregate: &Aggregate, aggregation: Aggregation) -> f64 {
    match aggregation {
        Aggregation::Avg => aggregate.avg(),
        Aggregation::Sum => aggregate.sum(),
        Aggregation::Min => aggregate.min,
        Aggregation::Max => aggregate.max,
        Aggregation::Count => aggregate.count as f64,
    }
}
