"""Findings of inputs, and the verdict with the evidence that is made of them. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tidewatch._call import encode

if TYPE_CHECKING:
    from tidewatch.evaluator._series import NumberRow, Row, Series
    from tidewatch.models.rules import Outcome

# Texts of unknown length are cut to so many characters, so that the evidence stays below the service's limit.
TEXT_CHARS_MAX = 128
METADATA_BYTES_MAX = 16_384
EVIDENCE_BYTES_MAX = 65_536


@dataclass(frozen=True)
class Verdict:
    """The outcome of a rule, and why. Members of the evidence that are not finite are posted as null.

    `currentValue`, `threshold`, `operator` and `dataPoint` of the evidence go into `alert.triggered`.
    """

    outcome: Outcome
    evidence: Mapping[str, Any] = field(default_factory=dict)


def met(**evidence: object) -> Verdict:
    """The condition holds."""
    return Verdict("met", evidence)


def not_met(**evidence: object) -> Verdict:
    """The condition does not hold."""
    return Verdict("not_met", evidence)


def inconclusive(reason: str, **evidence: object) -> Verdict:
    """The data allow no conclusion."""
    return Verdict("inconclusive", {"reason": reason, **evidence})


class Alert(NamedTuple):
    """What a rule that fires tells about the value that was met."""

    value: object
    threshold: object
    operator: str


@dataclass(frozen=True)
class Finding:
    """The outcome of one input.

    Attributes:
        outcome: the outcome of this input alone.
        reason: why it is inconclusive.
        row: the row that decided; of several, the newest.
        alert: what is told if it is met.
        figures: further members of the evidence.
    """

    outcome: Outcome
    reason: str | None = None
    row: Row | NumberRow | None = None
    alert: Alert | None = None
    figures: Mapping[str, object] = field(default_factory=dict)


def decided(
    is_met: bool,
    row: Row | NumberRow | None = None,
    alert: tuple[object, object, str] | None = None,
    **figures: object,
) -> Finding:
    """A finding that a row decided. `alert` is the value, the threshold and the operator between them."""
    told = Alert(*alert) if is_met and alert is not None else None
    return Finding("met" if is_met else "not_met", row=row, alert=told, figures=figures)


def undecided(reason: str, row: Row | NumberRow | None = None, **figures: object) -> Finding:
    """A finding that allows no conclusion."""
    return Finding("inconclusive", reason=reason, row=row, figures=figures)


def combine(findings: Sequence[tuple[Series, Finding]], inputs: str = "any") -> Verdict:
    """The verdict on a rule: `any` is met if one input is, `all` if every one is.

    An input that is inconclusive makes the whole inconclusive, unless another decides it alone.
    """
    outcomes = [finding.outcome for _, finding in findings]
    decisive: Outcome = "met" if inputs == "any" else "not_met"
    otherwise: Outcome = "not_met" if inputs == "any" else "met"
    outcome: Outcome = otherwise
    if decisive in outcomes:
        outcome = decisive
    elif not outcomes or "inconclusive" in outcomes:
        outcome = "inconclusive"
    evidence: dict[str, Any] = {}
    if outcome == "met":
        evidence |= next(_alert(of, finding) for of, finding in findings if finding.outcome == "met")
    evidence["inputs"] = [_input(of, finding) for of, finding in findings]
    return Verdict(outcome, evidence)


def _alert(of: Series, finding: Finding) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if finding.alert is not None:
        value, threshold, operator = finding.alert
        members = {"currentValue": _clipped(value), "threshold": _clipped(threshold), "operator": operator}
    if finding.row is not None:
        point: dict[str, Any] = {
            "timestamp": finding.row.timestamp,
            "values": {clip(of.field): _clipped(finding.row.value)},
        }
        metadata = finding.row.metadata
        if metadata is not None and len(json.dumps(metadata, ensure_ascii=False).encode()) <= METADATA_BYTES_MAX:
            point["metadata"] = metadata
        members["dataPoint"] = point
    return members


def _input(of: Series, finding: Finding) -> dict[str, Any]:
    members: dict[str, Any] = {
        "key": clip(of.key),
        "field": clip(of.field),
        "outcome": finding.outcome,
        "rows": len(of.rows),
    }
    if finding.reason is not None:
        members["reason"] = finding.reason
    if finding.row is not None:
        members["row"] = {"timestamp": finding.row.timestamp, "value": _clipped(finding.row.value)}
    # `from_` is `from`, which is no name of Python.
    return members | {name.rstrip("_"): figure for name, figure in finding.figures.items()}


def posted_evidence(kind: str | None, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence as it is posted: with the kind, and without what the service would refuse."""
    named = {"kind": None if kind is None else clip(kind)}
    whole: dict[str, Any] = {**named, **_finite(evidence)}
    length = len(encode(whole))
    if length > EVIDENCE_BYTES_MAX:
        return {**named, "reason": f"the evidence has {length} bytes, and {EVIDENCE_BYTES_MAX} are allowed"}
    return whole


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value


def clip(text: str) -> str:
    """A text, cut if it is long."""
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + "…"


def _clipped(value: object) -> object:
    return clip(value) if isinstance(value, str) else value
