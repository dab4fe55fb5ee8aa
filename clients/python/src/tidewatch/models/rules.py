"""Alert rules, their evaluation, and silences, annotations and deliveries around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from tidewatch.models.common import Aggregation, Fill, Parameters, Time
from tidewatch.models.data import Query

if TYPE_CHECKING:
    from typing_extensions import NotRequired

EvaluationMode = Literal["external"]
Operator = Literal["gt", "gte", "lt", "lte", "eq", "neq", "between", "outside", "increases_by", "decreases_by"]
RuleStatus = Literal["active", "paused", "inactive"]
RuleState = Literal["armed", "firing", "clearing", "unevaluated"]
Outcome = Literal["met", "not_met", "inconclusive"]
HistoryKind = Literal["verdict", "trigger"]
EvaluationState = Literal["armed", "firing", "clearing"]
DeliveredEvent = Literal[
    "alert.triggered",
    "alert.resolved",
    "evaluation.overdue",
    "evaluation.resumed",
    "source.stale",
    "source.recovered",
    "data.received",
    "bucket.updated",
    "webhook.test",
]
DeliveryStatus = Literal["pending", "delivered", "failed"]


class Input(TypedDict):
    """A series that the evaluator reads."""

    key: str
    field: str
    dataSourceId: NotRequired[str | None]
    aggregation: NotRequired[Aggregation | None]
    groupBy: NotRequired[str | None]
    windowSeconds: NotRequired[float | None]
    fill: NotRequired[Fill | None]
    timezone: NotRequired[str | None]


class Evaluation(TypedDict):
    """An evaluation block. Unknown members are rejected."""

    mode: NotRequired[EvaluationMode | None]
    kind: NotRequired[str | None]
    intervalSeconds: float
    windowSeconds: float
    inputs: Sequence[Input]
    parameters: Parameters
    dwellSeconds: NotRequired[float | None]


class ParsedCondition(TypedDict):
    """A condition as parsed by the server."""

    field: str
    operator: Operator
    value: object
    percent: NotRequired[bool]


class Acknowledgement(TypedDict):
    """Somebody knows that a rule has fired."""

    at: str
    by: str
    note: str | None


class Rule(TypedDict):
    """An alert rule."""

    _id: str
    bucketId: str
    dataSourceId: str
    name: str
    condition: str
    naturalLanguageQuery: str
    parsedCondition: ParsedCondition | None
    webhookUrl: str | None
    status: RuleStatus
    cooldownMinutes: float
    evaluation: Evaluation | None
    state: RuleState
    lastOutcome: Outcome | None
    lastEvaluatedAt: str | None
    conditionClearedAt: str | None
    nextDueAt: str | None
    overdue: bool
    acknowledgement: Acknowledgement | None
    lastTriggeredAt: str | None
    createdAt: str
    updatedAt: str


class HistoryEntry(TypedDict):
    """A verdict, or the trigger that it caused."""

    _id: str
    at: str
    kind: HistoryKind
    outcome: Outcome
    previousState: EvaluationState
    state: EvaluationState
    evidence: dict[str, object] | None
    keyId: str
    silenceId: NotRequired[str | None]


class DueInput(TypedDict):
    """A series to read."""

    key: str
    field: str
    query: Query


class DueRule(TypedDict):
    """A rule that is due."""

    ruleId: str
    name: str
    kind: str | None
    parameters: Parameters
    inputs: list[DueInput]
    dueAt: str
    missedIntervals: int
    bucketId: str
    dataSourceId: str
    condition: str


class AcceptedVerdict(TypedDict):
    """State of a rule after a verdict."""

    ruleId: str
    outcome: Outcome | None
    state: EvaluationState
    lastEvaluatedAt: str | None
    conditionClearedAt: str | None
    nextDueAt: str | None
    previousState: EvaluationState
    triggered: bool


class TestedRule(TypedDict):
    """A rule that is tested."""

    name: str
    condition: str
    evaluation: Evaluation


class Cycle(TypedDict):
    """An instant at which the rule would have been due."""

    at: str
    inputs: list[DueInput]


class TestedVerdict(TypedDict):
    """What an evaluation at an instant found."""

    at: Time
    outcome: Outcome


class TimelineEntry(TypedDict):
    """A verdict, or the end of a dwell."""

    at: str
    outcome: Outcome | None
    previousState: EvaluationState
    state: EvaluationState
    triggered: bool
    accepted: bool


class Silence(TypedDict):
    """A silence. Without `bucketId` and `alertIds` it is about all rules of the organization."""

    _id: str
    bucketId: str | None
    alertIds: list[str] | None
    until: str
    reason: str
    createdAt: str
    createdBy: str


class Annotation(TypedDict):
    """A note about a bucket or one of its data sources."""

    _id: str
    bucketId: str
    dataSourceId: str | None
    at: str
    until: str | None
    text: str
    createdAt: str
    createdBy: str
    updatedAt: str


class Attempt(TypedDict):
    """One attempt to deliver."""

    at: str
    statusCode: NotRequired[int]
    error: NotRequired[str]
    durationMs: int


class Delivery(TypedDict):
    """A delivery of an event."""

    _id: str
    webhookId: str
    event: DeliveredEvent
    status: DeliveryStatus
    attempts: list[Attempt]
    nextAttemptAt: str | None
    createdAt: str


class RuleDraft(TypedDict):
    """A rule that is not stored: the body that would create it. Has either `condition` or `naturalLanguageQuery`."""

    bucketId: str
    dataSourceId: str
    name: str
    condition: NotRequired[str]
    naturalLanguageQuery: NotRequired[str]
    webhookUrl: NotRequired[str | None]
    cooldownMinutes: NotRequired[float]
    status: NotRequired[RuleStatus]
    evaluation: Evaluation
