"""Routes described once and called in two ways.

A method of a resource that is marked `endpoint` returns a `Call`. On the resource of a `Client`, calling it sends the
call and returns the answer; on that of an `AsyncClient`, it returns a coroutine. `entries` makes an iterator over all
pages of a list, `streaming` one over what a generator of calls yields, `download` one over the bytes of an answer.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tidewatch._call import Call, Page

if TYPE_CHECKING:
    from tidewatch._transport import AsyncTransport, Stream, SyncTransport

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")

# The service's largest page.
PAGE_ENTRIES = 1000


class Sync:
    """Marks resources whose methods wait for the answer."""


class Async:
    """Marks resources whose methods return coroutines."""


class Resource(Generic[M]):
    """A group of routes. `M` is `Sync` or `Async`."""

    def __init__(self, transport: SyncTransport | AsyncTransport) -> None:
        self._transport = transport


class endpoint(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes a request, as a method that sends it."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe
        functools.update_wrapper(self, describe)  # type: ignore[arg-type]

    @overload
    def __get__(self, resource: Resource[Sync], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, resource: None, owner: object = None) -> endpoint[P, T]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def send(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource._transport.send(self.describe(resource, *args, **kwargs))

        return send


class streaming(Generic[P, T]):  # noqa: N801 - a decorator
    """A generator of calls and lists of items, as a method that iterates over the items."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._steps = steps
        functools.update_wrapper(self, steps)  # type: ignore[arg-type]

    @overload
    def __get__(self, resource: Resource[Sync], owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, resource: None, owner: object = None) -> streaming[P, T]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        if resource is None:
            return self

        @functools.wraps(self._steps)
        def iterate(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource._transport.stream(self._steps(resource, *args, **kwargs))

        return iterate


class download(Generic[P]):  # noqa: N801 - a decorator
    """A method that describes a request, as a method that iterates over the bytes of the answer."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[Any]]) -> None:
        self.describe = describe
        functools.update_wrapper(self, describe)  # type: ignore[arg-type]

    @overload
    def __get__(self, resource: Resource[Sync], owner: object = None) -> Callable[P, Generator[bytes]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: object = None) -> Callable[P, AsyncGenerator[bytes]]: ...
    @overload
    def __get__(self, resource: None, owner: object = None) -> download[P]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object = None) -> Any:
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def iterate(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource._transport.download(self.describe(resource, *args, **kwargs))

        return iterate


def entries(listing: endpoint[P, Page[T]]) -> streaming[P, T]:
    """An iterator over the entries of all pages of a list, from `offset` on; `limit` is the size of a page."""

    def steps(resource: Any, /, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        offset = int(str(kwargs.pop("offset", 0)))
        kwargs.setdefault("limit", PAGE_ENTRIES)
        while True:
            page = yield listing.describe(resource, *args, **{**kwargs, "offset": offset})  # type: ignore[arg-type]
            yield page.items
            offset += len(page)
            if not page.has_more or not page.items:
                return

    steps.__doc__ = "Iterates over the entries of all pages of the list, in requests of `limit` entries."
    return streaming(steps)
