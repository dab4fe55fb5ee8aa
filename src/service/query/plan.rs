//! Prepares a query for its sources: faults that depend on them, the range within the retention, and the ordinals of
//! the fields.
//!
//! Many sources share few schemas, which the catalog stores once, so names are resolved once per schema. If the query
//! names no sources, all sources stay in the catalog's pages, and only those with points in the range are visited.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use engine::query::{Budget, Held};
use engine::{SeriesSnapshot, View};

use super::metadata::MetadataFilter;
use super::{Aggregation, AskedField, QueryInput, engine_error};
use crate::catalog::{Bucket, Catalog, FieldType, Schema, Source, SourcePages};
use crate::error::{Detail, ServiceError, shown_names};
use crate::service::{Caller, bucket_for, source_for};

/// A query that can be run on a snapshot.
pub(super) struct Plan {
    pub(super) input: QueryInput,
    pub(super) bucket: Arc<Bucket>,
    pub(super) sources: Asked,
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
pub(super) enum Asked {
    /// All sources of the bucket.
    All(SourcePages),
    /// Named sources, sorted by id and without duplicates.
    Named(Vec<Arc<Source>>),
}

/// A selected source and the index of its schema.
pub(super) struct Selected {
    pub(super) source: Arc<Source>,
    pub(super) schema: usize,
}

/// A schema and its requested fields.
pub(super) struct Resolved {
    pub(super) schema: Arc<Schema>,
    /// Ordinals, ascending; `None` means all fields.
    pub(super) fields: Option<Arc<[u16]>>,
}

/// The selected sources that may have points in the range, sorted by id, which is the order of grouped rows at the same
/// time. Nothing is kept of other sources.
pub(super) struct Reached<'b> {
    pub(super) sources: Vec<Selected>,
    /// The series of the sources, in the same order.
    pub(super) series: Vec<SeriesSnapshot>,
    held: Held<'b>,
}

impl Reached<'_> {
    fn push(&mut self, selected: Selected, series: SeriesSnapshot) -> Result<(), ServiceError> {
        self.held.reserve(&mut self.sources, 1).map_err(engine_error)?;
        self.held.reserve(&mut self.series, 1).map_err(engine_error)?;
        self.sources.push(selected);
        self.series.push(series);
        Ok(())
    }

    /// Pairs of source and series, in order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&Selected, &SeriesSnapshot)> {
        self.sources.iter().zip(&self.series)
    }

    /// Sorts by id. Usually a no-op, because ordinals are assigned in the same order.
    fn sort(&mut self) -> Result<(), ServiceError> {
        if self.sources.is_sorted_by_key(|selected| selected.source.id) {
            return Ok(());
        }
        let each = size_of::<(Selected, SeriesSnapshot)>();
        self.held.grow(self.sources.len() * each).map_err(engine_error)?;
        let sources = std::mem::take(&mut self.sources);
        let mut both: Vec<_> = sources
            .into_iter()
            .zip(std::mem::take(&mut self.series))
            .collect();
        both.sort_by_key(|(selected, _)| selected.source.id);
        (self.sources, self.series) = both.into_iter().unzip();
        Ok(())
    }
}

/// Selects the bucket and the sources. Does nothing else, because writers of the catalog wait for readers.
pub(super) fn select(
    catalog: &Catalog,
    caller: &Caller,
    input: &QueryInput,
) -> Result<(Arc<Bucket>, Asked), ServiceError> {
    let bucket = bucket_for(catalog, caller, input.bucket_id)?;
    let sources = if input.source_ids.is_empty() {
        Asked::All(catalog.source_pages_of(bucket.id))
    } else {
        let ids = input.source_ids.iter();
        let named = ids.map(|id| Ok(source_for(catalog, caller, bucket.id, *id)?.1));
        Asked::Named(named.collect::<Result<_, ServiceError>>()?)
    };
    Ok((bucket, sources))
}

/// Maximum number of names resolved and sources visited in a short turn.
const SHORT_PLAN_MAX: usize = 1 << 15;

/// Whether planning alone exceeds a short turn: names are resolved in each distinct schema.
pub(super) fn is_long(sources: &Asked, input: &QueryInput) -> bool {
    let names = sources.schemas().len().saturating_mul(input.fields.len() + 1);
    names.saturating_add(sources.named_len()) > SHORT_PLAN_MAX
}

impl Asked {
    /// Number of sources that were named explicitly.
    pub(super) fn named_len(&self) -> usize {
        match self {
            Asked::All(_) => 0,
            Asked::Named(sources) => sources.len(),
        }
    }

    /// The distinct schemas, in order of first occurrence among the sources sorted by id.
    fn schemas(&self) -> Vec<Arc<Schema>> {
        match self {
            Asked::All(pages) => pages.schemas(),
            Asked::Named(sources) => {
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
            Asked::All(pages) => pages.all_downsampling(),
            Asked::Named(sources) => sources.iter().all(|source| source.downsampling),
        }
    }
}

impl Plan {
    pub(super) fn of(
        bucket: Arc<Bucket>,
        mut sources: Asked,
        input: QueryInput,
        now_ns: i64,
    ) -> Result<Self, ServiceError> {
        if let Asked::Named(sources) = &mut sources {
            sources.sort_by_key(|source| source.id);
            sources.dedup_by_key(|source| source.id);
        }
        let different = sources.schemas();
        let address = |schema: &Arc<Schema>| Arc::as_ptr(schema).addr();
        let places = different.iter().map(address).zip(0..).collect();
        let resolved = |schema| Resolved::of(schema, &input.fields);
        let schemas: Vec<Resolved> = different.iter().map(resolved).collect();
        check_fields(&input, &schemas)?;
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

    /// The schema of a source with the requested fields.
    pub(super) fn resolved(&self, selected: &Selected) -> &Resolved {
        &self.schemas[selected.schema]
    }

    /// The sources that may have points in the range, in this view of the bucket.
    pub(super) fn reach<'b>(&self, view: &View, budget: &'b Budget) -> Result<Reached<'b>, ServiceError> {
        let mut reached = Reached {
            sources: Vec::new(),
            series: Vec::new(),
            held: budget.hold(),
        };
        match &self.sources {
            Asked::All(pages) => {
                for series in view.reaching(self.range_ns) {
                    // Skip a source that was created since, or that is being deleted.
                    if let Some(source) = pages.get(series.source) {
                        reached.push(self.selected(source)?, series)?;
                    }
                }
                reached.sort()?;
            }
            Asked::Named(sources) => {
                for source in sources {
                    let series = view.source(source.ordinal);
                    if let Some(series) = series.filter(|series| series.overlaps(self.range_ns)) {
                        reached.push(self.selected(source)?, series)?;
                    }
                }
            }
        }
        Ok(reached)
    }

    fn selected(&self, source: &Arc<Source>) -> Result<Selected, ServiceError> {
        let place = self.places.get(&Arc::as_ptr(&source.schema).addr());
        Ok(Selected {
            source: Arc::clone(source),
            schema: *place.ok_or_else(|| ServiceError::internal("BUG: a source without its schema"))?,
        })
    }
}

impl Resolved {
    fn of(schema: &Arc<Schema>, asked: &[AskedField]) -> Self {
        let fields = (!asked.is_empty()).then(|| {
            let named = asked.iter().filter_map(|field| schema.field(&field.name));
            let mut ordinals: Vec<u16> = named.collect();
            ordinals.sort_unstable();
            ordinals.dedup();
            ordinals.into()
        });
        Resolved {
            schema: Arc::clone(schema),
            fields,
        }
    }

    /// Ordinals of the requested fields.
    pub(super) fn ordinals(&self) -> Vec<u16> {
        match &self.fields {
            Some(fields) => fields.to_vec(),
            None => (0..self.schema.fields.len() as u16).collect(),
        }
    }

    pub(super) fn kind(&self, ordinal: u16) -> FieldType {
        self.schema.fields[usize::from(ordinal)].kind
    }

    pub(super) fn name(&self, ordinal: u16) -> &Arc<str> {
        &self.schema.fields[usize::from(ordinal)].name
    }
}

/// Field names as JSON member names, built once per schema that occurs in the answer.
pub(super) struct MemberNames<N> {
    by_schema: HashMap<usize, Arc<Vec<N>>>,
}

impl<N> MemberNames<N> {
    pub(super) fn new() -> Self {
        MemberNames {
            by_schema: HashMap::new(),
        }
    }

    /// The names for a schema.
    pub(super) fn of(
        &mut self,
        schema: usize,
        budget: &mut engine::query::Held<'_>,
        make: impl FnOnce() -> (Vec<N>, usize),
    ) -> Result<Arc<Vec<N>>, ServiceError> {
        if let Some(known) = self.by_schema.get(&schema) {
            return Ok(Arc::clone(known));
        }
        let (names, bytes) = make();
        budget.grow(bytes).map_err(engine_error)?;
        let names = Arc::new(names);
        self.by_schema.insert(schema, Arc::clone(&names));
        Ok(names)
    }
}

/// Accounts for the memory per named source, whether it is read or not.
pub(super) fn hold_sources<'b>(
    count: usize,
    budget: &'b Budget,
) -> Result<engine::query::Held<'b>, ServiceError> {
    let mut held = budget.hold();
    held.grow(count * size_of::<Arc<Source>>())
        .map_err(engine_error)?;
    Ok(held)
}

/// Reports fields that no selected source declares, and numeric aggregations of other types.
fn check_fields(input: &QueryInput, schemas: &[Resolved]) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    // Listed only once, not per unknown name, because there may be many of both.
    let mut available = Some(|| available(schemas));
    for AskedField { index, name } in &input.fields {
        let mut kinds = schemas
            .iter()
            .filter_map(|resolved| Some(resolved.kind(resolved.schema.field(name)?)))
            .peekable();
        let numeric = input
            .grouping
            .is_some_and(|(aggregation, _)| aggregation != Aggregation::Count);
        let message = match kinds.peek().copied() {
            None => {
                let unknown = format!("no selected data source has a field {name:?}");
                Some(match available.take() {
                    Some(available) => format!("{unknown}; available: {}", available()),
                    None => unknown,
                })
            }
            Some(first) if numeric && kinds.all(|kind| kind != FieldType::Number) => {
                let aggregation = input.grouping.map_or("", |(aggregation, _)| aggregation.name());
                Some(format!(
                    "{aggregation} needs a number field, and {name:?} is declared as {}; use count, or leave it out",
                    first.name()
                ))
            }
            Some(_) => None,
        };
        faults.extend(message.map(|message| Detail {
            path: vec!["filters".to_owned(), "fields".to_owned(), index.to_string()],
            message,
        }));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::faults(faults))
    }
}

fn available(schemas: &[Resolved]) -> String {
    let mut names: Vec<&str> = schemas
        .iter()
        .flat_map(|resolved| resolved.schema.fields.iter().map(|field| &*field.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    shown_names(names.into_iter())
}
