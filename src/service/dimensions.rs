//! Lists the dimensions of a data source, their values, and its series.

use std::sync::Arc;

use engine::SeriesRef;
use roaring::RoaringBitmap;

use super::page::{Page, PageRequest};
use super::query::{available_dimensions, has_dimension};
use super::sources::SeriesStats;
use super::{Caller, Service};
use crate::bucket::IndexedView;
use crate::catalog::{Dimensions, Source};
use crate::error::{Detail, ServiceError};
use crate::ids::ObjectId;
use crate::ledger::LedgerError;
use crate::query_pool::{Step, Stop, Turn};
use crate::series::{DimensionValues, Labels, Matcher};

/// Number of series that are listed in a short turn.
const SHORT_SERIES_MAX: u64 = 1 << 12;

/// A value of a dimension, with the number of series that have it.
pub struct ValueWithSeries {
    pub value: Box<str>,
    pub series: u64,
}

/// A series with the statistics of its points.
pub struct SeriesWithStats {
    /// The dimensions that it has.
    pub labels: Labels,
    pub stats: SeriesStats,
}

/// A source with its series that have points.
struct SourceSeries {
    source: Arc<Source>,
    indexed: IndexedView,
    visible: Arc<RoaringBitmap>,
    /// Points before this time have expired.
    cutoff_ns: i64,
}

impl Service {
    /// Lists the dimensions of a source with their numbers of values, by name.
    ///
    /// # Errors
    /// 404, 403, 503.
    pub async fn list_dimensions(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        page: PageRequest,
    ) -> Result<Page<DimensionValues>, ServiceError> {
        let names = |of: &SourceSeries, _: &Stop| match of.source.dimensions.as_deref() {
            None => Ok(Vec::new()),
            Some(Dimensions::All) => of.names(),
            Some(Dimensions::Named(listed)) => {
                let count = |name: &str| of.index().dimension(of.source.ordinal, name, &of.visible);
                let mut names: Vec<_> = listed
                    .iter()
                    .map(|name| count(name))
                    .collect::<Result<_, LedgerError>>()?;
                names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                Ok(names)
            }
        };
        let names: Vec<DimensionValues> = self.of_series(caller, bucket_id, source_id, names).await?;
        Ok(page.cut(names.len(), names.into_iter()))
    }

    /// Lists the values of a dimension that begin with `prefix`, in the order of their bytes.
    ///
    /// # Errors
    /// 404, also for another dimension; 403, 503.
    pub async fn list_dimension_values(
        &self,
        caller: &Caller,
        (bucket_id, source_id): (ObjectId, ObjectId),
        name: String,
        prefix: String,
        page: PageRequest,
    ) -> Result<Page<ValueWithSeries>, ServiceError> {
        let values = move |of: &SourceSeries, _: &Stop| {
            let ordinal = of.source.ordinal;
            let values = of.index().count_values(ordinal, &name, &prefix, &of.visible)?;
            let is_known = match of.source.dimensions.as_deref() {
                None => false,
                Some(dimensions @ Dimensions::Named(_)) => dimensions.has(&name),
                Some(Dimensions::All) => {
                    let is_visible = |ordinal| Ok::<_, LedgerError>(of.visible.contains(ordinal));
                    !values.is_empty() || of.index().any_having(ordinal, &name, is_visible)?
                }
            };
            if !is_known {
                return Err(ServiceError::not_found("dimension"));
            }
            let total = values.len();
            let values = values
                .into_iter()
                .map(|(value, series)| ValueWithSeries { value, series });
            Ok(page.cut(total, values))
        };
        self.of_series(caller, bucket_id, source_id, values).await
    }

    /// Lists the series of a source for which each of these dimensions has one of the values, oldest first.
    ///
    /// # Errors
    /// 404, 403; 400 for a dimension that the source does not have; 503.
    pub async fn list_series(
        &self,
        caller: &Caller,
        (bucket_id, source_id): (ObjectId, ObjectId),
        wanted: Vec<(String, Vec<String>)>,
        page: PageRequest,
    ) -> Result<Page<SeriesWithStats>, ServiceError> {
        let list = move |of: &SourceSeries, stop: &Stop| {
            of.check_names(wanted.iter().map(|(name, _)| name))?;
            let mut found = RoaringBitmap::clone(&of.visible);
            for (name, values) in &wanted {
                let values = values.iter().map(|value| Some(value.as_str().into()));
                let matcher = Matcher::In(values.collect());
                found = of.index().select(of.source.ordinal, name, &matcher, &found)?;
            }
            let ordinals = page.cut(found.len() as usize, found.iter());
            let entries = ordinals.entries.into_iter();
            let entries = entries
                .map(|ordinal| of.series(ordinal, stop))
                .collect::<Result<_, _>>()?;
            Ok(Page {
                entries,
                total: ordinals.total,
            })
        };
        self.of_series(caller, bucket_id, source_id, list).await
    }

    /// Reads the series of a source on the query pool.
    async fn of_series<R: Send + 'static>(
        &self,
        caller: &Caller,
        bucket_id: ObjectId,
        source_id: ObjectId,
        read: impl Fn(&SourceSeries, &Stop) -> Result<R, ServiceError> + Send + 'static,
    ) -> Result<R, ServiceError> {
        let (bucket, source) = self.find_source(caller, bucket_id, source_id)?;
        let (buckets, now_ns) = (self.buckets.clone(), self.now_ns());
        let answer = move |stop: &Stop, turn: Turn| {
            let indexed = buckets.indexed_view(&bucket)?;
            let members = indexed.view.members(source.ordinal);
            if turn == Turn::Short && members.is_some_and(|members| members.len() > SHORT_SERIES_MAX) {
                return Ok(Step::Long);
            }
            let of = SourceSeries::of(&source, indexed, bucket.retention_cutoff_ns(now_ns), stop)?;
            read(&of, stop).map(Step::Answer)
        };
        let answered = self.resources.queries.run(caller.organization_id, answer).await;
        answered.map_err(|error| self.buckets.damaged().explain(error))
    }
}

impl SourceSeries {
    fn of(
        source: &Arc<Source>,
        indexed: IndexedView,
        cutoff_ns: i64,
        stop: &Stop,
    ) -> Result<Self, ServiceError> {
        let (view, stop) = (&indexed.view, || stop.now());
        let visible = match source.dimensions {
            Some(_) => view.visible(source.ordinal, cutoff_ns, &stop, &mut Err)?,
            // One series, with the ordinal of the source.
            None => {
                let is_visible = view.is_visible(source.ordinal, cutoff_ns, &stop, &mut Err)?;
                Arc::new(is_visible.then_some(source.ordinal).into_iter().collect())
            }
        };
        Ok(SourceSeries {
            source: Arc::clone(source),
            indexed,
            visible,
            cutoff_ns,
        })
    }

    fn index(&self) -> &crate::series::SeriesIndex {
        &self.indexed.index
    }

    /// The names that occur.
    fn names(&self) -> Result<Vec<DimensionValues>, ServiceError> {
        Ok(self.index().names(self.source.ordinal, &self.visible)?)
    }

    /// 400 for names that the source does not have.
    fn check_names<'n>(&self, names: impl Iterator<Item = &'n String>) -> Result<(), ServiceError> {
        let mut faults = Vec::new();
        for name in names {
            if !has_dimension(&self.source, name, &self.indexed, self.cutoff_ns)? {
                let available = available_dimensions([&self.source], &self.indexed, self.cutoff_ns)?;
                let message = format!("is no dimension of the data source; available: {available}");
                faults.push(Detail::at(&[name], message));
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ServiceError::faults(faults)),
        }
    }

    fn series(&self, ordinal: u32, stop: &Stop) -> Result<SeriesWithStats, ServiceError> {
        let source = self.source.ordinal;
        let labels = self.index().labels(SeriesRef { ordinal, source })?;
        let range_ns = (self.cutoff_ns, i64::MAX);
        let stats = match self.indexed.view.series(ordinal) {
            Some(series) => series.stats_within(range_ns, &|| stop.now(), &mut Err)?,
            None => SeriesStats::default(),
        };
        Ok(SeriesWithStats {
            labels: labels.unwrap_or_default(),
            stats,
        })
    }
}

impl From<LedgerError> for ServiceError {
    fn from(error: LedgerError) -> Self {
        Self::internal(error)
    }
}
