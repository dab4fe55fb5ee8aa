"""Client of tidewatch: the whole API, a batching writer, query frames; `tidewatch.evaluator` is the evaluator kit."""

from tidewatch._call import UNSET, Page, Unset
from tidewatch._frames import RowLimitError
from tidewatch._retry import Retry
from tidewatch.client import AsyncClient, Client
from tidewatch.errors import (
    ApiError,
    ConflictError,
    Detail,
    ForbiddenError,
    NoAnswerError,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    ServerError,
    ServiceUnavailableError,
    TidewatchError,
    TooManyRequestsError,
    UnauthorizedError,
    UnexpectedAnswerError,
    ValidationError,
)
from tidewatch.writer import (
    AsyncWriter,
    FailedPoint,
    UnsentError,
    Writer,
    WriterClosedError,
    WriterFullError,
    WriterOptions,
    WriterStats,
)

__all__ = [
    "UNSET",
    "ApiError",
    "AsyncClient",
    "AsyncWriter",
    "Client",
    "ConflictError",
    "Detail",
    "FailedPoint",
    "ForbiddenError",
    "NoAnswerError",
    "NotFoundError",
    "Page",
    "PayloadTooLargeError",
    "PreconditionFailedError",
    "Retry",
    "RowLimitError",
    "ServerError",
    "ServiceUnavailableError",
    "TidewatchError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnexpectedAnswerError",
    "UnsentError",
    "Unset",
    "ValidationError",
    "Writer",
    "WriterClosedError",
    "WriterFullError",
    "WriterOptions",
    "WriterStats",
]
