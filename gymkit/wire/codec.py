"""JSON bytes in and out, the same for HTTP bodies and for lines on disk.

orjson does the work; the standard library steps in for what orjson refuses but JSON can carry (lone surrogates).
Integers are exact up to 64 bits; a longer one is read as a float. NaN and infinities are not JSON.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """Encode ``value`` as compact UTF-8 JSON without a line end.

    NaN and infinities become ``null``, so whoever holds a measured number checks it first. Raises TypeError for a type
    that JSON has no place for, ValueError for what is nested too deeply to be read again.
    """
    try:
        return orjson.dumps(value, default=_packed)
    except TypeError:
        return _dumps_slowly(value)


def dumps_sorted(value: Any) -> bytes:
    """The same with the keys of every object in order, so that equal values give equal bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _dumps_slowly(value, sort_keys=True)


class Raw:
    """JSON that is written as it is, without being read: for what was read before, in one line of UTF-8."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of(cls, data: bytes) -> Raw | None:
        """``data`` to be written as it is; None where it could break a line or is no UTF-8."""
        if b"\n" in data or b"\r" in data:
            return None
        try:
            return cls(data) if data.isascii() or data.decode() else None
        except UnicodeDecodeError:
            return None


def _packed(value: Any) -> Any:
    if isinstance(value, Raw):
        return orjson.Fragment(value.data)
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _unpacked(value: Any) -> Any:
    if isinstance(value, Raw):
        return loads(value.data)
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _dumps_slowly(value: Any, *, sort_keys: bool = False) -> bytes:
    try:
        text = json.dumps(value, separators=(",", ":"), sort_keys=sort_keys, default=_unpacked)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=lambda _: None), separators=(",", ":"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return text.encode()


def dumps_indented(value: Any) -> bytes:
    """The same for a file that people read: two spaces a level."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:
        return json.dumps(value, indent=2).encode()


def loads(data: bytes) -> Any:
    """Decode JSON bytes. Raises ValueError saying what is wrong and where (never another type)."""
    try:
        return orjson.loads(data)
    except ValueError:
        return _loads_slowly(data)


def _loads_slowly(data: bytes) -> Any:
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte {error.start}") from error
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _whole(text: str) -> int | float:
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**64 else _finite(text)
