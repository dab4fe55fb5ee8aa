"""Reads the parameters of a rule, and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from tidewatch._call import UNSET
from tidewatch.evaluator._series import Scalar

T = TypeVar("T")
_COUNT_MAX = 1e15


class InvalidParameterError(Exception):
    """A parameter is missing, wrong or unknown; the verdict is then inconclusive, with this text as its reason."""


class Parameters:
    """The parameters of a rule. Those that no method has read are reported, as a misspelt one would have no effect.

    Read all of them before the first return.
    """

    def __init__(self, given: Mapping[str, Scalar]) -> None:
        self.given = dict(given)
        self._known: list[str] = []

    @overload
    def scalar(self, name: str) -> Scalar: ...
    @overload
    def scalar(self, name: str, default: T) -> Scalar | T: ...
    def scalar(self, name: str, default: object = UNSET) -> Any:
        """A number, string or boolean."""
        if name not in self._known:
            self._known.append(name)
        if name in self.given:
            return self.given[name]
        if default is not UNSET:
            return default
        raise InvalidParameterError(f"parameter `{name}` is missing")

    @overload
    def number(self, name: str) -> float: ...
    @overload
    def number(self, name: str, default: T) -> float | T: ...
    def number(self, name: str, default: object = UNSET) -> Any:
        """A number."""
        value = self.scalar(name, default)
        if name in self.given and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidParameterError(f"parameter `{name}` must be a number")
        return value

    @overload
    def positive(self, name: str) -> float: ...
    @overload
    def positive(self, name: str, default: T) -> float | T: ...
    def positive(self, name: str, default: object = UNSET) -> Any:
        """A number above 0."""
        value: Any = self.number(name, default)
        if name in self.given and value <= 0:
            raise InvalidParameterError(f"parameter `{name}` must be greater than 0")
        return value

    @overload
    def count(self, name: str, *, least: int = ...) -> int: ...
    @overload
    def count(self, name: str, default: T, *, least: int = ...) -> int | T: ...
    def count(self, name: str, default: object = UNSET, *, least: int = 1) -> Any:
        """An integer of at least `least`; 5.0 is one."""
        value: Any = self.number(name, default)
        if name not in self.given:
            return value
        if value % 1 != 0 or not least <= value <= _COUNT_MAX:
            raise InvalidParameterError(f"parameter `{name}` must be an integer of at least {least}")
        return int(value)

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self.scalar(name, default)
        if not isinstance(value, bool):
            raise InvalidParameterError(f"parameter `{name}` must be true or false")
        return value

    def one_of(self, name: str, words: Iterable[str], default: str | None = None) -> str:
        """One of some words."""
        value: object = self.scalar(name) if default is None else self.scalar(name, default)
        known = list(words)
        if value not in known:
            raise InvalidParameterError(f"parameter `{name}` must be one of {', '.join(known)}")
        return str(value)

    def check_all_read(self) -> None:
        """Raises an `InvalidParameterError` for a parameter that was not read."""
        for name in self.given:
            if name not in self._known:
                raise InvalidParameterError(f"parameter `{name}` is not one of {', '.join(self._known)}")
