//! `/api/analytics`.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::docs::PeriodDoc;
use super::faults::Faults;
use super::organization::PlanView;
use super::values::shown_number;
use super::{auth, params, respond};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::analytics::{BucketAnalytics, Overview, Period, SourceAnalytics};
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// Those of the bucket.
const READERS: Access = Access::ADMIN.or(Access::WRITE).or(Access::READ);

/// An id with the name that goes with it.
#[derive(Serialize, ToSchema)]
pub struct NamedView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
}

/// An answer with a bucket's analytics.
#[derive(Serialize, ToSchema)]
pub struct AnalyticsAnswer<'a> {
    /// Over a period that ends now.
    pub analytics: AnalyticsView<'a>,
}

/// A bucket's analytics. Expired points count nowhere.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalyticsView<'a> {
    /// The bucket.
    pub bucket: NamedView<'a>,
    /// As asked for.
    #[schema(value_type = PeriodDoc)]
    pub period: &'static str,
    /// At a glance.
    pub summary: SummaryView,
    /// All sources, oldest first.
    pub data_source_stats: Vec<SourceAnalyticsView<'a>>,
    /// Points by the time that they bear.
    pub ingestion_rate: IngestionRateView,
    /// What has fired.
    pub alert_activity: AlertActivityView<'a>,
}

/// Counts of a bucket.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryView {
    /// Points of all time.
    pub total_data_points: u64,
    /// Points with timestamps within the period.
    pub data_points_in_period: u64,
    /// Those by the days of the period.
    #[serde(serialize_with = "number")]
    pub avg_data_points_per_day: f64,
    /// Data sources.
    pub data_sources: usize,
    /// Alert rules with status `active`.
    pub active_alerts: u64,
}

/// A source within the period.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceAnalyticsView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Its name.
    pub name: &'a str,
    /// Points within the period.
    pub data_point_count: u64,
    /// Timestamp of the latest point of all time.
    pub last_data_point: Option<Timestamp>,
    /// Mean of each number field with values within the period.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub avg_values: Map<String, Value>,
    /// Least value of each.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub min_values: Map<String, Value>,
    /// Greatest value of each.
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

/// A UTC hour; of the first and the last one only what lies within the period counts.
#[derive(Serialize, ToSchema)]
pub struct HourView {
    /// Its start.
    pub hour: Timestamp,
    /// Points of all sources.
    pub count: u64,
}

/// Triggers of the rules there are now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertActivityView<'a> {
    /// Triggers within the period.
    pub total_triggered: u64,
    /// Rules that fired within the period, the most frequent first.
    pub by_rule: Vec<RuleActivityView<'a>>,
}

/// A rule that has fired.
#[derive(Serialize, ToSchema)]
pub struct RuleActivityView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Triggers within the period.
    pub count: u64,
}

/// An answer with an organization's overview.
#[derive(Serialize, ToSchema)]
pub struct OverviewAnswer<'a> {
    /// As it is now.
    pub overview: OverviewView<'a>,
}

/// An organization at a glance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverviewView<'a> {
    /// The organization.
    pub organization: NamedView<'a>,
    /// What it has.
    pub totals: TotalsView,
    /// What it uses.
    pub usage: UsageView,
    /// What it may use; null is unlimited.
    pub plan: PlanView,
    /// What happens.
    pub recent_activity: RecentActivityView,
    /// Ids of buckets with a damaged block whose points could not be counted; only when there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub incomplete_buckets: Vec<ObjectId>,
}

/// Counts over all buckets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TotalsView {
    /// Buckets.
    pub buckets: u64,
    /// Data sources.
    pub data_sources: u64,
    /// Points, expired ones not counted.
    pub data_points: u64,
    /// Alert rules.
    pub alert_rules: u64,
    /// Keys of the organization and of its buckets.
    pub api_keys: u64,
}

/// Calls and storage.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// Calls of this calendar month, UTC.
    pub api_calls_this_month: u64,
    /// Calls a month; null is unlimited.
    pub api_calls_limit: Option<u64>,
    /// To two decimals; null when unlimited.
    #[serde(serialize_with = "number_or_null")]
    pub api_calls_percentage: Option<f64>,
    /// Bytes that the organization's points, histories and deliveries take on disk.
    pub storage_used_bytes: u64,
    /// The same for people: 1 KB is 1,000 bytes.
    pub storage_used_formatted: String,
}

/// What happened last.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentActivityView {
    /// When data last came, whatever its timestamps.
    pub last_data_ingestion: Option<Timestamp>,
    /// When a rule last fired.
    pub last_alert_triggered: Option<Timestamp>,
    /// Points with timestamps of the last 24 hours.
    pub data_points_last24h: u64,
    /// Triggers of the last 24 hours.
    pub alerts_triggered_last24h: u64,
}

/// Over which time.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AnalyticsParams {
    /// `7d` when absent.
    pub period: Option<PeriodDoc>,
}

/// Shows what a bucket has taken in and what has fired in it.
///
/// Over a period that ends now; hours are of UTC. Its cost does not grow with the number of points.
#[utoipa::path(get, path = "/api/analytics/buckets/{bucketId}", operation_id = "showBucketAnalytics", tag = "analytics",
    security(("apiKey" = ["admin", "write", "read"]), ("bearer" = [])),
    params(
        ("bucketId" = ObjectId, Path, description = "The bucket."),
        AnalyticsParams),
    responses(
        (status = 200, body = AnalyticsAnswer, description = "The bucket's analytics.")))]
pub async fn bucket(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, READERS)?;
    let mut faults = Faults::default();
    let bucket_id = params::id(&request, "bucketId", &mut faults);
    let pairs = params::query_pairs(&request, &mut faults).unwrap_or_default();
    let periods = Period::ALL.map(|period| (period.name, period));
    let period = params::one_of(&pairs, "period", Period::DEFAULT, &periods, &mut faults);
    let (Some(bucket_id), Some(period), true) = (bucket_id, period, faults.none()) else {
        return Err(faults.into_error());
    };
    let coding = respond::coding_of(&request);
    let encoded = service.bucket_analytics(&caller, bucket_id, period, move |analytics| {
        let analytics = AnalyticsView::of(analytics);
        respond::encode_json(coding, &AnalyticsAnswer { analytics })
    });
    Ok(respond::respond_encoded(StatusCode::OK, encoded.await?))
}

/// Shows the organization at a glance.
///
/// What it has, what it uses of its plan, and what happened last.
#[utoipa::path(get, path = "/api/analytics/overview", operation_id = "showOverview", tag = "analytics",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    responses(
        (status = 200, body = OverviewAnswer, description = "The organization at a glance.")))]
pub async fn overview(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let coding = respond::coding_of(&request);
    let encoded = service.overview(&caller, move |overview| {
        let overview = OverviewView::of(overview);
        respond::encode_json(coding, &OverviewAnswer { overview })
    });
    Ok(respond::respond_encoded(StatusCode::OK, encoded.await?))
}

impl<'a> AnalyticsView<'a> {
    fn of(analytics: &'a BucketAnalytics) -> Self {
        let hours = analytics.hours.iter();
        let triggers = analytics.triggers.iter();
        Self {
            bucket: NamedView {
                id: analytics.bucket.id,
                name: &analytics.bucket.name,
            },
            period: analytics.period.name,
            summary: SummaryView {
                total_data_points: analytics.points,
                data_points_in_period: analytics.points_in_period,
                avg_data_points_per_day: analytics.points_per_day(),
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
            organization: NamedView {
                id: organization.id,
                name: &organization.name,
            },
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
                api_calls_percentage: overview.calls_percentage(),
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

/// At most one decimal: `512 B`, `1.5 MB`, `20 GB`. Decimal, as disks are sold and as the plans' other limits count.
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

fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    shown_number(*value).serialize(serializer)
}

fn number_or_null<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(shown_number).serialize(serializer)
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
