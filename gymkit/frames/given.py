"""A user's own frame as task rows: what the rest of gymkit reads are dicts of plain values."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One dict per row of ``frame``, its columns as fields, its index left out.

    A missing cell (NaN, NA, NaT, None) is None; NumPy's numbers and arrays become numbers and lists, a date its ISO
    text. Raises ValueError for two columns of one name.
    """
    names = [str(name) for name in frame.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the frame has two columns called {twice[0]!r}")
    columns = [list(map(_plain, frame.iloc[:, place])) for place in range(len(names))]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _plain(cell: Any) -> Any:
    if isinstance(cell, dict):
        return {key: _plain(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple | np.ndarray):
        return [_plain(value) for value in cell]
    if cell is None or pd.isna(cell):
        return None
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return cell.item() if isinstance(cell, np.generic) else cell
