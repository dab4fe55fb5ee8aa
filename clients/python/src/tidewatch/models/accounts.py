"""Users, organizations, members, keys and the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Role = Literal["viewer", "editor", "owner"]
Plan = Literal["Free", "Pro", "Enterprise"]
KeyType = Literal["admin", "write", "read", "integration"]


class User(TypedDict):
    """A user account."""

    _id: str
    email: str
    name: str
    role: Role


class PlanLimits(TypedDict):
    """A plan and its limits; a limit of null is unlimited."""

    name: Plan
    maxBuckets: int | None
    maxRetentionDays: int | None
    maxApiCalls: int | None


class Organization(TypedDict):
    """An organization."""

    _id: str
    name: str
    plan: PlanLimits
    createdAt: str
    updatedAt: str


class Account(TypedDict):
    """A user and the organization that the user belongs to."""

    user: User
    organization: Organization


class SignedIn(TypedDict):
    """A login session."""

    user: User
    organization: Organization
    message: str
    token: str
    expiresAt: str


class SignUpState(TypedDict):
    """Whether sign-up is available."""

    open: bool
    first: bool


class Session(TypedDict):
    """A login of the user that has not ended."""

    _id: str
    createdAt: str
    lastUsedAt: str
    address: str | None
    userAgent: str | None
    current: bool


class Member(TypedDict):
    """A member of the organization."""

    _id: str
    email: str
    name: str
    role: Role
    createdAt: str
    createdBy: str | None


class Invitation(TypedDict):
    """An open invitation."""

    _id: str
    email: str
    role: Role
    createdAt: str
    createdBy: str
    expiresAt: str


class CreatedInvitation(TypedDict):
    """A new invitation."""

    _id: str
    email: str
    role: Role
    createdAt: str
    createdBy: str
    expiresAt: str
    token: str
    url: str


class PasswordReset(TypedDict):
    """A link with which a member sets a new password once."""

    token: str
    url: str
    expiresAt: str


class Key(TypedDict):
    """A key in a list."""

    _id: str
    name: str
    type: KeyType
    bucketId: NotRequired[str]
    keyPrefix: str
    createdAt: str
    expiresAt: str | None
    lastUsedAt: str | None
    callsThisMonth: int


class CreatedKey(TypedDict):
    """A new key."""

    _id: str
    id: str
    name: str
    type: KeyType
    bucketId: NotRequired[str]
    bucketName: NotRequired[str]
    key: str
    keyPreview: str
    permissions: list[str]
    createdAt: str
    expiresAt: str | None


class DeletedKey(TypedDict):
    """A deleted key."""

    _id: str
    name: str
    type: KeyType


class AuditActor(TypedDict):
    """Who made a change."""

    kind: str
    _id: str | None
    name: str


class AuditTarget(TypedDict):
    """What was changed."""

    kind: str
    _id: str
    name: str


class AuditEntry(TypedDict):
    """A change and who made it."""

    _id: str
    at: str
    action: str
    actor: AuditActor
    target: AuditTarget
    changes: dict[str, object]
    address: str | None


class Changes(TypedDict):
    """A revision token for each type of object, which differs from the one before when one of them has changed."""

    organization: str
    buckets: str
    sources: str
    rules: str
    webhooks: str
    keys: str
    silences: str
    annotations: str
    boards: str
    members: str
