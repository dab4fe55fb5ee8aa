"""Imports: files of rows as pandas and Polars write them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pandas as pd
import polars as pl
import pytest

from tidewatch import Client, ValidationError
from tidewatch.models.data import ImportFormat

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
ROWS = 5000


@pytest.fixture
def frame() -> pd.DataFrame:
    columns: dict[str, Sequence[object]] = {
        "time": [START + timedelta(seconds=i) for i in range(ROWS)],
        "host": [f"web-{i % 3}" for i in range(ROWS)],
        "load": [i / 8 if i % 7 else None for i in range(ROWS)],
        "count": range(ROWS),
        "up": [i % 2 == 0 for i in range(ROWS)],
    }
    made: pd.DataFrame = pd.DataFrame(columns)
    return made


def written(frame: pd.DataFrame, import_format: ImportFormat) -> bytes:
    out = io.BytesIO()
    if import_format == "csv":
        frame.assign(time=frame["time"].map(lambda at: at.isoformat())).to_csv(out, index=False)
    elif import_format == "ndjson":
        frame.assign(time=frame["time"].map(lambda at: at.isoformat())).to_json(out, orient="records", lines=True)
    else:
        # Polars compresses with Zstandard, the other codec that the service reads.
        columns = {name: frame[name].tolist() for name in frame.columns}
        columns["time"] = [at.to_pydatetime() for at in frame["time"]]
        pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


@pytest.mark.parametrize("import_format", ["csv", "ndjson", "parquet"])
def test_frames_are_the_same_when_they_are_queried(
    client: Client, bucket: str, frame: pd.DataFrame, import_format: ImportFormat
) -> None:
    # The bucket keeps its rows for a century: these have a fixed date.
    client.buckets.update(bucket, retention_days=36_500)
    content = written(frame, import_format)
    answer = client.data.import_(bucket, import_format, content, import_format, dimensions=["host"], precision="ms")
    assert answer["insertedCount"] == ROWS
    again = client.data.import_(bucket, import_format, content, import_format, dimensions=["host"], precision="ms")
    assert (again["insertedCount"], again["duplicateCount"]) == (0, ROWS)
    sources = client.sources(bucket).list().items
    source = next(one["_id"] for one in sources if one["name"] == import_format)
    found = client.data.query_frame({"bucketId": bucket, "filters": {"dataSourceIds": [source]}, "downsampling": False})
    assert len(found) == ROWS
    assert found["count"].tolist() == frame["count"].tolist()
    assert found["load"].fillna(-1).tolist() == frame["load"].fillna(-1).tolist()
    assert [time.value for time in found["timestamp"]] == [time.value for time in frame["time"]]


def test_faults_name_rows_and_lines(client: Client, bucket: str) -> None:
    client.buckets.update(bucket, retention_days=36_500)
    answer = client.data.import_(bucket, "file", b"time,v\n2026-01-01T00:00:00Z,1\nnever,2\n", "csv")
    assert answer["insertedCount"] == 1
    assert [(error["index"], error["line"]) for error in answer["errors"]] == [(1, 3)]
    with pytest.raises(ValidationError):
        client.data.import_(bucket, "file", b"when,v\n1,2\n", "csv")
