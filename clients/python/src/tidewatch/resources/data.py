"""Points: sending, querying, exporting and deleting them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from tidewatch import _frames
from tidewatch._call import Call, given, member, path, post, whole
from tidewatch._resource import Async, M, Resource, Sync, download, endpoint, streaming
from tidewatch.models.common import Measurement, Time
from tidewatch.models.data import (
    ColumnsAnswer,
    Deletion,
    DeletionFilters,
    Entry,
    ExportFormat,
    ExportQuery,
    ImportFormat,
    Inserted,
    Point,
    Query,
    QueryAnswer,
    Row,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from tidewatch._transport import Stream

# The service's largest page of rows.
PAGE_ROWS = 10_000


class Data(Resource[M]):
    """Points of buckets."""

    @endpoint
    def insert(
        self,
        bucket_id: str,
        data_source_id: str,
        values: Mapping[str, Measurement],
        *,
        timestamp: Time | None = None,
        metadata: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Point]:
        """`POST /api/data`: one point, durable when this returns.

        It has an idempotency key of its own unless one is given, so that sending it again stores it once.
        """
        body = given(
            bucket_id=bucket_id, data_source_id=data_source_id, timestamp=timestamp, values=values, metadata=metadata
        )
        call: Call[Point] = post(path("data"), body, member("dataPoint"), repeatable=True)
        return call.with_header("Idempotency-Key", idempotency_key or new_idempotency_key())

    @endpoint
    def insert_batch(
        self, bucket_id: str, entries: Sequence[Entry], *, idempotency_key: str | None = None
    ) -> Call[Inserted]:
        """`POST /api/data/batch`: 1 to 1000 points, 10,485,760 bytes at most, durable when this returns.

        A fault of an entry does not stop the others: `errors` names each. If all fail, this raises a
        `ValidationError` whose `body` has `errors`. The idempotency key is as for `insert`. See `Writer` for streams.
        """
        body = given(bucket_id=bucket_id, data_points=list(entries))
        call: Call[Inserted] = post(path("data", "batch"), body, whole, repeatable=True)
        return call.with_header("Idempotency-Key", idempotency_key or new_idempotency_key())

    @endpoint
    def query(self, query: Query) -> Call[QueryAnswer]:
        """`POST /api/data/query`: one page of rows."""
        return post(path("data", "query"), query, whole, repeatable=True)

    @endpoint
    def columns(self, query: Query) -> Call[ColumnsAnswer]:
        """`POST /api/data/query` with `layout: "columns"`: one page, as an array for each field."""
        return post(path("data", "query"), {**query, "layout": "columns"}, whole, repeatable=True)

    @streaming
    def rows(self, query: Query) -> Stream[Row]:
        """Iterates over the rows of all pages; with a `limit`, of that many rows."""
        left = query.get("limit")
        current = query
        while True:
            size = PAGE_ROWS if left is None else min(PAGE_ROWS, left)
            answer = yield post(path("data", "query"), {**current, "limit": size}, whole, repeatable=True)
            yield answer["data"]
            left = None if left is None else left - len(answer["data"])
            following = next_page(current, answer["metadata"])
            if following is None or left == 0:
                return
            current = following

    @overload
    def query_frame(
        self: Data[Sync], query: Query, library: Literal["pandas"] = ..., *, rows_max: int = ...
    ) -> pd.DataFrame: ...
    @overload
    def query_frame(
        self: Data[Sync], query: Query, library: Literal["polars"], *, rows_max: int = ...
    ) -> pl.DataFrame: ...
    @overload
    def query_frame(
        self: Data[Async], query: Query, library: Literal["pandas"] = ..., *, rows_max: int = ...
    ) -> Awaitable[pd.DataFrame]: ...
    @overload
    def query_frame(
        self: Data[Async], query: Query, library: Literal["polars"], *, rows_max: int = ...
    ) -> Awaitable[pl.DataFrame]: ...
    def query_frame(
        self, query: Query, library: Literal["pandas", "polars"] = "pandas", *, rows_max: int = 1_000_000
    ) -> Any:
        """All rows of a query as a frame of pandas or Polars; with a `limit`, that many rows.

        Columns are `timestamp` (nanoseconds, in the query's `timezone` or UTC), `dataSourceId`, of points `_id`, the
        fields and expressions, and of points `metadata` (JSON text). With several aggregations, a column for each:
        `field.aggregation`. What stands behind averages of a downsampled answer is `field.min`, `field.max` and
        `field.count`, and what `compare` adds is `previous.field`. A field with the name of one of these columns is
        `values.<name>`.

        Raises:
            RowLimitError: there are more than `rows_max` rows. Ask for groups or a shorter range, or raise it.
            ImportError: the library is not installed; `pip install tidewatch[pandas]` or `tidewatch[polars]`.
        """
        frame = _frames.library_of(library)
        return self._transport.run(_frames.read(query, frame, rows_max, PAGE_ROWS))

    @download
    def export(self, query: ExportQuery, export_format: ExportFormat) -> Call[bytes]:
        """`POST /api/data/export`: iterates over the bytes of a file with all rows, as they arrive.

        All rows are of one moment. `arrow` is the stream format of Arrow IPC. The request is sent when the iteration
        begins. A client that stops early closes the iterator (`close()`, `aclose()`), which ends the export.

        Raises:
            NoAnswerError: the connection broke; behind the first bytes, rows are missing from what was read.
        """
        return _export(query, export_format)

    @overload
    def export_to(
        self: Data[Sync], file: str | PathLike[str], query: ExportQuery, export_format: ExportFormat
    ) -> int: ...
    @overload
    def export_to(
        self: Data[Async], file: str | PathLike[str], query: ExportQuery, export_format: ExportFormat
    ) -> Awaitable[int]: ...
    def export_to(self, file: str | PathLike[str], query: ExportQuery, export_format: ExportFormat) -> Any:
        """Writes an export to a file; returns its size in bytes.

        The file appears, or replaces the one before, only when the export is whole.
        """
        return self._transport.save(_export(query, export_format), Path(file))

    @endpoint
    def import_(
        self,
        bucket_id: str,
        source: str,
        content: bytes,
        import_format: ImportFormat,
        *,
        time: str | None = None,
        dimensions: Sequence[str] = (),
        precision: Literal["ns", "us", "ms", "s"] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Inserted]:
        """`POST /api/buckets/:bucketId/import`: the rows of a file as points of a source, by its name or id.

        The file is held in memory; `tidewatch import` sends files of any size. `time` is the column with the time,
        `dimensions` are columns that are dimensions, `precision` is the unit of times that are numbers. Faults and the
        idempotency key are as for `insert_batch`.
        """
        params = given(
            source=source, format=import_format, time=time, dimensions=",".join(dimensions) or None, precision=precision
        )
        call: Call[Inserted] = Call(
            "POST",
            path("buckets", bucket_id, "import"),
            whole,
            params={name: str(value) for name, value in params.items()},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
            repeatable=True,
        )
        return call.with_header("Idempotency-Key", idempotency_key or new_idempotency_key())

    @endpoint
    def delete(self, bucket_id: str, filters: DeletionFilters, *, dry_run: bool | None = None) -> Call[Deletion]:
        """`POST /api/data/delete`: deletes the points that match every filter; with `dry_run`, only counts them."""
        body = given(bucket_id=bucket_id, filters=filters, dry_run=dry_run)
        return post(path("data", "delete"), body, whole, repeatable=bool(dry_run))


def _export(query: ExportQuery, export_format: ExportFormat) -> Call[bytes]:
    body = {**query, "format": export_format}
    return post(path("data", "export"), body, lambda answer: answer.content, repeatable=True)


def next_page(query: Query, metadata: Mapping[str, Any]) -> Query | None:
    """The query for what follows a page, or `None` behind the last one. Raw rows go on by cursor, groups by offset."""
    if not metadata["hasMore"] or metadata["count"] == 0:
        return None
    following = cast("Query", dict(query))
    if "nextCursor" in metadata:
        following.pop("offset", None)
        following["cursor"] = metadata["nextCursor"]
    else:
        following["offset"] = (query.get("offset") or 0) + metadata["count"]
    return following


def new_idempotency_key() -> str:
    """A key that no other request has."""
    return uuid.uuid4().hex
