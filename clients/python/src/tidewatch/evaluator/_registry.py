"""The functions of an evaluator, by kind."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidewatch.evaluator._parameters import InvalidParameterError, Parameters
from tidewatch.evaluator._series import Series
from tidewatch.evaluator._task import Task
from tidewatch.evaluator._verdict import Finding, Verdict, clip, combine, inconclusive

log = logging.getLogger("tidewatch.evaluator")

TaskFunction = Callable[[Task], Verdict]
InputFunction = Callable[[Series, Parameters], Finding]


class Registry:
    """The kinds that an evaluator knows. A function of a kind is called in several threads at once."""

    def __init__(self) -> None:
        self._functions: dict[str, TaskFunction] = {}

    def kind(self, name: str) -> Callable[[TaskFunction], TaskFunction]:
        """Registers a function that evaluates a whole rule."""

        def register(function: TaskFunction) -> TaskFunction:
            if name in self._functions:
                raise ValueError(f"the kind {name!r} is registered twice")
            self._functions[name] = function
            return function

        return register

    def input_kind(self, name: str) -> Callable[[InputFunction], InputFunction]:
        """Registers a function that evaluates one input. The rule's parameter `inputs` (`any`, `all`) combines them."""

        def register(function: InputFunction) -> InputFunction:
            def evaluate(task: Task) -> Verdict:
                inputs = task.parameters.one_of("inputs", ["any", "all"], "any")
                return combine([(series, function(series, task.parameters)) for series in task.inputs], inputs)

            self.kind(name)(evaluate)
            return function

        return register

    @property
    def kinds(self) -> list[str]:
        """The names of the kinds."""
        return list(self._functions)

    def unknown(self, kind: str | None) -> Verdict | None:
        """The verdict on a rule that has no function; `None` if there is one."""
        if kind is None:
            return inconclusive("the rule has no kind")
        if kind not in self._functions:
            return inconclusive(f"the kind `{clip(kind)}` is not known here")
        return None

    def evaluate(self, task: Task) -> Verdict:
        """The verdict of the kind's function. What it raises is logged, and is inconclusive."""
        try:
            verdict = self._functions[task.kind](task)
            task.parameters.check_all_read()
        except InvalidParameterError as fault:
            return inconclusive(str(fault))
        except Exception as fault:
            log.exception("the function of the kind %r failed on rule %s", task.kind, task.rule_id)
            return inconclusive(clip(f"the evaluator failed: {type(fault).__name__}: {fault}"))
        return verdict
