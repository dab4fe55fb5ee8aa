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

use super::metadata::MetadataFilter;
use super::{Condition, Literal, QueryInput, RequestedField, Test};
use crate::catalog::{Bucket, Catalog, FieldType, Schema, Source, SourcePages};
use crate::error::{Detail, ServiceError, shown_names};
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
    let names = sources.schemas().len().saturating_mul(input.fields.len() + 1);
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
        let mut faults = check_fields(&input, &schemas);
        faults.extend(check_conditions(&input, &schemas));
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

    /// The sources that may have points in the range, in this view of the bucket.
    pub(super) fn reach<'b>(&self, view: &View, budget: &'b Budget) -> Result<Reached<'b>, ServiceError> {
        let mut reached = Reached {
            sources: Vec::new(),
            held: budget.hold(),
        };
        match &self.sources {
            QuerySources::All(pages) => {
                for series in view.reaching(self.range_ns) {
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
                    if let Some(series) = series.filter(|series| series.overlaps(self.range_ns)) {
                        self.add_reached(source, series, &mut reached)?;
                    }
                }
            }
        }
        Ok(reached)
    }

    fn add_reached(
        &self,
        source: &Arc<Source>,
        series: SeriesSnapshot,
        reached: &mut Reached<'_>,
    ) -> Result<(), ServiceError> {
        let place = self.places.get(&Arc::as_ptr(&source.schema).addr());
        let schema = *place.ok_or_else(|| ServiceError::internal("BUG: a source without its schema"))?;
        reached.held.reserve(&mut reached.sources, 1)?;
        reached.sources.push(ReachedSource {
            source: Arc::clone(source),
            schema,
            series,
        });
        Ok(())
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
        let ordinals = named.collect::<BTreeSet<u16>>().into_iter();
        Resolved {
            schema: Arc::clone(schema),
            fields: (!requested.is_empty()).then(|| ordinals.collect()),
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
        let filter = |((ordinal, test), condition): ((&u16, &'t TestValue<'p>), &Condition)| ValueFilter {
            field: *ordinal,
            passes: &**test,
            bounds: condition.bounds(),
        };
        let of_schema = |resolved: &Resolved| {
            let ordinals = resolved.conditions.as_ref()?.iter();
            Some(
                ordinals
                    .zip(&self.0)
                    .zip(&plan.input.values)
                    .map(filter)
                    .collect(),
            )
        };
        plan.schemas.iter().map(of_schema).collect()
    }
}

/// Finds conditions on fields that no selected source declares, and values that are of no type that one declares.
fn check_conditions(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let mut faults = Vec::new();
    for condition in &input.values {
        let declares = |resolved: &Resolved, kind| {
            let ordinal = resolved.schema.field(&condition.field);
            ordinal.is_some_and(|ordinal| resolved.kind(ordinal) == kind)
        };
        let is_declared = |kind: &FieldType| schemas.iter().any(|resolved| declares(resolved, *kind));
        let kinds: Vec<FieldType> = FieldType::ALL.into_iter().filter(is_declared).collect();
        let field = &*condition.field;
        let mut fault = |below: &[String], message: String| {
            let path = ["filters", "values", field].map(str::to_owned);
            faults.push(Detail {
                path: path.into_iter().chain(below.iter().cloned()).collect(),
                message,
            });
        };
        if kinds.is_empty() {
            let available = available(schemas);
            fault(
                &[],
                format!("no selected data source has a field {field:?}; available: {available}"),
            );
            continue;
        }
        let declared = shown_names(kinds.iter().map(|kind| kind.name()));
        for test in &condition.tests {
            for (index, kind) in test.operands().iter().map(Literal::kind).enumerate() {
                if !kinds.contains(&kind) {
                    let mut below = vec![test.name().to_owned()];
                    if matches!(test, Test::In(_)) {
                        below.push(index.to_string());
                    }
                    let is_for = kind.name();
                    fault(
                        &below,
                        format!("is for a {is_for} field, and {field:?} is declared as {declared}"),
                    );
                }
            }
        }
    }
    faults
}

/// Finds fields that no selected source declares, and numeric aggregations of other types.
fn check_fields(input: &QueryInput, schemas: &[Resolved]) -> Vec<Detail> {
    let aggregations = input.grouping.as_ref().map(|(aggregations, _)| aggregations);
    // The first one, if they are all of numbers.
    let numeric = aggregations
        .filter(|aggregations| !aggregations.cover(FieldType::String))
        .map(|aggregations| aggregations.all()[0]);
    let mut faults = Vec::new();
    // Listed only once, not per unknown name, because there may be many of both.
    let mut available = Some(|| available(schemas));
    for RequestedField { index, name } in &input.fields {
        let mut kinds = schemas
            .iter()
            .filter_map(|resolved| Some(resolved.kind(resolved.schema.field(name)?)))
            .peekable();
        let message = match (kinds.peek().copied(), numeric) {
            (None, _) => {
                let unknown = format!("no selected data source has a field {name:?}");
                match available.take() {
                    Some(available) => format!("{unknown}; available: {}", available()),
                    None => unknown,
                }
            }
            (Some(first), Some(numeric)) if kinds.all(|kind| kind != FieldType::Number) => format!(
                "{} needs a number field, and {name:?} is declared as {}; use count, or leave it out",
                numeric.name(),
                first.name()
            ),
            (Some(_), _) => continue,
        };
        let mut path: Vec<String> = input.fields_path.iter().map(ToString::to_string).collect();
        path.push(index.to_string());
        faults.push(Detail { path, message });
    }
    faults
}

fn available(schemas: &[Resolved]) -> String {
    let fields = schemas.iter().flat_map(|resolved| &resolved.schema.fields);
    let names: BTreeSet<&str> = fields.map(|field| &*field.name).collect();
    shown_names(names.into_iter())
}
