"""Buckets, data sources and analytics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from tidewatch.models.accounts import PlanLimits
from tidewatch.models.common import Named

if TYPE_CHECKING:
    from typing_extensions import NotRequired

BucketStatus = Literal["active"]
FieldType = Literal["number", "string", "boolean"]
SchemaMode = Literal["strict", "extend"]
SourceStatus = Literal["active", "inactive"]
Freshness = Literal["fresh", "stale", "unknown"]
Period = Literal["24h", "7d", "30d", "90d"]


class BucketStats(TypedDict):
    """Number of objects in a bucket."""

    dataSourceCount: int
    dataPointCount: int
    apiKeyCount: int


class Bucket(TypedDict):
    """A bucket."""

    _id: str
    name: str
    description: NotRequired[str]
    organizationId: str
    retentionDays: int
    status: BucketStatus
    stats: NotRequired[BucketStats]
    createdAt: str
    updatedAt: str


class DeletedWithBucket(TypedDict):
    """Number of objects deleted along with a bucket."""

    dataSources: int
    dataPoints: int
    apiKeys: int
    alertRules: int


class DeletedBucket(TypedDict):
    """The response to a deletion."""

    message: str
    deletedBucket: Named
    deletedResources: DeletedWithBucket


class Field(TypedDict):
    """A field's definition."""

    type: FieldType
    unit: NotRequired[str | None]
    description: NotRequired[str | None]


Dimensions = Literal["all"] | Sequence[str]
"""Which members of metadata are dimensions: all, or those with these names."""

Duplicates = Literal["keep", "skip"]


class Dimension(TypedDict):
    """A dimension of a data source, with its number of values."""

    name: str
    values: int


class DimensionValue(TypedDict):
    """A value of a dimension, with the number of series that have it."""

    value: str
    series: int


class Series(TypedDict):
    """The points of a data source that have the same dimensions."""

    dimensions: Mapping[str, str]
    totalDataPoints: int
    firstDataPoint: str | None
    lastDataPoint: str | None


class SourceStats(TypedDict):
    """Statistics of a data source's points, without expired ones."""

    totalDataPoints: int
    firstDataPoint: str | None
    lastDataPoint: str | None
    averageIntervalSeconds: float | None
    seriesCount: int | None


class Source(TypedDict):
    """A data source."""

    _id: str
    bucketId: str
    name: str
    type: str
    description: NotRequired[str]
    schema: Mapping[str, Field]
    schemaMode: SchemaMode
    downsampling: bool
    status: SourceStatus
    dimensions: Dimensions | None
    duplicates: Duplicates
    expectedIntervalSeconds: int | None
    freshness: Freshness
    stats: SourceStats
    createdAt: str
    updatedAt: str


class DeletedWithSource(TypedDict):
    """Number of objects deleted along with a data source."""

    dataPoints: int
    alertRules: int


class DeletedSource(TypedDict):
    """The response to a deletion."""

    message: str
    deletedDataSource: Named
    deletedResources: DeletedWithSource


class Summary(TypedDict):
    """Totals of a bucket."""

    totalDataPoints: int
    dataPointsInPeriod: int
    avgDataPointsPerDay: float
    dataSources: int
    activeAlerts: int


class SourceAnalytics(TypedDict):
    """Statistics of a data source within the period."""

    _id: str
    name: str
    dataPointCount: int
    lastDataPoint: str | None
    avgValues: dict[str, float]
    minValues: dict[str, float]
    maxValues: dict[str, float]


class HourCount(TypedDict):
    """A UTC hour. In the first and the last hour, only points within the period are counted."""

    hour: str
    count: int


class IngestionRate(TypedDict):
    """Points over time."""

    dataPointsPerHour: list[HourCount]


class RuleActivity(TypedDict):
    """Triggers of one alert rule."""

    name: str
    count: int


class AlertActivity(TypedDict):
    """Triggers of the rules that exist now."""

    totalTriggered: int
    byRule: list[RuleActivity]


class BucketAnalytics(TypedDict):
    """Analytics of a bucket. Expired points are not counted."""

    bucket: Named
    period: Period
    summary: Summary
    dataSourceStats: list[SourceAnalytics]
    ingestionRate: IngestionRate
    alertActivity: AlertActivity


class Totals(TypedDict):
    """Counts over all buckets."""

    buckets: int
    dataSources: int
    dataPoints: int
    alertRules: int
    apiKeys: int


class Usage(TypedDict):
    """API calls and storage in use."""

    apiCallsThisMonth: int
    apiCallsLimit: int | None
    apiCallsPercentage: float | None
    storageUsedBytes: int
    storageUsedFormatted: str


class RecentActivity(TypedDict):
    """Recent activity of an organization."""

    lastDataIngestion: str | None
    lastAlertTriggered: str | None
    dataPointsLast24h: int
    alertsTriggeredLast24h: int


class Overview(TypedDict):
    """Overview of an organization."""

    organization: Named
    totals: Totals
    usage: Usage
    plan: PlanLimits
    recentActivity: RecentActivity
    incompleteBuckets: NotRequired[list[str]]
