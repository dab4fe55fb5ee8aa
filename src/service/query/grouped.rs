//! Grouped rows, either requested or chosen by downsampling. Sources are processed one by one, and only the rows of the
//! page are kept.

use std::iter::repeat_n;
use std::sync::Arc;

use engine::query::{Budget, Estimate, GroupQuery, Grouped, Held, Wanted};

use super::plan::{Plan, Reached, ReachedSource, Tests};
use super::result::{FieldNames, Groups, PageInfo, QueryResult, WriteResult};
use super::{Aggregations, Answer, Grouping, Written};
use crate::catalog::FieldType;
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// The aggregated fields of a schema.
struct Covered {
    /// The fields that are aggregated by their values.
    values: NumberedFields,
    /// Boolean fields that are aggregated to the share of time in which they are true.
    shares: NumberedFields,
}

/// Fields and their numbers in cells.
type NumberedFields = (Vec<u16>, Vec<u32>);

/// The aggregated fields of all schemas.
pub(super) struct Coverage<'p> {
    by_schema: Vec<Covered>,
    /// With merged sources, fields of the same name are one field.
    pub(super) is_merged: bool,
    /// The names of the fields by their numbers, for each schema; a single list if sources are merged.
    pub(super) names: Vec<Vec<&'p Arc<str>>>,
    /// With several aggregations of merged sources, the numbers of a field and its values of other types are apart: the
    /// number of the latter is the next one, and odd.
    pub(super) splits: bool,
    /// The types of these fields, where they matter: with several aggregations.
    pub(super) kinds: Vec<Vec<FieldType>>,
}

impl Covered {
    /// All fields, ascending.
    fn all(&self) -> Arc<[u16]> {
        let mut fields: Vec<u16> = [&*self.values.0, &*self.shares.0].concat();
        fields.sort_unstable();
        fields.into()
    }
}

impl<'p> Coverage<'p> {
    fn of(plan: &'p Plan, grouping: &Grouping, held: &mut Held<'_>) -> Result<Self, ServiceError> {
        // `mergeSources` applies only to requested groups.
        let is_merged = plan.input.merge_sources && grouping.chosen.is_none();
        let mut merged = is_merged.then(FieldNames::default);
        let (mut by_schema, mut names, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        let splits = is_merged && matches!(grouping.aggregations, Aggregations::Several(_));
        held.reserve(&mut by_schema, plan.schemas.len())?;
        held.reserve(&mut names, plan.schemas.len())?;
        for resolved in &plan.schemas {
            let covers = |field: &u16| {
                let kind = resolved.kind(*field);
                grouping.aggregations.cover(kind) || (grouping.shares && kind == FieldType::Boolean)
            };
            let fields: Vec<u16> = resolved.ordinals().into_iter().filter(covers).collect();
            held.grow(fields.len() * size_of::<(&Arc<str>, u16, u32)>())?;
            let own: Vec<_> = fields.iter().map(|field| resolved.name(*field)).collect();
            let numbers: Vec<u32> = match &mut merged {
                Some(merged) => {
                    let number = |(name, field): (&&'p Arc<str>, &u16)| {
                        let index = merged.index(name, held)?;
                        Ok(match splits {
                            true => 2 * index + u32::from(resolved.kind(*field) != FieldType::Number),
                            false => index,
                        })
                    };
                    let numbers = own.iter().zip(&fields).map(number);
                    numbers.collect::<Result<_, ServiceError>>()?
                }
                None => (0..own.len() as u32).collect(),
            };
            kinds.push(fields.iter().map(|field| resolved.kind(*field)).collect());
            let is_share =
                |(field, _): &(u16, u32)| grouping.shares && resolved.kind(*field) == FieldType::Boolean;
            let (shares, values): (Vec<_>, Vec<_>) = fields.into_iter().zip(numbers).partition(is_share);
            by_schema.push(Covered {
                values: values.into_iter().unzip(),
                shares: shares.into_iter().unzip(),
            });
            names.push(own);
        }
        if let Some(merged) = merged {
            let parts = if splits { 2 } else { 1 };
            held.grow(parts * merged.names.len() * size_of::<(&Arc<str>, FieldType)>())?;
            kinds = vec![[FieldType::Number, FieldType::String].repeat(merged.names.len())];
            names = vec![
                merged
                    .names
                    .into_iter()
                    .flat_map(|name| repeat_n(name, parts))
                    .collect(),
            ];
        }
        Ok(Coverage {
            by_schema,
            is_merged,
            splits,
            names,
            kinds,
        })
    }
}

impl Plan {
    pub(super) fn grouped<'b>(
        &self,
        reached: &Reached<'_>,
        grouping: &Grouping,
        write: WriteResult,
        stop: &'b Stop,
    ) -> Result<Written<'b>, ServiceError> {
        let mut held = stop.budget().hold();
        let coverage = Coverage::of(self, grouping, &mut held)?;
        let groups = self.group(reached, grouping, &coverage, stop)?;
        stop.touched(groups.touched);
        let offset = self.offset().min(groups.cells.len());
        let following = &groups.cells[offset..];
        let cells = &following[..following.len().min(self.grouped_limit())];
        let result = QueryResult::Groups(Groups {
            plan: self,
            sources: &reached.sources,
            coverage: &coverage,
            cells,
            page: PageInfo {
                count: cells.len(),
                limit: self.grouped_limit(),
                offset: self.input.offset,
                has_more: cells.len() < following.len(),
                next: None,
            },
            aggregations: &grouping.aggregations,
            step: grouping.step_name.clone(),
            downsampled: grouping.chosen.as_ref().map(|chosen| chosen.expected_points),
        });
        let mut answer = Answer::new(stop.budget());
        write(&result, &mut answer)?;
        let (bytes, held) = answer.finish()?;
        Ok((bytes, None, held))
    }

    fn group<'b>(
        &self,
        reached: &Reached<'_>,
        grouping: &Grouping,
        coverage: &Coverage<'_>,
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
        let step = grouping.local_step(self.whole_from_ns(reached, grouping, coverage, stop)?);
        let mut groups = engine::query::Grouping::new(wanted, stop.budget());
        let tests = Tests::of(self);
        let filters = tests.filters(self);
        for (index, ReachedSource { series, schema, .. }) in (0..).zip(&reached.sources) {
            let Some(values) = &filters[*schema] else { continue };
            let covered = &coverage.by_schema[*schema];
            let query = |fields| GroupQuery {
                range_ns: self.range_ns,
                step,
                fields,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: &stop_now,
                values,
            };
            let source = if coverage.is_merged { 0 } else { index };
            let (fields, numbers) = &covered.values;
            groups.add(source, series, &query(fields), Some(numbers))?;
            let (fields, numbers) = &covered.shares;
            groups.add_true_shares(source, series, &query(fields), numbers)?;
        }
        Ok(groups.finish()?)
    }

    /// Where the step of the whole range begins: at the start of the range or, without one, at the first point of the
    /// answer.
    fn whole_from_ns(
        &self,
        reached: &Reached<'_>,
        grouping: &Grouping,
        coverage: &Coverage<'_>,
        stop: &Stop,
    ) -> Result<i64, ServiceError> {
        let covered = |reached: &ReachedSource| coverage.by_schema[reached.schema].all();
        match (grouping.is_whole(), self.input.start_ns) {
            // Not asked for.
            (false, _) => Ok(0),
            (true, Some(start_ns)) => Ok(start_ns),
            (true, None) => self.first_ns(reached, covered, stop),
        }
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
        let tests = Tests::of(self);
        let filters = tests.filters(self);
        for ReachedSource { series, schema, .. } in &reached.sources {
            let Some(values) = &filters[*schema] else { continue };
            let covered = &coverage.by_schema[*schema];
            let query = GroupQuery {
                range_ns: self.range_ns,
                step: grouping.local_step(self.range_ns.0),
                fields: &covered.values.0,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: &|| false,
                values,
            };
            estimate.add_grouped(series, &query)?;
            let (shares, _) = &covered.shares;
            if !shares.is_empty() {
                estimate.add_rows(series, self.range_ns, shares.len())?;
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
}
