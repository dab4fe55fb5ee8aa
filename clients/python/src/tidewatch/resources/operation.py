"""The state of the server; needs no key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidewatch._call import Answer, Call, get, path, whole
from tidewatch._resource import M, Resource, endpoint

if TYPE_CHECKING:
    from tidewatch.models.operation import Health


class Operation(Resource[M]):
    """Whether the server runs, and what it says about itself."""

    @endpoint
    def health(self) -> Call[Health]:
        """`GET /health`: the process runs."""
        return _at_once(get("/health", whole))

    @endpoint
    def ready(self) -> Call[Health]:
        """`GET /ready`: it takes writes. Otherwise this raises a `ServiceUnavailableError` at once."""
        return _at_once(get("/ready", whole))

    @endpoint
    def metrics(self) -> Call[str]:
        """`GET /metrics`: in the text format of Prometheus."""
        return get("/metrics", _text)

    @endpoint
    def docs(self) -> Call[dict[str, Any]]:
        """`GET /api/docs`: the OpenAPI document."""
        return get(path("docs"), whole).with_header("Accept", "application/json")


def _at_once(call: Call[Any]) -> Call[Any]:
    return replace(call, repeatable=False)


def _text(answer: Answer) -> str:
    return answer.content.decode()
