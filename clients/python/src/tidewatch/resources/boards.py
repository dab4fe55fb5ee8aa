"""Boards, the links that share them, and what such a link shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewatch._call import (
    UNSET,
    Answer,
    Call,
    Page,
    T,
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
from tidewatch.models.common import Named, Time

if TYPE_CHECKING:
    from tidewatch.models.boards import (
        Board,
        BoardContent,
        BoardRange,
        CreatedShare,
        Panel,
        PanelAnswer,
        Share,
        Variable,
    )


class Boards(Resource[M]):
    """Boards of the organization; admin key or token.

    A change or deletion with `version` raises a `PreconditionFailedError` if the board has another one by now.
    """

    @endpoint
    def list(self, *, limit: int = 100, offset: int = 0) -> Call[Page[Board]]:
        """`GET /api/boards`: a page of boards, oldest first."""
        return get(path("boards"), page("boards"), limit=limit, offset=offset)

    iterate = entries(list)

    @endpoint
    def create(self, board: BoardContent) -> Call[Board]:
        """`POST /api/boards`."""
        return post(path("boards"), board, member("board"))

    @endpoint
    def get(self, board_id: str) -> Call[Board]:
        """`GET /api/boards/:id`."""
        return get(path("boards", board_id), member("board"))

    @endpoint
    def update(
        self,
        board_id: str,
        *,
        name: str | Unset = UNSET,
        range: BoardRange | Unset = UNSET,  # noqa: A002 - the API's name
        timezone: str | Unset | None = UNSET,
        refresh_seconds: int | Unset | None = UNSET,
        variables: Sequence[Variable] | Unset = UNSET,
        panels: Sequence[Panel] | Unset = UNSET,
        version: int | None = None,
    ) -> Call[Board]:
        """`PATCH /api/boards/:id`: replaces each named member as a whole."""
        body = changed(
            name=name,
            range=range,
            timezone=timezone,
            refresh_seconds=refresh_seconds,
            variables=variables,
            panels=panels,
        )
        return _of_version(patch(path("boards", board_id), body, member("board")), version)

    @endpoint
    def delete(self, board_id: str, *, version: int | None = None) -> Call[Named]:
        """`DELETE /api/boards/:id`."""
        return _of_version(delete(path("boards", board_id), member("deletedBoard")), version)

    @endpoint
    def copy(self, board_id: str, *, name: str | None = None) -> Call[Board]:
        """`POST /api/boards/:id/copy`."""
        return post(path("boards", board_id, "copy"), given(name=name), member("board"))

    @endpoint
    def export(self, board_id: str) -> Call[BoardContent]:
        """`GET /api/boards/:id/export`: what `import_` takes."""
        return get(path("boards", board_id, "export"), whole)

    @endpoint
    def import_(self, board: BoardContent) -> Call[Board]:
        """`POST /api/boards/import`."""
        return post(path("boards", "import"), board, member("board"))

    @endpoint
    def share(self, board_id: str, expires_at: Time) -> Call[CreatedShare]:
        """`POST /api/boards/:id/share`: a link that shows the board; `token` and `url` are shown this once."""
        return post(path("boards", board_id, "share"), given(expires_at=expires_at), member("share"))

    @endpoint
    def shares(self, board_id: str, *, limit: int = 100, offset: int = 0) -> Call[Page[Share]]:
        """`GET /api/boards/:id/shares`: a page of its links, oldest first."""
        return get(path("boards", board_id, "shares"), page("shares"), limit=limit, offset=offset)

    iterate_shares = entries(shares)

    @endpoint
    def revoke_share(self, board_id: str, share_id: str) -> Call[str]:
        """`DELETE /api/boards/:id/shares/:shareId`: ends a link; its id."""

        def read(answer: Answer) -> str:
            return str(answer.member("deletedShare")["_id"])

        return delete(path("boards", board_id, "shares", share_id), read)


def _of_version(call: Call[T], version: int | None) -> Call[T]:
    """The second of two equal changes with a version would be refused, so they are not repeatable."""
    if version is None:
        return call
    return Call(call.method, call.path, call.read, content=call.content).with_header("If-Match", f'"{version}"')


class SharedBoards(Resource[M]):
    """What the token of a link opens; needs no key."""

    @endpoint
    def get(self, token: str) -> Call[Board]:
        """`GET /api/shared/:token`: the board as it is now."""
        return get(path("shared", token), member("board"))

    @endpoint
    def panel(
        self, token: str, index: int, *, start_time: Time | None = None, end_time: Time | None = None
    ) -> Call[PanelAnswer]:
        """`POST /api/shared/:token/panels/:index`: what the panel's query, or its bucket's rules, answer."""
        body = given(start_time=start_time, end_time=end_time)
        return post(path("shared", token, "panels", index), body, whole, repeatable=True)
