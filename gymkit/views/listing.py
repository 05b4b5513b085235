"""A frame to look through: filtered, sorted and cut into pages, without a widget in sight.

Everything is a position in the frame; rows are only built for the page at hand, so 100,000 of them cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.views.conversation import rows

__all__ = ["Filter", "Listing"]

Positions = npt.NDArray[np.intp]

EXAMPLE: Final = "reward < 1 and status == 'scored'"


@dataclass(frozen=True)
class Filter:
    """Which rows are wanted; each part narrows, and a part that is not set leaves all."""

    query: str = ""
    """An expression over the columns, as ``DataFrame.query`` reads it."""
    among: tuple[tuple[str, frozenset[str]], ...] = ()
    """Columns with the values that are wanted in each, as text; a missing value is the empty text."""
    between: tuple[tuple[str, float, float], ...] = ()
    """Columns of numbers with the lowest and highest wanted, both included; a missing number is outside."""

    def __bool__(self) -> bool:
        return bool(self.query.strip() or self.among or self.between)


class Listing:
    """``frame`` under a filter and in an order. ``keys`` are the columns that name a row; ConfigError without them."""

    def __init__(self, frame: pd.DataFrame, keys: Sequence[str]) -> None:
        for name in keys:
            if name not in frame:
                raise ConfigError(f"the frame has no column {name!r}; {nearest(name, map(str, frame.columns))}")
        self.frame = frame
        self.keys = tuple(keys)
        self.filter = Filter()
        self.sorted_by: str | None = None
        self.descending = False
        self._matching: Positions = np.arange(len(frame))
        self._order = self._matching

    def __len__(self) -> int:
        return len(self._order)

    @property
    def matches(self) -> pd.DataFrame:
        """The rows that the filter leaves, in the order shown."""
        return self.frame.iloc[self._order]

    def narrow(self, wanted: Filter) -> None:
        """Apply another filter. Raises ConfigError, with a sentence to show, and then keeps the present one."""
        self._matching = np.flatnonzero(self._mask(wanted))
        self.filter = wanted
        self._arrange()

    def sort(self, column: str | None, descending: bool = False) -> None:
        """Sort by ``column``, rows without a value last; None: as the frame is. Raises ConfigError."""
        if column is not None and column not in self.frame:
            raise ConfigError(f"there is no column {column!r}; {nearest(column, map(str, self.frame.columns))}")
        self.sorted_by, self.descending = column, descending
        self._arrange()

    def rows(self, start: int, stop: int) -> list[dict[str, Any]]:
        """Return the rows from place ``start`` to ``stop`` of the order, a missing value as None."""
        return rows(self.frame.iloc[self._order[start:stop]])

    def row(self, position: int) -> dict[str, Any]:
        """Return the row at a position of the frame, a missing value as None."""
        return rows(self.frame.iloc[[position]])[0]

    def at(self, place: int) -> int:
        """Return the position in the frame of what is at ``place``."""
        return int(self._order[place])

    def place(self, position: int) -> int | None:
        """Return the place of a position of the frame, None when the filter leaves it out."""
        found = np.flatnonzero(self._order == position)
        return int(found[0]) if len(found) else None

    def position(self, key: Sequence[Hashable]) -> int:
        """Return the position in the frame of the row named by ``key``; 3 names "3" too. Raises ConfigError."""
        same = np.ones(len(self.frame), dtype=bool)
        for name, value in zip(self.keys, key, strict=True):
            column = self.frame[name]
            exact = (column == value).fillna(False).to_numpy(dtype=bool)
            same &= exact if exact.any() else (_text(column) == str(value)).to_numpy(dtype=bool)
        found = np.flatnonzero(same)
        if not len(found):
            wanted = ", ".join(f"{name} {value}" for name, value in zip(self.keys, key, strict=True))
            raise ConfigError(f"there is no row with {wanted} among the {len(self.frame):,}")
        return int(found[0])

    def counts(self, column: str) -> dict[str, int]:
        """Return how often each value of ``column`` occurs in the whole frame, as text, missing as the empty text."""
        found = _text(self.frame[column]).value_counts(sort=False)
        order = self.frame[column].cat.categories if isinstance(self.frame[column].dtype, pd.CategoricalDtype) else ()
        names = [*(name for name in map(str, order) if name in found), *found.index]
        return {str(name): int(found[name]) for name in dict.fromkeys(names)}

    def _mask(self, wanted: Filter) -> npt.NDArray[np.bool_]:
        mask = np.ones(len(self.frame), dtype=bool)
        for column, values in wanted.among:
            mask &= _text(self.frame[column]).isin(values).to_numpy(dtype=bool)
        for column, low, high in wanted.between:
            mask &= self.frame[column].between(low, high).fillna(False).to_numpy(dtype=bool)
        return mask & matching(self.frame, wanted.query) if wanted.query.strip() else mask

    def _arrange(self) -> None:
        if self.sorted_by is None:
            self._order = self._matching
            return
        column = self.frame[self.sorted_by].reset_index(drop=True).iloc[self._matching]
        self._order = np.asarray(_sorted(column, self.descending).index, dtype=np.intp)


def matching(frame: pd.DataFrame, query: str) -> npt.NDArray[np.bool_]:
    """Return for each row of ``frame`` whether ``query`` holds; a comparison with a missing value does not.

    Raises ConfigError with one sentence on what is wrong with the query.
    """
    try:
        found = frame.eval(" ".join(query.split()), engine="python", local_dict={}, global_dict={})
    except pd.errors.UndefinedVariableError as error:
        raise ConfigError(_unknown_name(error, frame)) from None
    except SyntaxError as error:
        raise ConfigError(f"this is not an expression that pandas reads ({error.msg}); try {EXAMPLE}") from None
    except Exception as error:  # noqa: BLE001 - an expression can fail in as many ways as Python
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"this filter cannot be evaluated: {reason[:300]}; try {EXAMPLE}") from None
    if not isinstance(found, pd.Series) or not pd.api.types.is_bool_dtype(found.dtype) or len(found) != len(frame):
        raise ConfigError(f"a filter is true or false for each row, and this is neither; try {EXAMPLE}")
    return found.fillna(False).to_numpy(dtype=bool)


def _unknown_name(error: NameError, frame: pd.DataFrame) -> str:
    name = str(error).split("'")[1] if "'" in str(error) else str(error)
    if "local variable" in str(error):
        return f"@{name} is a variable of a notebook, which a filter does not see: write its value"
    plain = [column for column in map(str, frame.columns) if column.isidentifier()]
    return f"there is no column {name}; {nearest(name, plain)} (text wants quotes, as in {EXAMPLE})"


def _sorted(column: pd.Series[Any], descending: bool) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.astype("Int64")
        column = codes.mask(codes < 0)
    try:
        return column.sort_values(ascending=not descending, kind="stable", na_position="last")
    except TypeError:  # values of several types have no order but that of their texts
        return column.astype("string").sort_values(ascending=not descending, kind="stable", na_position="last")


def _text(column: pd.Series[Any]) -> pd.Series[str]:
    return column.astype("string").fillna("")
