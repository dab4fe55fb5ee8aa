//! What a query means for the sources it selects: the faults that only they can tell, the range that is left of the
//! retention, and the ordinals of the fields.

use std::sync::Arc;

use super::metadata::MetadataFilter;
use super::{Aggregation, AskedField, QueryInput};
use crate::catalog::{Bucket, Catalog, FieldType, Source};
use crate::error::{Detail, ServiceError, shown_names};
use crate::service::{Caller, bucket_for, source_for};

/// A query ready to be answered from a snapshot.
pub(super) struct Plan {
    pub(super) input: QueryInput,
    pub(super) bucket: Arc<Bucket>,
    /// By id, which is the order of grouped rows at one time.
    pub(super) sources: Vec<Selected>,
    pub(super) filter: Option<MetadataFilter>,
    /// Points before this have expired.
    pub(super) cutoff_ns: i64,
    /// What is asked and has not expired, both ends inclusive.
    pub(super) range_ns: (i64, i64),
}

/// A selected source and the fields wanted of it.
pub(super) struct Selected {
    pub(super) source: Arc<Source>,
    /// Ordinals, ascending; `None` when no fields were named: all of them.
    pub(super) fields: Option<Vec<u16>>,
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

impl Plan {
    pub(super) fn of(
        bucket: Arc<Bucket>,
        mut sources: Vec<Arc<Source>>,
        input: QueryInput,
        now_ns: i64,
    ) -> Result<Self, ServiceError> {
        sources.sort_by_key(|source| source.id);
        sources.dedup_by_key(|source| source.id);
        check_fields(&input, &sources)?;
        let fields_of = |source: &Source| {
            let mut ordinals: Vec<u16> = input
                .fields
                .iter()
                .filter_map(|field| source.schema.field(&field.name))
                .collect();
            ordinals.sort_unstable();
            ordinals.dedup();
            ordinals
        };
        let sources = sources
            .into_iter()
            .map(|source| Selected {
                fields: (!input.fields.is_empty()).then(|| fields_of(&source)),
                source,
            })
            .collect();
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
            filter,
            cutoff_ns,
            range_ns,
        })
    }

    /// Whether any selected field holds numbers.
    pub(super) fn has_number_field(&self) -> bool {
        self.sources.iter().any(|selected| {
            let is_number =
                |ordinal: u16| selected.source.schema.fields[usize::from(ordinal)].kind == FieldType::Number;
            selected.ordinals().into_iter().any(is_number)
        })
    }
}

impl Selected {
    /// The wanted fields' ordinals.
    pub(super) fn ordinals(&self) -> Vec<u16> {
        match &self.fields {
            Some(fields) => fields.clone(),
            None => (0..self.source.schema.fields.len() as u16).collect(),
        }
    }
}

/// Names that no selected source declares, and numeric aggregations of what is no number.
fn check_fields(input: &QueryInput, sources: &[Arc<Source>]) -> Result<(), ServiceError> {
    let mut faults = Vec::new();
    // Said once, not with each unknown name: there may be very many of both.
    let mut available = Some(|| available(sources));
    for AskedField { index, name } in &input.fields {
        let kinds: Vec<FieldType> = sources
            .iter()
            .filter_map(|source| Some(source.schema.fields[usize::from(source.schema.field(name)?)].kind))
            .collect();
        let numeric = input
            .grouping
            .is_some_and(|(aggregation, _)| aggregation != Aggregation::Count);
        let message = if kinds.is_empty() {
            let unknown = format!("no selected data source has a field {name:?}");
            Some(match available.take() {
                Some(available) => format!("{unknown}; available: {}", available()),
                None => unknown,
            })
        } else if numeric && !kinds.contains(&FieldType::Number) {
            let aggregation = input.grouping.map_or("", |(aggregation, _)| aggregation.name());
            Some(format!(
                "{aggregation} needs a number field, and {name:?} is declared as {}; use count, or leave it out",
                kinds[0].name()
            ))
        } else {
            None
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

fn available(sources: &[Arc<Source>]) -> String {
    let mut names: Vec<&str> = sources
        .iter()
        .flat_map(|source| source.schema.fields.iter().map(|field| &*field.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    shown_names(names.into_iter())
}
