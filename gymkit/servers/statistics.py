"""Descriptive statistics of rollouts by column, with NeMo Gym's names and, to the last digit, its numbers.

Not inference: intervals that a user should quote are in :mod:`gymkit.stats`. NeMo Gym computes with pandas on numpy,
so this module follows their order of operations: a missing value counts as zero inside a sum, sums of eight or more
are numpy's pairwise ones, variances take two passes and divide by n - 1. Done by column and group on plain lists it
costs a hundredth of the frames that it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Number = int | float
AGENT = "agent_ref"
TASK = "_ng_task_index"
ROLLOUT = "_ng_rollout_index"
_NOT_POINT_ESTIMATES = (
    *("/max", "/min", "/median", "/p5", "/p25", "/p75", "/p95", "/ci_low_95", "/ci_high_95", "/ci_lower", "/ci_upper"),
    *("_ci_lower", "_ci_upper", "_ci95_lower", "_ci95_upper", "/_ng_attempt_index"),
    *("/std_dev_across_runs", "/std_err_across_runs", "/avg_sample_std_dev"),
)
_OTHER_STATISTICS = (
    *("max/", "min/", "median/", "std/", "sem/", "se/", "p25/", "p75/", "ci_low_95/", "ci_high_95/", "histogram/"),
)
_BOOKKEEPING = frozenset(
    {"_ng_task_index", "_ng_rollout_index", "_ng_attempt_index", "sample_count", "missing_count", "num_repeats"}
    | {"token_usage_version"}
)


@dataclass(frozen=True)
class Measured:
    """The numbers of one scored rollout."""

    task: int
    """Task index."""
    rollout: int
    """Rollout index within the task."""
    agent: str | None
    """Label of what ran it; rollouts without one are in no agent's statistics."""
    numbers: Mapping[str, Number]
    """Value by column; NaN or absent is missing."""


def columns_of(rollouts: Iterable[Measured]) -> list[str]:
    """The columns of all rollouts, in the order in which they are first seen."""
    return list(dict.fromkeys(name for each in rollouts for name in each.numbers))


def integral(rollouts: Sequence[Measured], columns: Sequence[str]) -> bool:
    """True when every rollout has every column, as a whole number: then ``max/`` and ``min/`` stay whole."""
    return all(isinstance(each.numbers.get(name), int) for each in rollouts for name in columns)


def describe(rollouts: Sequence[Measured], columns: Sequence[str], whole: bool) -> dict[str, Number]:
    """``mean/ max/ min/ median/ std/`` of each column that has a value in ``rollouts``.

    ``std/`` needs two values; it is 0 for a column without gaps when no column has two. ``whole`` keeps extremes of
    whole numbers whole.
    """
    if len(rollouts) == 1:
        return _describe_one(rollouts[0].numbers, columns, int if whole else float)
    found = {name: _Column([each.numbers.get(name, math.nan) for each in rollouts]) for name in columns}
    found = {name: column for name, column in found.items() if column.present}
    stats: dict[str, Number] = {f"mean/{name}": column.mean() for name, column in found.items()}
    cast = int if whole else float
    stats |= {f"max/{name}": cast(max(column.present)) for name, column in found.items()}
    stats |= {f"min/{name}": cast(min(column.present)) for name, column in found.items()}
    stats |= {f"median/{name}": median(column.present) for name, column in found.items()}
    return stats | {f"std/{name}": value for name, value in _deviations(found).items()}


def _describe_one(numbers: Mapping[str, Number], columns: Sequence[str], cast: type[Number]) -> dict[str, Number]:
    """The same for one rollout: most runs have one of each task, and this is most of their aggregation."""
    values = [(name, numbers[name]) for name in columns if name in numbers and not math.isnan(numbers[name])]
    stats: dict[str, Number] = {f"mean/{name}": float(value) for name, value in values}
    stats |= {f"max/{name}": cast(value) for name, value in values}
    stats |= {f"min/{name}": cast(value) for name, value in values}
    stats |= {f"median/{name}": float(value) for name, value in values}
    return stats | {f"std/{name}": 0.0 for name, _ in values}


def _deviations(columns: Mapping[str, _Column]) -> dict[str, float]:
    found = {name: column.std() for name, column in columns.items() if len(column.present) > 1}
    return found or {name: 0.0 for name, column in columns.items() if len(column.present) == len(column.values)}


def repeat_level(rollouts: Sequence[Measured], columns: Sequence[str]) -> list[dict[str, Any]]:
    """One entry per agent and rollout index over the tasks that have it; none for an agent with a single index."""
    entries: list[dict[str, Any]] = []
    for agent in sorted({each.agent for each in rollouts if each.agent is not None}):
        own = [each for each in rollouts if each.agent == agent]
        indices, tasks = sorted({each.rollout for each in own}), len({each.task for each in own})
        if len(indices) > 1:
            entries += [_repeat(agent, index, own, tasks, sorted(columns)) for index in indices]
    return entries


def _repeat(agent: str, index: int, own: Sequence[Measured], tasks: int, columns: Sequence[str]) -> dict[str, Any]:
    here = [each for each in own if each.rollout == index]
    present = len({each.task for each in here})
    entry = {AGENT: {"name": agent}, ROLLOUT: index, "sample_count": present, "missing_count": tasks - present}
    for name in columns:
        values = _Column([each.numbers.get(name, math.nan) for each in here]).present
        if values:
            entry |= {f"{stat}/{name}": value for stat, value in _summary(values).items()}
    return entry


def _summary(values: Sequence[Number]) -> dict[str, float]:
    """The statistics of one column in one repeat."""
    column = _Column(values)
    mean, std = column.mean(), column.std() if len(values) > 1 else 0.0
    error = std / len(values) ** 0.5
    spread = {"min": float(min(values)), "max": float(max(values))}
    quartiles = {"p25": quantile(values, 0.25), "p75": quantile(values, 0.75)}
    head = {"mean": mean, "median": median(values), "std": std, "sem": error}
    return head | spread | quartiles | _interval(mean, error, len(values))


def across_repeats(repeats: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By agent: statistics over its repeats of each mean, each repeat being one observation."""
    names = [name for name in dict.fromkeys(key for entry in repeats for key in entry) if _is_point_estimate(name)]
    found: dict[str, dict[str, float]] = {}
    for agent in dict.fromkeys(entry[AGENT]["name"] for entry in repeats):
        own = [entry for entry in repeats if entry[AGENT]["name"] == agent]
        metrics = found[agent] = {}
        for name in names:
            if values := [entry[name] for entry in own if name in entry]:
                stats = _summary(values)
                stats["se"] = stats.pop("sem")
                order = ("mean", "median", "std", "min", "max", "se", "ci_low_95", "ci_high_95")
                metrics |= {f"{stat}_across_repeats/{name}": stats[stat] for stat in order if stat in stats}
    return found


def is_primary(name: str) -> bool:
    """Whether a metric is an estimate of its own, and no statistic of another one or bookkeeping."""
    return (
        name not in _BOOKKEEPING
        and not name.startswith(_OTHER_STATISTICS)
        and not name.endswith(_NOT_POINT_ESTIMATES)
        and "_across_repeats/" not in name
    )


def _is_point_estimate(name: str) -> bool:
    return name.startswith("mean/") and is_primary(name)


def _interval(mean: float, error: float, count: int) -> dict[str, float]:
    """The 95 % Student t interval; none for one value, a point for equal ones."""
    if count <= 1:
        return {}
    if error == 0:
        return {"ci_low_95": mean, "ci_high_95": mean}
    low, high = _student(count - 1)
    return {"ci_low_95": low * error + mean, "ci_high_95": high * error + mean}


@lru_cache(maxsize=1000)
def _student(freedom: int) -> tuple[float, float]:
    from scipy.special import stdtrit  # slow to import, and only runs with repeats need it

    return float(stdtrit(freedom, (1 - 0.95) / 2)), float(stdtrit(freedom, (1 + 0.95) / 2))


def median(values: Sequence[Number]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered, half = sorted(values), len(values) // 2
    return float(ordered[half]) if len(ordered) % 2 else (float(ordered[half - 1]) + float(ordered[half])) / 2


def quantile(values: Sequence[Number], share: float) -> float:
    """The ``share`` quantile, interpolated between neighbours from whichever is nearer, as numpy does."""
    ordered, place = sorted(values), (len(values) - 1) * share
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


class _Column:
    """The values of one column, gaps included."""

    def __init__(self, values: Sequence[Number]) -> None:
        self.values = values
        self.present = [value for value in values if value == value]

    def mean(self) -> float:
        return _total([value if value == value else 0.0 for value in self.values]) / len(self.present)

    def std(self) -> float:
        """Sample deviation of at least two present values."""
        mean = self.mean()
        gaps = [mean - value if value == value else 0.0 for value in self.values]
        return math.sqrt(_total([gap * gap for gap in gaps]) / (len(self.present) - 1))


def _total(values: Sequence[Number]) -> float:
    """The sum in numpy's order; ``sum`` compensates for rounding since Python 3.12 and so differs."""
    if len(values) >= 8:
        import numpy as np  # sums pairwise from 8 values on; below, one after another like the loop

        return float(np.add.reduce(np.asarray(values, dtype=np.float64)))
    total = 0.0
    for value in values:
        total += value
    return total
