//! What a query means for the sources it selects: the faults that only they can tell, the range that is left of the
//! retention, and the ordinals of the fields.
//!
//! Very many sources share few schemas, which the catalog keeps once each: names are looked up once for each schema.

use std::collections::HashMap;
use std::sync::Arc;

use engine::query::Budget;
use engine::{SeriesSnapshot, Snapshot};

use super::metadata::MetadataFilter;
use super::{Aggregation, AskedField, QueryInput, engine_error};
use crate::catalog::{Bucket, Catalog, FieldType, Schema, Source};
use crate::error::{Detail, ServiceError, shown_names};
use crate::service::{Caller, bucket_for, source_for};

/// A query ready to be answered from a snapshot.
pub(super) struct Plan {
    pub(super) input: QueryInput,
    pub(super) bucket: Arc<Bucket>,
    /// By id, which is the order of grouped rows at one time.
    pub(super) sources: Vec<Selected>,
    /// The different schemas of the sources, in the order in which these first have them.
    pub(super) schemas: Vec<Resolved>,
    pub(super) filter: Option<MetadataFilter>,
    /// Points before this have expired.
    pub(super) cutoff_ns: i64,
    /// What is asked and has not expired, both ends inclusive.
    pub(super) range_ns: (i64, i64),
}

/// A selected source and the place of its schema.
pub(super) struct Selected {
    pub(super) source: Arc<Source>,
    pub(super) schema: usize,
}

/// A schema and the fields wanted of it.
pub(super) struct Resolved {
    pub(super) schema: Arc<Schema>,
    /// Ordinals, ascending; `None` when no fields were named: all of them.
    pub(super) fields: Option<Arc<[u16]>>,
}

/// A selected source with points that may lie within the range.
pub(super) struct Reached<'a> {
    /// Its place among the selected ones.
    pub(super) place: u32,
    pub(super) selected: &'a Selected,
    pub(super) series: &'a SeriesSnapshot,
}

/// The bucket and the sources that a query names. All it needs the catalog for: whoever reads holds up who writes.
pub(super) fn select(
    catalog: &Catalog,
    caller: &Caller,
    input: &QueryInput,
) -> Result<(Arc<Bucket>, Vec<Arc<Source>>), ServiceError> {
    let bucket = bucket_for(catalog, caller, input.bucket_id)?;
    let sources = if input.source_ids.is_empty() {
        catalog.sources_of(bucket.id).cloned().collect()
    } else {
        let ids = input.source_ids.iter();
        ids.map(|id| Ok(source_for(catalog, caller, bucket.id, *id)?.1))
            .collect::<Result<_, ServiceError>>()?
    };
    Ok((bucket, sources))
}

/// Names looked up, and sources gone through, in a short turn.
const SHORT_PLAN_MAX: usize = 1 << 15;

/// Whether planning alone takes more than a short turn: names are looked up in each different schema.
pub(super) fn is_long(sources: &[Arc<Source>], input: &QueryInput) -> bool {
    let mut schemas: Vec<*const Schema> = sources.iter().map(|source| Arc::as_ptr(&source.schema)).collect();
    schemas.sort_unstable();
    schemas.dedup();
    let names = schemas.len().saturating_mul(input.fields.len() + 1);
    names.saturating_add(sources.len()) > SHORT_PLAN_MAX
}

impl Plan {
    pub(super) fn of(
        bucket: Arc<Bucket>,
        mut sources: Vec<Arc<Source>>,
        input: QueryInput,
        now_ns: i64,
    ) -> Result<Self, ServiceError> {
        sources.sort_by_key(|source| source.id);
        sources.dedup_by_key(|source| source.id);
        let mut schemas: Vec<Resolved> = Vec::new();
        let mut places: HashMap<*const Schema, usize> = HashMap::new();
        let mut select = |source: Arc<Source>| {
            let schema = *places.entry(Arc::as_ptr(&source.schema)).or_insert_with(|| {
                schemas.push(Resolved::of(&source.schema, &input.fields));
                schemas.len() - 1
            });
            Selected { source, schema }
        };
        let sources = sources.into_iter().map(&mut select).collect();
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
            filter,
            cutoff_ns,
            range_ns,
        })
    }

    /// Whether any selected field holds numbers.
    pub(super) fn has_number_field(&self) -> bool {
        self.schemas.iter().any(|resolved| {
            let is_number = |ordinal: u16| resolved.kind(ordinal) == FieldType::Number;
            resolved.ordinals().into_iter().any(is_number)
        })
    }

    /// The schema of a source and the fields wanted of it.
    pub(super) fn resolved(&self, selected: &Selected) -> &Resolved {
        &self.schemas[selected.schema]
    }

    /// The sources that may have points within the range, in order. Of the others nothing is kept.
    pub(super) fn reached<'a>(
        &'a self,
        snapshot: &'a Snapshot,
    ) -> impl Iterator<Item = Result<Reached<'a>, ServiceError>> {
        let mut places = (0..).zip(&self.sources);
        snapshot.series.iter().filter_map(move |series| {
            // Both are in one order, and the snapshot leaves out sources without points.
            let (place, selected) = places.find(|(_, selected)| selected.source.ordinal == series.source)?;
            match series.overlaps(self.range_ns) {
                Ok(true) => Some(Ok(Reached {
                    place,
                    selected,
                    series,
                })),
                Ok(false) => None,
                Err(error) => Some(Err(engine_error(error))),
            }
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

    /// The wanted fields' ordinals.
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

/// Names of fields as JSON member names with their colons, made once for each schema of an answer that has rows of it.
pub(super) struct MemberNames<N> {
    by_schema: HashMap<usize, Arc<Vec<N>>>,
}

impl<N> MemberNames<N> {
    pub(super) fn new() -> Self {
        MemberNames {
            by_schema: HashMap::new(),
        }
    }

    /// Those of the schema at this place.
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

/// What a query holds for each source it selects, whether it reads of it or not.
pub(super) fn hold_sources<'b>(
    count: usize,
    budget: &'b Budget,
) -> Result<engine::query::Held<'b>, ServiceError> {
    let mut held = budget.hold();
    let each = size_of::<Selected>() + size_of::<SeriesSnapshot>() + size_of::<u32>();
    held.grow(count * each).map_err(engine_error)?;
    Ok(held)
}

/// Names that no selected source declares, and numeric aggregations of what is no number.
fn check_fields(input: &QueryInput, schemas: &[Resolved]) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    // Said once, not with each unknown name: there may be very many of both.
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
