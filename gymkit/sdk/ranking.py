"""Several runs against one baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymkit.sdk.rollouts import Rollouts
    from gymkit.stats import Ranking


def compare_many(
    runs: Mapping[str, Rollouts],
    *,
    baseline: str,
    cluster: str | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Ranking:
    """Compare each of ``runs`` (name: rollouts) with the one called ``baseline``, task by task, best first.

    The more runs there are, the likelier one looks better by luck, so p-values are corrected for their number (Holm).
    ``cluster`` names a column of ``rewards`` whose groups are the independent units; ``reward_range`` is the lowest
    and highest reward, where that is not 0 and 1. ``ranking[name]`` is one run's own comparison, ``ranking.frame`` has
    a row each: run, mean, baseline_mean, difference, low, high, p, p_holm, wins, losses, ties, paired_tasks, verdict.
    Raises ConfigError when ``baseline`` is not among the names, or runs have no task in common.
    """
    from gymkit import stats

    frames = {name: run.rewards for name, run in runs.items()}
    return stats.compare_many(frames, baseline=baseline, cluster=cluster, reward_range=reward_range)
