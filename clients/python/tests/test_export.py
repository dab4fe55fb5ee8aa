"""Exports: the bytes of all rows, as they arrive and as files."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import httpx
import pandas as pd
import polars as pl
import pytest
from conftest import Account

from tidewatch import AsyncClient, Client, NoAnswerError, NotFoundError, Retry, ValidationError
from tidewatch.models.data import Entry, ExportFormat, Query

START = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(hours=3)
ROWS = 2500
BUSY = b'{"error": "Service Unavailable", "message": "4 exports are in progress"}'


@pytest.fixture
def query(client: Client, bucket: str, source: str) -> Query:
    """A query for all points of a bucket, of which there are more than a batch has."""
    entries: list[Entry] = [
        {"dataSourceId": source, "timestamp": START + timedelta(seconds=i), "values": {"level": i / 4}}
        for i in range(ROWS)
    ]
    for first in range(0, ROWS, 1000):
        client.data.insert_batch(bucket, entries[first : first + 1000])
    return {"bucketId": bucket, "filters": {"startTime": START, "fields": ["level"]}, "downsampling": False}


def test_every_format_has_the_rows_of_a_query(client: Client, query: Query) -> None:
    def read(export_format: ExportFormat) -> io.BytesIO:
        return io.BytesIO(b"".join(client.data.export(query, export_format)))

    expected = client.data.query_frame(query)
    levels = {
        "csv": pd.read_csv(read("csv"))["level"].tolist(),
        "ndjson": [values["level"] for values in pd.read_json(read("ndjson"), lines=True)["values"]],
        "parquet": pl.read_parquet(read("parquet"))["level"].to_list(),
        "arrow": pl.read_ipc_stream(read("arrow"))["level"].to_list(),
    }
    assert len(expected) == ROWS
    assert {name: found == expected["level"].tolist() for name, found in levels.items()} == dict.fromkeys(levels, True)
    times = pl.read_parquet(read("parquet"))["timestamp"].dt.epoch("ns").to_list()
    assert times == [time.value for time in expected["timestamp"]]


def test_groups_are_exported(client: Client, query: Query, tmp_path: Path) -> None:
    groups: Query = {**query, "aggregation": ["min", "max"], "groupBy": "year"}
    client.data.export_to(tmp_path / "x.csv", groups, "csv")
    frame = pd.read_csv(tmp_path / "x.csv")
    assert list(frame.columns) == ["timestamp", "dataSourceId", "level.min", "level.max"]
    assert (frame["level.min"].min(), frame["level.max"].max()) == (0, (ROWS - 1) / 4)


def test_an_export_arrives_in_pieces_and_can_be_left(client: Client, query: Query) -> None:
    chunks = client.data.export(query, "ndjson")
    assert next(chunks).startswith(b"{")
    chunks.close()
    # The connection is free for what follows.
    assert client.organization.get()["name"]


def test_a_file_is_written_whole(client: Client, query: Query, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("of before")
    size = client.data.export_to(file, query, "csv")
    assert (size, len(file.read_text().splitlines())) == (file.stat().st_size, ROWS + 1)
    assert list(tmp_path.iterdir()) == [file]


def test_refusals_come_before_the_file(client: Client, query: Query, tmp_path: Path) -> None:
    page: Query = {**query, "limit": 5}
    with pytest.raises(ValidationError) as refused:
        client.data.export_to(tmp_path / "x.csv", page, "csv")
    assert [detail.path for detail in refused.value.details] == [("limit",)]
    with pytest.raises(NotFoundError):
        next(client.data.export({"bucketId": "0" * 24}, "csv"))
    assert list(tmp_path.iterdir()) == []


def test_the_asynchronous_client_exports(account: Account, query: Query, tmp_path: Path) -> None:
    async def work() -> bytes:
        async with AsyncClient(account.url, key=account.key) as client:
            await client.data.export_to(tmp_path / "x.csv", query, "csv")
            with pytest.raises(NotFoundError):
                await client.data.export_to(tmp_path / "y.csv", {"bucketId": "0" * 24}, "csv")
            return b"".join([chunk async for chunk in client.data.export(query, "csv")])

    whole = asyncio.run(work())
    assert whole.count(b"\n") == ROWS + 1
    assert (tmp_path / "x.csv").read_bytes() == whole
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


def test_a_file_that_cannot_be_written_asks_for_nothing(tmp_path: Path) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, content=b"timestamp\n")

    with Client("http://x.invalid", key="x", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(FileNotFoundError):
            client.data.export_to(tmp_path / "missing" / "x.csv", {"bucketId": "x"}, "csv")
        assert sent == []
        assert client.data.export_to(tmp_path / "x.csv", {"bucketId": "x"}, "csv") == len(b"timestamp\n")


class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that breaks off behind its first bytes."""

    FAILURE = httpx.RemoteProtocolError("peer closed connection")

    def __iter__(self) -> Iterator[bytes]:
        yield b"timestamp,level\n"
        raise self.FAILURE

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"timestamp,level\n"
        raise self.FAILURE


def test_what_breaks_off_is_an_error_and_no_file(tmp_path: Path) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        first = len(sent) == 1
        return httpx.Response(503, content=BUSY) if first else httpx.Response(200, stream=Broken())

    file = tmp_path / "points.csv"
    file.write_text("of before")
    at_once = Retry(attempts_max=3, backoff_seconds=0)
    with Client("http://x.invalid", key="x", retry=at_once, transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(NoAnswerError, match="broke off"):
            client.data.export_to(file, {"bucketId": "x"}, "csv")
        # Sent again after the refusal, and not after the first bytes.
        assert len(sent) == 2
        chunks = client.data.export({"bucketId": "x"}, "csv")
        assert next(chunks) == b"timestamp,level\n"
        with pytest.raises(NoAnswerError, match="broke off"):
            next(chunks)

    async def work() -> None:
        async with AsyncClient("http://x.invalid", key="x", transport=httpx.MockTransport(answer)) as client:
            await client.data.export_to(file, {"bucketId": "x"}, "csv")

    with pytest.raises(NoAnswerError, match="broke off"):
        asyncio.run(work())
    assert file.read_text() == "of before"
    assert list(tmp_path.iterdir()) == [file]
