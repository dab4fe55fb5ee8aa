//! `/api/analytics`.

use actix_web::http::StatusCode;
use serde_json::{Map, Value};

use super::organization::PlanView;
use super::views::{NamedView, view};
use crate::catalog::{Rule, json_number};
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Call, Endpoint, Reader, Written, get};
use crate::http::respond;
use crate::ids::ObjectId;
use crate::service::analytics::{BucketAnalytics, Overview, Period, SourceAnalytics};
use crate::timestamp::Timestamp;

view! {
    /// The response with the analytics of a bucket.
    pub struct AnalyticsAnswer<'a> of(analytics: &'a BucketAnalytics) {
        /// Analytics over a period that ends now.
        analytics: AnalyticsView<'a> = AnalyticsView::of(analytics),
    }
}

view! {
    /// Analytics of a bucket. Expired points are not counted.
    pub struct AnalyticsView<'a> of(analytics: &'a BucketAnalytics) {
        /// The bucket.
        bucket: NamedView<'a> = NamedView::of(analytics.bucket.id, &analytics.bucket.name),
        /// The period that was requested.
        #[schema(value_type = Period)]
        period: &'static str = analytics.period.name,
        /// Totals of the bucket.
        summary: SummaryView = SummaryView::of(analytics),
        /// Statistics of every data source, oldest first.
        data_source_stats: Vec<SourceAnalyticsView<'a>> =
            analytics.sources.iter().map(SourceAnalyticsView::of).collect(),
        /// Points over time, by their timestamps.
        ingestion_rate: IngestionRateView = IngestionRateView::of(analytics),
        /// Triggers of the bucket's alert rules.
        alert_activity: AlertActivityView<'a> = AlertActivityView::of(analytics),
    }
}

view! {
    /// Totals of a bucket.
    pub struct SummaryView of(analytics: &BucketAnalytics) {
        /// Number of points, regardless of the period.
        total_data_points: u64 = analytics.points,
        /// Number of points with timestamps within the period.
        data_points_in_period: u64 = analytics.points_in_period,
        /// `dataPointsInPeriod` divided by the number of days in the period.
        #[schema(value_type = f64)]
        avg_data_points_per_day: Value = json_number(analytics.points_per_day()),
        /// Number of data sources.
        data_sources: usize = analytics.sources.len(),
        /// Number of alert rules with status `active`.
        active_alerts: u64 = analytics.active_rules,
    }
}

view! {
    /// Statistics of a data source within the period.
    pub struct SourceAnalyticsView<'a> of(analytics: &'a SourceAnalytics) {
        /// ID of the data source.
        #[serde(rename = "_id")]
        id: ObjectId = analytics.source.id,
        /// Name of the data source.
        name: &'a str = &analytics.source.name,
        /// Number of points within the period.
        data_point_count: u64 = analytics.points,
        /// Timestamp of the latest point, regardless of the period.
        last_data_point: Option<Timestamp> = analytics.last_ns.map(Timestamp),
        /// Mean of each number field that has values within the period.
        #[schema(value_type = BTreeMap<String, f64>)]
        avg_values: Map<String, Value> = by_field(analytics, |field| analytics.values[field].1.avg()),
        /// Minimum of each of these fields.
        #[schema(value_type = BTreeMap<String, f64>)]
        min_values: Map<String, Value> = by_field(analytics, |field| analytics.values[field].1.min),
        /// Maximum of each of these fields.
        #[schema(value_type = BTreeMap<String, f64>)]
        max_values: Map<String, Value> = by_field(analytics, |field| analytics.values[field].1.max),
    }
}

view! {
    /// Points over time.
    pub struct IngestionRateView of(analytics: &BucketAnalytics) {
        /// Hours with points, ascending.
        data_points_per_hour: Vec<HourView> =
            analytics.hours.iter().map(|(start_ns, count)| HourView::of(*start_ns, *count)).collect(),
    }
}

view! {
    /// A UTC hour. In the first and the last hour, only points within the period are counted.
    pub struct HourView of(start_ns: i64, count: u64) {
        /// Start of the hour.
        hour: Timestamp = Timestamp(start_ns),
        /// Number of points of all data sources.
        count: u64 = count,
    }
}

view! {
    /// Triggers of the rules that exist now.
    pub struct AlertActivityView<'a> of(analytics: &'a BucketAnalytics) {
        /// Number of triggers within the period.
        total_triggered: u64 = analytics.trigger_count(),
        /// Rules that fired within the period, most frequent first.
        by_rule: Vec<RuleActivityView<'a>> =
            analytics.triggers.iter().map(|(rule, count)| RuleActivityView::of(rule, *count)).collect(),
    }
}

view! {
    /// Triggers of one alert rule.
    pub struct RuleActivityView<'a> of(rule: &'a Rule, count: u64) {
        /// Name of the rule.
        name: &'a str = &rule.settings.name,
        /// Number of triggers within the period.
        count: u64 = count,
    }
}

view! {
    /// The response with the overview of an organization.
    pub struct OverviewAnswer<'a> of(overview: &'a Overview) {
        /// The overview as of now.
        overview: OverviewView<'a> = OverviewView::of(overview),
    }
}

view! {
    /// Overview of an organization.
    pub struct OverviewView<'a> of(overview: &'a Overview; organization = &overview.organization) {
        /// The organization.
        organization: NamedView<'a> = NamedView::of(organization.id, &organization.name),
        /// Number of objects by type.
        totals: TotalsView = TotalsView::of(overview),
        /// API calls and storage in use.
        usage: UsageView = UsageView::of(overview),
        /// Limits of the plan; null is unlimited.
        plan: PlanView = PlanView::of(organization.plan),
        /// Recent activity.
        recent_activity: RecentActivityView = RecentActivityView::of(overview),
        /// IDs of buckets with a damaged block, whose points could not be counted; absent when there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        incomplete_buckets: Vec<ObjectId> = overview.incomplete_buckets.clone(),
    }
}

view! {
    /// Counts over all buckets.
    pub struct TotalsView of(overview: &Overview) {
        /// Number of buckets.
        buckets: u64 = overview.buckets,
        /// Number of data sources.
        data_sources: u64 = overview.sources,
        /// Number of points, without expired ones.
        data_points: u64 = overview.points,
        /// Number of alert rules.
        alert_rules: u64 = overview.alert_rules,
        /// Number of API keys, of the organization and of its buckets.
        api_keys: u64 = overview.keys,
    }
}

view! {
    /// API calls and storage in use.
    pub struct UsageView of(overview: &Overview) {
        /// API calls of the current calendar month, in UTC.
        api_calls_this_month: u64 = overview.calls_this_month,
        /// API calls allowed per month; null is unlimited.
        api_calls_limit: Option<u64> = overview.organization.plan.limits().calls_max,
        /// Share of the limit in percent, rounded to two decimals; null when unlimited.
        #[schema(value_type = Option<f64>)]
        api_calls_percentage: Option<Value> = overview.calls_percentage().map(json_number),
        /// Bytes on disk of the organization's points, histories and deliveries.
        storage_used_bytes: u64 = overview.storage_bytes,
        /// Human-readable form of `storageUsedBytes`; 1 KB is 1,000 bytes.
        storage_used_formatted: String = formatted_bytes(overview.storage_bytes),
    }
}

view! {
    /// Recent activity of an organization.
    pub struct RecentActivityView of(overview: &Overview) {
        /// When the last point was received, regardless of its timestamp.
        last_data_ingestion: Option<Timestamp> = overview.last_ingested_at_ns.map(Timestamp),
        /// When a rule last fired.
        last_alert_triggered: Option<Timestamp> = overview.last_triggered_at_ns.map(Timestamp),
        /// Number of points with timestamps within the last 24 hours.
        data_points_last24h: u64 = overview.points_last_day,
        /// Number of triggers within the last 24 hours.
        alerts_triggered_last24h: u64 = overview.triggers_last_day,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/analytics/buckets/{bucketId}", "showBucketAnalytics", bucket),
        get("/api/analytics/overview", "showOverview", overview),
    ]
}

async fn bucket(
    call: Call<Reader, (ObjectId, Period)>,
) -> Result<Written<AnalyticsAnswer<'static>>, ServiceError> {
    let (bucket_id, period) = call.params;
    let coding = respond::coding_of(&call.request);
    let encode =
        move |analytics: &BucketAnalytics| respond::encode_json(coding, &AnalyticsAnswer::of(analytics));
    let encoded = call
        .service
        .bucket_analytics(&call.caller, bucket_id, period, encode)
        .await?;
    Ok(respond::respond_encoded(StatusCode::OK, encoded).into())
}

async fn overview(call: Call<Admin>) -> Result<Written<OverviewAnswer<'static>>, ServiceError> {
    let coding = respond::coding_of(&call.request);
    let encode = move |overview: &Overview| respond::encode_json(coding, &OverviewAnswer::of(overview));
    let encoded = call.service.overview(&call.caller, encode).await?;
    Ok(respond::respond_encoded(StatusCode::OK, encoded).into())
}

/// A value of each field, by the index of the field.
fn by_field(analytics: &SourceAnalytics, value: impl Fn(usize) -> f64) -> Map<String, Value> {
    let fields = analytics.values.iter().enumerate();
    fields
        .map(|(index, (name, _))| (name.to_string(), json_number(value(index))))
        .collect()
}

/// Formats with at most one decimal: `512 B`, `1.5 MB`, `20 GB`. Units are decimal, like disk sizes and the plan
/// limits.
fn formatted_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes as f64 / 100.0;
    let mut unit = 0;
    while tenths.round() >= 10_000.0 {
        tenths /= 1_000.0;
        unit += 1;
    }
    format!("{} {}", tenths.round() / 10.0, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::formatted_bytes;

    #[test]
    fn bytes_are_shown_with_at_most_one_decimal() {
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 KB"),
            (1_049, "1 KB"),
            (1_500_000, "1.5 MB"),
            (999_949, "999.9 KB"),
            (999_950, "1 MB"),
            (20_000_000_000, "20 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(formatted_bytes(bytes), shown, "{bytes}");
        }
    }
}
