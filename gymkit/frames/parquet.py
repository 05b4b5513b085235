"""A frame as a Parquet file and back: names, dtypes and values stay, lone surrogates in their stand-in form."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gymkit.errors import MissingExtra
from gymkit.frames.column import Column, conform

if TYPE_CHECKING:
    import pyarrow as pa


def write(frame: pd.DataFrame, path: str | Path) -> None:
    """Write ``frame`` to ``path``. Raises MissingExtra without pyarrow."""
    _need_pyarrow()
    frame.to_parquet(path, engine="pyarrow", index=False)


def read(path: str | Path, columns: Iterable[Column[Any]] = ()) -> pd.DataFrame:
    """Return the frame that ``write`` put at ``path``; ``columns`` are the ``COLUMNS`` of its grain.

    They give an empty frame its categories back, which Parquet only keeps where rows use them. Raises MissingExtra
    without pyarrow.
    """
    _need_pyarrow()
    return conform(pd.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable"), columns)


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return ``frame`` as an Arrow table, by way of Parquet, since pandas and pyarrow differ over time zones.

    Raises MissingExtra without pyarrow.
    """
    _need_pyarrow()
    import pyarrow.parquet as pq

    buffer = BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return pq.read_table(buffer)


def _need_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "parquet", "A Parquet file")
