"""Asks for due rules, claims and evaluates them, and posts one verdict each.

Keeps no state: if it dies, its rules are due again when their claims end.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tidewatch._retry import Retry
from tidewatch.client import Client
from tidewatch.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NoAnswerError,
    NotFoundError,
    TidewatchError,
    UnauthorizedError,
)
from tidewatch.evaluator._parameters import Parameters
from tidewatch.evaluator._registry import Registry
from tidewatch.evaluator._series import Row, Series, series
from tidewatch.evaluator._task import Task
from tidewatch.evaluator._verdict import Verdict, inconclusive, posted_evidence
from tidewatch.resources.data import PAGE_ROWS, next_page

if TYPE_CHECKING:
    from tidewatch.models.rules import DueInput, DueRule

log = logging.getLogger("tidewatch.evaluator")
T = TypeVar("T")

# A million rows. Rules on more should ask for groups.
PAGES_MAX = 100
_NOT_NOW = 429
_SERVER_ERRORS_FROM = 500


class EvaluatorError(TidewatchError):
    """An evaluator ended without being stopped: the key is refused, or the service does not list what is due."""


class _StoppedError(Exception):
    """The evaluator was stopped while it waited to ask again."""


@dataclass(frozen=True)
class EvaluatorOptions:
    """How an evaluator works.

    Attributes:
        once: end when no more rules are due.
        poll_seconds: time between polls when no more are.
        claim_seconds: how long a listed rule is hidden from other evaluators, 5 to 3600, and the time to evaluate it.
        concurrency: how many rules are evaluated at once, 1 to 1000.
        retry: waits between attempts; a rule's claim bounds them, `attempts_max` does not matter.
    """

    once: bool = False
    poll_seconds: float = 10.0
    claim_seconds: int = 120
    concurrency: int = 8
    retry: Retry = field(default_factory=Retry)


class Evaluator:
    """Evaluates due rules with the functions of a registry.

    Args:
        registry: the kinds.
        url: address of the service.
        key: an integration or admin key.
        options: how it works.
    """

    def __init__(
        self,
        registry: Registry,
        url: str | None = None,
        key: str | None = None,
        options: EvaluatorOptions | None = None,
    ) -> None:
        self._registry = registry
        self._options = options or EvaluatorOptions()
        # Attempts are made here, where the time of a claim is known.
        self._client = Client(url, key=key, retry=Retry(attempts_max=1))
        self._stop = threading.Event()
        # With `once`: a rule whose verdict was not recorded is listed again, but not started twice.
        self._started: set[str] = set()

    def stop(self) -> None:
        """Makes `run` return when the rules in progress are finished. May be called from any thread."""
        self._stop.set()

    def run(self) -> None:
        """Evaluates until `stop`, or with `once` until no more rules are due; then finishes the rules in progress.

        Raises:
            EvaluatorError: the key is refused, or the service does not list what is due.
        """
        running: dict[Future[None], str] = {}
        with self._client, ThreadPoolExecutor(self._options.concurrency, "tidewatch-evaluator") as pool:
            try:
                while not self._stop.is_set():
                    _collect(running, wait(running, timeout=0).done)
                    free = self._options.concurrency - len(running)
                    if free == 0:
                        _collect(running, wait(running, return_when=FIRST_COMPLETED).done)
                        continue
                    due = self._due(free)
                    started = [rule for rule in due if self._may_start(rule, running)]
                    for rule in started:
                        running[pool.submit(self._evaluate, rule, time.monotonic())] = rule["ruleId"]
                    if self._options.once and not started:
                        break
                    if not self._options.once and (len(due) < free or not started):
                        self._stop.wait(self._options.poll_seconds)
            except _StoppedError:
                pass
            _collect(running, wait(running).done)

    def _may_start(self, rule: DueRule, running: Mapping[Future[None], str]) -> bool:
        """Not a rule in progress: its claim may have ended, or been lost in a restart of the service."""
        rule_id = rule["ruleId"]
        if rule_id in running.values() or (self._options.once and rule_id in self._started):
            return False
        if self._options.once:
            self._started.add(rule_id)
        return True

    def _due(self, limit: int) -> list[DueRule]:
        claim = self._options.claim_seconds
        # With `once` somebody waits for the end; otherwise the service is waited for as long as it takes.
        until = time.monotonic() + claim if self._options.once else None
        try:
            return list(self._send(lambda: self._client.evaluations.due(limit=limit, claim=claim), until))
        except (UnauthorizedError, ForbiddenError) as failure:
            raise _refused(failure) from failure
        except TidewatchError as failure:
            raise EvaluatorError(
                f"the service does not list what is due: {failure}; is the address right?"
            ) from failure

    def _evaluate(self, rule: DueRule, since: float) -> None:
        """One rule, within the time of its claim; reading may take half of it."""
        try:
            verdict = self._verdict(rule, since + self._options.claim_seconds / 2)
            self._post(rule, verdict, since + self._options.claim_seconds)
        except (UnauthorizedError, ForbiddenError) as failure:
            raise _refused(failure) from failure
        except _StoppedError:
            log.info("%s: no verdict, stopping; the rule stays due", rule["name"])
        except TidewatchError as failure:
            log.warning("%s: no verdict, the rule stays due: %s", rule["name"], failure)

    def _verdict(self, rule: DueRule, until: float) -> Verdict:
        unknown = self._registry.unknown(rule["kind"])
        if unknown is not None:
            return unknown
        inputs = []
        for entry in rule["inputs"]:
            try:
                inputs.append(self._read(entry, until))
            except (UnauthorizedError, ForbiddenError, NoAnswerError):
                raise
            except TidewatchError as failure:
                return inconclusive(f"the window of `{entry['key']}` could not be read whole: {failure}")
        task = Task(
            rule_id=rule["ruleId"],
            name=rule["name"],
            kind=str(rule["kind"]),
            condition=rule["condition"],
            bucket_id=rule["bucketId"],
            data_source_id=rule["dataSourceId"],
            due_at=rule["dueAt"],
            missed_intervals=rule["missedIntervals"],
            parameters=Parameters(rule["parameters"]),
            inputs=tuple(inputs),
        )
        return self._registry.evaluate(task)

    def _read(self, entry: DueInput, until: float) -> Series:
        """All rows of a window: its query goes out unchanged, then with the place to go on from."""
        rows: list[Row] = []
        query = entry["query"]
        for _ in range(PAGES_MAX):
            answer = self._send(partial(self._client.data.query, query), until)
            for row in answer["data"]:
                value = row["values"].get(entry["field"])
                rows.append(Row(row["timestamp"], value, row.get("metadata")))
            following = next_page(query, answer["metadata"])
            if following is None:
                return series(entry["key"], entry["field"], entry["query"], rows)
            query = following
        raise TidewatchError(f"it has more than {PAGES_MAX * PAGE_ROWS} rows: query groups, or a shorter window")

    def _post(self, rule: DueRule, verdict: Verdict, until: float) -> None:
        attempts = itertools.count()
        evidence = posted_evidence(rule["kind"], verdict.evidence)

        def post() -> Any:
            next(attempts)
            return self._client.evaluations.verdict(rule["ruleId"], verdict.outcome, evidence=evidence)

        try:
            recorded = self._send(post, until)
        except ConflictError as conflict:
            # After an attempt without an answer, the recorded verdict is that one, or another's that says the same.
            same = (conflict.body.get("evaluation") or {}).get("outcome") == verdict.outcome
            if next(attempts) > 1 and same:
                log.info("%s: %s, recorded by an attempt without an answer", rule["name"], verdict.outcome)
            else:
                log.info("%s: %s, not needed: %s", rule["name"], verdict.outcome, conflict.message)
        except NotFoundError:
            log.info("%s: %s, not needed: the rule is gone", rule["name"], verdict.outcome)
        else:
            log.info("%s: %s%s", rule["name"], verdict.outcome, ", triggered" if recorded["triggered"] else "")

    def _send(self, call: Callable[[], T], until: float | None) -> T:
        """Sends until there is an answer; raises the last failure when the time is over."""
        for attempt in itertools.count(1):
            try:
                return call()
            except (NoAnswerError, ApiError) as failure:
                if (
                    isinstance(failure, ApiError)
                    and failure.status < _SERVER_ERRORS_FROM
                    and failure.status != _NOT_NOW
                ):
                    raise
                asked = failure.retry_after if isinstance(failure, ApiError) else None
                seconds = self._options.retry.backoff(attempt, asked)
                if until is not None and time.monotonic() + seconds >= until:
                    raise
                log.info("asking again in %.1f s: %s", seconds, failure)
                if self._stop.wait(seconds):
                    raise _StoppedError from failure
        raise AssertionError("counting ends never")


def _collect(running: dict[Future[None], str], done: set[Future[None]]) -> None:
    """Forgets finished rules; raises the refusal of the key, if one found it."""
    for future in done:
        del running[future]
    for future in done:
        future.result()


def _is_passing(failure: ApiError) -> bool:
    return failure.status >= _SERVER_ERRORS_FROM or failure.status == _NOT_NOW


def _refused(failure: ApiError) -> EvaluatorError:
    return EvaluatorError(f"the service refuses the key: {failure}; an evaluator needs an integration key, svc_i_…")
