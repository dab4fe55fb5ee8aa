//! `/api/analytics`.

use actix_web::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::organization::PlanView;
use super::views::NamedView;
use crate::error::ServiceError;
use crate::http::endpoint::{Admin, Call, Endpoint, Reader, Written, get};
use crate::http::respond;
use crate::http::shape::shown_number;
use crate::ids::ObjectId;
use crate::service::analytics::{BucketAnalytics, Overview, Period, SourceAnalytics};
use crate::timestamp::Timestamp;

/// The response with the analytics of a bucket.
#[derive(Serialize, ToSchema)]
pub struct AnalyticsAnswer<'a> {
    /// Analytics over a period that ends now.
    pub analytics: AnalyticsView<'a>,
}

/// Analytics of a bucket. Expired points are not counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsView<'a> {
    /// The bucket.
    pub bucket: NamedView<'a>,
    /// The period that was requested.
    #[schema(value_type = Period)]
    pub period: &'static str,
    /// Totals of the bucket.
    pub summary: SummaryView,
    /// Statistics of every data source, oldest first.
    pub data_source_stats: Vec<SourceAnalyticsView<'a>>,
    /// Points over time, by their timestamps.
    pub ingestion_rate: IngestionRateView,
    /// Triggers of the bucket's alert rules.
    pub alert_activity: AlertActivityView<'a>,
}

/// Totals of a bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryView {
    /// Number of points, regardless of the period.
    pub total_data_points: u64,
    /// Number of points with timestamps within the period.
    pub data_points_in_period: u64,
    /// `dataPointsInPeriod` divided by the number of days in the period.
    #[schema(value_type = f64)]
    pub avg_data_points_per_day: Value,
    /// Number of data sources.
    pub data_sources: usize,
    /// Number of alert rules with status `active`.
    pub active_alerts: u64,
}

/// Statistics of a data source within the period.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceAnalyticsView<'a> {
    /// ID of the data source.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Name of the data source.
    pub name: &'a str,
    /// Number of points within the period.
    pub data_point_count: u64,
    /// Timestamp of the latest point, regardless of the period.
    pub last_data_point: Option<Timestamp>,
    /// Mean of each number field that has values within the period.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub avg_values: Map<String, Value>,
    /// Minimum of each of these fields.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub min_values: Map<String, Value>,
    /// Maximum of each of these fields.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub max_values: Map<String, Value>,
}

/// Points over time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestionRateView {
    /// Hours with points, ascending.
    pub data_points_per_hour: Vec<HourView>,
}

/// A UTC hour. In the first and the last hour, only points within the period are counted.
#[derive(Serialize, ToSchema)]
pub struct HourView {
    /// Start of the hour.
    pub hour: Timestamp,
    /// Number of points of all data sources.
    pub count: u64,
}

/// Triggers of the rules that exist now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertActivityView<'a> {
    /// Number of triggers within the period.
    pub total_triggered: u64,
    /// Rules that fired within the period, most frequent first.
    pub by_rule: Vec<RuleActivityView<'a>>,
}

/// Triggers of one alert rule.
#[derive(Serialize, ToSchema)]
pub struct RuleActivityView<'a> {
    /// Name of the rule.
    pub name: &'a str,
    /// Number of triggers within the period.
    pub count: u64,
}

/// The response with the overview of an organization.
#[derive(Serialize, ToSchema)]
pub struct OverviewAnswer<'a> {
    /// The overview as of now.
    pub overview: OverviewView<'a>,
}

/// Overview of an organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverviewView<'a> {
    /// The organization.
    pub organization: NamedView<'a>,
    /// Number of objects by type.
    pub totals: TotalsView,
    /// API calls and storage in use.
    pub usage: UsageView,
    /// Limits of the plan; null is unlimited.
    pub plan: PlanView,
    /// Recent activity.
    pub recent_activity: RecentActivityView,
    /// IDs of buckets with a damaged block, whose points could not be counted; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub incomplete_buckets: Vec<ObjectId>,
}

/// Counts over all buckets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TotalsView {
    /// Number of buckets.
    pub buckets: u64,
    /// Number of data sources.
    pub data_sources: u64,
    /// Number of points, without expired ones.
    pub data_points: u64,
    /// Number of alert rules.
    pub alert_rules: u64,
    /// Number of API keys, of the organization and of its buckets.
    pub api_keys: u64,
}

/// API calls and storage in use.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// API calls of the current calendar month, in UTC.
    pub api_calls_this_month: u64,
    /// API calls allowed per month; null is unlimited.
    pub api_calls_limit: Option<u64>,
    /// Share of the limit in percent, rounded to two decimals; null when unlimited.
    #[schema(value_type = Option<f64>)]
    pub api_calls_percentage: Option<Value>,
    /// Bytes on disk of the organization's points, histories and deliveries.
    pub storage_used_bytes: u64,
    /// Human-readable form of `storageUsedBytes`; 1 KB is 1,000 bytes.
    pub storage_used_formatted: String,
}

/// Recent activity of an organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentActivityView {
    /// When the last point was received, regardless of its timestamp.
    pub last_data_ingestion: Option<Timestamp>,
    /// When a rule last fired.
    pub last_alert_triggered: Option<Timestamp>,
    /// Number of points with timestamps within the last 24 hours.
    pub data_points_last24h: u64,
    /// Number of triggers within the last 24 hours.
    pub alerts_triggered_last24h: u64,
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
    let encode = move |analytics: &BucketAnalytics| {
        let analytics = AnalyticsView::of(analytics);
        respond::encode_json(coding, &AnalyticsAnswer { analytics })
    };
    let encoded = call
        .service
        .bucket_analytics(&call.caller, bucket_id, period, encode)
        .await?;
    Ok(respond::respond_encoded(StatusCode::OK, encoded).into())
}

async fn overview(call: Call<Admin>) -> Result<Written<OverviewAnswer<'static>>, ServiceError> {
    let coding = respond::coding_of(&call.request);
    let encode = move |overview: &Overview| {
        let overview = OverviewView::of(overview);
        respond::encode_json(coding, &OverviewAnswer { overview })
    };
    let encoded = call.service.overview(&call.caller, encode).await?;
    Ok(respond::respond_encoded(StatusCode::OK, encoded).into())
}

impl<'a> AnalyticsView<'a> {
    fn of(analytics: &'a BucketAnalytics) -> Self {
        let hours = analytics.hours.iter();
        let triggers = analytics.triggers.iter();
        Self {
            bucket: NamedView::new(analytics.bucket.id, &analytics.bucket.name),
            period: analytics.period.name,
            summary: SummaryView {
                total_data_points: analytics.points,
                data_points_in_period: analytics.points_in_period,
                avg_data_points_per_day: shown_number(analytics.points_per_day()),
                data_sources: analytics.sources.len(),
                active_alerts: analytics.active_rules,
            },
            data_source_stats: analytics.sources.iter().map(SourceAnalyticsView::of).collect(),
            ingestion_rate: IngestionRateView {
                data_points_per_hour: hours
                    .map(|(start_ns, count)| HourView {
                        hour: Timestamp(*start_ns),
                        count: *count,
                    })
                    .collect(),
            },
            alert_activity: AlertActivityView {
                total_triggered: analytics.trigger_count(),
                by_rule: triggers
                    .map(|(rule, count)| RuleActivityView {
                        name: &rule.settings.name,
                        count: *count,
                    })
                    .collect(),
            },
        }
    }
}

impl<'a> SourceAnalyticsView<'a> {
    fn of(analytics: &'a SourceAnalytics) -> Self {
        let by_field = |value: &dyn Fn(usize) -> f64| {
            let fields = analytics.values.iter().enumerate();
            fields
                .map(|(index, (name, _))| (name.to_string(), shown_number(value(index))))
                .collect()
        };
        let values = &analytics.values;
        Self {
            id: analytics.source.id,
            name: &analytics.source.name,
            data_point_count: analytics.points,
            last_data_point: analytics.last_ns.map(Timestamp),
            avg_values: by_field(&|index| values[index].1.avg()),
            min_values: by_field(&|index| values[index].1.min),
            max_values: by_field(&|index| values[index].1.max),
        }
    }
}

impl<'a> OverviewView<'a> {
    fn of(overview: &'a Overview) -> Self {
        let organization = &overview.organization;
        Self {
            organization: NamedView::new(organization.id, &organization.name),
            totals: TotalsView {
                buckets: overview.buckets,
                data_sources: overview.sources,
                data_points: overview.points,
                alert_rules: overview.alert_rules,
                api_keys: overview.keys,
            },
            usage: UsageView {
                api_calls_this_month: overview.calls_this_month,
                api_calls_limit: organization.plan.limits().calls_max,
                api_calls_percentage: overview.calls_percentage().map(shown_number),
                storage_used_bytes: overview.storage_bytes,
                storage_used_formatted: formatted_bytes(overview.storage_bytes),
            },
            plan: PlanView::of(organization.plan),
            recent_activity: RecentActivityView {
                last_data_ingestion: overview.last_ingested_at_ns.map(Timestamp),
                last_alert_triggered: overview.last_triggered_at_ns.map(Timestamp),
                data_points_last24h: overview.points_last_day,
                alerts_triggered_last24h: overview.triggers_last_day,
            },
            incomplete_buckets: overview.incomplete_buckets.clone(),
        }
    }
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
