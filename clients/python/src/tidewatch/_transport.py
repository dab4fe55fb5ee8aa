"""Sends calls over HTTP, once for callers that wait and once for callers that await. Decides nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tidewatch._call import Answer, Call
from tidewatch._files import whole_file
from tidewatch._retry import Retry
from tidewatch.errors import ApiError, NoAnswerError, UnexpectedAnswerError, error_of

T = TypeVar("T")
R = TypeVar("R")

# The service ends a request after 30 seconds.
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_FAILED_FROM = 400
_ANSWERED = (200, 201, 202, 204, 207, 304)
# No byte of the request was sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

# A procedure yields calls and is sent their answers; it ends with its result.
Procedure = Generator[Call[Any], Any, T]
# A stream yields calls or lists of items. It is sent the answers to the calls.
Stream = Generator["Call[Any] | list[T]", Any, None]


class Credentials:
    """The header that identifies the caller, and where the service is."""

    def __init__(self, url: str, key: str | None, token: str | None) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise ValueError(f"{url!r} is no address of a service; write it as http://host:port")
        if parsed.userinfo or parsed.query:
            raise ValueError("the address has a password or a query; pass the key as `key`")
        if key is not None and token is not None:
            raise ValueError("pass either a key or a token, the service refuses both at once")
        secret = key if key is not None else token
        if secret is not None and not (secret and secret.isascii() and secret.isprintable()):
            raise ValueError("the key or token is empty, or has characters that none has")
        self.url = url
        self._has_token = token is not None
        self.headers: dict[str, str] = {}
        if key is not None:
            self.headers["X-API-Key"] = key
        elif token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def renew(self, answer: httpx.Response) -> None:
        """Takes the new token that the service gives in the second half of a token's life."""
        renewed = answer.headers.get("X-Session-Token")
        if renewed is not None and self._has_token:
            self.headers["Authorization"] = f"Bearer {renewed}"


def _request(http: httpx.Client | httpx.AsyncClient, credentials: Credentials, call: Call[Any]) -> httpx.Request:
    headers = {**credentials.headers, **call.headers}
    if call.content is not None:
        headers.setdefault("Content-Type", "application/json")
    return http.build_request(
        call.method, call.path, params=dict(call.params) or None, content=call.content, headers=headers
    )


def _check(credentials: Credentials, response: httpx.Response) -> None:
    """Raises what an answer says that is none; the body of an error has to be read before."""
    credentials.renew(response)
    if response.status_code >= _FAILED_FROM:
        raise error_of(
            response.status_code,
            _error_body(response),
            retry_after=_seconds(response.headers.get("Retry-After")),
            request_id=response.headers.get("X-Request-Id"),
        )
    if response.status_code not in _ANSWERED:
        raise UnexpectedAnswerError(
            f"the answer has the status {response.status_code}, which the service never sends; is the address right?"
        )


def _answer(credentials: Credentials, response: httpx.Response) -> Answer:
    _check(credentials, response)
    return Answer(response.status_code, response.headers, response.content)


def _error_body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(header: str | None) -> float | None:
    """The service sends whole seconds; a proxy may send a date, which is taken for no answer."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def _no_answer(failure: httpx.HTTPError) -> NoAnswerError:
    text = str(failure) or type(failure).__name__
    return NoAnswerError(f"the service did not answer: {text}", sent=not isinstance(failure, _NOT_SENT))


def _broken(failure: httpx.HTTPError) -> NoAnswerError:
    text = str(failure) or type(failure).__name__
    return NoAnswerError(f"the answer broke off, rows are missing: {text}", sent=True)


class SyncTransport:
    """Sends calls and waits for their answers. Safe to use from several threads."""

    def __init__(
        self, credentials: Credentials, retry: Retry, timeout: httpx.Timeout, transport: httpx.BaseTransport | None
    ) -> None:
        self.retry = retry
        self._credentials = credentials
        self._http = httpx.Client(base_url=credentials.url, timeout=timeout, transport=transport)
        self._closed = threading.Event()

    def once(self, call: Call[T]) -> T:
        """Sends a call once."""
        try:
            response = self._http.send(_request(self._http, self._credentials, call))
        except httpx.HTTPError as failure:
            raise _no_answer(failure) from failure
        return call.read(_answer(self._credentials, response))

    def send(self, call: Call[T]) -> T:
        """Sends a call, again where that is safe."""
        return self._repeat(call, self.once)

    def _repeat(self, call: Call[T], send: Callable[[Call[T]], R]) -> R:
        for attempt in itertools.count(1):
            try:
                return send(call)
            except (ApiError, NoAnswerError) as failure:
                wait = self.retry.wait_seconds(call, attempt, failure)
                if wait is None or self._closed.wait(wait):
                    raise
        raise AssertionError("counting ends never")

    def download(self, call: Call[Any]) -> Generator[bytes]:
        """The body of an answer as it arrives. The call is sent again only before the first byte."""
        response = self._repeat(call, self._open)
        try:
            yield from response.iter_bytes()
        except httpx.HTTPError as failure:
            raise _broken(failure) from failure
        finally:
            response.close()

    def _open(self, call: Call[Any]) -> httpx.Response:
        try:
            response = self._http.send(_request(self._http, self._credentials, call), stream=True)
            if response.status_code >= _FAILED_FROM:
                response.read()
        except httpx.HTTPError as failure:
            raise _no_answer(failure) from failure
        try:
            _check(self._credentials, response)
        except BaseException:
            response.close()
            raise
        return response

    def save(self, call: Call[Any], file: Path) -> int:
        """Writes the body of an answer to a file; the number of bytes."""
        with whole_file(file) as out, contextlib.closing(self.download(call)) as chunks:
            return sum(out.write(chunk) for chunk in chunks)

    def run(self, procedure: Procedure[T]) -> T:
        """Runs a procedure to its result."""
        answer: Any = None
        while True:
            try:
                call = procedure.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = self.send(call)

    def stream(self, steps: Stream[T]) -> Iterator[T]:
        """Runs a stream, item by item."""
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(step, Call):
                answer = self.send(step)
            else:
                yield from step

    def close(self) -> None:
        """Closes the connections; ends waits between attempts."""
        self._closed.set()
        self._http.close()


class AsyncTransport:
    """Sends calls and awaits their answers, in one event loop."""

    def __init__(
        self, credentials: Credentials, retry: Retry, timeout: httpx.Timeout, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self.retry = retry
        self._credentials = credentials
        self._http = httpx.AsyncClient(base_url=credentials.url, timeout=timeout, transport=transport)

    async def once(self, call: Call[T]) -> T:
        """Sends a call once."""
        try:
            response = await self._http.send(_request(self._http, self._credentials, call))
        except httpx.HTTPError as failure:
            raise _no_answer(failure) from failure
        return call.read(_answer(self._credentials, response))

    async def send(self, call: Call[T]) -> T:
        """Sends a call, again where that is safe."""
        return await self._repeat(call, self.once)

    async def _repeat(self, call: Call[T], send: Callable[[Call[T]], Awaitable[R]]) -> R:
        for attempt in itertools.count(1):
            try:
                return await send(call)
            except (ApiError, NoAnswerError) as failure:
                wait = self.retry.wait_seconds(call, attempt, failure)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError("counting ends never")

    async def download(self, call: Call[Any]) -> AsyncGenerator[bytes]:
        """The body of an answer as it arrives. The call is sent again only before the first byte."""
        response = await self._repeat(call, self._open)
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as failure:
            raise _broken(failure) from failure
        finally:
            await response.aclose()

    async def _open(self, call: Call[Any]) -> httpx.Response:
        try:
            response = await self._http.send(_request(self._http, self._credentials, call), stream=True)
            if response.status_code >= _FAILED_FROM:
                await response.aread()
        except httpx.HTTPError as failure:
            raise _no_answer(failure) from failure
        try:
            _check(self._credentials, response)
        except BaseException:
            await response.aclose()
            raise
        return response

    async def save(self, call: Call[Any], file: Path) -> int:
        """Writes the body of an answer to a file; the number of bytes."""
        size = 0
        with whole_file(file) as out:
            # A disk that is full ends the export at once.
            async with contextlib.aclosing(self.download(call)) as chunks:
                async for chunk in chunks:
                    size += out.write(chunk)
        return size

    async def run(self, procedure: Procedure[T]) -> T:
        """Runs a procedure to its result."""
        answer: Any = None
        while True:
            try:
                call = procedure.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = await self.send(call)

    async def stream(self, steps: Stream[T]) -> AsyncIterator[T]:
        """Runs a stream, item by item."""
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = None
            if isinstance(step, Call):
                answer = await self.send(step)
            else:
                for item in step:
                    yield item

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()
