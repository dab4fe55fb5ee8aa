"""The evaluator kit: a function for each kind of rule, and everything around it.

    from tidewatch.evaluator import Registry, Series, Parameters, Finding, decided, undecided

    registry = Registry()

    @registry.input_kind("above")
    def above(series: Series, parameters: Parameters) -> Finding:
        limit = parameters.number("limit")
        if not series.numbers:
            return undecided("no numbers in the window")
        newest = series.numbers[-1]
        return decided(newest.value > limit, newest, (newest.value, limit, "gt"))

`python -m tidewatch.evaluator module:registry --url URL` asks the service for due rules, claims them, reads their
windows, calls the function of each rule's kind and posts one verdict. A kind without a function, a parameter that is
wrong or unknown, a window that cannot be read whole and an exception of the function are all `inconclusive`.
"""

from tidewatch.evaluator._parameters import InvalidParameterError, Parameters
from tidewatch.evaluator._registry import Registry
from tidewatch.evaluator._run import Evaluator, EvaluatorError, EvaluatorOptions
from tidewatch.evaluator._series import Row, Scalar, Series
from tidewatch.evaluator._task import Task
from tidewatch.evaluator._verdict import (
    Alert,
    Finding,
    Verdict,
    combine,
    decided,
    inconclusive,
    met,
    not_met,
    undecided,
)

__all__ = [
    "Alert",
    "Evaluator",
    "EvaluatorError",
    "EvaluatorOptions",
    "Finding",
    "InvalidParameterError",
    "Parameters",
    "Registry",
    "Row",
    "Scalar",
    "Series",
    "Task",
    "Verdict",
    "combine",
    "decided",
    "inconclusive",
    "met",
    "not_met",
    "undecided",
]
