"""One row a task: how its rollouts ended, its mean reward, and its pass@k, pass^k and majority@k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from gymkit.stats.interval import Floats
from gymkit.stats.passk import majority_at_k, pass_at_k, pass_hat_k
from gymkit.stats.scores import STATUSES, Scores

MAJORITY_LIMIT = 16
"""majority@k is given up to this k: the number of subsets grows fast, and the curve is flat by then."""

Labels = npt.NDArray[np.intp]


def task_table(scores: Scores, success: float, answers: pd.Series | None) -> pd.DataFrame:
    """The tasks of a run, in order of appearance.

    ``success`` is the reward from which an attempt passes; ``answers`` has one value for each row of
    ``scores.frame``. Returns task, expected, scored, masked, failed, missing, passes (Int64), mean (Float64; NA when
    nothing was scored), then ``pass@k``, ``pass^k`` and ``majority@k`` (Float64, NA with fewer than k scored).
    """
    labels, names = pd.factorize(scores.frame["task"])
    count = len(names)
    status = scores.frame["status"].to_numpy()
    scored = status == "scored"
    reward = scores.frame["reward"].to_numpy(dtype=float)
    columns: dict[str, Floats] = {"expected": _tally(labels, count)}
    columns |= {name: _tally(labels[status == name], count) for name in STATUSES}
    columns["passes"] = _tally(labels[scored & (reward >= success)], count)
    sums = np.bincount(labels[scored], weights=reward[scored], minlength=count)
    columns["mean"] = np.divide(sums, columns["scored"], out=np.full(count, np.nan), where=columns["scored"] > 0)
    most = int(columns["scored"].max(initial=0))
    for name, formula in (("pass@", pass_at_k), ("pass^", pass_hat_k)):
        columns |= _curve(name, formula, columns["scored"], columns["passes"], most)
    if answers is not None:
        columns |= _majority(labels, scored, reward, answers, min(most, MAJORITY_LIMIT), count)
    table = pd.DataFrame({name: pd.array(values, dtype="Float64") for name, values in columns.items()})
    whole = ["expected", *STATUSES, "passes"]
    table[whole] = table[whole].astype("Int64")
    table.insert(0, "task", names)
    return table


def _tally(labels: Labels, count: int) -> Floats:
    return np.bincount(labels, minlength=count).astype(float)


def _curve(name: str, formula: Callable[[int, int, int], float], n: Floats, c: Floats, most: int) -> dict[str, Floats]:
    """The formula for k = 1..most; tasks with the same n and c share the work."""
    pairs, place = np.unique(np.column_stack([n, c]).astype(int), axis=0, return_inverse=True)
    values = {k: np.array([formula(int(tries), int(passes), k) for tries, passes in pairs]) for k in range(1, most + 1)}
    return {f"{name}{k}": found[place.ravel()] for k, found in values.items()}


def _majority(
    labels: Labels,
    scored: npt.NDArray[np.bool_],
    reward: Floats,
    answers: pd.Series,
    most: int,
    count: int,
) -> dict[str, Floats]:
    table = np.full((most, count), np.nan)
    for label in range(count):
        rows = np.flatnonzero(scored & (labels == label))
        given = [answers.iloc[row] for row in rows]
        for k in range(1, min(len(rows), most) + 1):
            table[k - 1, label] = majority_at_k(given, reward[rows].tolist(), k)
    return {f"majority@{k}": table[k - 1] for k in range(1, most + 1)}
