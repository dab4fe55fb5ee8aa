"""Boards and the links that share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from tidewatch.models.common import Pagination, Time
from tidewatch.models.data import QueryAnswer
from tidewatch.models.rules import Outcome, RuleState, RuleStatus

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class TimeRange(TypedDict):
    """A range between two instants."""

    startTime: Time
    endTime: Time


# A length such as `24h`, which ends now, or a range between two instants.
BoardRange = str | TimeRange

Level = Literal["good", "warning", "critical"]
PanelKind = Literal["lines", "bars", "stat", "table", "states", "rules"]


class Threshold(TypedDict):
    """From this value on, up to the next threshold, values have this level."""

    value: float
    level: Level


class Panel(TypedDict):
    """A part of a board, with the place that it takes in a grid of 12 columns."""

    title: str
    kind: PanelKind
    query: Mapping[str, object]
    unit: NotRequired[str | None]
    decimals: NotRequired[int | None]
    thresholds: NotRequired[Sequence[Threshold] | None]
    x: int
    y: int
    w: int
    h: int


class Variable(TypedDict):
    """A text that the reader of a board chooses."""

    name: str
    default: NotRequired[str | None]
    values: NotRequired[Sequence[str] | None]


class BoardContent(TypedDict):
    """Body of a request that creates or imports a board."""

    name: str
    range: BoardRange
    timezone: NotRequired[str | None]
    refreshSeconds: NotRequired[int | None]
    variables: NotRequired[Sequence[Variable] | None]
    panels: Sequence[Panel]


class Board(TypedDict):
    """A board."""

    _id: str
    name: str
    range: BoardRange
    timezone: str | None
    refreshSeconds: int | None
    variables: list[Variable]
    panels: list[Panel]
    version: int
    createdAt: str
    updatedAt: str


class Share(TypedDict):
    """A link that shows a board until its end."""

    _id: str
    expiresAt: str
    createdAt: str


class CreatedShare(TypedDict):
    """A new link. Its token is shown this once."""

    _id: str
    token: str
    url: str
    expiresAt: str
    createdAt: str


class SharedRule(TypedDict):
    """An alert rule as a shared board shows it: where it stands, without what is done when it fires."""

    _id: str
    dataSourceId: str
    name: str
    condition: str
    status: RuleStatus
    state: RuleState
    lastOutcome: Outcome | None
    lastEvaluatedAt: str | None
    overdue: bool
    lastTriggeredAt: str | None


class SharedRules(TypedDict):
    """The answer to a panel of rules."""

    alertRules: list[SharedRule]
    pagination: Pagination


# What a panel of a shared board answers: that of its query, or the rules of a bucket.
PanelAnswer = QueryAnswer | SharedRules
