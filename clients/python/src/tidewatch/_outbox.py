"""The points that a writer holds: which go into a batch, when it is due, and what an answer means for them.

Makes no requests, waits for nothing and takes no locks: `Writer` and `AsyncWriter` do.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from tidewatch._call import Call, encode, given, path, whole
from tidewatch._retry import Retry
from tidewatch.errors import ApiError, TidewatchError
from tidewatch.resources.data import new_idempotency_key

if TYPE_CHECKING:
    from tidewatch.models.common import Measurement, Time
    from tidewatch.models.data import Inserted

log = logging.getLogger("tidewatch.writer")

# The service's limits of a batch.
BATCH_ENTRIES_MAX = 1000
BATCH_BYTES_MAX = 10_485_760
# What Python needs for a point beside its bytes.
ENTRY_OVERHEAD_BYTES = 64
# A used-up plan asks for weeks; by then somebody may have changed it, so the service is asked again before.
RETRY_AFTER_SECONDS_MAX = 300.0
# Statuses below 500 that say nothing about the batch.
_NOT_NOW = (408, 425, 429)
_SERVER_ERRORS_FROM = 500


class WriterFullError(TidewatchError):
    """`max_pending_bytes` is reached and `when_full` is "raise"; the point was not taken."""


class WriterClosedError(TidewatchError):
    """The writer is closed, or its sender has failed; the point was not taken."""


class UnsentError(TidewatchError):
    """The time of a flush or a close is over. `pending` points have no answer: whether they are stored is unknown."""

    def __init__(self, pending: int) -> None:
        super().__init__(f"{pending} points have not been acknowledged in time")
        self.pending = pending


@dataclass(frozen=True)
class FailedPoint:
    """A point that the service refused, with its reason. Sending it again would be refused, too."""

    data_source_id: str
    timestamp: str
    values: Mapping[str, Measurement]
    metadata: Mapping[str, object] | None
    error: str


@dataclass(frozen=True)
class WriterStats:
    """What became of the points so far: `written` = `inserted` + `failed` + `dropped` + `pending`."""

    written: int = 0
    inserted: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    pending_bytes: int = 0
    batches: int = 0
    retries: int = 0


class WriterOptions(TypedDict, total=False):
    """How a writer batches.

    batch_entries: a batch is sent when it has so many points; 1000, the service's limit, by default.
    batch_bytes: or when it is that long; 1 MiB by default, 10,485,760 at most.
    flush_seconds: or when its first point is that old; 1 by default.
    max_pending_bytes: the most that points without an answer may take, 64 MiB by default. Beside it, the batch that
        is being sent takes its bytes once more.
    when_full: "block" waits for room (default), "raise" raises a `WriterFullError`, "drop_oldest" drops the oldest
        points that are not being sent, and counts them.
    on_error: is called with each point that the service refuses, in the writer's thread or task, and must not write to
        the same writer. Without it, refused points are logged as warnings of `tidewatch.writer`.
    close_seconds: how long the end of a `with` block waits for the last answers; 60 by default.
    retry: the waits between attempts. A batch is sent until it is answered, `attempts_max` does not matter.
    """

    batch_entries: int
    batch_bytes: int
    flush_seconds: float
    max_pending_bytes: int
    when_full: Literal["block", "raise", "drop_oldest"]
    on_error: Callable[[FailedPoint], None]
    close_seconds: float
    retry: Retry


@dataclass(frozen=True)
class Batch:
    """Points that are sent together, under one idempotency key until they are answered."""

    entries: tuple[bytes, ...]
    call: Call[Inserted]


@dataclass
class Outbox:
    """The points without an answer, oldest first, and the counters."""

    bucket_id: str
    batch_entries: int = BATCH_ENTRIES_MAX
    batch_bytes: int = 1_048_576
    flush_seconds: float = 1.0
    max_pending_bytes: int = 67_108_864
    when_full: Literal["block", "raise", "drop_oldest"] = "block"
    on_error: Callable[[FailedPoint], None] | None = None
    close_seconds: float = 60.0
    retry: Retry = field(default_factory=Retry)
    # Set by the writer.
    closing: bool = False
    _queue: deque[tuple[bytes, float]] = field(default_factory=deque)
    _queued_bytes: int = 0
    _sending: Batch | None = None
    _sending_bytes: int = 0
    _flushed_up_to: int = 0
    _taken: int = 0
    _inserted: int = 0
    _failed: int = 0
    _dropped: int = 0
    _written: int = 0
    _batches: int = 0
    _retries: int = 0

    def __post_init__(self) -> None:
        self._head = encode({"bucketId": self.bucket_id})[:-1] + b',"dataPoints":['
        if not 1 <= self.batch_entries <= BATCH_ENTRIES_MAX:
            raise ValueError(f"batch_entries must be 1 to {BATCH_ENTRIES_MAX}")
        if not 1 <= self.batch_bytes <= BATCH_BYTES_MAX:
            raise ValueError(f"batch_bytes must be 1 to {BATCH_BYTES_MAX}")
        # A batch that is being sent, and beside it a point of any size that is taken.
        least = 2 * self.batch_bytes + (self.batch_entries + 1) * ENTRY_OVERHEAD_BYTES
        if self.max_pending_bytes < least:
            raise ValueError(f"max_pending_bytes must be at least {least} with these batches")
        if self.when_full not in {"block", "raise", "drop_oldest"}:
            raise ValueError("when_full must be block, raise or drop_oldest")
        if self.flush_seconds < 0 or self.close_seconds < 0:
            raise ValueError("flush_seconds and close_seconds must not be below 0")

    def encode(
        self,
        data_source_id: str,
        values: Mapping[str, Measurement],
        timestamp: Time | None,
        metadata: Mapping[str, object] | None,
    ) -> bytes:
        """The entry of a point. Without a timestamp it gets the current time, as it may be sent later."""
        at = datetime.now(timezone.utc) if timestamp is None else timestamp
        entry = encode(given(data_source_id=data_source_id, timestamp=at, values=values, metadata=metadata))
        if len(self._head) + len(entry) + len(b"]}") > self.batch_bytes:
            raise ValueError(f"the point has {len(entry)} bytes; a batch takes {self.batch_bytes} (batch_bytes)")
        return entry

    def add(self, entry: bytes, now: float) -> bool:
        """Takes an entry; false if there is no room and the caller has to wait for it.

        Raises:
            WriterFullError: there is no room, and `when_full` says to raise.
        """
        size = len(entry) + ENTRY_OVERHEAD_BYTES
        if self._pending_bytes + size > self.max_pending_bytes:
            if self.when_full == "block":
                return False
            if self.when_full == "raise":
                raise WriterFullError(f"{self._pending_bytes} bytes of points have not been acknowledged")
            while self._queue and self._pending_bytes + size > self.max_pending_bytes:
                self._forget_oldest()
                self._dropped += 1
                self._taken += 1
        self._queue.append((entry, now))
        self._queued_bytes += size
        self._written += 1
        return True

    @property
    def _pending_bytes(self) -> int:
        return self._queued_bytes + self._sending_bytes

    def _forget_oldest(self) -> bytes:
        entry, _ = self._queue.popleft()
        self._queued_bytes -= len(entry) + ENTRY_OVERHEAD_BYTES
        return entry

    def wakes_sender(self) -> bool:
        """Whether the entry just added changes when the next batch is due."""
        return len(self._queue) == 1 or self._is_batch_full()

    def _is_batch_full(self) -> bool:
        return len(self._queue) >= self.batch_entries or self._queued_bytes >= self.batch_bytes

    def wait_seconds(self, now: float) -> float | None:
        """Seconds until the next batch is due, 0 if it is; `None` if no point is queued."""
        if not self._queue:
            return None
        if self.closing or self._taken < self._flushed_up_to or self._is_batch_full():
            return 0.0
        return max(0.0, self._queue[0][1] + self.flush_seconds - now)

    def flush(self) -> int:
        """Makes everything written so far due; what `is_settled` takes to tell when it is answered."""
        self._flushed_up_to = self._written
        return self._written

    def is_settled(self, mark: int) -> bool:
        """Whether everything written before `flush` returned this mark is answered or dropped."""
        in_flight = len(self._sending.entries) if self._sending else 0
        return self._taken - in_flight >= mark

    def take(self) -> Batch:
        """The next batch, which is then being sent."""
        entries: list[bytes] = []
        length = len(self._head) + len(b"]}")
        while self._queue and len(entries) < self.batch_entries:
            length += len(self._queue[0][0]) + 1
            if entries and length > self.batch_bytes:
                break
            entries.append(self._forget_oldest())
        content = self._head + b",".join(entries) + b"]}"
        call: Call[Inserted] = Call("POST", path("data", "batch"), whole, content=content, repeatable=True)
        self._sending = Batch(tuple(entries), call.with_header("Idempotency-Key", new_idempotency_key()))
        self._sending_bytes = sum(len(entry) + ENTRY_OVERHEAD_BYTES for entry in entries)
        self._taken += len(entries)
        self._batches += 1
        return self._sending

    def answered(self, batch: Batch, answer: Inserted | TidewatchError) -> list[FailedPoint] | None:
        """The points that an answer refuses; `None` if it says nothing about the batch, which is sent again."""
        refused = _refusals(len(batch.entries), answer)
        if refused is None:
            self._retries += 1
            return None
        self._failed += len(refused)
        self._inserted += len(batch.entries) - len(refused)
        self._sending, self._sending_bytes = None, 0
        return [_failed_point(batch.entries[index], error) for index, error in refused]

    def retry_seconds(self, attempt: int, answer: Inserted | TidewatchError) -> float:
        """The wait before a batch is sent again."""
        asked = answer.retry_after if isinstance(answer, ApiError) else None
        return self.retry.backoff(attempt, None if asked is None else min(asked, RETRY_AFTER_SECONDS_MAX))

    def report(self, failed: Sequence[FailedPoint]) -> None:
        """Passes refused points to the callback. What it raises is logged; the other points go on."""
        if failed and self.on_error is None:
            log.warning("the service refused %d points of a batch, the first: %s", len(failed), failed[0].error)
        for point in failed if self.on_error else ():
            try:
                self.on_error(point)  # type: ignore[misc]
            except Exception:
                log.exception("on_error failed for a point at %s: %s", point.timestamp, point.error)

    @property
    def stats(self) -> WriterStats:
        """The counters."""
        in_flight = len(self._sending.entries) if self._sending else 0
        return WriterStats(
            written=self._written,
            inserted=self._inserted,
            failed=self._failed,
            dropped=self._dropped,
            pending=len(self._queue) + in_flight,
            pending_bytes=self._pending_bytes,
            batches=self._batches,
            retries=self._retries,
        )


def _refusals(entries: int, answer: Inserted | TidewatchError) -> list[tuple[int, str]] | None:
    if isinstance(answer, ApiError):
        # An answer without a body of the service comes from something between.
        if answer.status >= _SERVER_ERRORS_FROM or answer.status in _NOT_NOW or not answer.body:
            return None
        if "errors" not in answer.body:
            return [(index, str(answer)) for index in range(entries)]
        return _listed(answer.body["errors"])
    if isinstance(answer, TidewatchError):
        return None
    return _listed(answer.get("errors", []))


def _listed(errors: Sequence[Any]) -> list[tuple[int, str]]:
    return [(int(entry["index"]), str(entry["error"])) for entry in errors]


def _failed_point(entry: bytes, error: str) -> FailedPoint:
    point = json.loads(entry)
    return FailedPoint(point["dataSourceId"], point["timestamp"], point["values"], point.get("metadata"), error)
