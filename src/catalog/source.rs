//! Data sources, to which points belong, and all sources of a bucket at one moment, as shared pages. A query about all
//! sources copies one pointer per 1,024 sources while it holds the catalog's lock, and gets a summary of them without
//! reading each one.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::pages::Page;
use super::{Schema, SchemaMode, names};
use crate::clock::SECOND_NS;
use crate::ids::ObjectId;

/// Whether a source accepts data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// Accepts data.
    Active,
    /// Refuses data; existing data stays readable.
    Inactive,
}

names!(SourceStatus: Active => "active", Inactive => "inactive");

/// Whether a source sends as often as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// The newest point is not older than three expected intervals.
    Fresh,
    /// It is.
    Stale,
    /// No points are expected, or there is none.
    Unknown,
}

names!(Freshness: Fresh => "fresh", Stale => "stale", Unknown => "unknown");

/// Which members of a point's metadata are dimensions, by which points are split into series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimensions {
    /// All that are strings, numbers or booleans.
    All,
    /// Those with these names, in the order in which they were given.
    Named(Vec<Box<str>>),
}

impl Dimensions {
    /// Whether a member of metadata with this name is a dimension.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Dimensions::All => true,
            Dimensions::Named(names) => names.iter().any(|known| **known == *name),
        }
    }
}

/// What happens to a point whose series has a value of the same field at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// It is stored.
    #[default]
    Keep,
    /// It is not stored.
    Skip,
}

names!(Duplicates: Keep => "keep", Skip => "skip");

impl Duplicates {
    /// Whether they are stored.
    pub(super) fn is_keep(&self) -> bool {
        *self == Duplicates::Keep
    }
}

/// The type of a metric, as agents tell it of a source; shown to readers of Prometheus's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricType {
    /// A sum that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
    /// A histogram whose counts go up and down.
    GaugeHistogram,
    /// Quantiles.
    Summary,
    /// Labels, with the value 1.
    Info,
    /// States, of which some are on.
    StateSet,
}

names!(MetricType:
    Counter => "counter",
    Gauge => "gauge",
    Histogram => "histogram",
    GaugeHistogram => "gaugehistogram",
    Summary => "summary",
    Info => "info",
    StateSet => "stateset"
);

/// Expected intervals without a point after which a source is stale.
const STALE_INTERVALS: i64 = 3;

/// A data source. There may be 110,000 of them, so texts are boxed, and types and schemas are shared. On disk the schema
/// is an index into the schemas that are written with the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source<S = Arc<Schema>> {
    /// Identifies the source to clients.
    pub id: ObjectId,
    /// Identifies the source to the engine: within its bucket, from 0, never reused.
    pub ordinal: u32,
    pub bucket_id: ObjectId,
    /// Unique within the bucket.
    pub name: Box<str>,
    /// The API's `type`, an open set.
    pub kind: Arc<str>,
    pub description: Option<Box<str>>,
    /// Shared with all sources that declare the same fields.
    pub schema: S,
    /// How undeclared fields are handled.
    pub schema_mode: SchemaMode,
    /// Whether large raw queries are aggregated automatically.
    pub downsampling: bool,
    /// Whether the source accepts data.
    pub status: SourceStatus,
    /// How points are split into series; `None` if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Arc<Dimensions>>,
    /// Whether points that are there already are stored again.
    #[serde(default, skip_serializing_if = "Duplicates::is_keep")]
    pub duplicates: Duplicates,
    /// Expected time between two points, in seconds; `None` if none are expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_interval_seconds: Option<u32>,
    /// Since when the source is stale, as webhooks have heard, UTC nanoseconds; `None` if they heard that it recovered, or
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since_ns: Option<i64>,
    /// The type of its metric, if an agent has told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_type: Option<MetricType>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

impl<S> Source<S> {
    pub(super) fn with_schema<T>(self, schema: T) -> Source<T> {
        Source {
            id: self.id,
            ordinal: self.ordinal,
            bucket_id: self.bucket_id,
            name: self.name,
            kind: self.kind,
            description: self.description,
            schema,
            schema_mode: self.schema_mode,
            downsampling: self.downsampling,
            status: self.status,
            dimensions: self.dimensions,
            duplicates: self.duplicates,
            expected_interval_seconds: self.expected_interval_seconds,
            stale_since_ns: self.stale_since_ns,
            metric_type: self.metric_type,
            created_at_ns: self.created_at_ns,
            updated_at_ns: self.updated_at_ns,
        }
    }

    /// How long the source is fresh after a point; `None` if no points are expected.
    pub fn fresh_for_ns(&self) -> Option<i64> {
        let seconds = self
            .expected_interval_seconds
            .filter(|_| self.status == SourceStatus::Active)?;
        Some(i64::from(seconds) * STALE_INTERVALS * SECOND_NS)
    }

    /// Until when the source is fresh, given its newest point; `None` if that is unknown.
    pub fn fresh_until_ns(&self, newest_ns: Option<i64>) -> Option<i64> {
        Some(newest_ns?.saturating_add(self.fresh_for_ns()?))
    }

    /// The freshness at a time, given the newest point.
    pub fn freshness(&self, newest_ns: Option<i64>, now_ns: i64) -> Freshness {
        match self.fresh_until_ns(newest_ns) {
            None => Freshness::Unknown,
            Some(until_ns) if until_ns < now_ns => Freshness::Stale,
            Some(_) => Freshness::Fresh,
        }
    }
}

/// All sources of a bucket at one moment.
#[derive(Clone)]
pub struct SourcePages(pub(super) Vec<Arc<Page<Source>>>);

/// A summary of sources. That of a page is computed on first use and cached until the page changes.
pub(super) struct Common {
    /// The distinct schemas, each with the least id of a source that has it.
    schemas: Vec<(Arc<Schema>, ObjectId)>,
    downsampling: bool,
}

impl Common {
    fn of(page: &Page<Source>) -> Self {
        Self {
            schemas: distinct(page.iter().map(|source| (&source.schema, source.id))),
            downsampling: page.iter().all(|source| source.downsampling),
        }
    }
}

/// The distinct schemas, each with its least id. They are identified by their address, because the catalog interns them.
fn distinct<'a>(schemas: impl Iterator<Item = (&'a Arc<Schema>, ObjectId)>) -> Vec<(Arc<Schema>, ObjectId)> {
    let mut distinct = HashMap::new();
    for (schema, id) in schemas {
        let found = distinct.entry(Arc::as_ptr(schema));
        let (_, least) = found.or_insert_with(|| (Arc::clone(schema), id));
        *least = id.min(*least);
    }
    distinct.into_values().collect()
}

impl SourcePages {
    /// Number of pages, each of which has up to 1,024 sources.
    pub fn page_count(&self) -> usize {
        self.0.len()
    }

    /// The source with this ordinal.
    pub fn get(&self, ordinal: u32) -> Option<&Arc<Source>> {
        let number = Page::<Source>::number_of(ordinal);
        // If no page before it was removed, its index is its number.
        let page = match self.0.get(number as usize) {
            Some(page) if page.number() == number => page,
            _ => &self.0[self.0.binary_search_by_key(&number, |page| page.number()).ok()?],
        };
        page.get(ordinal)
    }

    /// All sources.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.0.iter().flat_map(|page| page.iter())
    }

    /// The distinct schemas, in the order of their first use when sources are sorted by id.
    pub fn schemas(&self) -> Vec<Arc<Schema>> {
        let all = self.common().flat_map(|common| &common.schemas);
        let mut schemas = distinct(all.map(|(schema, id)| (schema, *id)));
        schemas.sort_by_key(|(_, id)| *id);
        schemas.into_iter().map(|(schema, _)| schema).collect()
    }

    /// Whether large raw queries are aggregated automatically for all sources.
    pub fn all_downsampling(&self) -> bool {
        self.common().all(|common| common.downsampling)
    }

    fn common(&self) -> impl Iterator<Item = &Common> {
        self.0
            .iter()
            .map(|page| page.common.get_or_init(|| Common::of(page)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::super::{Field, FieldType};
    use super::*;

    fn schema(name: &str) -> Arc<Schema> {
        let field = Field {
            name: name.into(),
            kind: FieldType::Number,
            unit: None,
            description: None,
        };
        Arc::new(Schema::from(vec![field]))
    }

    fn source(ordinal: u32, id: u8, schema: &Arc<Schema>, downsampling: bool) -> Arc<Source> {
        let mut bytes = [0; 12];
        bytes[0] = id;
        bytes[8..].copy_from_slice(&ordinal.to_be_bytes());
        Arc::new(Source {
            id: ObjectId::from_bytes(bytes),
            ordinal,
            bucket_id: ObjectId::from_bytes([0; 12]),
            name: ordinal.to_string().into(),
            kind: "sensor".into(),
            description: None,
            schema: Arc::clone(schema),
            schema_mode: SchemaMode::Strict,
            downsampling,
            status: SourceStatus::Active,
            dimensions: None,
            duplicates: Default::default(),
            expected_interval_seconds: None,
            stale_since_ns: None,
            metric_type: None,
            created_at_ns: 0,
            updated_at_ns: 0,
        })
    }

    /// Also if a page has changed since its summary was cached.
    #[test]
    fn page_summaries_agree_with_their_sources() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed);
            let schemas: Vec<Arc<Schema>> = ["a", "b", "c", "d"].map(schema).into();
            let mut pages = Pages::default();
            for _ in 0..200 {
                let ordinal = random.u32(0..4) * 1_000 + random.u32(0..6);
                if random.u8(..3) == 0 {
                    pages.remove(ordinal);
                } else {
                    let schema = &schemas[random.usize(..schemas.len())];
                    let new = source(ordinal, random.u8(..), schema, random.u8(..20) > 0);
                    pages.insert(ordinal, new);
                }
                let shared = SourcePages(pages.pages().cloned().collect());
                let mut sources: Vec<&Arc<Source>> = pages.iter().collect();
                assert_eq!(
                    shared.all_downsampling(),
                    sources.iter().all(|source| source.downsampling)
                );
                sources.sort_by_key(|source| source.id);
                let mut expected: Vec<Arc<Schema>> = Vec::new();
                for source in sources {
                    assert!(Arc::ptr_eq(shared.get(source.ordinal).unwrap(), source));
                    if !expected.iter().any(|it| Arc::ptr_eq(it, &source.schema)) {
                        expected.push(Arc::clone(&source.schema));
                    }
                }
                let same = |(one, other): (&Arc<Schema>, &Arc<Schema>)| Arc::ptr_eq(one, other);
                let told = shared.schemas();
                assert!(told.len() == expected.len() && told.iter().zip(&expected).all(same));
                assert!(shared.get(9_999).is_none());
            }
        }
    }
}
