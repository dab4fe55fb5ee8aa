"""The clients: every resource of the API, for callers that wait and for callers that await."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

import httpx

from tidewatch._call import Call, encode, whole
from tidewatch._resource import Async, M, Sync
from tidewatch._retry import Retry
from tidewatch._transport import TIMEOUT, AsyncTransport, Credentials, SyncTransport
from tidewatch.resources.accounts import Auth, Operator, OrganizationRoutes
from tidewatch.resources.boards import Boards, SharedBoards
from tidewatch.resources.buckets import Analytics, BucketKeys, Buckets, Sources
from tidewatch.resources.data import Data
from tidewatch.resources.operation import Operation
from tidewatch.resources.rules import Annotations, Evaluations, Rules, Silences
from tidewatch.resources.webhooks import Webhooks
from tidewatch.writer import AsyncWriter, Writer, WriterOptions

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

URL_VARIABLE = "TIDEWATCH_URL"
KEY_VARIABLE = "TIDEWATCH_KEY"


class Api(Generic[M]):
    """The resources, which `Client` and `AsyncClient` share."""

    def __init__(self, transport: SyncTransport | AsyncTransport) -> None:
        self._any_transport = transport
        self.auth: Auth[M] = Auth(transport)
        self.organization: OrganizationRoutes[M] = OrganizationRoutes(transport)
        self.buckets: Buckets[M] = Buckets(transport)
        self.data: Data[M] = Data(transport)
        self.rules: Rules[M] = Rules(transport)
        self.evaluations: Evaluations[M] = Evaluations(transport)
        self.silences: Silences[M] = Silences(transport)
        self.annotations: Annotations[M] = Annotations(transport)
        self.webhooks: Webhooks[M] = Webhooks(transport)
        self.boards: Boards[M] = Boards(transport)
        self.shared: SharedBoards[M] = SharedBoards(transport)
        self.analytics: Analytics[M] = Analytics(transport)
        self.operation: Operation[M] = Operation(transport)
        self.operator: Operator[M] = Operator(transport)

    def sources(self, bucket_id: str) -> Sources[M]:
        """The data sources of a bucket."""
        return Sources(self._any_transport, bucket_id)

    def keys(self, bucket_id: str) -> BucketKeys[M]:
        """The keys of a bucket. Those of the organization are `organization.keys`."""
        return BucketKeys(self._any_transport, bucket_id)


class Client(Api[Sync]):
    """A client that waits for each answer. It may be used from several threads.

    Args:
        url: the address of the service; the environment's `TIDEWATCH_URL` if absent.
        key: an API key; the environment's `TIDEWATCH_KEY` if neither a key nor a token is given.
        token: the token of a log-in (`auth.login`) or of the operator, instead of a key.
        retry: how requests are sent again.
        timeout: bounds of one attempt, in seconds; 10 to connect and 60 for everything else.
        transport: a transport of httpx, for proxies, certificates or tests.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        token: str | None = None,
        retry: Retry | None = None,
        timeout: httpx.Timeout = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = SyncTransport(_credentials(url, key, token), retry or Retry(), timeout, transport)
        super().__init__(self._transport)

    def writer(self, bucket_id: str, **options: Unpack[WriterOptions]) -> Writer:
        """A writer that sends points of the bucket in batches. Use it in a `with` block, or close it."""
        return Writer(self._transport, bucket_id, **options)

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Sends a request that this package has no method for, once; the answer's JSON."""
        return self._transport.once(_request(method, path, body))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Api[Async]):
    """A client whose methods are awaited, in one event loop of asyncio. The arguments are those of `Client`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        token: str | None = None,
        retry: Retry | None = None,
        timeout: httpx.Timeout = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = AsyncTransport(_credentials(url, key, token), retry or Retry(), timeout, transport)
        super().__init__(self._transport)

    def writer(self, bucket_id: str, **options: Unpack[WriterOptions]) -> AsyncWriter:
        """A writer that sends points of the bucket in batches. Use it in an `async with` block."""
        return AsyncWriter(self._transport, bucket_id, **options)

    async def request(self, method: str, path: str, body: object = None) -> Any:
        """Sends a request that this package has no method for, once; the answer's JSON."""
        return await self._transport.once(_request(method, path, body))

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _credentials(url: str | None, key: str | None, token: str | None) -> Credentials:
    url = url if url is not None else os.environ.get(URL_VARIABLE)
    if url is None:
        raise ValueError(f"pass the address of the service, or set {URL_VARIABLE}")
    if key is None and token is None:
        key = os.environ.get(KEY_VARIABLE)
    return Credentials(url, key, token)


def _request(method: str, path: str, body: object) -> Call[Any]:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no path of the service; it begins with /")
    return Call(method, path, whole, content=None if body is None else encode(body))
