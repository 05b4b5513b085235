"""Cells in, nullable pandas array out, one function per dtype.

A cell comes from a file that anybody may have written, so nothing here raises for one: what has no place in the
column's dtype is NA. None, NaN and infinities are always NA.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from gymkit.frames.text import storable
from gymkit.wire import codec

MOMENT: Final = "datetime64[us, UTC]"
"""The dtype of a moment; its cells are unix seconds."""

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1
_LAST_YEARS: Final = 253_402_300_800.0
"""Unix seconds of the year 10000, where Python's own dates end."""
_NO_TIME: Final = _LOWEST
"""How NumPy writes "not a time"."""


def integer(value: Any) -> int | None:
    """Return ``value`` as an integer of 64 bits, None when it is not one."""
    if type(value) is int:
        return value if _LOWEST <= value <= _HIGHEST else None
    if type(value) is float and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    return None


def number(value: Any) -> float | None:
    """Return ``value`` as a finite float, None when it is not a number (a boolean is not)."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) is not int:
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def flag(value: Any) -> bool | None:
    """Return ``value`` as a boolean (0 and 1 count), None when it is not one."""
    if type(value) is bool:
        return value
    return bool(value) if type(value) in (int, float) and value in (0, 1) else None


def text(value: Any) -> str | None:
    """Return ``value`` as a frame holds it: text as it is, anything else as JSON."""
    if type(value) is str:
        return storable(value)
    return None if value is None else storable(codec.dumps(value).decode())


def _microseconds(value: Any) -> int | None:
    seconds = number(value)
    return None if seconds is None or not 0 <= seconds < _LAST_YEARS else round(seconds * 1e6)


def _cleaned(values: Sequence[Any], clean: Callable[[Any], Any], kind: type, fit: Callable[[Any], bool]) -> list[Any]:
    # Most of reading is this. Nearly every column holds one type and gaps, which ``map`` sees at the speed of C; if all
    # of its values fit as they are, none has to be looked at in Python.
    if set(map(type, values)) <= {kind, type(None)} and fit([value for value in values if value is not None]):
        return list(values)
    return [clean(value) for value in values]


def _in_range(values: list[int]) -> bool:
    return not values or (min(values) >= _LOWEST and max(values) <= _HIGHEST)


def _finite(values: list[float]) -> bool:
    return all(map(math.isfinite, values))


def _plain(values: list[str]) -> bool:
    return "".join(values).isascii()


def _filled(cells: list[Any], dtype: type, filler: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return ``cells`` as an array that has ``filler`` for None, and where that is."""
    gaps = cells.count(None)
    if gaps == len(cells):
        return np.full(gaps, filler, dtype), np.ones(gaps, dtype=bool)
    if not gaps:
        return np.array(cells, dtype), np.zeros(len(cells), dtype=bool)
    absent = np.array([cell is None for cell in cells], dtype=bool)
    return np.array([filler if cell is None else cell for cell in cells], dtype), absent


def _integers(values: Sequence[Any]) -> ExtensionArray:
    return pd.arrays.IntegerArray(*_filled(_cleaned(values, integer, int, _in_range), np.int64, 1))


def _numbers(values: Sequence[Any]) -> ExtensionArray:
    return pd.arrays.FloatingArray(*_filled(_cleaned(values, number, float, _finite), np.float64, 1.0))


def _flags(values: Sequence[Any]) -> ExtensionArray:
    return pd.arrays.BooleanArray(*_filled(_cleaned(values, flag, bool, lambda _: True), np.bool_, False))


def _texts(values: Sequence[Any]) -> ExtensionArray:
    return pd.array(_cleaned(values, text, str, _plain), dtype="string")


def _moments(values: Sequence[Any]) -> ExtensionArray:
    ticks, _ = _filled(_cleaned(values, _microseconds, float, operator.not_), np.int64, _NO_TIME)
    return pd.DatetimeIndex(ticks.view("M8[us]"), tz="UTC").array


def _objects(values: Sequence[Any]) -> ExtensionArray:
    cells = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):  # an assignment at once would look into arrays
        cells[index] = value
    return pd.arrays.NumpyExtensionArray(cells)


ARRAYS: Final[Mapping[str, Callable[[Sequence[Any]], ExtensionArray]]] = {
    "Int64": _integers,
    "Float64": _numbers,
    "boolean": _flags,
    "string": _texts,
    MOMENT: _moments,
    "object": _objects,
}
"""How the cells of a column become an array, by dtype; ``category`` is the business of ``column.Gathered``."""
