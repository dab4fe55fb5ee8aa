"""Writers send points in batches, again until each batch is answered, with bounded memory.

A batch keeps its idempotency key and bytes over all attempts, so that what was stored is not stored twice: the service
remembers a key for 24 hours. Batches go out one at a time, in the order of the writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from tidewatch._outbox import (
    Batch,
    FailedPoint,
    Outbox,
    UnsentError,
    WriterClosedError,
    WriterFullError,
    WriterOptions,
    WriterStats,
    log,
)
from tidewatch.errors import TidewatchError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from tidewatch._transport import AsyncTransport, SyncTransport
    from tidewatch.models.common import Measurement, Time
    from tidewatch.models.data import Inserted

__all__ = [
    "AsyncWriter",
    "FailedPoint",
    "UnsentError",
    "Writer",
    "WriterClosedError",
    "WriterFullError",
    "WriterOptions",
    "WriterStats",
]


class Writer:
    """Sends the points of a bucket in batches, from a thread of its own. May be used from several threads.

    `Client.writer` makes one; `WriterOptions` says what can be set. What `write` takes is in memory only until it is
    acknowledged: leave the `with` block, `flush` or `close` before the process ends.
    """

    def __init__(self, transport: SyncTransport, bucket_id: str, **options: Unpack[WriterOptions]) -> None:
        self._transport = transport
        self._outbox = Outbox(bucket_id, **options)
        self._changed = threading.Condition()
        self._stopped = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tidewatch-writer", daemon=True)
        self._thread.start()

    def write(
        self,
        data_source_id: str,
        values: Mapping[str, Measurement],
        timestamp: Time | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Takes a point; without a timestamp, of now.

        Raises:
            WriterFullError: there is no room, and `when_full` is "raise".
            WriterClosedError: the writer is closed, also while this waits for room.
            ValueError: a value is not finite, or the point is larger than a batch.
        """
        entry = self._outbox.encode(data_source_id, values, timestamp, metadata)
        with self._changed:
            self._check_open()
            while not self._outbox.add(entry, time.monotonic()):
                self._changed.wait()
                self._check_open()
            if self._outbox.wakes_sender():
                self._changed.notify_all()

    def flush(self, timeout: float | None = None) -> None:
        """Sends what was written so far, and waits until all of it is answered.

        Raises:
            UnsentError: `timeout` seconds were not enough; the points stay and are sent on.
            WriterClosedError: the writer's sender has failed.
        """
        with self._changed:
            mark = self._outbox.flush()
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._outbox.is_settled(mark) or not self._runs(), timeout)
            if self._outbox.is_settled(mark):
                return
            if done:
                raise WriterClosedError("the writer is closed") from self._failure
            raise UnsentError(self._outbox.stats.pending)

    def close(self, timeout: float | None = None) -> None:
        """Sends everything and ends the thread; `timeout` seconds, or `close_seconds`, at most.

        Raises:
            UnsentError: that was not enough. The points without an answer are given up.
            WriterClosedError: the writer's sender has failed.
        """
        with self._changed:
            self._outbox.closing = True
            self._changed.notify_all()
        self._thread.join(self._outbox.close_seconds if timeout is None else timeout)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            pending = self._outbox.stats.pending
            if self._failure is not None:
                raise WriterClosedError("the writer's sender has failed") from self._failure
            if pending:
                raise UnsentError(pending)

    @property
    def stats(self) -> WriterStats:
        """The counters of this moment."""
        with self._changed:
            return self._outbox.stats

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _runs(self) -> bool:
        return self._thread.is_alive() and self._failure is None and not self._stopped

    def _check_open(self) -> None:
        if self._outbox.closing or self._failure is not None:
            raise WriterClosedError("the writer is closed") from self._failure

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self._send(batch)
        except BaseException as failure:
            log.exception("the writer has failed")
            self._failure = failure
        finally:
            with self._changed:
                self._changed.notify_all()

    def _next(self) -> Batch | None:
        with self._changed:
            while not self._stopped:
                wait = self._outbox.wait_seconds(time.monotonic())
                if wait == 0:
                    return self._outbox.take()
                if wait is None and self._outbox.closing:
                    return None
                self._changed.wait(wait)
            return None

    def _send(self, batch: Batch) -> None:
        for attempt in itertools.count(1):
            answer: Inserted | TidewatchError
            try:
                answer = self._transport.once(batch.call)
            except TidewatchError as failure:
                answer = failure
            with self._changed:
                failed = self._outbox.answered(batch, answer)
                self._changed.notify_all()
                if failed is None:
                    wait = self._outbox.retry_seconds(attempt, answer)
                    log.info("a batch has no answer, again in %.1f s: %s", wait, answer)
                    self._changed.wait_for(lambda: self._stopped, wait)
                    if self._stopped:
                        return
                    continue
            self._outbox.report(failed)
            return


class AsyncWriter:
    """Sends the points of a bucket in batches, from a task of its own; used in one event loop.

    `AsyncClient.writer` makes one; use it in an `async with` block, which starts and closes it.
    """

    def __init__(self, transport: AsyncTransport, bucket_id: str, **options: Unpack[WriterOptions]) -> None:
        self._transport = transport
        self._outbox = Outbox(bucket_id, **options)
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    async def write(
        self,
        data_source_id: str,
        values: Mapping[str, Measurement],
        timestamp: Time | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Takes a point; without a timestamp, of now. Raises what `Writer.write` raises."""
        entry = self._outbox.encode(data_source_id, values, timestamp, metadata)
        async with self._changed:
            self._check_open()
            while not self._outbox.add(entry, time.monotonic()):
                await self._changed.wait()
                self._check_open()
            if self._outbox.wakes_sender():
                self._changed.notify_all()

    async def flush(self, timeout: float | None = None) -> None:
        """Sends what was written so far, and waits until all of it is answered. Raises what `Writer.flush` raises."""
        async with self._changed:
            mark = self._outbox.flush()
            self._changed.notify_all()
            settled = self._changed.wait_for(lambda: self._outbox.is_settled(mark) or not self._runs())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(settled, timeout)
            if self._outbox.is_settled(mark):
                return
            if not self._runs():
                raise WriterClosedError("the writer is closed") from self._failure()
            raise UnsentError(self._outbox.stats.pending)

    async def close(self, timeout: float | None = None) -> None:
        """Sends everything and ends the task. Raises what `Writer.close` raises."""
        async with self._changed:
            self._outbox.closing = True
            self._changed.notify_all()
        if self._task is not None:
            # `wait` leaves a task that fails or is late as it is.
            await asyncio.wait([self._task], timeout=self._outbox.close_seconds if timeout is None else timeout)
            self._task.cancel()
            await asyncio.wait([self._task])
            if self._failure() is not None:
                raise WriterClosedError("the writer's sender has failed") from self._failure()
        async with self._changed:
            self._changed.notify_all()
        pending = self._outbox.stats.pending
        if pending:
            raise UnsentError(pending)

    @property
    def stats(self) -> WriterStats:
        """The counters of this moment."""
        return self._outbox.stats

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="tidewatch-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _runs(self) -> bool:
        return self._task is not None and not self._ended

    def _failure(self) -> BaseException | None:
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    def _check_open(self) -> None:
        if self._outbox.closing or not self._runs():
            raise WriterClosedError("the writer is closed; use it in an `async with` block") from self._failure()

    async def _run(self) -> None:
        try:
            while (batch := await self._next()) is not None:
                await self._send(batch)
        except Exception:
            log.exception("the writer has failed")
            raise
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    async def _next(self) -> Batch | None:
        async with self._changed:
            while True:
                wait = self._outbox.wait_seconds(time.monotonic())
                if wait == 0:
                    return self._outbox.take()
                if wait is None and self._outbox.closing:
                    return None
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait)

    async def _send(self, batch: Batch) -> None:
        for attempt in itertools.count(1):
            try:
                inserted = await self._transport.once(batch.call)
                answer: Inserted | TidewatchError = inserted
            except TidewatchError as failure:
                answer = failure
            async with self._changed:
                failed = self._outbox.answered(batch, answer)
                self._changed.notify_all()
            if failed is not None:
                self._outbox.report(failed)
                return
            wait = self._outbox.retry_seconds(attempt, answer)
            log.info("a batch has no answer, again in %.1f s: %s", wait, answer)
            await asyncio.sleep(wait)
