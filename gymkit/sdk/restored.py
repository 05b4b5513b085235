"""A run out of Parquet files: its frames and conversations, without the rows that they were made of."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymkit.errors import StoreError
from gymkit.sdk.rollouts import Rollouts
from gymkit.wire import codec

if TYPE_CHECKING:
    import pandas as pd

    from gymkit.frames.records import Records
    from gymkit.views.transcript import Transcript

CONFIG = "config.json"
"""What the run was, beside the frames."""


class Restored(Rollouts):
    """What ``Rollouts.from_parquet`` opens. ``path`` is the folder; frames are read on first use."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__(folder)
        if not (self.path / "rewards.parquet").exists():
            raise StoreError(f"{self.path} has no rewards.parquet: give the folder that to_parquet wrote")

    def _frame(self, name: str) -> pd.DataFrame:
        from gymkit.frames import grains

        return grains.from_parquet(self.path, name)

    @property
    def _records(self) -> Records:
        raise StoreError(f"{self.path} holds frames, not the rows of the run: open its .jsonl file for this")

    @cached_property
    def rewards(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("rewards")

    @cached_property
    def masks(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("masks")

    @cached_property
    def trajectories(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("trajectories")

    @cached_property
    def tool_calls(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("tool_calls")

    @cached_property
    def failures(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("failures")

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """As in ``Rollouts``."""
        return self._frame("tasks")

    @cached_property
    def config(self) -> dict[str, Any]:
        """As in ``Rollouts``; empty for frames without ``config.json`` beside them."""
        path = self.path / CONFIG
        found: dict[str, Any] = codec.loads(path.read_bytes()) if path.exists() else {}
        return found

    def conversation(self, task: int, rollout: int = 0) -> Transcript:
        """As in ``Rollouts``."""
        from gymkit.views.transcript import Transcript

        return Transcript(_of(self.trajectories, task, rollout), _of(self.tool_calls, task, rollout))


def _of(frame: pd.DataFrame, task: int, rollout: int) -> pd.DataFrame:
    chosen = frame[(frame["task_index"] == task) & (frame["rollout_index"] == rollout)]
    return chosen.reset_index(drop=True)


def write_config(config: dict[str, Any], folder: Path) -> None:
    """Keep what the run was beside its frames."""
    (folder / CONFIG).write_bytes(codec.dumps_indented(config))
