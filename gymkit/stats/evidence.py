"""Which test and which interval fit a pair of runs, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.stats.interval import Floats, Interval, Range, cluster_mean, normal_quantile
from gymkit.stats.metrics import NAN, point
from gymkit.stats.paired import (
    mcnemar_exact,
    minimum_detectable,
    paired_difference,
    sign_flip,
    tango,
    tasks_needed,
)
from gymkit.stats.scores import Scores

POWER = 0.8
"""Chance to find a true difference, for the smallest difference to be seen and for the tasks needed."""


def judge(difference: Interval, p: float, level: float) -> str:
    """``better`` or ``worse`` when test and interval agree on it, else ``inconclusive``.

    The test has to give a ``p`` below 1 - ``level`` and the interval has to leave 0 out.
    """
    if not p < 1 - level or difference.low <= 0 <= difference.high:
        return "inconclusive"
    return "better" if difference.value > 0 else "worse"


@dataclass(frozen=True)
class Pairs:
    """The tasks with a score on both sides, and how to make an interval of their differences."""

    table: pd.DataFrame
    """Rows of ``paired_tasks`` that have a difference."""
    binary: bool
    """Rewards of 0 and 1, one scored rollout a task and side, tasks as units: the cases of Tango and McNemar."""
    repeats: float
    """Scored rollouts a task and side, on average."""
    reward_range: Range | None
    level: float

    @classmethod
    def of(cls, a: Scores, table: pd.DataFrame, level: float) -> Pairs:
        """The pairs of a ``paired_tasks`` table; ``a`` is either run, both have the same reward range."""
        paired = table[table["difference"].notna()]
        counts = paired[["scored_a", "scored_b"]].to_numpy(dtype=float)
        means = paired[["mean_a", "mean_b"]].to_numpy(dtype=float)
        binary = bool(a.cluster == a.task and (counts == 1).all() and np.isin(means, (0.0, 1.0)).all())
        return cls(paired, binary, float(counts.mean()) if counts.size else 1.0, a.reward_range, level)

    @property
    def differences(self) -> Floats:
        """Mean reward of the first run minus that of the second, for each task."""
        return self.table["difference"].to_numpy(dtype=float)

    @property
    def clusters(self) -> npt.ArrayLike:
        """The independent unit that each task belongs to."""
        return self.table["cluster"].to_numpy()

    def interval(self, differences: Floats, clusters: npt.ArrayLike) -> Interval:
        """The interval that fits these runs, for these or other differences between them."""
        if self.binary and np.isin(differences, (-1.0, 0.0, 1.0)).all():
            return tango(int((differences > 0).sum()), int((differences < 0).sum()), differences.size, self.level)
        width = None if self.reward_range is None else self.reward_range[1] - self.reward_range[0]
        return paired_difference(differences, clusters, repeats=self.repeats, width=width, level=self.level)

    def means(self) -> dict[str, Interval]:
        """Each run's mean over the paired tasks."""
        return {
            name: cluster_mean(
                self.table[name].to_numpy(dtype=float), self.clusters, reward_range=self.reward_range, level=self.level
            )
            for name in ("mean_a", "mean_b")
        }

    def test(self) -> dict[str, Interval]:
        """Difference, p-value, wins, losses and ties."""
        outcomes = self.table["outcome"].value_counts()
        wins, losses, ties = (int(outcomes.get(name, 0)) for name in ("win", "loss", "tie"))
        count = len(self.table)
        if not count:
            p, method = NAN, "none: no paired tasks"
        elif self.binary:
            p, method = mcnemar_exact(wins, losses), "exact McNemar"
        else:
            p, method = sign_flip(self.differences, self.clusters), "sign-flip"
        return {
            "difference": self.interval(self.differences, self.clusters),
            "p_value": point(p, count, method),
            **{
                name: point(value, count, "count")
                for name, value in (("wins", wins), ("losses", losses), ("ties", ties))
            },
        }

    def power(self, difference: Interval, verdict: str) -> dict[str, Interval]:
        """What this run could have seen; the standard error is the one that the interval implies."""
        se = (difference.high - difference.low) / 2 / normal_quantile(self.level)
        count, method = len(self.table), f"{POWER:.0%} power"
        needed = tasks_needed(difference.value, se, count, POWER, self.level)
        more = 0.0 if verdict != "inconclusive" else max(needed - count, 1.0)
        if np.isinf(more):
            more, method = NAN, "none: no difference seen"
        smallest = minimum_detectable(se, POWER, self.level)
        return {
            "minimum_detectable": point(smallest, count, f"{POWER:.0%} power"),
            "more_tasks": point(more, count, method),
        }
