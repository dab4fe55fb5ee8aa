"""The writers: nothing acknowledged is lost or doubled, memory is bounded, refused points are reported."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import httpx
import pytest
from conftest import PASSWORD, Account
from serving import Server

from tidewatch import (
    AsyncClient,
    Client,
    FailedPoint,
    Retry,
    UnsentError,
    Writer,
    WriterClosedError,
    WriterFullError,
)

URL = "http://service.invalid"
SOURCE = "0" * 24
POINTS = 30_000
QUICK = Retry(backoff_seconds=0.02, backoff_seconds_max=0.2)
START = datetime.now(timezone.utc) - timedelta(days=1)


def seen(client: Client, bucket: str) -> Counter[float]:
    rows = client.data.rows({"bucketId": bucket, "downsampling": False})
    return Counter(row["values"]["level"] for row in rows)


@pytest.fixture
def mortal(binary: Path, tmp_path: Path) -> Iterator[tuple[Server, Client, str, str]]:
    """A server to kill, an admin's client, a bucket and a source."""
    server = Server(binary, tmp_path)
    server.start()
    with Client(server.url) as anyone:
        token = anyone.auth.signup("ada@example.com", PASSWORD, "Ada")["token"]
    with Client(server.url, token=token) as client:
        bucket = client.buckets.create("plant")["_id"]
        source = client.sources(bucket).create("tank", {"level": {"type": "number"}})["_id"]
        yield server, client, bucket, source
    server.kill()


def test_kills_lose_and_double_nothing(mortal: tuple[Server, Client, str, str]) -> None:
    server, client, bucket, source = mortal
    with client.writer(bucket, batch_entries=200, retry=QUICK) as writer:
        for number in range(POINTS):
            writer.write(source, {"level": number}, START + timedelta(milliseconds=number))
            if number in {POINTS // 3, POINTS // 2, 2 * POINTS // 3}:
                # Batches are being sent now, by the writer's thread.
                server.kill()
                server.start()
        writer.flush()
        stats = writer.stats
    assert (stats.written, stats.inserted, stats.failed, stats.pending) == (POINTS, POINTS, 0, 0)
    assert stats.retries > 0
    assert seen(client, bucket) == Counter(map(float, range(POINTS)))


class Lossy(httpx.HTTPTransport):
    """Loses the answer to every third request that the service has carried out."""

    requests = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.requests += 1
        if self.requests % 3 == 0:
            response.read()
            raise httpx.ReadError("the answer is lost")
        return response


def test_lost_answers_double_nothing(account: Account, bucket: str, source: str) -> None:
    with (
        Client(account.url, key=account.key, transport=Lossy()) as losing,
        losing.writer(bucket, batch_entries=10, retry=QUICK) as writer,
    ):
        for number in range(300):
            writer.write(source, {"level": number}, START + timedelta(milliseconds=number))
    assert writer.stats.retries >= 10
    assert (writer.stats.inserted, writer.stats.failed) == (300, 0)
    assert seen(account.client, bucket) == Counter(map(float, range(300)))


def test_kills_under_an_asynchronous_writer_lose_and_double_nothing(mortal: tuple[Server, Client, str, str]) -> None:
    server, client, bucket, source = mortal

    async def work() -> None:
        async with (
            AsyncClient(server.url, token=token_of(client)) as writing,
            writing.writer(bucket, batch_entries=200, retry=QUICK) as writer,
        ):
            for number in range(POINTS):
                await writer.write(source, {"level": number}, START + timedelta(milliseconds=number))
                if number % 200 == 0:
                    # Lets the writer's task run.
                    await asyncio.sleep(0)
                if number in {POINTS // 3, 2 * POINTS // 3}:
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
            await writer.flush()
            assert (writer.stats.inserted, writer.stats.pending) == (POINTS, 0)
            assert writer.stats.retries > 0

    asyncio.run(work())
    assert seen(client, bucket) == Counter(map(float, range(POINTS)))


def token_of(client: Client) -> str:
    return client.auth.renew()["token"]


def test_refused_points_are_reported_with_their_values(account: Account, bucket: str, source: str) -> None:
    failed: list[FailedPoint] = []
    with account.client.writer(bucket, on_error=failed.append) as writer:
        writer.write(source, {"level": 1})
        writer.write(source, {"levle": 2}, metadata={"shift": "early"})
        writer.write("f" * 24, {"level": 3})
        writer.flush()
        # All of a batch refused is an answer of its own.
        writer.write(source, {"level": "high"})
        writer.flush()
        assert (writer.stats.inserted, writer.stats.failed) == (1, 3)
    assert [point.values for point in failed] == [{"levle": 2}, {"level": 3}, {"level": "high"}]
    assert failed[0].metadata == {"shift": "early"}
    assert "levle" in failed[0].error


def test_a_refused_batch_is_reported_and_the_next_goes_on(
    account: Account, bucket: str, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(account.url, key=account.client.keys(bucket).create("r", "read")["key"]) as reader:
        writer = reader.writer(bucket)
        writer.write(source, {"level": 1})
        writer.close()
        assert writer.stats.failed == 1
        assert "403" in caplog.text

    def fail(point: FailedPoint) -> None:
        raise RuntimeError("of the callback")

    with account.client.writer(bucket, on_error=fail) as writer:
        writer.write(source, {"x": 1})
        writer.flush()
        writer.write(source, {"level": 1})
    assert writer.stats.inserted == 1
    assert "of the callback" in caplog.text


class Gate:
    """A service that answers batches when it is opened, and keeps them."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()
        self.batches: list[tuple[str, bytes]] = []
        self.answers: list[httpx.Response | Exception] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.batches.append((request.headers["Idempotency-Key"], request.content))
        self.asked.set()
        assert self.open.wait(30)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return httpx.Response(201, json={"message": "", "insertedCount": len(self.points())})

    def points(self) -> list[float]:
        return [entry["values"]["x"] for entry in json.loads(self.batches[-1][1])["dataPoints"]]

    def client(self) -> Client:
        return Client(URL, key="x", transport=httpx.MockTransport(self))


def test_a_batch_keeps_its_key_and_bytes_until_it_is_answered() -> None:
    gate = Gate()
    gate.answers = [
        httpx.Response(503, json={"error": "Service Unavailable"}),
        httpx.ReadTimeout("late"),
        httpx.Response(429, json={"error": "Too Many Requests"}, headers={"Retry-After": "0"}),
        httpx.Response(404, text="a proxy without the service"),
        httpx.Response(200, text="a hotel's page"),
    ]
    gate.open.set()
    with gate.client().writer(SOURCE, retry=QUICK) as writer:
        writer.write(SOURCE, {"x": 1})
        writer.flush()
        writer.write(SOURCE, {"x": 2})
    assert len(gate.batches) == 7
    assert len(set(gate.batches[:6])) == 1
    assert gate.batches[6][0] != gate.batches[0][0]
    assert (writer.stats.retries, writer.stats.inserted) == (5, 2)


def test_batches_are_due_by_count_bytes_and_age() -> None:
    gate = Gate()
    gate.open.set()
    with gate.client().writer(SOURCE, batch_entries=3, flush_seconds=3600) as writer:
        for number in range(7):
            writer.write(SOURCE, {"x": number})
    assert [len(json.loads(content)["dataPoints"]) for _, content in gate.batches] == [3, 3, 1]
    gate.batches.clear()
    with gate.client().writer(SOURCE, batch_bytes=1000, flush_seconds=3600) as writer:
        for number in range(20):
            writer.write(SOURCE, {"x": number}, metadata={"text": "y" * 100})
    assert len(gate.batches) > 3
    assert all(len(content) <= 1000 for _, content in gate.batches)
    gate.batches.clear()
    gate.asked.clear()
    with gate.client().writer(SOURCE, flush_seconds=0.01) as writer:
        writer.write(SOURCE, {"x": 1})
        assert gate.asked.wait(30)


def fill(writer: Writer) -> int:
    """Writes until the writer is full; how many points it took."""
    for number in range(1000):
        try:
            writer.write(SOURCE, {"x": number})
        except WriterFullError:
            return number
    raise AssertionError("it is never full")


def test_a_full_writer_raises() -> None:
    gate = Gate()
    writer = gate.client().writer(
        SOURCE, batch_entries=10, batch_bytes=5000, max_pending_bytes=12_000, when_full="raise"
    )
    written = fill(writer)
    assert writer.stats.written == written
    assert 0 < writer.stats.pending_bytes <= 12_000
    gate.open.set()
    writer.close()
    assert writer.stats.inserted == writer.stats.written


def test_a_full_writer_drops_the_oldest_and_counts_them() -> None:
    gate = Gate()
    writer = gate.client().writer(
        SOURCE, batch_entries=10, batch_bytes=5000, max_pending_bytes=12_000, when_full="drop_oldest"
    )
    for number in range(1000):
        writer.write(SOURCE, {"x": number})
        assert writer.stats.pending_bytes <= 12_000
    before = writer.stats
    assert before.dropped > 800
    gate.open.set()
    writer.close()
    stats = writer.stats
    assert stats.dropped == before.dropped
    assert stats.inserted + stats.dropped == stats.written == 1000
    assert gate.points()[-1] == 999


def test_a_full_writer_blocks_until_there_is_room() -> None:
    gate = Gate()
    writer = gate.client().writer(SOURCE, batch_entries=10, batch_bytes=5000, max_pending_bytes=12_000)

    def write() -> None:
        for number in range(1000):
            writer.write(SOURCE, {"x": number})

    thread = threading.Thread(target=write)
    thread.start()
    assert gate.asked.wait(30)
    assert writer.stats.pending_bytes <= 12_000
    gate.open.set()
    thread.join(30)
    writer.close()
    assert writer.stats.inserted == 1000


def test_a_flush_and_a_close_have_an_end() -> None:
    gate = Gate()
    writer = gate.client().writer(SOURCE)
    writer.write(SOURCE, {"x": 1})
    with pytest.raises(UnsentError, match="1 points"):
        writer.flush(timeout=0.01)
    with pytest.raises(UnsentError) as given_up:
        writer.close(timeout=0.01)
    assert given_up.value.pending == 1
    with pytest.raises(WriterClosedError):
        writer.write(SOURCE, {"x": 2})
    gate.open.set()


def test_an_asynchronous_flush_and_close_have_an_end() -> None:
    async def work() -> None:
        stuck = asyncio.Event()

        async def wait(request: httpx.Request) -> httpx.Response:
            await stuck.wait()
            raise AssertionError

        async with AsyncClient(URL, key="x", transport=httpx.MockTransport(wait)) as client:
            writer = client.writer(SOURCE, close_seconds=0.01)
            await writer.__aenter__()
            await writer.write(SOURCE, {"x": 1})
            with pytest.raises(UnsentError):
                await writer.flush(timeout=0.01)
            with pytest.raises(UnsentError):
                await writer.close()
            with pytest.raises(WriterClosedError):
                await writer.write(SOURCE, {"x": 1})
            assert writer.stats.pending == 1

    asyncio.run(work())


def test_an_asynchronous_writer_waits_for_room_and_reports() -> None:
    failed: list[FailedPoint] = []

    def refuse_first(request: httpx.Request) -> httpx.Response:
        count = len(json.loads(request.content)["dataPoints"])
        return httpx.Response(
            207, json={"message": "", "insertedCount": count - 1, "errors": [{"index": 0, "error": "no"}]}
        )

    async def work() -> None:
        async with AsyncClient(URL, key="x", transport=httpx.MockTransport(refuse_first)) as client:
            writer = client.writer(SOURCE, batch_bytes=2000, max_pending_bytes=80_000, on_error=failed.append)
            async with writer:
                for number in range(2000):
                    await writer.write(SOURCE, {"x": number})
                    assert writer.stats.pending_bytes <= 80_000
                await writer.flush(timeout=30)
            assert writer.stats.inserted + writer.stats.failed == 2000

    asyncio.run(work())
    assert failed[0].values == {"x": 0}


def test_points_that_no_batch_takes_are_refused_at_once() -> None:
    gate = Gate()
    gate.open.set()
    with gate.client().writer(SOURCE, batch_bytes=1000) as writer:
        with pytest.raises(ValueError, match="batch_bytes"):
            writer.write(SOURCE, {"x": "y" * 1000})
        with pytest.raises(ValueError, match="JSON"):
            writer.write(SOURCE, {"x": float("inf")})
    assert writer.stats.written == 0


@pytest.mark.parametrize(
    "options",
    [
        {"batch_entries": 0},
        {"batch_entries": 1001},
        {"batch_bytes": 10_485_761},
        {"max_pending_bytes": 1_048_576},
        {"when_full": "wait"},
        {"flush_seconds": -1},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))), Gate().client() as client:
        client.writer(SOURCE, **options)  # type: ignore[arg-type]
