"""Compares every answer that a test gets with its type, and notes which methods were used."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import httpx
import pytest
import typing_extensions

from tidewatch import Page
from tidewatch._resource import download, endpoint, streaming
from tidewatch.models import accounts, boards, buckets, common, data, operation, rules, webhooks

MODELS = (accounts, boards, buckets, common, data, operation, rules, webhooks)
NAMES = {"NotRequired": typing_extensions.NotRequired, **{k: v for model in MODELS for k, v in vars(model).items()}}
USED: set[int] = set()


def faults(value: object, expected: Any, where: str = "answer") -> list[str]:
    """How a value differs from a type."""
    origin, arguments = get_origin(expected), get_args(expected)
    if expected in {Any, object}:
        return []
    if origin in {typing_extensions.NotRequired, typing.Union, UnionType}:
        options = [faults(value, one, where) for one in arguments]
        return [] if [] in options else min(options, key=len)
    if origin is Literal:
        return [] if value in arguments else [f"{where}: {value!r} is none of {arguments}"]
    if origin is Page:
        assert isinstance(value, Page)
        return faults(value.items, list[arguments], where)  # type: ignore[valid-type]
    if origin is tuple:
        if not isinstance(value, tuple):
            return [f"{where}: {value!r} is no tuple"]
        return [f for one, kind in zip(value, arguments, strict=True) for f in faults(one, kind, where)]
    if origin in {list, Sequence}:
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return [f for i, one in enumerate(value) for f in faults(one, arguments[0], f"{where}.{i}")]
    if origin in {dict, Mapping}:
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no object"]
        return [f for name, one in value.items() for f in faults(one, arguments[1], f"{where}.{name}")]
    if typing_extensions.is_typeddict(expected):
        return members(value, expected, where)
    kinds = {float: (int, float), str: str, int: int, bool: bool, NoneType: NoneType, datetime: datetime}[expected]
    fits = isinstance(value, kinds) and (expected is bool or not isinstance(value, bool))  # type: ignore[arg-type]
    return [] if fits else [f"{where}: {value!r} is no {expected}"]


@cache
def hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, localns=NAMES, include_extras=True)


def members(value: object, expected: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    known = hints(expected)
    found = [f"{where}: `{name}` is missing" for name, kind in known.items() if must(kind) and name not in value]
    # Rows of groups have their values once more beside `values`.
    if expected is not data.Row:
        found += [f"{where}: `{name}` is not in the type {expected.__name__}" for name in value if name not in known]
    return found + [f for name in value if name in known for f in faults(value[name], known[name], f"{where}.{name}")]


def must(kind: Any) -> bool:
    return get_origin(kind) is not typing_extensions.NotRequired


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = endpoint.__get__

    def get(self: Any, resource: Any, owner: object = None) -> Any:
        send = plain(self, resource, owner)
        if resource is None:
            return send
        USED.add(id(self))
        expected = get_args(hints(self.describe)["return"])[0]

        def checked(*args: Any, **kwargs: Any) -> Any:
            answer = send(*args, **kwargs)
            made_up = isinstance(resource._transport._http._transport, httpx.MockTransport)
            if hasattr(answer, "__await__") or made_up:
                return answer
            found = faults(answer, expected)
            assert not found, f"{self.__name__}: {found}"
            return answer

        return checked

    plain_stream = streaming.__get__

    def stream(self: Any, resource: Any, owner: object = None) -> Any:
        USED.add(id(self))
        return plain_stream(self, resource, owner)

    plain_download = download.__get__

    def chunks(self: Any, resource: Any, owner: object = None) -> Any:
        USED.add(id(self))
        return plain_download(self, resource, owner)

    monkeypatch.setattr(endpoint, "__get__", get)
    monkeypatch.setattr(download, "__get__", chunks)
    monkeypatch.setattr(streaming, "__get__", stream)
