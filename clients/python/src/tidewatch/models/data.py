"""Points, queries and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from tidewatch.models.common import Aggregation, Fill, Measurement, Time

if TYPE_CHECKING:
    from typing_extensions import NotRequired

# One array, or with several aggregations one for each.
ColumnValues = list[Any] | dict[str, list[Any]]

Sort = Literal["asc", "desc"]
ExportFormat = Literal["csv", "ndjson", "parquet", "arrow"]
ImportFormat = Literal["csv", "ndjson", "parquet"]


class Entry(TypedDict):
    """A point of a batch."""

    dataSourceId: str
    timestamp: NotRequired[Time | None]
    values: Mapping[str, Measurement]
    metadata: NotRequired[Mapping[str, object] | None]


class Point(TypedDict):
    """A stored point."""

    _id: str
    bucketId: str
    dataSourceId: str
    timestamp: str
    values: dict[str, Measurement]
    metadata: NotRequired[dict[str, object]]
    createdAt: str


class EntryError(TypedDict):
    """A batch entry, or a row of a file, that was not stored. `line` is that of a file of text, from 1."""

    index: int
    line: NotRequired[int]
    error: str


class _Comparisons(TypedDict, total=False):
    gt: float
    gte: float
    lt: float
    lte: float
    eq: float | bool | str
    neq: float | bool | str


# `in` is no name of Python.
_Membership = TypedDict("_Membership", {"in": Sequence[float | bool | str]}, total=False)


class ValueCondition(_Comparisons, _Membership, total=False):
    """Comparisons that the value of a field has to pass, all of them."""


DimensionCondition = TypedDict(
    "DimensionCondition",
    {
        "not": str | Sequence[str | None] | None,
        "matches": str,
        "notMatches": str,
    },
    total=False,
)
"""One of: none of these values; values that a regular expression matches as a whole; values that it does not match."""

DimensionMatcher = str | None | Sequence[str | None] | DimensionCondition
"""A value of a dimension, `None` for a point without it, several of both, or a condition."""


class QueryFilters(TypedDict):
    """Filters that select points."""

    dataSourceIds: NotRequired[Sequence[str] | None]
    startTime: NotRequired[Time | None]
    endTime: NotRequired[Time | None]
    metadata: NotRequired[Mapping[str, object] | None]
    fields: NotRequired[Sequence[str] | None]
    values: NotRequired[Mapping[str, ValueCondition] | None]
    dimensions: NotRequired[Mapping[str, DimensionMatcher] | None]


class DeletionFilters(TypedDict):
    """Filters that select the points to delete: those that match all of them."""

    dataSourceIds: NotRequired[Sequence[str] | None]
    startTime: NotRequired[Time | None]
    endTime: NotRequired[Time | None]
    metadata: NotRequired[Mapping[str, object] | None]
    values: NotRequired[Mapping[str, ValueCondition] | None]
    dimensions: NotRequired[Mapping[str, DimensionMatcher] | None]


class Expression(TypedDict):
    """Arithmetic over the fields of a row."""

    name: str
    expression: str


class Compare(TypedDict):
    """The time with which an answer is compared."""

    offset: str


class Top(TypedDict):
    """The data sources to keep."""

    n: int
    by: Aggregation
    field: NotRequired[str | None]
    order: NotRequired[Sort | None]


class ExportQuery(TypedDict):
    """Body of an export: a query for all rows."""

    bucketId: str
    filters: NotRequired[QueryFilters | None]
    aggregation: NotRequired[Aggregation | Sequence[Aggregation] | None]
    groupBy: NotRequired[str | None]
    sort: NotRequired[Sort | None]
    mergeSources: NotRequired[bool | None]
    groupByDimensions: NotRequired[Sequence[str] | None]
    downsampling: NotRequired[bool | None]
    maxPoints: NotRequired[int | None]
    timezone: NotRequired[str | None]
    fill: NotRequired[Fill | None]
    expressions: NotRequired[Sequence[Expression] | None]
    compare: NotRequired[Compare | None]
    top: NotRequired[Top | None]


class Query(ExportQuery):
    """Body of a query."""

    limit: NotRequired[int | None]
    offset: NotRequired[int | None]
    cursor: NotRequired[str | None]


class Downsampling(TypedDict):
    """How the server downsampled a query."""

    groupBy: str
    expectedPoints: float


class QueryMetadata(TypedDict):
    """Information about the rows and the pages that follow."""

    count: int
    aggregation: NotRequired[Aggregation | Sequence[Aggregation]]
    groupBy: NotRequired[str]
    bucketId: NotRequired[str]
    limit: int
    offset: int
    hasMore: bool
    nextCursor: NotRequired[str]
    downsamplingApplied: NotRequired[bool]
    downsampling: NotRequired[Downsampling]


class RowStats(TypedDict):
    """Statistics of the values behind an average."""

    min: float
    max: float
    count: int


class StatsColumns(TypedDict):
    """Statistics of the values behind averages, as columns."""

    min: list[float | None]
    max: list[float | None]
    count: list[int | None]


class Columns(TypedDict):
    """Rows as columns: arrays of equal length, with null where a row has no value."""

    _id: NotRequired[list[str]]
    timestamp: list[str]
    dataSourceId: NotRequired[list[str]]
    dimensions: NotRequired[dict[str, list[str | None]]]
    values: dict[str, ColumnValues]
    previous: NotRequired[dict[str, ColumnValues]]
    stats: NotRequired[dict[str, StatsColumns]]
    metadata: NotRequired[list[dict[str, object] | None]]


class Row(TypedDict):
    """A row of an answer: a point, with `_id` and `metadata`, or a group, with `time`.

    `values` has a value for each field, or with several aggregations an object for each. The rows of groups repeat
    the values as members of the row; those are left out here.
    """

    _id: NotRequired[str]
    timestamp: str
    time: NotRequired[str]
    dataSourceId: NotRequired[str]
    values: dict[str, Any]
    previous: NotRequired[dict[str, Any]]
    stats: NotRequired[dict[str, RowStats]]
    metadata: NotRequired[dict[str, Any]]


class QueryAnswer(TypedDict):
    """Rows, and what is known of them."""

    data: list[Row]
    metadata: QueryMetadata


class ColumnsAnswer(TypedDict):
    """Rows as columns, and what is known of them."""

    columns: Columns
    metadata: QueryMetadata


class Inserted(TypedDict):
    """What became of a batch or a file: every entry is inserted, there already, or counted by `failedCount`.

    `errors` lists the failed ones, the first 1,000 of a file.
    """

    message: str
    insertedCount: int
    duplicateCount: NotRequired[int]
    failedCount: NotRequired[int]
    errors: NotRequired[list[EntryError]]


class Deletion(TypedDict):
    """How many points were deleted, or with `dryRun` would be."""

    message: str
    deletedCount: int
    dryRun: NotRequired[bool]
