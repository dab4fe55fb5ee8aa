"""The rows of an input's window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any, NamedTuple

Scalar = float | str | bool

_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 31 * 86_400}
_SECOND_CHARS = len("2026-01-01T00:00:00")


class Row(NamedTuple):
    """A point or a group, reduced to the input's field."""

    timestamp: str
    value: Scalar | None
    metadata: Mapping[str, Any] | None = None

    @property
    def at(self) -> datetime:
        """The point's instant, or the start of the group, to the microsecond."""
        return instant(self.timestamp)


@dataclass(frozen=True)
class Series:
    """The rows of an input, oldest first.

    Attributes:
        key: the input's name in the rule.
        field: the field that it reads.
        rows: points, or groups if the input has `aggregation` and `groupBy`.
        start: start of the window.
        end: end of the window: when the rule was listed as due.
        row_seconds: the length of a group, at most; 0 for points.
    """

    key: str
    field: str
    rows: list[Row]
    start: datetime | None
    end: datetime | None
    row_seconds: float

    @cached_property
    def present(self) -> list[Row]:
        """The rows that have a value."""
        return [row for row in self.rows if row.value is not None]

    @cached_property
    def numbers(self) -> list[NumberRow]:
        """The rows whose value is a number."""
        return [
            NumberRow(row.timestamp, row.value, row.metadata)
            for row in self.rows
            if isinstance(row.value, int | float) and not isinstance(row.value, bool)
        ]

    def of_type(self, name: str) -> list[Row]:
        """The rows whose value is of this type: `number`, `string` or `boolean`."""
        return [row for row in self.rows if row.value is not None and type_name(row.value) == name]

    def lacks(self, name: str) -> str:
        """Why a window without values of a type allows no conclusion."""
        if not self.rows:
            return "no rows in the window"
        return f"none of the {len(self.rows)} rows has a {name} in the field"


class NumberRow(NamedTuple):
    """A row whose value is a number."""

    timestamp: str
    value: float
    metadata: Mapping[str, Any] | None = None

    @property
    def at(self) -> datetime:
        """As `Row.at`."""
        return instant(self.timestamp)


def type_name(value: Scalar) -> str:
    """The schema's name for the type of a value."""
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def instant(text: str) -> datetime:
    """A timestamp of the service, to the microsecond."""
    seconds = datetime.fromisoformat(text[:_SECOND_CHARS]).replace(tzinfo=timezone.utc)
    fraction = text[_SECOND_CHARS:].strip(".Z")
    return seconds + timedelta(microseconds=int(fraction[:6].ljust(6, "0"))) if fraction else seconds


def series(key: str, field: str, query: Mapping[str, Any], rows: list[Row]) -> Series:
    """The series of an input whose query has these rows."""
    filters = query.get("filters") or {}
    start, end = filters.get("startTime"), filters.get("endTime")
    return Series(
        key,
        field,
        rows,
        None if start is None else instant(start),
        None if end is None else instant(end),
        step_seconds(query.get("groupBy")),
    )


def step_seconds(step: str | None) -> float:
    """The greatest length of a step in seconds; 0 if there is none."""
    if step is None:
        return 0
    if step in _UNIT_SECONDS:
        return _UNIT_SECONDS[step]
    return {"quarter": 92 * 86_400, "year": 366 * 86_400, "all": float("inf")}.get(step) or int(step[:-1]) * {
        "s": 1,
        "m": 60,
        "h": 3600,
        "d": 90_000,
        "w": 608_400,
    }[step[-1]]
