"""A real server for all tests, and an organization of its own for each test that asks for one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from serving import OPERATOR_TOKEN, Server

from tidewatch import Client, Retry

pytest_plugins = ["checking"]
PASSWORD = "correct horse battery"
_numbers = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--binary", default=os.environ.get("TIDEWATCH_BIN"), help="the server; else TIDEWATCH_BIN")


@pytest.fixture(scope="session")
def binary(request: pytest.FixtureRequest) -> Path:
    given = request.config.getoption("--binary")
    if given is None:
        pytest.exit("pass the server as --binary, or in TIDEWATCH_BIN", returncode=2)
    return Path(given).resolve(strict=True)


@pytest.fixture(scope="session")
def server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(binary, tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    assert server.stop() == []


@dataclass(frozen=True)
class Account:
    """A new organization, its owner and an admin key."""

    url: str
    email: str
    token: str
    key: str
    client: Client
    owner: Client


@pytest.fixture
def account(server: Server) -> Iterator[Account]:
    email = f"person{next(_numbers)}@example.com"
    with Client(server.url) as anyone:
        token = anyone.auth.signup(email, PASSWORD, "Ada")["token"]
    with Client(server.url, token=token) as owner:
        key = owner.organization.keys.create("tests", "admin")["key"]
        with Client(server.url, key=key, retry=Retry(attempts_max=1)) as client:
            yield Account(server.url, email, token, key, client, owner)


@pytest.fixture
def client(account: Account) -> Client:
    """A client with an admin key."""
    return account.client


@pytest.fixture
def bucket(client: Client) -> str:
    return client.buckets.create("plant")["_id"]


@pytest.fixture
def source(client: Client, bucket: str) -> str:
    """A source with a number `level`, a boolean `open` and a string `mode`."""
    schema = {"level": {"type": "number"}, "open": {"type": "boolean"}, "mode": {"type": "string"}}
    return client.sources(bucket).create("tank", schema)["_id"]  # type: ignore[arg-type]


@pytest.fixture
def operator_client(server: Server) -> Iterator[Client]:
    with Client(server.url, token=OPERATOR_TOKEN) as client:
        yield client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.name == "test_every_method_is_used_by_a_test")
