"""The same careful mean for every value of a column."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from gymkit.errors import ConfigError
from gymkit.stats.interval import Range
from gymkit.stats.scores import STATUSES, column, find_range, numbers, read_scores
from gymkit.stats.summary import Summary, summarise

COUNTS = ("expected", *STATUSES, "tasks")
NUMBERS = ("mean", "low", "high", "lower_bound", "upper_bound")


def by(
    rewards: pd.DataFrame,
    *columns: str,
    task: str = "task_index",
    cluster: str | None = None,
    reward_range: Range | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Summarise each slice of ``rewards``: one row for each combination of values of ``columns``.

    The other parameters are those of ``summary``; without ``reward_range`` all slices share the one of the whole
    frame. Returns ``columns``, expected, scored, masked, failed, missing, tasks (Int64), mean, low, high, lower_bound,
    upper_bound (Float64), method, note (string; what to beware of in this slice). A slice without a value is kept.
    Intervals are for one slice each, not for the best of many. Raises ConfigError as ``summary`` does.
    """
    if not columns:
        raise ConfigError("by() needs the name of a column to slice by, such as by(rewards, 'agent')")
    for name in columns:
        column(rewards, name)
    shared = find_range(numbers(rewards), reward_range)
    groups = rewards.groupby(list(columns), dropna=False, observed=True, sort=False)
    rows = []
    for key, part in groups:
        scores = replace(read_scores(part, task, cluster), reward_range=shared)
        rows.append(dict(zip(columns, key, strict=True)) | _row(summarise(scores, level=level)))
    types = dict.fromkeys(COUNTS, "Int64") | dict.fromkeys(NUMBERS, "Float64") | {"method": "string", "note": "string"}
    frame = pd.DataFrame(rows, columns=[*columns, *types]).astype(types)
    return frame.astype({name: rewards[name].dtype for name in columns})


def _row(found: Summary) -> dict[str, object]:
    mean = found["mean"]
    counts = {name: int(found[name].value) for name in COUNTS}
    bounds = {name: found[name].value for name in ("lower_bound", "upper_bound")}
    ends = {"mean": mean.value, "low": mean.low, "high": mean.high}
    return counts | ends | bounds | {"method": mean.method, "note": " ".join(found.warnings)}
