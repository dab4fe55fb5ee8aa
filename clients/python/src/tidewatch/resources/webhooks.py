"""Webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewatch._call import UNSET, Call, Page, Unset, changed, delete, get, given, member, page, patch, path, post
from tidewatch._resource import M, Resource, endpoint, entries

if TYPE_CHECKING:
    from tidewatch.models.rules import Delivery
    from tidewatch.models.webhooks import DeletedWebhook, Event, RetryConfig, Webhook, WebhookFormat, WebhookStatus


class Webhooks(Resource[M]):
    """Webhooks of the organization; admin key or token."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Webhook]]:
        """`GET /api/webhooks`: a page of webhooks, oldest first."""
        return get(path("webhooks"), page("webhooks"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(
        self,
        url: str,
        events: Sequence[Event],
        *,
        bucket_id: str | None = None,
        secret: str | None = None,
        retry_config: RetryConfig | None = None,
        status: WebhookStatus | None = None,
        format: WebhookFormat | None = None,  # noqa: A002 - the API's name
        template: str | None = None,
        routing_key: str | None = None,
    ) -> Call[Webhook]:
        """`POST /api/webhooks`: hears one bucket, or without `bucket_id` all. The `secret` is shown this once."""
        body = given(
            url=url,
            events=events,
            bucket_id=bucket_id,
            secret=secret,
            retry_config=retry_config,
            status=status,
            format=format,
            template=template,
            routing_key=routing_key,
        )
        return post(path("webhooks"), body, member("webhook"))

    @endpoint
    def get(self, webhook_id: str) -> Call[Webhook]:
        """`GET /api/webhooks/:id`."""
        return get(path("webhooks", webhook_id), member("webhook"))

    @endpoint
    def update(
        self,
        webhook_id: str,
        *,
        url: str | Unset = UNSET,
        events: Sequence[Event] | Unset = UNSET,
        bucket_id: str | Unset | None = UNSET,
        secret: str | Unset = UNSET,
        retry_config: RetryConfig | Unset = UNSET,
        status: WebhookStatus | Unset = UNSET,
        format: WebhookFormat | Unset = UNSET,  # noqa: A002 - the API's name
        template: str | Unset | None = UNSET,
        routing_key: str | Unset = UNSET,
    ) -> Call[Webhook]:
        """`PATCH /api/webhooks/:id`: a `bucket_id` of `None` makes it hear all buckets."""
        body = changed(
            url=url,
            events=events,
            bucket_id=bucket_id,
            secret=secret,
            retry_config=retry_config,
            status=status,
            format=format,
            template=template,
            routing_key=routing_key,
        )
        return patch(path("webhooks", webhook_id), body, member("webhook"))

    @endpoint
    def delete(self, webhook_id: str) -> Call[DeletedWebhook]:
        """`DELETE /api/webhooks/:id`."""
        return delete(path("webhooks", webhook_id), member("deletedWebhook"))

    @endpoint
    def deliveries(self, webhook_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[Delivery]]:
        """`GET /api/webhooks/:id/deliveries`: a page of deliveries of the last 7 days, newest first."""
        return get(path("webhooks", webhook_id, "deliveries"), page("deliveries"), limit=limit, offset=offset)

    iterate_deliveries = entries(deliveries)

    @endpoint
    def test(self, webhook_id: str) -> Call[Delivery]:
        """`POST /api/webhooks/:id/test`: delivers a `webhook.test`."""
        return post(path("webhooks", webhook_id, "test"), None, member("delivery"))

    @endpoint
    def redeliver(self, webhook_id: str, delivery_id: str) -> Call[Delivery]:
        """`POST /api/webhooks/:id/deliveries/:deliveryId/redeliver`: the same delivery once more."""
        return post(path("webhooks", webhook_id, "deliveries", delivery_id, "redeliver"), None, member("delivery"))
