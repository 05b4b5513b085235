"""The frames of a run by name, and all of them in a folder: Parquet and back, or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from gymkit.errors import ConfigError, StoreError
from gymkit.frames import failures, masks, parquet, rewards, tasks, tool_calls, trajectories
from gymkit.frames.column import CATEGORY, Column
from gymkit.frames.records import Records
from gymkit.nearest import nearest

Columns = tuple[Column[Any], ...]

_MAKERS: Final[Mapping[str, tuple[Columns, Callable[[Records], pd.DataFrame]]]] = {
    "tasks": (tasks.COLUMNS, lambda records: tasks.frame(records.tasks())),
    "rewards": (rewards.COLUMNS, rewards.frame),
    "masks": (masks.COLUMNS, masks.frame),
    "trajectories": (trajectories.COLUMNS, trajectories.frame),
    "tool_calls": (tool_calls.COLUMNS, tool_calls.frame),
    "failures": (failures.COLUMNS, failures.frame),
}

COLUMNS: Final[Mapping[str, Columns]] = MappingProxyType({name: columns for name, (columns, _) in _MAKERS.items()})
"""The declared columns by the name of the frame."""

SCALAR: Final = ("tasks", "rewards", "masks", "failures")
"""The frames without conversations."""


def frame(records: Records, name: str) -> pd.DataFrame:
    """The frame called ``name``. Raises ConfigError with the names there are."""
    if name not in _MAKERS:
        raise ConfigError(f"there is no frame {name!r}; {nearest(name, _MAKERS)}")
    return _MAKERS[name][1](records)


def to_parquet(records: Records, folder: Path) -> list[Path]:
    """Write every frame as ``folder/<name>.parquet``; returns the files. Raises MissingExtra, StoreError."""
    _make(folder)
    paths = []
    for name in COLUMNS:
        paths.append(folder / f"{name}.parquet")
        parquet.write(frame(records, name), paths[-1])
    return paths


def from_parquet(folder: Path, name: str) -> pd.DataFrame:
    """The frame that ``to_parquet`` wrote, with its dtypes. Raises StoreError when it is not there, MissingExtra."""
    path = folder / f"{name}.parquet"
    if not path.exists():
        raise StoreError(f"{path} is not there: give the folder that to_parquet wrote")
    return parquet.read(path, COLUMNS[name])


def to_csv(records: Records, folder: Path) -> list[Path]:
    """Write the frames without conversations as ``folder/<name>.csv``, UTF-8; returns the files. Raises StoreError."""
    _make(folder)
    paths = []
    for name in SCALAR:
        paths.append(folder / f"{name}.csv")
        frame(records, name).to_csv(paths[-1], index=False, lineterminator="\n")
    return paths


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with text in place of categories, for formats that have none."""
    names = [name for name in table if table[name].dtype == CATEGORY]
    return table.astype(dict.fromkeys(names, "string"))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}") from error
