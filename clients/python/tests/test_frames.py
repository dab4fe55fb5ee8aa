"""Frames of pandas and Polars: columns, types, zones, pages."""

from __future__ import annotations

import asyncio
import builtins
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
import polars as pl
import pytest
from conftest import Account

from tidewatch import AsyncClient, Client, RowLimitError
from tidewatch.models.data import Entry, Query

# A batch takes points of the last 30 days.
START = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=5)
TIMES = ["2026-06-01T22:30:00Z", "2026-06-01T23:30:00.123456789Z", "2026-06-02T00:30:00.5Z"]


@pytest.fixture
def filled(client: Client, bucket: str, source: str) -> str:
    """A bucket with three points, of which the second lacks two fields. It keeps them for a century."""
    client.buckets.update(bucket, retention_days=36_500)
    entries: list[Entry] = [
        {"dataSourceId": source, "timestamp": TIMES[0], "values": {"level": 1, "open": True, "mode": "auto"}},
        {"dataSourceId": source, "timestamp": TIMES[1], "values": {"level": 2.5}, "metadata": {"shift": "early"}},
        {"dataSourceId": source, "timestamp": TIMES[2], "values": {"level": 4, "open": False, "mode": "by hand"}},
    ]
    for entry in entries:
        # A single point may be as old as the retention of the bucket.
        client.data.insert(
            bucket, source, entry["values"], timestamp=entry["timestamp"], metadata=entry.get("metadata")
        )
    return bucket


def test_points_as_pandas(client: Client, filled: str, source: str) -> None:
    frame = client.data.query_frame({"bucketId": filled})
    assert list(frame.columns) == ["timestamp", "dataSourceId", "_id", "level", "open", "mode", "metadata"]
    assert str(frame["timestamp"].dtype) == "datetime64[ns, UTC]"
    assert frame["timestamp"].tolist() == [pd.Timestamp(time) for time in TIMES]
    assert [str(frame[name].dtype) for name in ("level", "open", "mode")] == ["float64", "boolean", "string"]
    assert frame["level"].tolist() == [1.0, 2.5, 4.0]
    assert frame["open"].isna().tolist() == [False, True, False]
    assert frame["metadata"].tolist()[1] == '{"shift": "early"}'
    assert set(frame["dataSourceId"]) == {source}


def test_points_as_polars(client: Client, filled: str) -> None:
    frame = client.data.query_frame({"bucketId": filled}, "polars")
    assert frame.schema["timestamp"] == pl.Datetime("ns", "UTC")
    assert frame["timestamp"].dt.epoch("ns").to_list() == [pd.Timestamp(time).value for time in TIMES]
    assert [frame.schema[name] for name in ("level", "open", "mode")] == [pl.Float64, pl.Boolean, pl.String]
    assert frame["open"].to_list() == [True, None, False]
    assert frame["level"].to_list() == [1.0, 2.5, 4.0]


def test_several_aggregations_are_columns_of_a_field(client: Client, filled: str) -> None:
    query: Query = {
        "bucketId": filled,
        "aggregation": ["avg", "count", "distinct", "last"],
        "groupBy": "day",
        "timezone": "Europe/Stockholm",
        "compare": {"offset": "1d"},
    }
    frame = client.data.query_frame(query)
    assert str(frame["timestamp"].dtype) == "datetime64[ns, Europe/Stockholm]"
    # The second local day began at 22:00 UTC.
    assert [str(time) for time in frame["timestamp"]] == ["2026-06-02 00:00:00+02:00"]
    assert frame["level.avg"].tolist() == [2.5]
    assert str(frame["level.count"].dtype) == str(frame["mode.distinct"].dtype) == "Int64"
    assert frame["level.count"].tolist() == [3]
    assert frame["mode.last"].tolist() == ["by hand"]
    polars = client.data.query_frame(query, "polars")
    assert polars.columns == list(frame.columns)
    assert polars.schema["timestamp"] == pl.Datetime("ns", "Europe/Stockholm")
    assert polars.schema["level.count"] == pl.Int64


def test_one_aggregation_keeps_the_names_of_fields(client: Client, filled: str) -> None:
    query: Query = {
        "bucketId": filled,
        "aggregation": "count",
        "groupBy": "hour",
        "fill": "null",
        "filters": {"startTime": TIMES[0], "endTime": "2026-06-02T02:00:00Z"},
        "compare": {"offset": "1h"},
    }
    frame = client.data.query_frame(query)
    assert frame["level"].tolist()[:3] == [1, 1, 1]
    assert frame["level"].isna().tolist() == [False, False, False, True, True]
    assert str(frame["level"].dtype) == "Int64"
    assert frame["previous.level"].tolist()[1:3] == [1, 1]


def test_averages_have_their_statistics(client: Client, bucket: str, source: str) -> None:
    entries: list[Entry] = [
        {"dataSourceId": source, "timestamp": START + timedelta(minutes=i), "values": {"level": i}} for i in range(900)
    ]
    client.data.insert_batch(bucket, entries)
    frame = client.data.query_frame({"bucketId": bucket, "maxPoints": 100})
    assert list(frame.columns) == ["timestamp", "dataSourceId", "level", "level.min", "level.max", "level.count"]
    assert frame["level.count"].sum() == 900
    assert str(frame["level.count"].dtype) == "Int64"
    assert frame["level.max"].max() == 899


def test_all_pages_are_in_a_frame(client: Client, bucket: str, source: str) -> None:
    for start in range(0, 12_000, 1000):
        entries: list[Entry] = [
            {"dataSourceId": source, "timestamp": START + timedelta(seconds=i), "values": {"level": i}}
            for i in range(start, start + 1000)
        ]
        client.data.insert_batch(bucket, entries)
    # A field that the first page does not have.
    client.data.insert(bucket, source, {"mode": "last"}, timestamp=START + timedelta(days=1))
    query: Query = {"bucketId": bucket, "downsampling": False}
    frame = client.data.query_frame(query)
    assert len(frame) == 12_001
    assert frame["level"].tolist()[:12_000] == list(range(12_000))
    assert frame["mode"].count() == 1
    assert len(client.data.query_frame({**query, "limit": 10_500})) == 10_500
    with pytest.raises(RowLimitError, match="rows_max"):
        client.data.query_frame(query, rows_max=12_000)


def test_nothing_is_an_empty_frame(client: Client, bucket: str, source: str) -> None:
    frame = client.data.query_frame({"bucketId": bucket})
    assert (len(frame), str(frame["timestamp"].dtype)) == (0, "datetime64[ns, UTC]")
    assert client.data.query_frame({"bucketId": bucket}, "polars").schema["timestamp"] == pl.Datetime("ns", "UTC")


def test_fields_with_names_of_columns(client: Client, bucket: str) -> None:
    schema: Any = {"timestamp": {"type": "number"}, "metadata": {"type": "string"}}
    source = client.sources(bucket).create("odd", schema)["_id"]
    client.data.insert(bucket, source, {"timestamp": 7, "metadata": "x"})
    frame = client.data.query_frame({"bucketId": bucket}, "polars")
    assert frame["values.timestamp"].to_list() == [7.0]
    assert frame["values.metadata"].to_list() == ["x"]


def test_fields_of_several_types_are_json_text(client: Client, bucket: str, source: str) -> None:
    other = client.sources(bucket).create("other", {"level": {"type": "string"}})["_id"]
    client.data.insert(bucket, source, {"level": 1}, timestamp=START)
    client.data.insert(bucket, other, {"level": "low"}, timestamp=START + timedelta(seconds=1))
    frame = client.data.query_frame({"bucketId": bucket})
    assert frame["level"].tolist() == ["1", '"low"']


def test_the_asynchronous_client_makes_frames(account: Account, filled: str) -> None:
    async def work() -> tuple[pd.DataFrame, pl.DataFrame]:
        async with AsyncClient(account.url, key=account.key) as client:
            query: Query = {"bucketId": filled}
            return await client.data.query_frame(query), await client.data.query_frame(query, "polars")

    first, second = asyncio.run(work())
    assert len(first) == len(second) == 3


def test_a_library_that_is_not_installed_is_named(client: Client, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "polars":
            raise ImportError(name)
        return plain(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"tidewatch\[polars\]"):
        client.data.query_frame({"bucketId": bucket}, "polars")
    with pytest.raises(ValueError, match="pandas or polars"):
        client.data.query_frame({"bucketId": bucket}, "numpy")  # type: ignore[call-overload]
