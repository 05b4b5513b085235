"""Two runs on the same tasks: how sure is the difference, and what would make it surer.

A difference is taken task by task, so what makes tasks hard or easy for both drops out. ``differences`` below always
means one number a task: mean reward of the one run minus mean reward of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.errors import ConfigError
from gymkit.stats.interval import CLUSTER_T, Floats, Interval, normal_quantile, t_quantile

TANGO = "Tango paired score"
PAIRED = "paired, two pseudo-flips"
EXACT_TASKS = 12
"""Up to so many tasks that differ, the sign-flip test goes through all 2^n sign patterns."""
DRAWS = 9999
"""Random sign patterns of the sign-flip test beyond that; the p-value's own error is then below 0.0022 at p = 0.05."""

# Weight of one imaginary task in each direction that differs by one rollout's worth. A t interval without it held the
# truth in 75 to 90 % of simulated runs when few of 20 to 50 tasks differed.
PSEUDO_FLIP = 0.25


def tango(wins: int, losses: int, tasks: int, level: float = 0.95) -> Interval:
    """Score interval of (wins - losses) / tasks for 0/1 rewards with one rollout a task on both sides.

    ``tasks`` counts the ties too. Never of width zero. Source: T. Tango (1998), Equivalence test and confidence
    interval for the difference in proportions for the paired-sample design, Statistics in Medicine 17, 891-908.
    """
    if min(wins, losses) < 0 or wins + losses > tasks:
        raise ConfigError(f"{wins} wins and {losses} losses in {tasks} tasks do not fit together")
    if tasks == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, "none: no paired tasks")
    z, value = normal_quantile(level), (wins - losses) / tasks
    low = -1.0 if losses == tasks else _crossing(wins, losses, tasks, z, -1.0, value)
    high = 1.0 if wins == tasks else _crossing(wins, losses, tasks, -z, value, 1.0)
    return Interval(value, low, high, tasks, TANGO)


def _crossing(wins: int, losses: int, tasks: int, target: float, low: float, high: float) -> float:
    """Where the score statistic, which falls as the assumed difference grows, equals ``target``; by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if _tango_score(wins, losses, tasks, middle) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _tango_score(wins: int, losses: int, tasks: int, difference: float) -> float:
    """Tango's statistic; the loss rate under the assumed ``difference`` is the root of a quadratic."""
    linear = (2 * tasks - wins + losses) * difference - wins - losses
    constant = -losses * difference * (1 - difference)
    rate = (np.sqrt(linear**2 - 8 * tasks * constant) - linear) / (4 * tasks)
    variance = tasks * (2 * rate + difference * (1 - difference))
    return float((wins - losses - tasks * difference) / np.sqrt(max(variance, 1e-300)))


def paired_difference(
    differences: npt.ArrayLike,
    clusters: npt.ArrayLike | None = None,
    *,
    repeats: float = 1.0,
    width: float | None = 1.0,
    level: float = 0.95,
) -> Interval:
    """Mean of ``differences`` with an interval over ``clusters`` (default: each task its own).

    ``repeats`` is the usual number of rollouts a task and run, ``width`` the width of the reward range. Two imaginary
    tasks of weight ``PSEUDO_FLIP`` that differ by sqrt(1 / repeats) of that width, one each way, steady the spread
    when most tasks tie. Without a ``width`` it is Student's t, and NaN when there is no spread to judge from.
    Sources: E. Miller (2024), arXiv:2411.00640, section 4 (paired, clustered); A. Agresti and Y. Min (2005), Simple
    improved confidence intervals for comparing matched proportions, Statistics in Medicine 24, 729-740.
    """
    data = np.asarray(differences, dtype=float)
    if data.size == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, "none: no paired tasks")
    labels = np.arange(data.size) if clusters is None else pd.factorize(np.asarray(clusters))[0]
    sizes = np.bincount(labels).astype(float)
    means, weights = np.bincount(labels, weights=data) / sizes, sizes / sizes.mean()
    if width is None:
        return _paired_t(float(data.mean()), means, weights, level)
    total = len(sizes) + 2 * PSEUDO_FLIP
    centre = float(weights @ means / total)
    flip = 2 * PSEUDO_FLIP * (width**2 / repeats + centre**2)
    square = float(np.square(weights) @ np.square(means - centre)) + flip
    half = normal_quantile(level) * float(np.sqrt(square / (total * (total - 1))))
    value = float(data.mean())
    low, high = max(centre - half, -width), min(centre + half, width)
    return Interval(value, min(low, value), max(high, value), len(sizes), PAIRED)


def _paired_t(value: float, means: Floats, weights: Floats, level: float) -> Interval:
    count = len(means)
    if count < 2 or np.ptp(means) == 0:
        return Interval(value, float("nan"), float("nan"), count, "none: no spread and no reward_range")
    square = float(np.square(weights) @ np.square(means - value))
    half = t_quantile(level, count - 1) * float(np.sqrt(square / (count * (count - 1))))
    return Interval(value, value - half, value + half, count, CLUSTER_T)


def mcnemar_exact(wins: int, losses: int) -> float:
    """Two-sided p-value that wins and losses are equally likely; ties do not count, and 1 without either.

    Binomial test of ``wins`` in ``wins + losses`` at one half. Source: Q. McNemar (1947), Psychometrika 12, 153-157,
    in its exact form.
    """
    from scipy.special import bdtr

    return float(min(1.0, 2 * bdtr(min(wins, losses), wins + losses, 0.5)))


def sign_flip(differences: npt.ArrayLike, clusters: npt.ArrayLike | None = None, seed: int = 0) -> float:
    """Two-sided p-value that each cluster's difference could as well have had the other sign.

    Exact up to ``EXACT_TASKS`` clusters that differ, else from ``DRAWS`` random sign patterns of a generator started
    with ``seed``, counting the one observed. Sources: R. A. Fisher (1935), The design of experiments, section 21;
    B. Phipson and G. Smyth (2010), Permutation p-values should never be zero, SAGMB 9, article 39.
    """
    data = np.asarray(differences, dtype=float)
    if clusters is not None:
        data = np.bincount(pd.factorize(np.asarray(clusters))[0], weights=data)
    data = data[np.abs(data) > 1e-12]
    if data.size == 0:
        return 1.0
    # sums that differ by rounding only are ties
    seen = abs(data.sum()) - 1e-9 * np.abs(data).sum()
    if data.size <= EXACT_TASKS:
        return float((np.abs(_signs(data.size) @ data) >= seen).mean())
    extreme = int((np.abs(_flipped_sums(data, seed)) >= seen).sum())
    return (extreme + 1) / (DRAWS + 1)


def _signs(count: int) -> npt.NDArray[np.int8]:
    """All 2^count patterns of +1 and -1, one a row."""
    bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return (1 - 2 * bits).astype(np.int8)


def _flipped_sums(data: Floats, seed: int) -> Floats:
    """Sums under random signs. One random byte picks the signs of eight tasks from their 256 possible sums."""
    generator = np.random.default_rng(seed)
    signs, sums = _signs(8), np.zeros(DRAWS)
    padded = np.zeros(-(-data.size // 8) * 8)
    padded[: data.size] = data
    for eight in padded.reshape(-1, 8):
        sums += (signs @ eight)[generator.integers(0, 256, DRAWS, dtype=np.uint8)]
    return sums


def minimum_detectable(se: float, power: float = 0.8, level: float = 0.95) -> float:
    """Smallest true difference that a run with standard error ``se`` finds with the given ``power``.

    (z for the level + z for the power) * se. Source: E. Miller (2024), arXiv:2411.00640, section 5.
    """
    return (normal_quantile(level) + NormalDist().inv_cdf(power)) * se


def tasks_needed(difference: float, se: float, tasks: int, power: float = 0.8, level: float = 0.95) -> float:
    """How many tasks in all would find a true difference of this size, from a run of ``tasks`` with error ``se``.

    The error falls with the square root of the number of tasks. Infinite for a difference of 0.
    """
    if difference == 0:
        return float("inf")
    return float(np.ceil(tasks * (minimum_detectable(se, power, level) / abs(difference)) ** 2))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number, in the given order; NaN stays NaN and is not counted.

    The i-th smallest of m is multiplied by m - i + 1 and never falls below a smaller one. Source: S. Holm (1979),
    A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6, 65-70.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return [float(value) for value in adjusted]
