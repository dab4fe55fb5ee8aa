"""The package covers the API: each operation of /api/docs has a method, and each method a test."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from checking import USED

from tidewatch import Client
from tidewatch._call import Call
from tidewatch._resource import Resource, download, endpoint, streaming

# The dashboard's own files, and what agents speak by clients of their own.
NOT_OF_THE_API = {
    ("GET", "/"),
    ("GET", "/assets/{file}"),
    ("GET", "/ping"),
    ("POST", "/write"),
    ("POST", "/api/v2/write"),
    ("POST", "/query"),
    ("POST", "/api/v1/write"),
    ("POST", "/v1/metrics"),
}
ARGUMENT = "0"


def resources(client: Client) -> Iterator[Resource[Any]]:
    groups = [*vars(client).values(), client.sources(ARGUMENT), client.keys(ARGUMENT)]
    groups += [one for group in groups if isinstance(group, Resource) for one in vars(group).values()]
    return (group for group in groups if isinstance(group, Resource))


def endpoints(resource: Resource[Any]) -> Iterator[tuple[str, Any]]:
    """The methods of a resource, with those that it inherits."""
    members = {name: one for kind in reversed(type(resource).__mro__) for name, one in vars(kind).items()}
    return ((name, one) for name, one in members.items() if isinstance(one, download | endpoint | streaming))


def example(resource: Resource[Any], method: endpoint[Any, Any] | download[Any], **given: object) -> Call[Any]:
    """The request of a method, with `ARGUMENT` for each argument that it needs."""
    _, *parameters = inspect.signature(method.describe).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty]
    values = {name: {} if name in {"query", "board", "schema"} else ARGUMENT for name in needed}
    return method.describe(resource, **{name: given.get(name, value) for name, value in values.items()})


def test_every_operation_has_a_method(client: Client) -> None:
    calls = set()
    for resource in resources(client):
        for _, method in endpoints(resource):
            if isinstance(method, endpoint | download):
                calls |= {
                    (call.method, call.path) for call in (example(resource, method), example(resource, method, rule={}))
                }
    operations = {
        (method.upper(), path)
        for path, methods in client.operation.docs()["paths"].items()
        for method in methods
        if method != "parameters" and not path.startswith("/prometheus/")
    }
    without = {
        (method, path)
        for method, path in operations - NOT_OF_THE_API
        if not any(method == called and same(path, where) for called, where in calls)
    }
    assert without == set()


def same(template: str, path: str) -> bool:
    segments = [ARGUMENT if part.startswith("{") else part for part in template.split("/")]
    return segments == path.split("/")


def test_every_method_is_used_by_a_test(client: Client, request: pytest.FixtureRequest) -> None:
    """Runs behind all others: `conftest` moves it there."""
    if request.config.option.keyword or request.config.args_source.name != "TESTPATHS":
        pytest.skip("not all tests run")
    unused = {
        f"{type(resource).__name__}.{name}"
        for resource in resources(client)
        for name, method in endpoints(resource)
        if id(method) not in USED
    }
    assert unused == set()
