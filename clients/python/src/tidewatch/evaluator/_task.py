"""A rule that is due, with its data."""

from __future__ import annotations

from dataclasses import dataclass

from tidewatch.evaluator._parameters import Parameters
from tidewatch.evaluator._series import Series


@dataclass(frozen=True)
class Task:
    """What the function of a kind gets.

    Attributes:
        rule_id: id of the rule.
        name: name of the rule.
        kind: kind of the rule.
        condition: the rule's text.
        bucket_id: the rule's bucket.
        data_source_id: the rule's own source.
        due_at: when the rule was due, ISO 8601.
        missed_intervals: whole intervals without a verdict before this one.
        parameters: the rule's parameters.
        inputs: a series for each input, in the rule's order.
    """

    rule_id: str
    name: str
    kind: str
    condition: str
    bucket_id: str
    data_source_id: str
    due_at: str
    missed_intervals: int
    parameters: Parameters
    inputs: tuple[Series, ...]

    def __getitem__(self, key: str) -> Series:
        """The series of the input with this key."""
        for series in self.inputs:
            if series.key == key:
                return series
        raise KeyError(f"the rule has no input {key!r}, but {', '.join(series.key for series in self.inputs)}")
