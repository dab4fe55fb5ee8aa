//! Prepares a query for its sources: faults that depend on them, the range within the retention, and the ordinals of
//! the fields.
//!
//! Many sources share few schemas, which the catalog stores once, so names are resolved once per schema. If the query
//! names no sources, all sources stay in the catalog's pages, and only those with points in the range are visited.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use engine::query::{Budget, Held, ValueFilter};
use engine::rows::Scalar;
use engine::{SeriesSnapshot, View};

use super::checks::faults_of;
use super::metadata::MetadataFilter;
use super::result::GroupSource;
use super::{Condition, QueryInput};
use crate::catalog::{Bucket, Catalog, FieldType, Schema, Source, SourcePages};
use crate::error::ServiceError;
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

/// The selected sources that may have points in the range, sorted by id, which is the order of grouped rows at the same
/// time. Nothing is kept of other sources.
pub(super) struct Reached<'b> {
    pub(super) sources: Vec<ReachedSource>,
    held: Held<'b>,
}

pub(super) struct ReachedSource {
    pub(super) source: Arc<Source>,
    /// Index of its schema.
    pub(super) schema: usize,
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

/// Maximum number of names resolved and sources visited in a short turn.
const SHORT_PLAN_MAX: usize = 1 << 15;

/// Whether planning alone exceeds a short turn: names are resolved in each distinct schema.
pub(super) fn is_long(sources: &QuerySources, input: &QueryInput) -> bool {
    let names = input.fields.len() + input.operands().count() + 1;
    let names = sources.schemas().len().saturating_mul(names);
    names.saturating_add(sources.named_len()) > SHORT_PLAN_MAX
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
        mut sources: QuerySources,
        input: QueryInput,
        now_ns: i64,
    ) -> Result<Self, ServiceError> {
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
        if !faults.is_empty() {
            return Err(ServiceError::faults(faults));
        }
        let cutoff_ns = bucket.retention_cutoff_ns(now_ns);
        let range_ns = (
            input.start_ns.unwrap_or(i64::MIN).max(cutoff_ns),
            input.end_ns.unwrap_or(i64::MAX),
        );
        let filter = MetadataFilter::new(&input.metadata);
        Ok(Plan {
            input,
            bucket,
            sources,
            schemas,
            places,
            filter,
            cutoff_ns,
            range_ns,
        })
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

    /// The sources that may have points in a range, in this view of the bucket.
    pub(super) fn reach<'b>(
        &self,
        view: &View,
        range_ns: (i64, i64),
        budget: &'b Budget,
    ) -> Result<Reached<'b>, ServiceError> {
        let mut reached = Reached {
            sources: Vec::new(),
            held: budget.hold(),
        };
        match &self.sources {
            QuerySources::All(pages) => {
                for series in view.reaching(range_ns) {
                    // Skip a source that was created since, or that is being deleted.
                    if let Some(source) = pages.get(series.source) {
                        self.add_reached(source, series, &mut reached)?;
                    }
                }
                reached.sources.sort_unstable_by_key(|it| it.source.id);
            }
            QuerySources::Named(sources) => {
                for source in sources {
                    let series = view.source(source.ordinal);
                    if let Some(series) = series.filter(|series| series.overlaps(range_ns)) {
                        self.add_reached(source, series, &mut reached)?;
                    }
                }
            }
        }
        Ok(reached)
    }

    /// The sources of a table's rows, ascending by id: those reached or, if steps without points are rows too and no
    /// sources were chosen, all that are selected.
    pub(super) fn row_sources(
        &self,
        reached: &[ReachedSource],
        held: &mut Held<'_>,
    ) -> Result<Vec<GroupSource>, ServiceError> {
        let mut sources = Vec::new();
        if self.input.fill.is_none() || (self.input.top.is_some() && !self.input.merge_sources) {
            held.reserve(&mut sources, reached.len())?;
            sources.extend(reached.iter().map(|it| GroupSource {
                id: it.source.id,
                schema: it.schema,
            }));
            return Ok(sources);
        }
        let mut add = |source: &Arc<Source>| {
            held.reserve(&mut sources, 1)?;
            sources.push(GroupSource {
                id: source.id,
                schema: self.place(source)?,
            });
            Ok::<_, ServiceError>(())
        };
        match &self.sources {
            QuerySources::All(pages) => pages.iter().try_for_each(&mut add)?,
            QuerySources::Named(sources) => sources.iter().try_for_each(&mut add)?,
        }
        sources.sort_unstable_by_key(|source| source.id);
        Ok(sources)
    }

    /// Index of the schema of a source.
    pub(super) fn place(&self, source: &Source) -> Result<usize, ServiceError> {
        let place = self.places.get(&Arc::as_ptr(&source.schema).addr());
        place
            .copied()
            .ok_or_else(|| ServiceError::internal("BUG: a source without its schema"))
    }

    fn add_reached(
        &self,
        source: &Arc<Source>,
        series: SeriesSnapshot,
        reached: &mut Reached<'_>,
    ) -> Result<(), ServiceError> {
        let schema = self.place(source)?;
        reached.held.reserve(&mut reached.sources, 1)?;
        reached.sources.push(ReachedSource {
            source: Arc::clone(source),
            schema,
            series,
        });
        Ok(())
    }
}

impl Reached<'_> {
    /// The sources, which do not count any more.
    pub(super) fn into_sources(self) -> Vec<ReachedSource> {
        self.sources
    }

    /// Keeps only the sources with these indexes, which are ascending.
    pub(super) fn keep(&mut self, kept: &[u32]) {
        let mut index = 0;
        self.sources.retain(|_| {
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
