"""What the statistics read of a run: for each planned rollout its task, its status and its reward.

A ``rewards`` frame has it all. A table of the user's own needs a task column and ``reward``; ``mask_sample``,
``failure_kind``, ``status`` and ``rollout_index`` are used when they are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.stats.interval import Floats, Range, to_unit

STATUSES = ("scored", "masked", "failed", "missing")


@dataclass(frozen=True)
class Scores:
    """The rollouts of one run."""

    frame: pd.DataFrame
    """One row a planned rollout: task, cluster, task_index, rollout_index, status, reward (NaN unless scored)."""
    task: str
    """Name of the column that says which rollouts belong to one task."""
    cluster: str
    """Name of the column whose values are the independent units; the task column unless another was asked for."""
    reward_range: Range | None
    """Lowest and highest reward possible; None when not known."""

    @cached_property
    def scored(self) -> pd.DataFrame:
        """The rows with a measured reward."""
        return self.frame[self.frame["status"] == "scored"]

    @cached_property
    def counts(self) -> dict[str, int]:
        """``expected`` and the four statuses, in this order."""
        found = self.frame["status"].value_counts()
        return {"expected": len(self.frame), **{status: int(found.get(status, 0)) for status in STATUSES}}

    @cached_property
    def tasks(self) -> int:
        """Number of different tasks, scored or not."""
        return int(self.frame["task"].nunique())

    @cached_property
    def task_clusters(self) -> npt.NDArray[np.object_]:
        """The cluster of each task, in order of appearance."""
        return self.frame.drop_duplicates("task")["cluster"].to_numpy(dtype=object)

    def filled(self, value: float) -> Floats:
        """All rewards, with ``value`` for each rollout that has none."""
        return self.frame["reward"].fillna(value).to_numpy(dtype=float)


def read_scores(
    rewards: pd.DataFrame, task: str = "task_index", cluster: str | None = None, reward_range: Range | None = None
) -> Scores:
    """Check ``rewards`` and take out what the statistics need.

    ``task`` and ``cluster`` name columns. ``reward_range`` defaults to (0, 1) when every reward lies in it and is
    unknown otherwise. Raises ConfigError for a column that is absent, a task without a name, a reward that is not a
    finite number, a rollout that occurs twice, a task in two clusters.
    """
    labels = _labels(rewards, task)
    reward = numbers(rewards)
    status = _status(rewards, reward)
    reward = reward.where(status == "scored")
    rollout = rewards["rollout_index"] if "rollout_index" in rewards else labels.groupby(labels).cumcount()
    frame = pd.DataFrame(
        {
            "task": labels,
            "cluster": labels if cluster is None else _labels(rewards, cluster),
            "task_index": rewards.get("task_index", labels),
            "rollout_index": rollout,
            "status": status,
            "reward": reward,
        }
    ).reset_index(drop=True)
    _check_rollouts(frame, task)
    _check_clusters(frame, task, cluster)
    return Scores(frame, task, cluster or task, find_range(reward, reward_range))


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """The column ``name``; a ConfigError that names the nearest one when it is absent."""
    if name in frame.columns:
        return frame[name]
    raise ConfigError(f"the frame has no column {name!r}: {nearest(name, map(str, frame.columns))}")


def find_range(reward: pd.Series, declared: Range | None) -> Range | None:
    """The ``declared`` range after a check that all rewards lie in it, else (0, 1) if they all lie there, else None."""
    seen = reward.dropna().to_numpy(dtype=float)
    if declared is not None:
        to_unit(seen, declared)
        return declared
    return (0.0, 1.0) if not seen.size or (seen.min() >= 0 and seen.max() <= 1) else None


def numbers(rewards: pd.DataFrame) -> pd.Series:
    """The column ``reward`` as float64 with NaN for missing; a ConfigError for text and infinities."""
    given = column(rewards, "reward")
    values = pd.to_numeric(given, errors="coerce").astype("Float64").astype("float64")
    wrong = (values.isna() & given.notna() & (given.astype(str).str.lower() != "nan")) | np.isinf(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong.to_numpy())[0])
        raise ConfigError(
            f"reward {given.iloc[row]!r} in row {row} is not a finite number; leave it empty if none was given"
        )
    return values


def _labels(rewards: pd.DataFrame, name: str) -> pd.Series:
    found = column(rewards, name)
    if found.isna().any():
        raise ConfigError(f"column {name!r} is empty in {int(found.isna().sum())} rows; every rollout needs one")
    return found


def _status(rewards: pd.DataFrame, reward: pd.Series) -> pd.Series:
    if "status" in rewards:
        given = rewards["status"].astype("string").astype(object)
        unknown = set(given.dropna()) - set(STATUSES)
        if unknown or given.isna().any():
            raise ConfigError(f"status {', '.join(sorted(unknown)) or 'is empty'}: it is one of {', '.join(STATUSES)}")
        return given.where((given != "scored") | reward.notna(), "missing")
    failed = rewards["failure_kind"].notna() if "failure_kind" in rewards else pd.Series(False, index=rewards.index)
    status = np.select([_masked(rewards), reward.notna(), failed], ["masked", "scored", "failed"], "missing")
    return pd.Series(status, index=rewards.index, dtype=object)


def _masked(rewards: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """``mask_sample`` as CSV readers deliver it: booleans, 0/1 or text."""
    if "mask_sample" not in rewards:
        return np.zeros(len(rewards), dtype=bool)
    return rewards["mask_sample"].astype(str).str.lower().isin(["true", "1", "1.0"]).to_numpy(dtype=bool)


def _check_rollouts(frame: pd.DataFrame, task: str) -> None:
    twice = frame.duplicated(["task", "rollout_index"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise ConfigError(
            f"rollout {row['rollout_index']} of {task} {row['task']} occurs more than once: the frame holds several "
            "runs. Keep one run, or compare them with compare()."
        )


def _check_clusters(frame: pd.DataFrame, task: str, cluster: str | None) -> None:
    if cluster is None or frame.empty:
        return
    spread = frame.groupby("task", sort=False)["cluster"].nunique()
    if (spread > 1).any():
        raise ConfigError(f"{task} {spread.idxmax()} lies in {spread.max()} groups of {cluster!r}; a task has one")


def repeats(counts: Iterable[int]) -> str:
    """``4`` or ``3–4``: how many rollouts the tasks have."""
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low}–{high}"
