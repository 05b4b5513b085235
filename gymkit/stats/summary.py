"""How good, how sure, out of how many: the numbers of one run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gymkit.stats import display
from gymkit.stats.attempts import task_table
from gymkit.stats.interval import Interval, Range, cluster_mean
from gymkit.stats.metrics import NAN, metric, metric_frame, point
from gymkit.stats.scores import STATUSES, Scores, column, read_scores, repeats
from gymkit.stats.spread import spread

LABELS = {
    "mean": "mean of scored rollouts",
    "mean_over_tasks": "mean, each task counting the same",
    "lower_bound": "mean if every unscored rollout had the lowest reward",
    "upper_bound": "mean if every unscored rollout had the highest reward",
    "sd_between_tasks": "variation between tasks (standard deviation)",
    "sd_between_repeats": "variation between repeats of one task (standard deviation)",
    "se_other_tasks": "standard error, had other tasks been drawn",
    "se_same_tasks": "standard error, were these tasks run again",
}
CURVES = ("pass@", "pass^", "majority@")


@dataclass(frozen=True, repr=False)
class Summary:
    """What one run says. End a cell with it, or take ``frame``."""

    frame: pd.DataFrame
    """One row a number: metric string, value Float64, low Float64, high Float64 (the interval; NA where none belongs),
    n Int64 (rollouts for counts, independent units for means), method string."""
    tasks: pd.DataFrame
    """One row a task, as ``task_table`` describes."""
    warnings: tuple[str, ...]
    """What to know before the mean is believed; empty when there is nothing."""
    shape: str
    """Tasks and planned repeats, such as ``32 tasks × 4``."""
    level: float
    """Confidence level of the intervals."""

    def __getitem__(self, name: str) -> Interval:
        """Value and interval of one metric: ``summary["pass@2"].low``."""
        return metric(self.frame, name)

    @property
    def facts(self) -> str:
        """The denominators on one line."""
        count = {name: int(self[name].value) for name in ("expected", *STATUSES)}
        parts = [f"{count['scored']:,} of {count['expected']:,} scored"]
        parts += [f"{count['failed']:,} failed", f"{count['masked']:,} masked"]
        parts += [f"{count['missing']:,} missing"] if count["missing"] else []
        parts.append(self.shape)
        if count["scored"] < count["expected"]:
            parts.append(
                "bounds " + " / ".join(display.number(self[f"{side}_bound"].value) for side in ("lower", "upper"))
            )
        return " · ".join(parts)

    def __repr__(self) -> str:
        notes = [display.plain(f"note: {text}") for text in self.warnings]
        return "\n".join([f"mean {self['mean']} · {self.facts}", *notes])

    def _repr_html_(self) -> str:
        found = {name: self[name] for name in [*LABELS, *self._curve_names()]}
        rows = [
            [LABELS.get(name, name), *display.cells(cell.value, cell.low, cell.high), f"{cell.n:,}", cell.method]
            for name, cell in found.items()
            if not np.isnan(cell.value)
        ]
        head = ["", "value", f"{self.level:.0%} interval", "n", "method"]
        body = (
            display.table(head, rows, "Intervals say how far other tasks of the same kind would move a number.")
            if rows
            else ""
        )
        return display.card(f"mean {self['mean']}", self.facts, self.warnings, body)

    def _curve_names(self) -> list[str]:
        """Powers of two and the largest k: enough of each curve for a table."""
        names = []
        for curve in CURVES:
            known = [int(name[len(curve) :]) for name in self.frame["metric"] if name.startswith(curve)]
            names += [f"{curve}{k}" for k in known if k & (k - 1) == 0 or k == max(known)]
        return names


def summary(
    rewards: pd.DataFrame,
    *,
    task: str = "task_index",
    cluster: str | None = None,
    answer: str | None = None,
    success: float = 1.0,
    reward_range: Range | None = None,
    level: float = 0.95,
) -> Summary:
    """Summarise one run: denominators first, then means with intervals.

    ``rewards`` has one row a planned rollout (the frame of that name, or a table of your own with a task column and
    ``reward``). ``task`` names the column that says which rollouts repeat one task; ``cluster`` one that groups tasks
    which resemble each other (same repository, same document), and then groups are the independent units.
    ``answer`` names the column that majority@k votes on; a rollout passes with a reward of at least ``success``.
    ``reward_range`` is (lowest, highest) reward possible; without it [0, 1] is taken if all rewards lie there, and
    otherwise there are no bounds. The mean is over scored rollouts, equal to ``rewards.reward.mean()``.

    Raises ConfigError when a column is absent, a reward is no number, or a rollout occurs twice.
    """
    scores = read_scores(rewards, task, cluster, reward_range)
    answers = None if answer is None else column(rewards, answer).reset_index(drop=True)
    return summarise(scores, answers, success, level)


def summarise(scores: Scores, answers: pd.Series | None = None, success: float = 1.0, level: float = 0.95) -> Summary:
    """As ``summary``, of rollouts that are read already; ``answers`` has one value a row of ``scores.frame``."""
    tasks = task_table(scores, success, answers)
    found = _counts(scores) | _means(scores, tasks, level) | _variation(scores) | _curves(scores, tasks, level)
    shape = f"{display.plural(scores.tasks, 'task')} × {repeats(tasks['expected'].tolist())}"
    return Summary(metric_frame(found), tasks, _warnings(scores, tasks, found, success), shape, level)


def _counts(scores: Scores) -> dict[str, Interval]:
    return {name: point(count, len(scores.frame), "count") for name, count in scores.counts.items()} | {
        "tasks": point(scores.tasks, len(scores.frame), "count")
    }


def _means(scores: Scores, tasks: pd.DataFrame, level: float) -> dict[str, Interval]:
    scored = scores.scored
    values, clusters = scored["reward"].to_numpy(dtype=float), scored["cluster"].to_numpy()
    found = {
        "mean": cluster_mean(values, clusters, reward_range=scores.reward_range, level=level),
        "mean_over_tasks": _over_tasks(scores, tasks["mean"], scores.reward_range, level),
    }
    ends = scores.reward_range or (NAN, NAN)
    for name, end in zip(("lower_bound", "upper_bound"), ends, strict=True):
        full = scores.filled(end)
        method = "none: no reward_range" if scores.reward_range is None else f"unscored as {end:g}"
        found[name] = point(float(full.mean()) if full.size else NAN, full.size, method)
    return found


def _variation(scores: Scores) -> dict[str, Interval]:
    parts = spread(scores.scored)
    rollouts, clusters = len(scores.scored), int(scores.scored["cluster"].nunique())
    method = "one-way random effects"
    return {
        "sd_between_tasks": point(parts.sd_between_tasks, int(scores.scored["task"].nunique()), method),
        "sd_between_repeats": point(parts.sd_between_repeats, rollouts, method),
        "se_other_tasks": point(parts.se_other_tasks, clusters, "clustered"),
        "se_same_tasks": point(parts.se_same_tasks, rollouts, method),
    }


def _curves(scores: Scores, tasks: pd.DataFrame, level: float) -> dict[str, Interval]:
    names = [name for name in tasks.columns if name.startswith(CURVES)]
    ends = {name: scores.reward_range if name.startswith("majority@") else (0.0, 1.0) for name in names}
    return {name: _over_tasks(scores, tasks[name], ends[name], level) for name in names}


def _over_tasks(
    scores: Scores,
    values: pd.Series,
    reward_range: Range | None,
    level: float,
) -> Interval:
    """Mean over the tasks that have a value; the units are clusters of tasks."""
    known = values.notna().to_numpy(dtype=bool)
    clusters = scores.task_clusters[known]
    return cluster_mean(values[known].to_numpy(dtype=float), clusters, reward_range=reward_range, level=level)


def _warnings(scores: Scores, tasks: pd.DataFrame, found: dict[str, Interval], success: float) -> tuple[str, ...]:
    mean, lower, upper = found["mean"], found["lower_bound"].value, found["upper_bound"].value
    unscored = scores.counts["expected"] - scores.counts["scored"]
    unseen = int((tasks["scored"] == 0).sum())
    even = found["mean_over_tasks"].value
    values = scores.scored["reward"].to_numpy(dtype=float)
    number = display.number
    texts = []
    if unscored and (lower < mean.low or upper > mean.high or not mean.n):
        texts.append(
            f"the {display.plural(unscored, 'unscored rollout')} can move the mean more than chance does: counted as "
            f"lowest it is {number(lower)}, as highest {number(upper)}. A conclusion in this gap depends on it."
        )
    if unscored and scores.reward_range is None:
        texts.append("rewards lie outside 0..1, so there are no bounds: give reward_range=(lowest, highest).")
    if 0 < unseen < scores.tasks:
        texts.append(
            f"{unseen} of {display.plural(scores.tasks, 'task')} have no scored rollout and no part in the mean."
        )
    if mean.n and tasks["scored"].nunique() > 1:
        texts.append(
            f"tasks have {repeats(tasks['scored'].tolist())} scored rollouts: with each task counting the same the "
            f"mean is {number(even)}, and pass@k leaves out tasks with fewer than k."
        )
    if 0 < mean.n < 5:
        texts.append(f"only {display.plural(mean.n, 'independent unit')}: how other tasks would go is hardly known.")
    if values.size and not np.isin(values, (0.0, 1.0)).all():
        texts.append(f"rewards are not only 0 and 1: in pass@k and pass^k a pass is a reward of at least {success:g}.")
    return tuple(texts)
