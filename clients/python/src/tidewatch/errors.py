"""What can go wrong, as exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class TidewatchError(Exception):
    """The base of every exception of this package that is about the service."""


class NoAnswerError(TidewatchError):
    """The service did not answer: no connection, a connection that broke, or a timeout.

    `sent` is false when the request cannot have reached the service. Otherwise it is unknown whether it took effect.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnexpectedAnswerError(TidewatchError):
    """An answer that is not one of this API: check that the address is that of the service."""


@dataclass(frozen=True)
class Detail:
    """A fault of a body: where it is, and what is wrong with it."""

    path: tuple[str, ...]
    message: str


class ApiError(TidewatchError):
    """An answer with a status of 400 or above.

    Attributes:
        status: the HTTP status.
        error: the type of the error, such as `Validation Error`.
        message: what was wrong, for people.
        details: the faults of the body, if the body was at fault.
        retry_after: seconds to wait before the request is sent again, if the service says so.
        request_id: finds the request in the log of the service.
        body: the whole answer, for members beyond these; empty if it was not JSON.
    """

    def __init__(
        self,
        status: int,
        body: dict[str, Any],
        *,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.error = str(body.get("error", f"status {status}"))
        self.message = str(body.get("message", "the answer has no message"))
        self.details = tuple(
            Detail(tuple(map(str, detail.get("path", ()))), str(detail.get("message", "")))
            for detail in body.get("details") or ()
        )
        self.retry_after = retry_after
        self.request_id = request_id
        super().__init__(f"{status} {self.error}: {self.message}{self._detail_text()}")

    def _detail_text(self) -> str:
        texts = [f"{'.'.join(detail.path)}: {detail.message}" for detail in self.details]
        return f" ({'; '.join(texts)})" if texts else ""


class ValidationError(ApiError):
    """400: the request is not valid; `details` says where."""


class UnauthorizedError(ApiError):
    """401: the key or token is missing, wrong, expired or deleted."""


class ForbiddenError(ApiError):
    """403: the key or role does not allow this, or a limit of the plan is reached."""


class NotFoundError(ApiError):
    """404: nothing has this id, or nothing that the caller may see."""


class ConflictError(ApiError):
    """409: a name that is taken, a second verdict, an idempotency key used for another body."""


class PreconditionFailedError(ApiError):
    """412: the board has changed since the version that the request names."""


class PayloadTooLargeError(ApiError):
    """413: the body is larger than the service takes."""


class TooManyRequestsError(ApiError):
    """429: the calls of the month, or the attempts to log in, are used up; `retry_after` says how long."""


class ServerError(ApiError):
    """500 and above: whether the request took effect is unknown."""


class ServiceUnavailableError(ServerError):
    """503: the service is saturated, starting or stopping; `retry_after` says when to ask again."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: ValidationError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: PayloadTooLargeError,
    429: TooManyRequestsError,
    503: ServiceUnavailableError,
}
_SERVER_ERRORS_FROM = 500


def error_of(status: int, body: dict[str, Any], *, retry_after: float | None, request_id: str | None) -> ApiError:
    """The exception for an answer with this status."""
    default = ServerError if status >= _SERVER_ERRORS_FROM else ApiError
    return _BY_STATUS.get(status, default)(status, body, retry_after=retry_after, request_id=request_id)
