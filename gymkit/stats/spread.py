"""Where the variation of rewards comes from: different tasks, or the same task done again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gymkit.stats.interval import cluster_se


@dataclass(frozen=True)
class Spread:
    """Variation of rewards in two parts, as standard deviations; NaN where the run cannot tell."""

    sd_between_tasks: float
    """How much true task means differ (one-way random effects, at least 0)."""
    sd_between_repeats: float
    """How much rollouts of one task differ."""
    se_other_tasks: float
    """Standard error of the mean when *other tasks* of the same kind would be drawn: what the interval uses."""
    se_same_tasks: float
    """Standard error of the mean when *these tasks* would be run again."""


def spread(scored: pd.DataFrame) -> Spread:
    """Split the variation of ``scored`` (columns task, cluster, reward without NaN).

    Method of moments of the one-way random-effects model with unequal group sizes. Source: S. R. Searle, G. Casella
    and C. McCulloch (1992), Variance components, section 3.6 (the ANOVA estimators).
    """
    values = scored["reward"].to_numpy(dtype=float)
    labels = pd.factorize(scored["task"])[0]
    sizes = np.bincount(labels).astype(float)
    tasks, total = len(sizes), values.size
    other = cluster_se(values, scored["cluster"].to_numpy()) if total else float("nan")
    if total == tasks:
        return Spread(float("nan"), float("nan"), other, float("nan"))
    first = values[np.unique(labels, return_index=True)[1]]
    shifted = values - first[labels]  # so that repeats which are all the same differ by 0, not by rounding
    over = np.bincount(labels, weights=shifted) / sizes
    means = first + over
    within = float(np.square(shifted - over[labels]).sum() / (total - tasks))
    between = float("nan")
    if tasks > 1:
        mean_square = float(sizes @ np.square(means - values.mean()) / (tasks - 1))
        typical = (total - np.square(sizes).sum() / total) / (tasks - 1)
        between = float(np.sqrt(max(mean_square - within, 0.0) / typical))
    return Spread(between, float(np.sqrt(within)), other, float(np.sqrt(within / total)))
