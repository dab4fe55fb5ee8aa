"""Answers in columns, as frames of pandas or Polars. The libraries are imported when they are used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tidewatch._call import Call, path, post, whole
from tidewatch.errors import TidewatchError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from tidewatch._transport import Procedure
    from tidewatch.models.data import Columns, ColumnsAnswer, Query

# A frame's column is known by this name, and by the type of its values.
Kind = Literal["time", "text", "boolean", "integer", "number"]
# Aggregations that count.
_COUNTS = {"count", "distinct"}
_FIXED = ("timestamp", "dataSourceId", "_id", "metadata")


class RowLimitError(TidewatchError):
    """A query has more rows than `rows_max`."""


class Library(Protocol):
    """Makes frames."""

    def frame(self, columns: Mapping[str, tuple[Kind, Sequence[Any]]], timezone: str) -> Any:
        """A frame of columns of equal length; the timestamps in this zone."""


def library_of(name: str) -> Library:
    """The library of this name.

    Raises:
        ImportError: it is not installed.
    """
    if name not in {"pandas", "polars"}:
        raise ValueError(f"{name!r} makes no frames; use pandas or polars")
    try:
        return Pandas() if name == "pandas" else Polars()
    except ImportError as cause:
        raise ImportError(f"{name} is not installed: pip install 'tidewatch[{name}]'") from cause


@dataclass
class Table:
    """The columns of several pages. A field that a page does not have is null in its rows."""

    timestamp: list[str] = field(default_factory=list)
    text: dict[str, list[Any]] = field(default_factory=dict)
    # By column, with the aggregation that made it, if any.
    values: dict[str, tuple[str | None, list[Any]]] = field(default_factory=dict)

    def add(self, columns: Columns, aggregation: str | Sequence[str] | None) -> None:
        """Appends a page."""
        before = len(self.timestamp)
        self.timestamp += columns["timestamp"]
        for name in ("dataSourceId", "_id"):
            if name in columns:
                self._extend(self.text, name, before, columns[name])
        if "metadata" in columns:
            texts = [None if entry is None else json.dumps(entry, ensure_ascii=False) for entry in columns["metadata"]]
            self._extend(self.text, "metadata", before, texts)
        for prefix, members in (("", columns["values"]), ("previous.", columns.get("previous", {}))):
            for name, values in members.items():
                self._add_field(prefix + name, values, aggregation, before)
        for name, stats in columns.get("stats", {}).items():
            for statistic in ("min", "max", "count"):
                self._add_values(f"{name}.{statistic}", statistic, stats[statistic], before)
        self._pad(len(self.timestamp))

    def _add_field(self, name: str, values: Any, aggregation: str | Sequence[str] | None, before: int) -> None:
        name = f"values.{name}" if name in _FIXED else name
        if isinstance(values, dict):
            for one, column in values.items():
                self._add_values(f"{name}.{one}", one, column, before)
        else:
            self._add_values(name, aggregation if isinstance(aggregation, str) else None, values, before)

    def _add_values(self, name: str, aggregation: str | None, values: list[Any], before: int) -> None:
        _, column = self.values.setdefault(name, (aggregation, [None] * before))
        if len(column) != before:
            raise ValueError(f"two columns are called {name!r}; ask for them in two queries")
        column += values

    @staticmethod
    def _extend(columns: dict[str, list[Any]], name: str, before: int, values: Sequence[Any]) -> None:
        columns.setdefault(name, [None] * before).extend(values)

    def _pad(self, rows: int) -> None:
        for column in (*self.text.values(), *(column for _, column in self.values.values())):
            column.extend([None] * (rows - len(column)))

    def typed(self) -> dict[str, tuple[Kind, Sequence[Any]]]:
        """The columns in the order of a frame, with their types."""
        columns: dict[str, tuple[Kind, Sequence[Any]]] = {"timestamp": ("time", self.timestamp)}
        for name in ("dataSourceId", "_id"):
            if name in self.text:
                columns[name] = ("text", self.text[name])
        for name, (aggregation, values) in self.values.items():
            columns[name] = _typed(aggregation, values)
        if "metadata" in self.text:
            columns["metadata"] = ("text", self.text["metadata"])
        return columns


def _typed(aggregation: str | None, values: list[Any]) -> tuple[Kind, list[Any]]:
    present = {type(value) for value in values if value is not None}
    if not present or present <= {int, float}:
        # A count may be filled with a fraction.
        is_count = aggregation in _COUNTS and present <= {int}
        return ("integer" if is_count else "number"), values
    if present == {bool}:
        return "boolean", values
    if present == {str}:
        return "text", values
    # Sources that declare a field with different types: JSON, as an export has it.
    return "text", [None if value is None else json.dumps(value) for value in values]


def read(query: Query, library: Library, rows_max: int, page_rows: int) -> Procedure[Any]:
    """Reads all pages of a query and makes a frame of them."""
    from tidewatch.resources.data import next_page  # noqa: PLC0415 - it imports this module

    table = Table()
    left = query.get("limit")
    current: Query | None = query
    while current is not None and left != 0:
        size = page_rows if left is None else min(page_rows, left)
        answer: ColumnsAnswer = yield _columns(current, size)
        if len(table.timestamp) + answer["metadata"]["count"] > rows_max:
            raise RowLimitError(f"the query has more than {rows_max} rows: group them, or raise rows_max")
        table.add(answer["columns"], answer["metadata"].get("aggregation"))
        left = None if left is None else left - answer["metadata"]["count"]
        current = next_page(current, answer["metadata"])
    return library.frame(table.typed(), query.get("timezone") or "UTC")


def _columns(query: Query, limit: int) -> Call[ColumnsAnswer]:
    body = {**query, "limit": limit, "layout": "columns"}
    return post(path("data", "query"), body, whole, repeatable=True)


class Pandas:
    """Frames of pandas: nullable dtypes where a null has no place in NumPy's."""

    _DTYPES: Mapping[Kind, str] = {"text": "string", "boolean": "boolean", "integer": "Int64", "number": "float64"}

    def __init__(self) -> None:
        import pandas  # noqa: PLC0415 - optional

        self._pandas: Any = pandas

    def frame(self, columns: Mapping[str, tuple[Kind, Sequence[Any]]], timezone: str) -> pd.DataFrame:
        """See `Library`."""
        made = {name: self._column(kind, values, timezone) for name, (kind, values) in columns.items()}
        frame: pd.DataFrame = self._pandas.DataFrame(made)
        return frame

    def _column(self, kind: Kind, values: Sequence[Any], timezone: str) -> pd.Series[Any]:
        if kind == "time":
            parsed = self._pandas.to_datetime(self._pandas.Series(values, dtype="string"), format="ISO8601", utc=True)
            column: pd.Series[Any] = parsed.dt.as_unit("ns").dt.tz_convert(timezone)
        else:
            column = self._pandas.Series(values, dtype=self._DTYPES[kind])
        return column


class Polars:
    """Frames of Polars."""

    def __init__(self) -> None:
        import polars  # noqa: PLC0415 - optional

        self._polars = polars

    def frame(self, columns: Mapping[str, tuple[Kind, Sequence[Any]]], timezone: str) -> pl.DataFrame:
        """See `Library`."""
        return self._polars.DataFrame(
            [self._column(name, kind, values, timezone) for name, (kind, values) in columns.items()]
        )

    def _column(self, name: str, kind: Kind, values: Sequence[Any], timezone: str) -> pl.Series:
        if kind == "time":
            texts = self._polars.Series(name, values, dtype=self._polars.String)
            parsed = texts.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="ns")
            return parsed.dt.replace_time_zone("UTC").dt.convert_time_zone(timezone)
        dtypes = {
            "text": self._polars.String,
            "boolean": self._polars.Boolean,
            "integer": self._polars.Int64,
            "number": self._polars.Float64,
        }
        return self._polars.Series(name, values, dtype=dtypes[kind], strict=False)
