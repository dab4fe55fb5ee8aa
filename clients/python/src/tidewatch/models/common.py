"""Members that many answers share, and the types of single values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypedDict

# An instant in a request: ISO 8601 text, or a `datetime`; without an offset both are read as UTC.
Time = str | datetime
# The value of a field: a number, a string, a boolean, or nothing.
Measurement = float | str | bool | None
# What an evaluator may set in a rule; flat.
Parameters = Mapping[str, float | str | bool]
# `avg`, `sum`, `min`, `max`, `count`, `first`, `last`, `range`, `stddev`, `median`, `delta`, `increase`, `rate`,
# `timeAvg`, `distinct`, `trueShare`, or a percentile from `p1` to `p99.9`.
Aggregation = str
Fill = Literal["none", "null", "previous", "linear"] | float


class Pagination(TypedDict):
    """Which part of a list an answer is."""

    limit: int
    offset: int
    total: int
    hasMore: bool


class Named(TypedDict):
    """An object's ID and name."""

    _id: str
    name: str
