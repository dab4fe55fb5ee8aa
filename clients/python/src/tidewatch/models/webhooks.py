"""Webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from tidewatch.models.rules import DeliveryStatus

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Event = Literal[
    "alert.triggered",
    "alert.resolved",
    "evaluation.overdue",
    "evaluation.resumed",
    "source.stale",
    "source.recovered",
    "data.received",
    "bucket.updated",
]
WebhookFormat = Literal["standard", "slack", "teams", "ntfy", "pagerduty", "email", "template"]
WebhookStatus = Literal["active", "paused"]


class RetryConfig(TypedDict):
    """Retry policy for failed deliveries."""

    maxRetries: NotRequired[int]
    backoffMultiplier: NotRequired[float]


class Webhook(TypedDict):
    """A webhook."""

    _id: str
    organizationId: str
    bucketId: str | None
    url: str
    events: list[Event]
    secret: NotRequired[str]
    format: WebhookFormat
    template: str | None
    retryConfig: RetryConfig
    status: WebhookStatus
    totalDeliveries: int
    successfulDeliveries: int
    failedDeliveries: int
    lastDeliveryAt: str | None
    lastDeliveryStatus: DeliveryStatus | None
    createdAt: str
    updatedAt: str


class DeletedWebhook(TypedDict):
    """A deleted webhook."""

    _id: str
    url: str
