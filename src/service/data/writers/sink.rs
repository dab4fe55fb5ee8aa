//! Takes the points of a protocol's parser and writes them as rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::rows::{RowsWriter, decimals_of};
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use protocols::{Family, Field, Refusal, Sample, SampleKind, SeriesKey, Sink, Value};

use super::Written;
use super::sources::{Described, NewSourceFields};
use crate::catalog::{Bucket, Duplicates, FieldType, Schema, SchemaMode, SourceStatus};
use crate::error::shown_names;
use crate::ids::ObjectId;
use crate::ingest::{FindSeries, KnownSeries, SeriesOfRequest, SourceView};
use crate::limits::OPEN_NAME_CHARS_MAX;
use crate::service::Service;
use crate::service::data::Request;

/// The field of samples, which ends are about.
const SAMPLE_FIELD: &str = "value";

/// Sources that a request describes; the next one describes the others.
const DESCRIBED_MAX: usize = 1_000;

/// Writes points as rows, as far as they are valid.
pub struct EntrySink<'s> {
    service: &'s Service,
    bucket: &'s Arc<Bucket>,
    request: &'s Request<'s>,
    rows: &'s mut RowsWriter,
    series: &'s mut SeriesOfRequest,
    find: Option<Arc<dyn FindSeries>>,
    /// Points before this time have expired.
    oldest_ns: i64,
    /// By the names of their sources.
    targets: IndexMap<Box<str>, Target, RandomState>,
    /// Index of the target of the points that follow; `None` before the first.
    current: Option<usize>,
    metadata: String,
    /// The table of the current series, once it is known.
    table: Option<u32>,
    /// The ordinals of the fields of the last point, by their places.
    ordinals: Vec<u16>,
    /// What is said first of each source.
    described: BTreeMap<ObjectId, Described>,
    written: Written,
    /// The sample that was counted last.
    counted: Option<u32>,
    /// The sample that was refused last.
    refused: Option<u32>,
}

/// Where the points of a source go.
enum Target {
    /// A source that exists, and what it lacks.
    Known(SourceView, NewSourceFields),
    /// A source that has to be created.
    Missing(NewSourceFields),
    /// None of its points is stored, for this reason.
    Refused(String),
}

/// What a body has.
pub(super) struct Read {
    /// Sources of which the body says what people have not said.
    pub(super) described: Vec<Described>,
    pub(super) written: Written,
    /// Sources and fields that have to be there first. Then nothing else counts.
    pub(super) missing: Vec<NewSourceFields>,
    /// Ordinals of the sources that do not take points twice, ascending.
    pub(super) once: Vec<u32>,
}

impl<'s> EntrySink<'s> {
    pub(super) fn new(
        service: &'s Service,
        bucket: &'s Arc<Bucket>,
        request: &'s Request<'s>,
        rows: &'s mut RowsWriter,
        series: &'s mut SeriesOfRequest,
    ) -> Self {
        EntrySink {
            service,
            bucket,
            request,
            rows,
            series,
            find: None,
            oldest_ns: bucket.retention_cutoff_ns(request.now_ns),
            targets: IndexMap::default(),
            current: None,
            metadata: String::new(),
            table: None,
            ordinals: Vec::new(),
            described: BTreeMap::new(),
            written: Written::default(),
            counted: None,
            refused: None,
        }
    }

    /// When the request was received, UTC nanoseconds: the time of points without one.
    pub fn now_ns(&self) -> i64 {
        self.request.now_ns
    }

    /// Refuses an entry, for this reason.
    pub fn refuse_entry(&mut self, entry: u32, reason: String) {
        self.written.refuse(entry, 1, || reason);
    }

    pub(super) fn finish(mut self) -> Read {
        self.written.refusals.sort_by_key(|(entry, _)| *entry);
        let (mut missing, mut once) = (Vec::new(), Vec::new());
        for target in self.targets.into_values() {
            match target {
                Target::Known(view, lacks) => {
                    if view.source.duplicates == Duplicates::Skip {
                        once.push(view.source.ordinal);
                    }
                    missing.extend(Some(lacks).filter(|lacks| !lacks.fields.is_empty()));
                }
                Target::Missing(fields) => {
                    missing.extend(Some(fields).filter(|fields| !fields.fields.is_empty()))
                }
                Target::Refused(_) => {}
            }
        }
        once.sort_unstable();
        Read {
            described: self.described.into_values().collect(),
            written: self.written,
            missing,
            once,
        }
    }

    /// Index of the target of a source, looked up at its first series.
    fn target(&mut self, name: &str) -> usize {
        if let Some(known) = self.targets.get_index_of(name) {
            return known;
        }
        let target = self.look_up(name);
        self.targets.insert_full(name.into(), target).0
    }

    fn look_up(&mut self, name: &str) -> Target {
        if name.is_empty() {
            return Target::Refused("the name of its data source is blank".to_owned());
        }
        if name.chars().count() > OPEN_NAME_CHARS_MAX {
            return Target::Refused(format!(
                "the name of its data source has more than {OPEN_NAME_CHARS_MAX} characters"
            ));
        }
        if let Some(reason) = self.request.attempt.refused_sources.get(name) {
            return Target::Refused(reason.clone());
        }
        let catalog = &self.service.catalog;
        let found = catalog.read(|catalog| catalog.source_by_name(self.bucket.id, name).cloned());
        let Some(source) = found else {
            return Target::Missing(NewSourceFields::of_missing(name));
        };
        if source.status == SourceStatus::Inactive {
            return Target::Refused(format!("the data source {name:?} is inactive and takes no data"));
        }
        let series = source.dimensions.as_ref().map(|_| {
            let find = self
                .find
                .get_or_insert_with(|| self.service.find_series(self.bucket));
            Arc::clone(find)
        });
        let lacks = NewSourceFields::of_known(source.id, name);
        let view = SourceView {
            source,
            oldest_ns: self.oldest_ns,
            series,
        };
        Target::Known(view, lacks)
    }

    fn count(&mut self, sample: Sample) {
        if self.counted.replace(sample.number) == Some(sample.number) {
            return;
        }
        *self.count_of(sample.kind) += 1;
    }

    fn count_of(&mut self, kind: SampleKind) -> &mut u64 {
        match kind {
            SampleKind::Value => &mut self.written.values,
            SampleKind::Histogram => &mut self.written.histograms,
        }
    }

    /// Refuses a sample that was counted, once.
    fn refuse_sample(&mut self, sample: Sample, reason: String) {
        if self.refused.replace(sample.number) == Some(sample.number) {
            return;
        }
        let count = self.count_of(sample.kind);
        *count = count.saturating_sub(1);
        self.written.refuse(sample.entry, 1, || reason);
    }

    /// Writes a row, or says what is wrong with it.
    fn write(&mut self, timestamp_ns: i64, fields: &[Field<'_>]) -> Result<(), String> {
        let Some(current) = self.current else {
            return Err("it belongs to no series".to_owned());
        };
        if timestamp_ns < self.oldest_ns {
            let days = self.bucket.retention_days;
            return Err(format!("it is older than the bucket keeps points ({days} days)"));
        }
        let (view, lacks) = match &mut self.targets[current] {
            Target::Refused(reason) => return Err(reason.clone()),
            Target::Missing(missing) => return missing.add(None, fields),
            Target::Known(view, lacks) => (view, lacks),
        };
        let schema = &view.source.schema;
        let mut are_declared = true;
        for (place, field) in fields.iter().enumerate() {
            // Points of an agent usually have the fields of the one before.
            let guess = self.ordinals.get(place).copied();
            let guess = guess.filter(|guess| {
                let field_there = schema.fields.get(usize::from(*guess));
                field_there.is_some_and(|there| *there.name == *field.name)
            });
            let Some(ordinal) = guess.or_else(|| schema.field(&field.name)) else {
                if view.source.schema_mode == SchemaMode::Strict {
                    return Err(undeclared(&field.name, schema, &view.source.name));
                }
                are_declared = false;
                continue;
            };
            let declared = schema.fields[usize::from(ordinal)].kind;
            let sent = kind_of(&field.value);
            if declared != sent {
                let (name, declared, sent) = (&field.name, declared.name(), sent.name());
                return Err(format!(
                    "the field {name:?} is declared as {declared}, not {sent}"
                ));
            }
            if self.ordinals.len() <= place {
                self.ordinals.resize(place + 1, 0);
            }
            self.ordinals[place] = ordinal;
        }
        if !are_declared {
            return lacks.add(Some(schema), fields);
        }
        let table = match (self.table, &view.series, &view.source.dimensions) {
            (Some(table), ..) => table,
            (None, Some(find), Some(dimensions)) => {
                let metadata = Some(&*self.metadata).filter(|metadata| !metadata.is_empty());
                let table = self
                    .series
                    .table_of_key(&view.source, &**find, dimensions, metadata);
                table.map_err(|fault| fault.message)?
            }
            _ => view.source.ordinal,
        };
        self.table = Some(table);
        self.rows.begin(table);
        for (field, ordinal) in fields.iter().zip(&self.ordinals) {
            match &field.value {
                Value::Number(number) => self.rows.number(*ordinal, *number, decimals_of(*number)),
                Value::Bool(boolean) => self.rows.boolean(*ordinal, *boolean),
                Value::Text(text) => self.rows.string(*ordinal, text),
            }
        }
        if !self.metadata.is_empty() {
            self.rows.metadata(&self.metadata);
        }
        self.rows.commit(timestamp_ns);
        Ok(())
    }

    /// The source's ordinal and the table of the current series, if it exists and may have ended at this time: the end of
    /// anything else is nothing.
    fn ended(&mut self, timestamp_ns: i64) -> Option<(u32, u32)> {
        let Target::Known(view, _) = &self.targets[self.current?] else {
            return None;
        };
        if timestamp_ns < self.oldest_ns || view.source.schema.field(SAMPLE_FIELD).is_none() {
            return None;
        }
        self.table = match (self.table, &view.series, &view.source.dimensions) {
            (Some(table), ..) => Some(table),
            (None, Some(find), Some(dimensions)) => {
                let metadata = Some(&*self.metadata).filter(|metadata| !metadata.is_empty());
                self.series
                    .known_table(&view.source, &**find, dimensions, metadata)
            }
            _ => Some(view.source.ordinal),
        };
        Some((view.source.ordinal, self.table?))
    }
}

impl Sink for EntrySink<'_> {
    fn recall(&mut self, key: SeriesKey<'_>) -> bool {
        let Some(KnownSeries { source, metadata }) = self.series.keys.get(key) else {
            return false;
        };
        self.metadata.clear();
        self.metadata.push_str(metadata);
        self.table = None;
        self.current = self.targets.get_index_of(source);
        if self.current.is_none() {
            let source = source.to_owned();
            self.current = Some(self.target(&source));
        }
        true
    }

    fn remember(&mut self, key: SeriesKey<'_>) {
        if let Some((source, _)) = self.current.and_then(|current| self.targets.get_index(current)) {
            let metadata = &self.metadata;
            self.series.keys.keep(key, KnownSeries { source, metadata });
        }
    }

    fn series(&mut self, source: &str, metadata: &str) {
        self.series.keys.forget_last();
        self.current = Some(self.target(source.trim()));
        self.metadata.clear();
        self.metadata.push_str(metadata);
        self.table = None;
    }

    fn point(&mut self, sample: Sample, timestamp_ns: i64, fields: &[Field<'_>]) {
        self.count(sample);
        if let Err(reason) = self.write(timestamp_ns, fields) {
            self.refuse_sample(sample, reason);
        }
    }

    fn stale(&mut self, sample: Sample, timestamp_ns: i64) {
        self.count(sample);
        if let Some((source, table)) = self.ended(timestamp_ns) {
            self.rows.end_series(source, table, timestamp_ns);
        }
    }

    fn not_stored(&mut self, sample: Sample) {
        self.count(sample);
    }

    fn refuse(&mut self, entry: u32, samples: u32, reason: Refusal<'_>) {
        self.written.refuse(entry, samples, || reason.to_string());
    }

    fn family(&mut self, source: &str, family: Family<'_>) {
        let source = source.trim();
        if let Some(Target::Missing(missing)) = self.targets.get_mut(source) {
            missing.describe(&family);
            return;
        }
        if self.described.len() >= DESCRIBED_MAX {
            return;
        }
        // What people wrote is kept, and a family that is no source is dropped.
        let catalog = &self.service.catalog;
        let found = catalog.read(|catalog| catalog.source_by_name(self.bucket.id, source).cloned());
        if let Some(described) = found.and_then(|source| Described::of(&source, &family)) {
            self.described.entry(described.source_id).or_insert(described);
        }
    }
}

/// The type of a value.
pub(super) fn kind_of(value: &Value<'_>) -> FieldType {
    match value {
        Value::Number(_) => FieldType::Number,
        Value::Bool(_) => FieldType::Boolean,
        Value::Text(_) => FieldType::String,
    }
}

fn undeclared(name: &str, schema: &Schema, source: &str) -> String {
    let known = shown_names(schema.fields.iter().map(|field| &*field.name));
    format!(
        "the data source {source:?} does not declare the field {name:?}, and its schemaMode is strict; it has {known}"
    )
}
