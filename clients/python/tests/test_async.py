"""The asynchronous client: the same methods, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Account

from tidewatch import AsyncClient, Client, NotFoundError
from tidewatch._resource import Resource, download, endpoint, streaming
from tidewatch.models.data import Entry


def test_the_client_reads_and_writes(account: Account) -> None:
    async def work() -> None:
        async with AsyncClient(account.url, key=account.key) as client:
            made = await client.buckets.create("hall")
            schema = {"level": {"type": "number"}}
            source = await client.sources(made["_id"]).create("tank", schema)  # type: ignore[arg-type]
            entries: list[Entry] = [{"dataSourceId": source["_id"], "values": {"level": i}} for i in range(10)]
            assert (await client.data.insert_batch(made["_id"], entries))["insertedCount"] == 10
            rows = [row async for row in client.data.rows({"bucketId": made["_id"]})]
            assert [row["values"]["level"] for row in rows] == list(range(10))
            assert [bucket["name"] async for bucket in client.buckets.iterate(limit=1)] == ["hall"]
            both = await asyncio.gather(client.organization.get(), client.analytics.overview())
            assert both[1]["totals"]["dataPoints"] == 10
            with pytest.raises(NotFoundError):
                await client.buckets.get("0" * 24)
            assert (await client.request("GET", "/api/buckets"))["pagination"]["total"] == 1

    asyncio.run(work())


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: Client | AsyncClient) -> set[str]:
        found = set()
        groups: dict[str, Any] = {**vars(client), "sources": client.sources("x"), "keys": client.keys("x")}
        for name, group in groups.items():
            if isinstance(group, Resource):
                found |= {f"{name}.{one}" for one in dir(type(group)) if is_method(getattr(type(group), one))}
        return found

    def is_method(one: Callable[..., object]) -> bool:
        return isinstance(one, download | endpoint | streaming) or (
            inspect.isfunction(one) and not one.__name__.startswith("_")
        )

    blocking, awaited = Client("http://127.0.0.1:9"), AsyncClient("http://127.0.0.1:9")
    assert methods(blocking) == methods(awaited)
    assert len(methods(blocking)) > 80
    blocking.close()
    asyncio.run(awaited.close())
