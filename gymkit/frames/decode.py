"""The slow ways of reading a line, for what the fast decoder refuses: nothing that can be understood is dropped."""

from __future__ import annotations

import json
import math
import types
import typing
from typing import Any

import msgspec

from gymkit.frames.rows import Part
from gymkit.wire import codec


def load(line: bytes, odd: list[str]) -> Any:
    """Decode ``line`` as JSON, also with the numbers that JSON has no word for, which become null.

    Appends to ``odd`` what was read as null. Raises ValueError saying what is wrong.
    """
    try:
        return codec.loads(line)
    except ValueError as error:
        return _load_with_odd_numbers(line, odd, error)


def _load_with_odd_numbers(line: bytes, odd: list[str], error: ValueError) -> Any:
    def no_number(text: str) -> None:
        odd.append(text)

    def finite(text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        odd.append(text)
        return None

    try:
        value = json.loads(line.decode("utf-8", "surrogatepass"), parse_constant=no_number, parse_float=finite)
    except (ValueError, RecursionError):
        raise error from None
    if not odd:
        raise error
    return value


def shape(kind: Any, value: Any) -> Any:
    """Return ``value`` as the struct ``kind`` as far as it goes; what does not fit is left empty, text becomes JSON."""
    if kind is Any:
        return value
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for half a pair in a key
        pass
    arms = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    for arm in arms:
        if isinstance(arm, type) and issubclass(arm, msgspec.Struct):
            return _struct(arm, value)
        if typing.get_origin(arm) is list and isinstance(value, list):
            (element,) = typing.get_args(arm)
            return [shape(element, entry) for entry in value]
    return codec.dumps(value).decode() if str in arms else None


def _struct(kind: type[msgspec.Struct], value: Any) -> msgspec.Struct:
    if not isinstance(value, dict):
        return kind(text=value) if kind is Part and isinstance(value, str) else kind()
    found = {field.name: field for field in msgspec.structs.fields(kind) if field.encode_name in value}
    return kind(**{name: shape(field.type, value[field.encode_name]) for name, field in found.items()})
