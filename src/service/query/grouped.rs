//! Grouped rows, either requested or chosen by downsampling. Sources are processed one by one, and only the rows of the
//! page are kept.

use std::collections::HashMap;
use std::sync::Arc;

use engine::Aggregate;
use engine::query::{Budget, Cell, Estimate, GroupQuery, Grouped, Held, Wanted};

use super::answer::Answer;
use super::plan::{MemberNames, Plan, Reached, Resolved, Selected};
use super::{Aggregation, AnswerBytes, Grouping, Layout, engine_error, member_name, step_name};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::ingest::json::write_number;
use crate::query_pool::Stop;
use crate::timestamp::format_timestamp_ns;

/// The members of a row itself. A field with one of these names appears only in `values`.
const ROW_MEMBERS: [&str; 5] = ["timestamp", "time", "dataSourceId", "values", "stats"];

/// The aggregated fields of a schema, ascending, and their numbers in cells if these differ from their indexes.
pub(super) struct Covered {
    pub(super) fields: Vec<u16>,
    numbers: Option<Vec<u32>>,
    /// If booleans are aggregated to shares of time: all fields split by type. It is then used instead of `fields` and
    /// `numbers`.
    shares: Option<Shares>,
}

/// Fields with their numbers in cells, separately for numbers and booleans.
struct Shares {
    numbers: (Vec<u16>, Vec<u32>),
    booleans: (Vec<u16>, Vec<u32>),
}

/// The aggregated fields of all schemas.
pub(super) struct Coverage {
    pub(super) by_schema: Vec<Covered>,
    /// With merged sources, fields of the same name are one field; these are the names by number.
    pub(super) merged: Option<Vec<Arc<str>>>,
}

/// An aggregated field: its name as a JSON member, and whether it may also appear directly in the row.
type Member = (Vec<u8>, bool);

impl Coverage {
    fn of(plan: &Plan, grouping: &Grouping, held: &mut Held<'_>) -> Result<Self, ServiceError> {
        let mut by_schema = Vec::new();
        held.reserve(&mut by_schema, plan.schemas.len())
            .map_err(engine_error)?;
        for resolved in &plan.schemas {
            let covers = |field: &u16| {
                grouping.aggregation == Aggregation::Count
                    || match resolved.kind(*field) {
                        FieldType::Number => true,
                        FieldType::Boolean => grouping.shares,
                        FieldType::String => false,
                    }
            };
            let fields: Vec<u16> = resolved.ordinals().into_iter().filter(covers).collect();
            held.grow(2 * fields.len() * (size_of::<u16>() + size_of::<u32>()))
                .map_err(engine_error)?;
            by_schema.push(Covered {
                numbers: None,
                shares: grouping.shares.then(|| Shares::of(resolved, &fields)),
                fields,
            });
        }
        let mut coverage = Coverage {
            by_schema,
            merged: None,
        };
        // `mergeSources` applies only to requested groups.
        if plan.input.merge_sources && grouping.chosen.is_none() {
            coverage.merge(plan, held)?;
        }
        Ok(coverage)
    }

    fn merge(&mut self, plan: &Plan, held: &mut Held<'_>) -> Result<(), ServiceError> {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut number_of: HashMap<&str, u32> = HashMap::new();
        for (resolved, covered) in plan.schemas.iter().zip(&mut self.by_schema) {
            let mut numbers = Vec::with_capacity(covered.fields.len());
            for field in &covered.fields {
                let name = resolved.name(*field);
                if let Some(number) = number_of.get(&**name) {
                    numbers.push(*number);
                    continue;
                }
                // Including its entry in the map.
                held.grow(4 * size_of::<&str>()).map_err(engine_error)?;
                held.reserve(&mut names, 1).map_err(engine_error)?;
                let number = names.len() as u32;
                number_of.insert(name, number);
                names.push(Arc::clone(name));
                numbers.push(number);
            }
            covered.numbers = Some(numbers);
        }
        self.merged = Some(names);
        Ok(())
    }
}

impl Shares {
    /// The numbers are the indexes of the fields, because downsampled answers are never merged.
    fn of(resolved: &Resolved, fields: &[u16]) -> Self {
        let numbered = fields.iter().copied().zip(0..);
        let (booleans, numbers): (Vec<_>, Vec<_>) =
            numbered.partition(|(field, _)| resolved.kind(*field) == FieldType::Boolean);
        Shares {
            numbers: numbers.into_iter().unzip(),
            booleans: booleans.into_iter().unzip(),
        }
    }
}

impl Plan {
    pub(super) fn grouped<'b>(
        &self,
        mut reached: Reached<'_>,
        grouping: &Grouping,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let mut held = stop.budget().hold();
        let coverage = Coverage::of(self, grouping, &mut held)?;
        let groups = self.group(&reached, grouping, &coverage, stop)?;
        // The store is not read any more.
        reached.series = Vec::new();
        stop.touched(groups.touched);
        match self.input.layout {
            Layout::Rows => self.write_groups(&groups, &reached.sources, &coverage, grouping, stop),
            Layout::Columns => self.write_group_columns(&groups, &reached.sources, &coverage, grouping, stop),
        }
    }

    fn group<'b>(
        &self,
        reached: &Reached<'_>,
        grouping: &Grouping,
        coverage: &Coverage,
        stop: &'b Stop,
    ) -> Result<Grouped<'b>, ServiceError> {
        let page = self.offset().saturating_add(self.grouped_limit());
        let wanted = Wanted {
            // One row more than the page, to determine whether more follow.
            rows_max: page.saturating_add(1),
            descending: self.input.descending,
        };
        let filter = |text: Option<&str>| self.passes(text);
        let stop_now = || stop.now();
        let step = grouping.local_step();
        let mut groups = engine::query::Grouping::new(wanted, stop.budget());
        for (place, (selected, series)) in (0..).zip(reached.iter()) {
            let covered = &coverage.by_schema[selected.schema];
            let query = |fields| GroupQuery {
                range_ns: self.range_ns,
                step,
                fields,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: &stop_now,
            };
            let source = match coverage.merged {
                Some(_) => 0,
                None => place,
            };
            let added = match &covered.shares {
                None => groups.add(
                    source,
                    series,
                    &query(&covered.fields),
                    covered.numbers.as_deref(),
                ),
                Some(Shares { numbers, booleans }) => groups
                    .add(source, series, &query(&numbers.0), Some(&numbers.1))
                    .and_then(|()| groups.add_true_shares(source, series, &query(&booleans.0), &booleans.1)),
            };
            added.map_err(engine_error)?;
        }
        groups.finish().map_err(engine_error)
    }

    pub(super) fn estimate_grouped(
        &self,
        grouping: &Grouping,
        reached: &Reached<'_>,
        estimate: &mut Estimate,
        budget: &Budget,
    ) -> Result<(), ServiceError> {
        let coverage = Coverage::of(self, grouping, &mut budget.hold())?;
        let filter = |_: Option<&str>| true;
        for (selected, series) in reached.iter() {
            let covered = &coverage.by_schema[selected.schema];
            let fields = match &covered.shares {
                Some(shares) => &shares.numbers.0,
                None => &covered.fields,
            };
            let query = GroupQuery {
                range_ns: self.range_ns,
                step: grouping.local_step(),
                fields,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: &|| false,
            };
            estimate.add_grouped(series, &query).map_err(engine_error)?;
            let booleans = covered
                .shares
                .as_ref()
                .map_or(0, |shares| shares.booleans.0.len());
            if booleans > 0 {
                let added = estimate.add_rows(series, self.range_ns, booleans);
                added.map_err(engine_error)?;
            }
            if estimate.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn offset(&self) -> usize {
        usize::try_from(self.input.offset).unwrap_or(usize::MAX)
    }

    fn write_groups<'b>(
        &self,
        groups: &Grouped<'_>,
        sources: &[Selected],
        coverage: &Coverage,
        grouping: &Grouping,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let (page, more) = self.page_of(groups);
        let mut held = stop.budget().hold();
        let mut names = MemberNames::new();
        let mut out = Answer::new(256 + 200 * page.len(), stop.budget()).map_err(engine_error)?;
        out.write(|out| out.extend_from_slice(br#"{"data":["#))
            .map_err(engine_error)?;
        for (index, cell) in page.iter().enumerate() {
            let (place, source_id) = match &coverage.merged {
                Some(_) => (0, None),
                None => {
                    let selected = &sources[cell.source as usize];
                    (selected.schema, Some(selected.source.id.to_hex()))
                }
            };
            let members = names.of(place, &mut held, || match &coverage.merged {
                Some(names) => members(names.iter()),
                None => {
                    let resolved: &Resolved = &self.schemas[place];
                    let fields = coverage.by_schema[place].fields.iter();
                    members(fields.map(|field| resolved.name(*field)))
                }
            })?;
            let row = Row {
                cell,
                source_id,
                members: &members,
            };
            out.write(|out| {
                if index > 0 {
                    out.push(b',');
                }
                row.write(grouping.aggregation, grouping.chosen.is_some(), out);
            })
            .map_err(engine_error)?;
        }
        out.write(|out| {
            out.push(b']');
            self.write_groups_end(page.len(), more, grouping, out);
        })
        .map_err(engine_error)?;
        out.finish().map_err(engine_error)
    }

    /// The cells on the page, and whether more follow.
    pub(super) fn page_of<'g>(&self, groups: &'g Grouped<'_>) -> (&'g [Cell], bool) {
        let cells = &groups.cells;
        let offset = self.offset().min(cells.len());
        let page = &cells[offset..cells.len().min(offset.saturating_add(self.grouped_limit()))];
        (page, offset + page.len() < cells.len())
    }

    pub(super) fn write_groups_end(&self, count: usize, more: bool, grouping: &Grouping, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","metadata":{"count":"#);
        write_number(count as f64, out);
        out.extend_from_slice(br#","aggregation":""#);
        out.extend_from_slice(grouping.aggregation.name().as_bytes());
        out.extend_from_slice(br#"","groupBy":""#);
        out.extend_from_slice(step_name(grouping.step).as_bytes());
        out.extend_from_slice(br#"","bucketId":""#);
        out.extend_from_slice(&self.bucket.id.to_hex());
        out.extend_from_slice(br#"","limit":"#);
        write_number(self.grouped_limit() as f64, out);
        out.extend_from_slice(br#","offset":"#);
        write_number(self.input.offset as f64, out);
        out.extend_from_slice(if more {
            br#","hasMore":true"#
        } else {
            br#","hasMore":false"#
        });
        if let Some(chosen) = &grouping.chosen {
            out.extend_from_slice(br#","downsamplingApplied":true,"downsampling":{"groupBy":""#);
            out.extend_from_slice(step_name(chosen.step).as_bytes());
            out.extend_from_slice(br#"","expectedPoints":"#);
            write_number(chosen.expected_points as f64, out);
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
    }
}

/// The members for these names, and the memory they use.
fn members<'n>(names: impl Iterator<Item = &'n Arc<str>>) -> (Vec<Member>, usize) {
    let member = |name: &Arc<str>| (member_name(name), !ROW_MEMBERS.contains(&&**name));
    let members: Vec<Member> = names.map(member).collect();
    let bytes = |(name, _): &Member| size_of::<Member>() + name.capacity();
    let bytes = members.iter().map(bytes).sum();
    (members, bytes)
}

/// A cell with what is needed to write it.
struct Row<'a> {
    cell: &'a Cell,
    source_id: Option<[u8; 24]>,
    members: &'a [Member],
}

impl Row<'_> {
    fn write(&self, aggregation: Aggregation, stats: bool, out: &mut Vec<u8>) {
        let start = format_timestamp_ns(self.cell.start_ns);
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
            let values = self.cell.values();
            values.map(|(number, aggregate)| (&self.members[number as usize], aggregate))
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

pub(super) fn value(aggregate: &Aggregate, aggregation: Aggregation) -> f64 {
    match aggregation {
        Aggregation::Avg => aggregate.avg(),
        Aggregation::Sum => aggregate.sum(),
        Aggregation::Min => aggregate.min,
        Aggregation::Max => aggregate.max,
        Aggregation::Count => aggregate.count as f64,
    }
}
