//! Prepares a query for its sources: faults that depend on them, the range within the retention, and the ordinals of
//! the fields.
//!
//! Many sources share few schemas, which the catalog stores once, so names are resolved once per schema. If the query
//! names no sources, all sources stay in the catalog's pages, and only those with points in the range are visited.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use engine::query::{Budget, Held, ValueFilter};
use engine::rows::Scalar;
use engine::{SERIES_ORDINALS_FROM, SeriesSnapshot};

use super::checks::faults_of;
use super::dimensions::{absent_matches, matching_series};
use super::metadata::MetadataFilter;
use super::series_groups::SeriesGroup;
use super::{Condition, QueryInput};
use crate::bucket::IndexedView;
use crate::catalog::{Bucket, Catalog, FieldType, Schema, Source, SourcePages};
use crate::error::{Detail, ServiceError};
use crate::query_pool::{Turn, took_too_long};
use crate::service::{Caller, bucket_for, source_for};

/// A query that can be run on a snapshot.
pub(super) struct Plan {
    pub(super) input: QueryInput,
    pub(super) bucket: Arc<Bucket>,
    pub(super) sources: QuerySources,
    /// The distinct schemas of the sources, in order of first occurrence.
    pub(super) schemas: Vec<Resolved>,
    /// Their indexes, by address.
    places: HashMap<usize, usize>,
    pub(super) filter: Option<MetadataFilter>,
    /// Points before this time have expired.
    pub(super) cutoff_ns: i64,
    /// The requested range without expired points, both ends inclusive.
    pub(super) range_ns: (i64, i64),
}

/// The sources of a query.
#[derive(Clone)]
pub(super) enum QuerySources {
    /// All sources of the bucket.
    All(SourcePages),
    /// Named sources, sorted by id and without duplicates.
    Named(Vec<Arc<Source>>),
}

/// A schema and its requested fields.
pub(super) struct Resolved {
    pub(super) schema: Arc<Schema>,
    /// Ordinals, ascending; `None` means all fields.
    pub(super) fields: Option<Arc<[u16]>>,
    /// The same with the fields that only expressions use.
    pub(super) read: Option<Arc<[u16]>>,
    /// The ordinal of each condition's field; `None` if no point of such a source meets them all.
    conditions: Option<Vec<u16>>,
}

/// The selected series that may have points in the range. Nothing is kept of others.
pub(super) struct Reached<'b> {
    pub(super) found: FoundSeries,
    held: Held<'b>,
}

/// Series in groups.
pub(super) struct FoundSeries {
    /// Sorted by group.
    pub(super) series: Vec<ReachedSeries>,
    /// In the order of grouped rows at the same time: by source id, then by the values of dimensions.
    pub(super) groups: Vec<SeriesGroup>,
}

pub(super) struct ReachedSeries {
    pub(super) source: Arc<Source>,
    /// Index of its source's schema.
    pub(super) schema: usize,
    /// Index of its group.
    pub(super) group: u32,
    pub(super) series: SeriesSnapshot,
}

/// Selects the bucket and the sources. Does nothing else, because writers of the catalog wait for readers.
pub(super) fn select(
    catalog: &Catalog,
    caller: &Caller,
    input: &QueryInput,
) -> Result<(Arc<Bucket>, QuerySources), ServiceError> {
    let bucket = bucket_for(catalog, caller, input.bucket_id)?;
    let sources = if input.source_ids.is_empty() {
        QuerySources::All(catalog.source_pages_of(bucket.id))
    } else {
        let ids = input.source_ids.iter();
        let named = ids.map(|id| Ok(source_for(catalog, caller, bucket.id, *id)?.1));
        QuerySources::Named(named.collect::<Result<_, ServiceError>>()?)
    };
    Ok((bucket, sources))
}

/// Number of series that are visited before the query is asked again whether to stop.
pub(super) const SERIES_BETWEEN_STOPS: usize = 256;
/// Maximum number of names resolved and sources visited in a short turn.
const SHORT_PLAN_MAX: u64 = 1 << 15;

/// Whether planning alone exceeds a turn: names are resolved in each distinct schema.
pub(super) fn is_long(sources: &QuerySources, input: &QueryInput, turn: Turn) -> bool {
    if turn == Turn::Long {
        return false;
    }
    let names = input.fields.len() + input.operands().count() + 1;
    let names = sources.schemas().len().saturating_mul(names);
    names.saturating_add(sources.named_len()) as u64 > turn.max(SHORT_PLAN_MAX)
}

impl QuerySources {
    /// Number of sources that were named explicitly.
    pub(super) fn named_len(&self) -> usize {
        match self {
            QuerySources::All(_) => 0,
            QuerySources::Named(sources) => sources.len(),
        }
    }

    /// The distinct schemas, in order of first occurrence among the sources sorted by id.
    fn schemas(&self) -> Vec<Arc<Schema>> {
        match self {
            QuerySources::All(pages) => pages.schemas(),
            QuerySources::Named(sources) => {
                let mut seen = HashSet::new();
                let schemas = sources.iter().map(|source| &source.schema);
                let new = schemas.filter(|schema| seen.insert(Arc::as_ptr(schema)));
                new.cloned().collect()
            }
        }
    }

    /// Whether all sources allow automatic downsampling.
    pub(super) fn all_downsampling(&self) -> bool {
        match self {
            QuerySources::All(pages) => pages.all_downsampling(),
            QuerySources::Named(sources) => sources.iter().all(|source| source.downsampling),
        }
    }
}

impl Plan {
    pub(super) fn of(
        bucket: Arc<Bucket>,
        sources: QuerySources,
        input: QueryInput,
        now_ns: i64,
        indexed: &IndexedView,
    ) -> Result<Self, ServiceError> {
        let (plan, mut faults) = Self::with_faults(bucket, sources, input, now_ns);
        faults.extend(plan.dimension_faults(indexed)?);
        match faults.is_empty() {
            true => Ok(plan),
            false => Err(ServiceError::faults(faults)),
        }
    }

    /// The plan, and what stands against it, except for dimensions that do not exist.
    pub(super) fn with_faults(
        bucket: Arc<Bucket>,
        mut sources: QuerySources,
        input: QueryInput,
        now_ns: i64,
    ) -> (Self, Vec<Detail>) {
        if let QuerySources::Named(sources) = &mut sources {
            sources.sort_by_key(|source| source.id);
            sources.dedup_by_key(|source| source.id);
        }
        let different = sources.schemas();
        let address = |schema: &Arc<Schema>| Arc::as_ptr(schema).addr();
        let places = different.iter().map(address).zip(0..).collect();
        let resolved = |schema| Resolved::of(schema, &input);
        let schemas: Vec<Resolved> = different.iter().map(resolved).collect();
        let faults = faults_of(&input, &schemas);
        let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
        let range_ns = (
            input.start_ns.unwrap_or(i64::MIN).max(cutoff_ns),
            input.end_ns.unwrap_or(i64::MAX),
        );
        let filter = MetadataFilter::new(&input.metadata);
        let plan = Plan {
            input,
            bucket,
            sources,
            schemas,
            places,
            filter,
            cutoff_ns,
            range_ns,
        };
        (plan, faults)
    }

    /// Whether any selected field has this type.
    pub(super) fn has_field(&self, kind: FieldType) -> bool {
        self.schemas.iter().any(|resolved| {
            let is_of_kind = |ordinal: u16| resolved.kind(ordinal) == kind;
            resolved.ordinals().into_iter().any(is_of_kind)
        })
    }

    /// Whether a row's metadata (JSON) matches the filter.
    pub(super) fn passes(&self, metadata: Option<&str>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.passes(metadata))
    }

    /// The series that may have points in a range, in this view of the bucket. `stop` is asked from time to time, with
    /// the number of series that have been visited.
    pub(super) fn reach<'b>(
        &self,
        indexed: &IndexedView,
        range_ns: (i64, i64),
        budget: &'b Budget,
        stop: &dyn Fn(usize) -> bool,
    ) -> Result<Reached<'b>, ServiceError> {
        let mut reached = self.find(indexed, range_ns, budget, stop)?;
        self.group(&mut reached, indexed)?;
        Ok(reached)
    }

    /// The same, sorted by source and ordinal; there are no groups until [`Plan::group`] is called.
    pub(super) fn find<'b>(
        &self,
        indexed: &IndexedView,
        range_ns: (i64, i64),
        budget: &'b Budget,
        stop: &dyn Fn(usize) -> bool,
    ) -> Result<Reached<'b>, ServiceError> {
        let (view, filters) = (&indexed.view, &self.input.dimensions);
        let mut held = budget.hold();
        let (mut series, mut visited) = (Vec::new(), 0_usize);
        let mut add = |source: &Arc<Source>, snapshot: SeriesSnapshot| {
            visited += 1;
            if visited.is_multiple_of(SERIES_BETWEEN_STOPS) && stop(visited) {
                return Err(took_too_long());
            }
            if !snapshot.overlaps(range_ns) {
                return Ok(());
            }
            held.reserve(&mut series, 1)?;
            let schema = match series.last() {
                Some(ReachedSeries {
                    source: last, schema, ..
                }) if Arc::ptr_eq(last, source) => *schema,
                _ => self.place(source)?,
            };
            series.push(ReachedSeries {
                source: Arc::clone(source),
                schema,
                group: 0,
                series: snapshot,
            });
            Ok::<_, ServiceError>(())
        };
        let mut add_matching = |source: &Arc<Source>| {
            let mut found = matching_series(filters, source, indexed, stop)?;
            found.try_for_each(|found| add(source, found))
        };
        match &self.sources {
            QuerySources::All(pages) if filters.is_empty() => {
                for found in view.reaching(range_ns) {
                    // Skip a source that was created since, or that is being deleted.
                    if let Some(source) = pages.get(found.source) {
                        add(source, found)?;
                    }
                }
            }
            QuerySources::All(pages) => {
                let split = view.split_sources().filter_map(|source| pages.get(source));
                split.into_iter().try_for_each(&mut add_matching)?;
                if absent_matches(filters) {
                    // The sources without dimensions, and thus without series of their own. They come first.
                    let all = view.reaching(range_ns);
                    for found in all.take_while(|found| found.ordinal < SERIES_ORDINALS_FROM) {
                        let source = pages.get(found.source);
                        if let Some(source) = source.filter(|source| view.members(source.ordinal).is_none()) {
                            add(source, found)?;
                        }
                    }
                }
            }
            QuerySources::Named(sources) => {
                sources.iter().try_for_each(&mut add_matching)?;
            }
        }
        series.sort_unstable_by_key(|it| (it.source.id, it.series.ordinal));
        let groups = Vec::new();
        let found = FoundSeries { series, groups };
        Ok(Reached { found, held })
    }

    /// Assigns the series to groups.
    pub(super) fn group(&self, reached: &mut Reached<'_>, indexed: &IndexedView) -> Result<(), ServiceError> {
        let FoundSeries { series, groups } = &mut reached.found;
        *groups = self.groups_of(series, indexed, &mut reached.held)?;
        Ok(())
    }

    /// Index of the schema of a source.
    pub(super) fn place(&self, source: &Source) -> Result<usize, ServiceError> {
        let place = self.places.get(&Arc::as_ptr(&source.schema).addr());
        place
            .copied()
            .ok_or_else(|| ServiceError::internal("BUG: a source without its schema"))
    }
}

impl Deref for Reached<'_> {
    type Target = FoundSeries;

    fn deref(&self) -> &FoundSeries {
        &self.found
    }
}

impl Reached<'_> {
    /// The series, which do not count any more.
    pub(super) fn into_found(self) -> FoundSeries {
        self.found
    }

    /// Keeps only the groups with these indexes, which are ascending.
    pub(super) fn keep(&mut self, kept: &[u32]) {
        let FoundSeries { series, groups } = &mut self.found;
        series.retain_mut(|it| {
            let index = kept.binary_search(&it.group);
            it.group = index.unwrap_or_default() as u32;
            index.is_ok()
        });
        let mut index = 0;
        groups.retain(|_| {
            let is_kept = kept.binary_search(&index).is_ok();
            index += 1;
            is_kept
        });
    }
}

impl Resolved {
    fn of(schema: &Arc<Schema>, input: &QueryInput) -> Self {
        let requested = &input.fields;
        let condition = |condition: &Condition| {
            let ordinal = schema.field(&condition.field)?;
            condition
                .fits(schema.fields[usize::from(ordinal)].kind)
                .then_some(ordinal)
        };
        let named = requested.iter().filter_map(|field| schema.field(&field.name));
        let named: BTreeSet<u16> = named.collect();
        let operands = input.operands().filter_map(|operand| schema.field(operand));
        let read: BTreeSet<u16> = named.iter().copied().chain(operands).collect();
        Resolved {
            schema: Arc::clone(schema),
            fields: (!requested.is_empty()).then(|| named.into_iter().collect()),
            read: (!requested.is_empty()).then(|| read.into_iter().collect()),
            conditions: input.values.iter().map(condition).collect(),
        }
    }

    /// Ordinals of the requested fields.
    pub(super) fn ordinals(&self) -> Vec<u16> {
        match &self.fields {
            Some(fields) => fields.to_vec(),
            None => (0..self.schema.fields.len() as u16).collect(),
        }
    }

    /// Ordinals of these and of the fields that only expressions use.
    pub(super) fn read_ordinals(&self) -> Vec<u16> {
        match &self.read {
            Some(fields) => fields.to_vec(),
            None => self.ordinals(),
        }
    }

    pub(super) fn kind(&self, ordinal: u16) -> FieldType {
        self.schema.fields[usize::from(ordinal)].kind
    }

    pub(super) fn name(&self, ordinal: u16) -> &Arc<str> {
        &self.schema.fields[usize::from(ordinal)].name
    }
}

/// Tests of the values of each condition, in their order.
pub(super) struct Tests<'p>(Vec<TestValue<'p>>);

/// The value filters of each schema, by its index; `None` if no point of such a source matches.
pub(super) type SchemaFilters<'t> = Vec<Option<Vec<ValueFilter<'t>>>>;

type TestValue<'p> = Box<dyn Fn(Scalar<'_>) -> bool + 'p>;

impl<'p> Tests<'p> {
    pub(super) fn of(plan: &'p Plan) -> Self {
        let conditions = plan.input.values.iter();
        let test = |condition: &'p Condition| -> TestValue<'p> { Box::new(|value| condition.passes(value)) };
        Tests(conditions.map(test).collect())
    }

    /// The filters for a scan.
    pub(super) fn filters<'t>(&'t self, plan: &'t Plan) -> SchemaFilters<'t> {
        let schemas = plan.schemas.iter();
        schemas.map(|resolved| self.filters_of(plan, resolved)).collect()
    }

    /// The filters of the rows of a source with this schema; `None` if none of them matches.
    pub(super) fn filters_of<'t>(
        &'t self,
        plan: &'t Plan,
        resolved: &Resolved,
    ) -> Option<Vec<ValueFilter<'t>>> {
        let filter = |((ordinal, test), condition): ((&u16, &'t TestValue<'p>), &Condition)| ValueFilter {
            field: *ordinal,
            passes: &**test,
            bounds: condition.bounds(),
        };
        let ordinals = resolved.conditions.as_ref()?.iter();
        let filters = ordinals.zip(&self.0).zip(&plan.input.values).map(filter);
        Some(filters.collect())
    }
}
