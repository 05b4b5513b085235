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
_ROWS: Final = 20_000
_BYTES: Final = 16 * 2**20


@dataclass(frozen=True)
class Column(Generic[Source]):
    """One column of a frame: adding one is adding one of these to the list."""

    name: str
    """Name of the column."""
    dtype: str
    """``Int64``, ``Float64``, ``boolean``, ``string``, ``category`` or ``datetime64[us, UTC]``."""
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
    values = series.astype(object).where(series.notna(), None)
    return pd.Series(array(CATEGORY, list(values), column.categories), index=series.index)


class Builder(Generic[Source]):
    """Gathers rows and turns them into arrays as they come, so that the cells are never all in memory as objects."""

    def __init__(self, columns: Sequence[Column[Source]]) -> None:
        self._sources = [column.source for column in columns]
        self._gathered = {column.name: _Gathered(column.dtype, column.categories) for column in columns}
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, source: Source, size: int = 0) -> None:
        """Add the row made of ``source``, which holds about ``size`` bytes of text."""
        self._rows.append(tuple([cell(source) for cell in self._sources]))
        self._bytes += size
        if len(self._rows) >= _ROWS or self._bytes >= _BYTES:
            self._flush()

    def frame(self, extra: Mapping[str, ExtensionArray] | None = None) -> pd.DataFrame:
        """Return the frame of all rows so far, with ``extra`` columns behind; the builder is empty afterwards."""
        self._flush()
        return pd.DataFrame({name: column.array() for name, column in self._gathered.items()} | dict(extra or {}))

    def _flush(self) -> None:
        for column, values in zip(self._gathered.values(), zip(*self._rows, strict=True), strict=False):
            column.take(values)
        self._rows, self._bytes = [], 0


class _Gathered:
    """The arrays of one column, a part for each flush."""

    def __init__(self, dtype: str, categories: Sequence[str]) -> None:
        self._dtype = dtype
        self._codes: dict[str | None, int] = {None: -1} | {name: code for code, name in enumerate(categories)}
        self._parts: list[Any] = []

    def take(self, values: Sequence[Any]) -> None:
        convert = self._encoded if self._dtype == CATEGORY else cells.ARRAYS[self._dtype]
        self._parts.append(convert(values))

    def _encoded(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        codes = self._codes
        coded = [codes.setdefault(cells.text(value), len(codes) - 1) for value in values]
        return np.array(coded, dtype=np.int32)

    def array(self) -> ExtensionArray:
        parts, self._parts = self._parts, []
        if self._dtype != CATEGORY:
            return _joined(parts) if parts else cells.ARRAYS[self._dtype]([])
        names = pd.Index([name for name in self._codes if name is not None], dtype=str)
        codes = np.concatenate(parts) if parts else np.array([], dtype=np.int32)
        return pd.Categorical.from_codes(codes.tolist() if not len(codes) else codes, categories=names)


def _joined(parts: list[ExtensionArray]) -> ExtensionArray:
    return parts[0] if len(parts) == 1 else pd.concat([pd.Series(part) for part in parts], ignore_index=True).array
