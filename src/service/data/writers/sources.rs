//! Sources and fields that the points of agents need first.

use std::collections::HashMap;
use std::sync::Arc;

use protocols::{Family, Field as SentField, Kind};

use super::RefusedSources;
use super::sink::kind_of;
use crate::catalog::{
    Bucket, Command, Dimensions, Duplicates, Field, FieldType, MetricType, NewSource, Schema, SchemaMode,
    Source, SourceSettings, SourceStatus,
};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::ingest::{field_name_fault, no_series};
use crate::limits::{DESCRIPTION_CHARS_MAX, OPEN_NAME_CHARS_MAX, SCHEMA_FIELDS_MAX};
use crate::service::allowance::Countable;
use crate::service::audit::settings_of as settings_of_source;
use crate::service::sources::{changes, text_bytes_of_change};
use crate::service::{Caller, Service};

/// `type` of the sources that agents create.
const KIND: &str = "metric";

/// Fields that a source lacks, by points that are fine otherwise.
#[derive(Clone, Debug)]
pub struct NewSourceFields {
    /// `None` if the source has to be created.
    source_id: Option<ObjectId>,
    name: Box<str>,
    /// In the order of their first values.
    pub(super) fields: Vec<(Box<str>, FieldType)>,
    kinds: HashMap<Box<str>, FieldType>,
    description: Option<Box<str>>,
    unit: Option<(Box<str>, &'static [&'static str])>,
    metric_type: Option<MetricType>,
}

impl NewSourceFields {
    pub(super) fn of_missing(name: &str) -> Self {
        Self::new(None, name)
    }

    pub(super) fn of_known(source_id: ObjectId, name: &str) -> Self {
        Self::new(Some(source_id), name)
    }

    fn new(source_id: Option<ObjectId>, name: &str) -> Self {
        NewSourceFields {
            source_id,
            name: name.into(),
            fields: Vec::new(),
            kinds: HashMap::new(),
            description: None,
            unit: None,
            metric_type: None,
        }
    }

    /// Adds the fields of a point that are not declared, with the types of their first values. `schema`: what the source
    /// has already.
    ///
    /// # Errors
    /// Why the point can never be stored.
    pub(super) fn add(&mut self, schema: Option<&Schema>, fields: &[SentField<'_>]) -> Result<(), String> {
        let declared = |name: &str| schema.is_some_and(|schema| schema.field(name).is_some());
        let mut new: Vec<(&str, FieldType)> = Vec::new();
        for field in fields.iter().filter(|field| !declared(&field.name)) {
            let (name, sent) = (&*field.name, kind_of(&field.value));
            match self.kinds.get(name) {
                Some(kind) if *kind == sent => {}
                Some(kind) => {
                    let (kind, sent) = (kind.name(), sent.name());
                    return Err(format!("the field {name:?} is declared as {kind}, not {sent}"));
                }
                None => {
                    if let Some(fault) = field_name_fault(name) {
                        return Err(format!("{fault}: {name:?}"));
                    }
                    new.push((name, sent));
                }
            }
        }
        let known = schema.map_or(0, |schema| schema.fields.len());
        if known + self.fields.len() + new.len() > SCHEMA_FIELDS_MAX {
            return Err(format!(
                "the data source {:?} has {SCHEMA_FIELDS_MAX} fields, and can have no more",
                self.name
            ));
        }
        for (name, kind) in new {
            self.kinds.insert(name.into(), kind);
            self.fields.push((name.into(), kind));
        }
        Ok(())
    }

    /// Takes the description, the unit and the metric's type of a source that is created.
    pub(super) fn describe(&mut self, family: &Family<'_>) {
        self.description = description_of(family);
        self.unit = unit_of(family);
        self.metric_type = metric_type_of(family.kind);
    }

    fn into_fields(self) -> Vec<Field> {
        let unit = self.unit;
        let unit_of_field = |name: &str| {
            let (unit, fields) = unit.as_ref()?;
            fields.contains(&name).then(|| unit.clone())
        };
        let fields = self.fields.into_iter();
        fields
            .map(|(name, kind)| Field {
                unit: unit_of_field(&name),
                name: name.into(),
                kind,
                description: None,
            })
            .collect()
    }
}

/// The description of a source by its family.
fn description_of(family: &Family<'_>) -> Option<Box<str>> {
    stored(family.help, DESCRIPTION_CHARS_MAX)
}

/// The unit by a family, and the fields that have it.
fn unit_of(family: &Family<'_>) -> Option<(Box<str>, &'static [&'static str])> {
    Some((stored(family.unit, OPEN_NAME_CHARS_MAX)?, family.unit_fields))
}

/// The type of a metric; `None` if it is not known.
fn metric_type_of(kind: Kind) -> Option<MetricType> {
    Some(match kind {
        Kind::Unknown => return None,
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::GaugeHistogram => MetricType::GaugeHistogram,
        Kind::Summary => MetricType::Summary,
        Kind::Info => MetricType::Info,
        Kind::StateSet => MetricType::StateSet,
    })
}

/// A text as people could have sent it: without control characters, and not too long. `None` if nothing is left.
fn stored(sent: &str, chars_max: usize) -> Option<Box<str>> {
    let is_kept = |character: &char| !character.is_control();
    let text: String = sent.trim().chars().filter(is_kept).take(chars_max).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}

impl Service {
    /// Creates sources and adds fields, as far as the organization may have them. Returns the sources that it may not have.
    pub(in crate::service::data) async fn prepare_sources(
        &self,
        caller: &Caller,
        bucket: &Bucket,
        missing: Vec<NewSourceFields>,
    ) -> Result<RefusedSources, ServiceError> {
        let organization_id = caller.organization_id;
        let decision = self.decisions.begin(organization_id).await;
        // The bucket may have been deleted since.
        self.bucket(caller, bucket.id)?;
        let at_ns = self.now_ns();
        let (mut refused, mut commands) = (RefusedSources::new(), Vec::new());
        let (mut sources, mut text_bytes) = (0, 0);
        // Fields need none.
        let creates = missing.iter().any(|missing| missing.source_id.is_none());
        let (room, series_max) = match creates {
            true => self.buckets.series_room(bucket, at_ns).await?,
            false => (0, 0),
        };
        for missing in missing {
            let known = self
                .catalog
                .read(|catalog| catalog.source_by_name(bucket.id, &missing.name).cloned());
            match (known, missing.source_id) {
                // Another request was faster, or it was deleted: the next pass sees what is there.
                (Some(_), None) | (None, Some(_)) => {}
                (Some(known), Some(_)) => {
                    let fields: Vec<Field> = missing.into_fields();
                    let fields = fields
                        .into_iter()
                        .filter(|field| known.schema.field(&field.name).is_none());
                    let fields: Vec<Field> = fields.collect();
                    if fields.is_empty() {
                        continue;
                    }
                    let more: usize = fields.iter().map(|field| field.name.len()).sum();
                    if let Err(error) = self.admit_text(organization_id, 0, text_bytes + more) {
                        refused.insert(known.name.clone(), error.message);
                        continue;
                    }
                    text_bytes += more;
                    let source_id = known.id;
                    commands.push(Command::SchemaExtended {
                        source_id,
                        fields,
                        at_ns,
                    });
                }
                (None, None) => {
                    let name = missing.name.clone();
                    // Its first point makes a series.
                    if sources >= room {
                        refused.insert(name, no_series(series_max));
                        continue;
                    }
                    let metric_type = missing.metric_type;
                    let settings = settings_of(missing);
                    let more = self.text_bytes_of(organization_id, &settings);
                    let admitted =
                        self.admit_another(organization_id, Countable::Source, sources, text_bytes + more);
                    if let Err(error) = admitted {
                        refused.insert(name, error.message);
                        continue;
                    }
                    (sources, text_bytes) = (sources + 1, text_bytes + more);
                    let source = NewSource {
                        id: self.next_id(),
                        bucket_id: bucket.id,
                        settings,
                        metric_type,
                        created_at_ns: at_ns,
                    };
                    commands.push(self.auditor(caller).audited(Command::SourceCreated { source }));
                }
            }
        }
        if !commands.is_empty() {
            let _settled = decision.commit_all(commands).await?;
        }
        Ok(refused)
    }

    /// Describes sources that people have not described. Points are durable already, so what cannot be described, such as
    /// a source that was deleted meanwhile, is left out: its next description comes soon.
    pub(super) async fn describe_sources(&self, caller: &Caller, bucket: &Bucket, described: Vec<Described>) {
        if described.is_empty() {
            return;
        }
        let decision = self.decisions.begin(caller.organization_id).await;
        let (mut commands, mut text_bytes) = (Vec::new(), 0);
        let at_ns = self.now_ns();
        for described in described {
            let source_id = described.source_id;
            let Ok((_, known)) = self.find_source(caller, bucket.id, source_id) else {
                continue;
            };
            commands.extend(described.typed(&known));
            let settings = described.settings(&known);
            if !changes(&known, &settings) {
                continue;
            }
            let (before, after) = text_bytes_of_change(&known, &settings);
            let with_this = text_bytes + after.saturating_sub(before);
            if let Err(error) = self.admit_text(caller.organization_id, 0, with_this) {
                tracing::debug!(source = %source_id, error = error.message, "a source is not described");
                continue;
            }
            text_bytes = with_this;
            commands.push(self.auditor(caller).audited(Command::SourceUpdated {
                source_id,
                settings,
                at_ns,
            }));
        }
        if commands.is_empty() {
            return;
        }
        if let Err(error) = decision.commit_all(commands).await {
            tracing::debug!(bucket = %bucket.id, error = error.message, "sources are not described");
        }
    }
}

/// What is said of a source that exists.
pub(super) struct Described {
    pub(super) source_id: ObjectId,
    description: Option<Box<str>>,
    unit: Option<(Box<str>, &'static [&'static str])>,
    /// The first one that is told stays, so that agents that do not agree write nothing again and again.
    metric_type: Option<MetricType>,
}

impl Described {
    /// `None` if it would change nothing.
    pub(super) fn of(source: &Source, family: &Family<'_>) -> Option<Self> {
        let description = description_of(family).filter(|_| source.description.is_none());
        let lacks_unit = |field: &Field| field.unit.is_none() && family.unit_fields.contains(&&*field.name);
        let has_place = source.schema.fields.iter().any(lacks_unit);
        let unit = unit_of(family).filter(|_| has_place);
        let metric_type = metric_type_of(family.kind).filter(|_| source.metric_type.is_none());
        (description.is_some() || unit.is_some() || metric_type.is_some()).then_some(Described {
            source_id: source.id,
            description,
            unit,
            metric_type,
        })
    }

    fn typed(&self, known: &Source) -> Option<Command> {
        let metric_type = self.metric_type.filter(|_| known.metric_type.is_none())?;
        Some(Command::MetricTyped {
            source_id: self.source_id,
            metric_type,
        })
    }

    /// The settings of the source with what is said, where people have said nothing.
    fn settings(self, known: &Source) -> SourceSettings {
        let mut settings = settings_of_source(known);
        settings.description = settings.description.or(self.description);
        if let Some((unit, names)) = self.unit {
            for field in &mut settings.fields {
                if field.unit.is_none() && names.contains(&&*field.name) {
                    field.unit = Some(unit.clone());
                }
            }
        }
        settings
    }
}

fn settings_of(missing: NewSourceFields) -> SourceSettings {
    SourceSettings {
        name: missing.name.clone(),
        kind: KIND.into(),
        description: missing.description.clone(),
        fields: missing.into_fields(),
        schema_mode: SchemaMode::Extend,
        downsampling: true,
        status: SourceStatus::Active,
        dimensions: Some(Arc::new(Dimensions::All)),
        duplicates: Duplicates::Skip,
        expected_interval_seconds: None,
    }
}
