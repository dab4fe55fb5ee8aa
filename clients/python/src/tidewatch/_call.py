"""Requests as values: what to send, and how to read the answer. Nothing here sends anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from tidewatch.errors import UnexpectedAnswerError

T = TypeVar("T")
_SHOWN_BYTES = 80


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"


# A member that a change leaves as it is; `None` is null.
UNSET = Unset.UNSET


@dataclass(frozen=True)
class Answer:
    """An answer of the service with a status below 400."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body as JSON."""
        try:
            return json.loads(self.content)
        except ValueError as cause:
            shown = self.content[:_SHOWN_BYTES].decode(errors="replace")
            raise UnexpectedAnswerError(
                f"the answer is not JSON: {shown!r}; is this the address of the service?"
            ) from cause

    def member(self, name: str) -> Any:
        """A member of the body."""
        body = self.json()
        if not isinstance(body, dict) or name not in body:
            raise UnexpectedAnswerError(f"the answer has no `{name}`; is this the address of the service?")
        return body[name]


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how its answer is read.

    `repeatable` says that sending it twice has the effect of sending it once, and the same answer.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    params: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False

    def with_header(self, name: str, value: str | None) -> Call[T]:
        """The same request with one more header, unless its value is `None`."""
        return self if value is None else replace(self, headers={**self.headers, name: value})


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list: `total` entries in all, of which these begin at `offset`."""

    items: list[T]
    limit: int
    offset: int
    total: int
    has_more: bool

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def path(*segments: str | int) -> str:
    """A path below `/api` with escaped segments. An empty one, or dots, would name another route."""
    texts = [str(segment) for segment in segments]
    for text in texts:
        if text in {"", ".", ".."}:
            raise ValueError(f"{text!r} is no id")
    return "/api/" + "/".join(quote(text, safe="") for text in texts)


def encode(value: object) -> bytes:
    """JSON, with instants in ISO 8601.

    Raises:
        ValueError: a number is not finite; JSON has no such number.
    """
    return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Mapping):
        return dict(value)
    # Numbers of numpy and others.
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def timestamp(at: datetime) -> str:
    """An instant as the API writes it; one without an offset is UTC."""
    aware = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    return aware.isoformat().replace("+00:00", "Z")


def camel(name: str) -> str:
    """The API's spelling of an argument: `retention_days` is `retentionDays`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def given(**members: object) -> dict[str, object]:
    """The members of a new thing, without those that are `None`: the service has defaults."""
    return {camel(name): value for name, value in members.items() if value is not None}


def changed(**members: object) -> dict[str, object]:
    """The members of a change, without those that are left as they are; `None` is null."""
    return {camel(name): value for name, value in members.items() if value is not UNSET}


def whole(answer: Answer) -> Any:
    """Reads the whole body."""
    return answer.json()


def member(name: str) -> Callable[[Answer], Any]:
    """Reads one member of the body."""
    return lambda answer: answer.member(name)


def page(name: str) -> Callable[[Answer], Page[Any]]:
    """Reads a page of a list whose entries are in the member `name`."""

    def read(answer: Answer) -> Page[Any]:
        counts = answer.member("pagination")
        return Page(answer.member(name), counts["limit"], counts["offset"], counts["total"], counts["hasMore"])

    return read


def get(where: str, read: Callable[[Answer], T], **params: object) -> Call[T]:
    """A request that reads."""
    texts = {name: timestamp(v) if isinstance(v, datetime) else str(v) for name, v in given(**params).items()}
    return Call("GET", where, read, params=texts, repeatable=True)


def post(where: str, body: object, read: Callable[[Answer], T], *, repeatable: bool = False) -> Call[T]:
    """A request with a body; without one if `body` is `None`."""
    return Call("POST", where, read, content=None if body is None else encode(body), repeatable=repeatable)


def patch(where: str, body: object, read: Callable[[Answer], T]) -> Call[T]:
    """A change. Its effect and answer are the same when it is sent twice."""
    return Call("PATCH", where, read, content=encode(body), repeatable=True)


def delete(where: str, read: Callable[[Answer], T]) -> Call[T]:
    """A deletion. Not repeatable: the second answer would be 404, although the first was not."""
    return Call("DELETE", where, read)
