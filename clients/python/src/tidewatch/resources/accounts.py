"""People, their sessions and organization, and the operator's view of organizations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewatch._call import (
    UNSET,
    Answer,
    Call,
    Page,
    Unset,
    changed,
    delete,
    get,
    given,
    member,
    page,
    patch,
    path,
    post,
    whole,
)
from tidewatch._resource import M, Resource, endpoint, entries
from tidewatch.resources.buckets import OrganizationKeys

if TYPE_CHECKING:
    from tidewatch._transport import AsyncTransport, SyncTransport
    from tidewatch.models.accounts import (
        Account,
        AuditEntry,
        Changes,
        CreatedInvitation,
        Invitation,
        Member,
        Organization,
        PasswordReset,
        Plan,
        Role,
        Session,
        SignedIn,
        SignUpState,
    )
    from tidewatch.models.operation import Cluster

_NOT_MODIFIED = 304


class Auth(Resource[M]):
    """Sign-up, log-in and the own account. What needs a log-in takes a token, not a key."""

    def __init__(self, transport: SyncTransport | AsyncTransport) -> None:
        super().__init__(transport)
        self.sessions: Sessions[M] = Sessions(transport)

    @endpoint
    def status(self) -> Call[SignUpState]:
        """`GET /api/auth/status`: whether sign-up is open."""
        return get(path("auth", "status"), whole)

    @endpoint
    def signup(self, email: str, password: str, name: str, *, organization_name: str | None = None) -> Call[SignedIn]:
        """`POST /api/auth/signup`: a new account with an organization of its own."""
        body = given(email=email, password=password, name=name, organization_name=organization_name)
        return post(path("auth", "signup"), body, whole)

    @endpoint
    def login(self, email: str, password: str) -> Call[SignedIn]:
        """`POST /api/auth/login`: the answer's `token` opens a client: `Client(url, token=…)`."""
        return post(path("auth", "login"), given(email=email, password=password), whole)

    @endpoint
    def me(self) -> Call[Account]:
        """`GET /api/auth/me`."""
        return get(path("auth", "me"), whole)

    @endpoint
    def change_password(self, current_password: str, new_password: str) -> Call[SignedIn]:
        """`POST /api/auth/password`: ends all tokens of before; the answer has a new one."""
        body = given(current_password=current_password, new_password=new_password)
        return post(path("auth", "password"), body, whole)

    @endpoint
    def renew(self) -> Call[SignedIn]:
        """`POST /api/auth/renew`: a new token of the same session."""
        return post(path("auth", "renew"), None, whole)

    @endpoint
    def logout(self) -> Call[str]:
        """`POST /api/auth/logout`: ends the session; the service's message."""
        return post(path("auth", "logout"), None, member("message"))

    @endpoint
    def accept_invitation(self, token: str, name: str, password: str) -> Call[SignedIn]:
        """`POST /api/auth/invitations/accept`: a new account in the organization that invited."""
        body = given(token=token, name=name, password=password)
        return post(path("auth", "invitations", "accept"), body, whole)

    @endpoint
    def reset_password(self, token: str, new_password: str) -> Call[SignedIn]:
        """`POST /api/auth/reset`: sets a password with an owner's link, and ends all sessions."""
        return post(path("auth", "reset"), given(token=token, new_password=new_password), whole)


class Sessions(Resource[M]):
    """The own sessions; token only."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Session]]:
        """`GET /api/auth/sessions`: a page of sessions, oldest first."""
        return get(path("auth", "sessions"), page("sessions"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def get(self, session_id: str) -> Call[Session]:
        """`GET /api/auth/sessions/:id`."""
        return get(path("auth", "sessions", session_id), member("session"))

    @endpoint
    def end(self, session_id: str) -> Call[str]:
        """`DELETE /api/auth/sessions/:id`; the id of the session that ended."""
        return delete(path("auth", "sessions", session_id), _id_of("deletedSession"))


class OrganizationRoutes(Resource[M]):
    """The organization, its keys, members and invitations, and the audit."""

    def __init__(self, transport: SyncTransport | AsyncTransport) -> None:
        super().__init__(transport)
        self.keys: OrganizationKeys[M] = OrganizationKeys(transport)
        self.members: Members[M] = Members(transport)
        self.invitations: Invitations[M] = Invitations(transport)

    @endpoint
    def get(self) -> Call[Organization]:
        """`GET /api/organization`."""
        return get(path("organization"), member("organization"))

    @endpoint
    def update(self, *, name: str | Unset = UNSET) -> Call[Organization]:
        """`PATCH /api/organization`."""
        return patch(path("organization"), changed(name=name), member("organization"))

    @endpoint
    def audit(self, *, limit: int = 100, offset: int = 0) -> Call[Page[AuditEntry]]:
        """`GET /api/organization/audit`: a page of changes, newest first, of the last 365 days."""
        return get(path("organization", "audit"), page("audit"), limit=limit, offset=offset)

    iterate_audit = entries(audit)

    @endpoint
    def changes(self, *, etag: str | None = None) -> Call[tuple[Changes, str] | None]:
        """`GET /api/changes`: what has changed, and an `etag`; `None` if nothing has since that `etag`. Token only."""

        def read(answer: Answer) -> tuple[Changes, str] | None:
            if answer.status == _NOT_MODIFIED:
                return None
            return answer.member("changes"), answer.headers["ETag"]

        return get(path("changes"), read).with_header("If-None-Match", etag)


class Members(Resource[M]):
    """Members of the organization; token only. Owners change them."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Member]]:
        """`GET /api/organization/members`: a page of members, oldest first."""
        return get(path("organization", "members"), page("members"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def update(self, user_id: str, role: Role) -> Call[Member]:
        """`PATCH /api/organization/members/:userId`."""
        return patch(path("organization", "members", user_id), given(role=role), member("member"))

    @endpoint
    def remove(self, user_id: str) -> Call[str]:
        """`DELETE /api/organization/members/:userId`; the id of the former member."""
        return delete(path("organization", "members", user_id), _id_of("deletedMember"))

    @endpoint
    def reset_password(self, user_id: str) -> Call[PasswordReset]:
        """`POST /api/organization/members/:userId/reset`: a link with which the member sets a new password."""
        return post(path("organization", "members", user_id, "reset"), None, member("reset"))


class Invitations(Resource[M]):
    """Invitations to the organization; owners with a token."""

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Invitation]]:
        """`GET /api/organization/invitations`: a page of open invitations, oldest first."""
        return get(path("organization", "invitations"), page("invitations"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(self, email: str, role: Role) -> Call[CreatedInvitation]:
        """`POST /api/organization/invitations`: `token` and `url` are shown this once."""
        return post(path("organization", "invitations"), given(email=email, role=role), member("invitation"))

    @endpoint
    def get(self, invitation_id: str) -> Call[Invitation]:
        """`GET /api/organization/invitations/:id`."""
        return get(path("organization", "invitations", invitation_id), member("invitation"))

    @endpoint
    def withdraw(self, invitation_id: str) -> Call[str]:
        """`DELETE /api/organization/invitations/:id`; the id of the former invitation."""
        return delete(path("organization", "invitations", invitation_id), _id_of("deletedInvitation"))


class Operator(Resource[M]):
    """What the operator of the server may do, with the operator's token of the settings as `token`."""

    @endpoint
    def organizations(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Organization]]:
        """`GET /api/operator/organizations`."""
        return get(path("operator", "organizations"), page("organizations"), limit=limit, offset=offset)

    iterate_organizations = entries(organizations)

    @endpoint
    def change_plan(self, organization_id: str, plan: Plan) -> Call[Organization]:
        """`PATCH /api/operator/organizations/:id`."""
        return patch(path("operator", "organizations", organization_id), given(plan=plan), member("organization"))

    @endpoint
    def cluster(self) -> Call[Cluster]:
        """`GET /api/operator/cluster`: the nodes and shards of the server."""
        return get(path("operator", "cluster"), member("cluster"))


def _id_of(name: str) -> Reader:
    return lambda answer: str(answer.member(name)["_id"])


if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[Answer], str]
