"""A column as data, and a frame built from columns: the same names and dtypes whether rows come or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from gymkit.frames import cells

Source = TypeVar("Source")

CATEGORY: Final = "category"
_ROWS: Final = 2_048
_BYTES: Final = 4 * 2**20


@dataclass(frozen=True)
class Column(Generic[Source]):
    """One column of a frame: adding one is adding one of these to the list."""

    name: str
    """Name of the column."""
    dtype: str
    """``Int64``, ``Float64``, ``boolean``, ``string``, ``category``, ``datetime64[us, UTC]``, or ``object`` for
    arrays."""
    source: Callable[[Source], Any]
    """Where its cell comes from: given what a row is made of, the cell."""
    meaning: str
    """What it says, in one line, with its unit."""
    categories: tuple[str, ...] = ()
    """Of a category, the values that are always there; values beyond them are appended in the order of their coming."""


def array(dtype: str, values: Sequence[Any], categories: Sequence[str] = ()) -> ExtensionArray:
    """Return ``values`` as an array of ``dtype``, a cell that has no place in it as NA."""
    gathered = _Gathered(dtype, categories)
    gathered.take(values)
    return gathered.array()


def conform(frame: pd.DataFrame, columns: Iterable[Column[Any]]) -> pd.DataFrame:
    """Return ``frame`` with the declared dtypes, after a format that keeps less of them; other columns stay."""
    return frame.assign(**{column.name: _conformed(frame[column.name], column) for column in columns})


def _conformed(series: pd.Series[Any], column: Column[Any]) -> pd.Series[Any]:
    if column.dtype != CATEGORY:
        return series.astype(pd.api.types.pandas_dtype(column.dtype))
    seen = series.astype(CATEGORY).cat.categories
    names = [*column.categories, *(name for name in seen if name not in column.categories)]
    return series.astype(pd.CategoricalDtype(pd.Index(names, dtype=str)))


class Builder(Generic[Source]):
    """Gathers rows and turns them into arrays as they come, so that the cells are never all in memory as objects."""

    def __init__(self, columns: Sequence[Column[Source]]) -> None:
        self._columns = [(column, _Gathered(column.dtype, column.categories)) for column in columns]
        self._waiting: list[Source] = []
        self._bytes = 0

    def add(self, source: Source, size: int = 0) -> None:
        """Add the row made of ``source``, which holds about ``size`` bytes of text."""
        self._waiting.append(source)
        self._bytes += size
        if len(self._waiting) >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def frame(self, extra: Mapping[str, ExtensionArray] | None = None) -> pd.DataFrame:
        """Return the frame of all rows so far, with ``extra`` columns behind; the builder is empty afterwards."""
        self._flush()
        arrays = {column.name: gathered.array() for column, gathered in self._columns}
        return pd.DataFrame(arrays | dict(extra or {}), copy=False)

    def _flush(self) -> None:
        for column, gathered in self._columns:
            gathered.take(list(map(column.source, self._waiting)))
        self._waiting, self._bytes = [], 0


class _Gathered:
    """The arrays of one column, a part for each flush."""

    def __init__(self, dtype: str, categories: Sequence[str]) -> None:
        self._dtype = dtype
        self._codes = {name: code for code, name in enumerate(categories)}
        self._parts: list[Any] = []

    def take(self, values: Sequence[Any]) -> None:
        convert = self._encoded if self._dtype == CATEGORY else cells.ARRAYS[self._dtype]
        self._parts.append(convert(values))

    def _encoded(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        # Few values, often repeated: each is turned into text once a flush.
        if values.count(None) == len(values):
            return np.full(len(values), -1, dtype=np.int32)
        known = {value: self._code(value) for value in dict.fromkeys(v for v in values if type(v) is str)}
        coded = [known[value] if type(value) is str else self._code(value) for value in values]
        return np.array(coded, dtype=np.int32)

    def _code(self, value: Any) -> int:
        name = cells.text(value)
        return -1 if name is None else self._codes.setdefault(name, len(self._codes))

    def array(self) -> ExtensionArray:
        parts, self._parts = self._parts, []
        if self._dtype != CATEGORY:
            return _joined(parts)
        return pd.Categorical.from_codes(np.concatenate(parts), categories=pd.Index(list(self._codes), dtype=str))


def _joined(parts: list[ExtensionArray]) -> ExtensionArray:
    return parts[0] if len(parts) == 1 else pd.concat([pd.Series(part) for part in parts], ignore_index=True).array
