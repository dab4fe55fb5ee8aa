"""When a request is sent again, and how long to wait before. Pure: waits for nothing itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidewatch._call import Call
from tidewatch.errors import ApiError, NoAnswerError, ServerError, TooManyRequestsError


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a request is sent again.

    Sent again are requests that cannot have taken effect (no connection; 429), and those that may be repeated (reads,
    changes, points with an idempotency key) also when the connection broke or the answer was 500 or above.

    Attributes:
        attempts_max: how often a request is sent at most; 1 never sends it again.
        backoff_seconds: the wait after the first attempt; each further one doubles it. A random part of up to a half
            is taken off, so that many clients do not come back at the same instant.
        backoff_seconds_max: the longest of these waits.
        retry_after_seconds_max: a service that asks for a longer wait than this gets no further attempt.
    """

    attempts_max: int = 5
    backoff_seconds: float = 0.5
    backoff_seconds_max: float = 30.0
    retry_after_seconds_max: float = 60.0
    random: Callable[[], float] = random.random

    def wait_seconds(self, call: Call[Any], attempt: int, failure: ApiError | NoAnswerError) -> float | None:
        """Seconds to wait after attempt number `attempt`, from 1; `None` if there is to be no other."""
        if attempt >= self.attempts_max or not _may_repeat(call, failure):
            return None
        asked = failure.retry_after if isinstance(failure, ApiError) else None
        if asked is not None and asked > self.retry_after_seconds_max:
            return None
        return self.backoff(attempt, asked)

    def backoff(self, attempt: int, asked: float | None = None) -> float:
        """The wait after attempt number `attempt`, from 1; never shorter than what the service `asked` for."""
        # The exponent is bounded: 2.0 to the power of a large number is no float.
        longest = min(self.backoff_seconds_max, self.backoff_seconds * 2.0 ** min(attempt - 1, 60))
        wait = longest * (1 - self.random() / 2)
        return wait if asked is None else asked + wait * self.random()


def _may_repeat(call: Call[Any], failure: ApiError | NoAnswerError) -> bool:
    if isinstance(failure, NoAnswerError):
        return call.repeatable or not failure.sent
    if isinstance(failure, TooManyRequestsError):
        return True
    return call.repeatable and isinstance(failure, ServerError)
