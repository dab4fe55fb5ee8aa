"""The state of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

NodeState = Literal["member", "leaving"]


class Health(TypedDict):
    """Health of the server."""

    status: Literal["ok", "ready"]
    setApart: NotRequired[list[str]]
    damagedBlocks: NotRequired[int]


class Node(TypedDict):
    """A node: a running process of the server."""

    id: str | None
    address: str | None
    shards: int
    leaseSeconds: int | None
    state: NodeState
    isThis: bool


class Shard(TypedDict):
    """A shard: a part of the organizations, with a log of its own."""

    number: int
    epoch: int | None
    owner: str | None
    lastSequence: int
    coveredSequence: int
    tailBytes: int
    root: str | None


class Cluster(TypedDict):
    """The nodes and shards of the server."""

    clustered: bool
    readAt: str
    commitsReplicated: bool | None
    weakness: str | None
    unownedShards: int
    nodes: list[Node]
    shards: list[Shard]
