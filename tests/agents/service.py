"""The server under test, which can be killed and started again on its data, and buckets in it."""
import json
import pathlib
import random
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from server import Server

ANSWER_SECONDS = 60
PAGE = 10_000
# Below those that the kernel gives to connections: a port stays free while nobody listens at it.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Service:
    def __init__(self, binary: pathlib.Path, directory: pathlib.Path) -> None:
        self.binary, self.directory = binary, directory
        self.starts = 0
        self.faults: list[str] = []
        self.start()
        account = {"email": "ada@example.com", "password": "correct horse battery", "name": "Ada"}
        token = self.call("POST", "/api/auth/signup", account, {})["token"]
        key = {"name": "admin", "type": "admin"}
        made = self.call("POST", "/api/organization/keys", key, {"Authorization": f"Bearer {token}"})
        self.admin = {"X-API-Key": made["apiKey"]["key"]}

    def start(self) -> None:
        """Starts the server on the same data directory, at another port."""
        self.starts += 1
        place = self.directory / f"start-{self.starts}"
        place.mkdir()
        self.server = Server(self.binary, place, {"TIDEWATCH_STORAGE__DATA_DIR": str(self.directory / "data")})
        self.base = self.server.base

    def kill(self) -> None:
        self.server.process.kill()
        self.server.process.wait()
        self.collect()

    def collect(self) -> None:
        """Keeps what the log says of errors."""
        self.faults += [line for line in self.server.log().splitlines() if "panic" in line or " ERROR " in line]

    def stop(self) -> None:
        self.faults += self.server.stop()

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        head = {**(self.admin if headers is None else headers), "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, head, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)


class Bucket:
    """A bucket of its own for an agent, with its keys."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.id: str = service.call("POST", "/api/buckets", {"name": name, "retentionDays": 30})["bucket"]["_id"]
        self.write, self.read = (self.key(kind) for kind in ("write", "read"))

    def key(self, kind: str) -> str:
        made = self.service.call("POST", f"/api/buckets/{self.id}/keys", {"name": kind, "type": kind})
        return made["apiKey"]["key"]

    def sources(self) -> dict[str, dict[str, Any]]:
        """The data sources by id."""
        found: dict[str, dict[str, Any]] = {}
        while True:
            path = f"/api/buckets/{self.id}/sources?limit=1000&offset={len(found)}"
            page = self.service.call("GET", path)["dataSources"]
            found |= {source["_id"]: source for source in page}
            if len(page) < 1000:
                return found

    def count(self) -> int:
        return sum(source["stats"]["totalDataPoints"] for source in self.sources().values())

    def rows(self) -> Iterator[dict[str, Any]]:
        """All points of the bucket."""
        query: dict[str, Any] | None = {"bucketId": self.id, "limit": PAGE, "downsampling": False}
        while query is not None:
            page = self.service.call("POST", "/api/data/query", query)
            yield from page["data"]
            cursor = page["metadata"].get("nextCursor")
            query = {**query, "cursor": cursor} if cursor else None


def is_soon(holds: Callable[[], bool], seconds: float) -> bool:
    """Polls with a deadline."""
    pause, end = threading.Event(), time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        pause.wait(0.1)
    return True


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    assert is_soon(holds, seconds), f"not within {seconds:.0f} s: {what}"
