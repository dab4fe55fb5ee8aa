//! `/api/buckets/{bucketId}/sources/{sourceId}/dimensions` and `…/series`: what the points of a source are split by.

use serde::Serializer;

use super::views::{Many, Resource, view};
use crate::http::endpoint::{
    Answer, Call, DimensionName, Endpoint, Prefix, Reader, Reply, WantedLabels, get,
};
use crate::ids::ObjectId;
use crate::series::{DimensionValues, Labels};
use crate::service::dimensions::{SeriesWithStats, ValueWithSeries};
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

type SourceIds = (ObjectId, ObjectId);
type ValuesParams = ((SourceIds, DimensionName), (Prefix, PageRequest));

view! {
    /// A dimension of a data source.
    #[schema(as = Dimension)]
    pub struct DimensionView<'a> of(found: &'a DimensionValues) {
        /// Name of the dimension.
        name: &'a str = &found.name,
        /// Number of values that its points have.
        values: u64 = found.values,
    }
}

view! {
    /// A value of a dimension.
    #[schema(as = DimensionValue)]
    pub struct ValueView<'a> of(found: &'a ValueWithSeries) {
        /// The value, as text.
        value: &'a str = &found.value,
        /// Number of series that have it.
        series: u64 = found.series,
    }
}

view! {
    /// A series: the points of a data source that have the same dimensions.
    #[schema(as = Series)]
    pub struct SeriesView<'a> of(found: &'a SeriesWithStats; stats = &found.stats) {
        /// The dimensions that its points have.
        #[serde(serialize_with = "by_name")]
        #[schema(value_type = std::collections::BTreeMap<String, String>)]
        dimensions: &'a Labels = &found.labels,
        /// Number of points.
        total_data_points: u64 = stats.points,
        /// Timestamp of the earliest point.
        first_data_point: Option<Timestamp> = stats.bounds_ns.map(|(first_ns, _)| Timestamp(first_ns)),
        /// Timestamp of the latest point.
        last_data_point: Option<Timestamp> = stats.bounds_ns.map(|(_, last_ns)| Timestamp(last_ns)),
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    const ALL: &str = "/api/buckets/{bucketId}/sources/{sourceId}/dimensions";
    const ONE: &str = "/api/buckets/{bucketId}/sources/{sourceId}/dimensions/{name}";
    const SERIES: &str = "/api/buckets/{bucketId}/sources/{sourceId}/series";
    vec![
        get(ALL, "listDimensions", list),
        get(ONE, "listDimensionValues", list_values),
        get(SERIES, "listSeries", list_series),
    ]
}

async fn list(call: Call<Reader, (SourceIds, PageRequest)>) -> Reply<Many<DimensionView<'static>>> {
    let ((bucket_id, source_id), page_request) = call.params;
    let listed = call
        .service
        .list_dimensions(&call.caller, bucket_id, source_id, page_request);
    Answer::page(page_request, &listed.await?, DimensionView::of)
}

async fn list_values(call: Call<Reader, ValuesParams>) -> Reply<Many<ValueView<'static>>> {
    let ((ids, DimensionName(name)), (Prefix(prefix), page_request)) = call.params;
    let listed = call
        .service
        .list_dimension_values(&call.caller, ids, name, prefix, page_request);
    Answer::page(page_request, &listed.await?, ValueView::of)
}

async fn list_series(
    call: Call<Reader, (SourceIds, (WantedLabels, PageRequest))>,
) -> Reply<Many<SeriesView<'static>>> {
    let (ids, (WantedLabels(wanted), page_request)) = call.params;
    let listed = call.service.list_series(&call.caller, ids, wanted, page_request);
    Answer::page(page_request, &listed.await?, SeriesView::of)
}

fn by_name<S: Serializer>(labels: &&Labels, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter())
}

impl Resource for DimensionView<'_> {
    const ONE: &'static str = "dimension";
    const MANY: &'static str = "dimensions";
    const ORDER: &'static str = "By name.";
}

impl Resource for ValueView<'_> {
    const ONE: &'static str = "value";
    const MANY: &'static str = "values";
    const ORDER: &'static str = "By value, in the order of its bytes.";
}

impl Resource for SeriesView<'_> {
    const ONE: &'static str = "series";
    const MANY: &'static str = "series";
}
