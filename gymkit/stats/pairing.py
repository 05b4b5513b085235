"""Two runs side by side, one row a task: who did better, and which two rollouts show it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gymkit.errors import ConfigError
from gymkit.stats.interval import Range
from gymkit.stats.scores import Scores, read_scores

OUTCOMES = ("win", "loss", "tie", "no score", "only in a", "only in b")


def read_pair(
    a: pd.DataFrame, b: pd.DataFrame, task: str | None, cluster: str | None, reward_range: Range | None
) -> tuple[Scores, Scores]:
    """Read two runs, with the same task column and the same reward range for both."""
    name = task or pairing_column(a, b)
    first, second = (read_scores(run, name, cluster, reward_range) for run in (a, b))
    if first.reward_range != second.reward_range:
        first, second = (Scores(run.frame, run.task, run.cluster, None) for run in (first, second))
    if not set(first.frame["task"]) & set(second.frame["task"]):
        raise ConfigError(f"the runs have no {name} in common; give task=<column that names a task in both>")
    return first, second


def pairing_column(a: pd.DataFrame, b: pd.DataFrame) -> str:
    """``task_id`` when both runs name every task with one, else ``task_index``.

    The index is a position in one file of tasks; the id still fits when the files differ.
    """
    return "task_id" if _has_ids(a) and _has_ids(b) else "task_index"


def _has_ids(run: pd.DataFrame) -> bool:
    if "task_id" not in run or run["task_id"].isna().any():
        return False
    if "task_index" not in run:
        return True
    pairs = run[["task_index", "task_id"]].drop_duplicates()
    return bool(len(pairs) == pairs["task_id"].nunique() == pairs["task_index"].nunique())


def paired_tasks(a: Scores, b: Scores) -> pd.DataFrame:
    """One row a task of either run.

    Returns task, cluster, expected_a, expected_b, scored_a, scored_b (Int64), mean_a, mean_b, difference (Float64,
    a minus b), outcome (category of ``OUTCOMES``), and task_index_a, rollout_index_a, task_index_b, rollout_index_b:
    the rollouts to look at. Those are the best and the worst of the side that won and lost, the first of both in a tie.
    """
    sides_of_task = [_per_task(run).set_index("task").add_suffix(f"_{side}") for side, run in (("a", a), ("b", b))]
    table = pd.concat(sides_of_task, axis=1, sort=False).rename_axis("task").reset_index()
    _check_clusters(table, a.cluster)
    means = table[["mean_a", "mean_b"]].to_numpy(dtype=float, na_value=np.nan)
    difference = means[:, 0] - means[:, 1]
    difference[np.abs(difference) < 1e-12] = 0.0  # means of thirds and the like differ by rounding only
    table["difference"] = pd.array(difference, dtype="Float64")
    table["outcome"] = _outcome(table)
    lost = (table["outcome"] == "loss").to_numpy(dtype=bool)
    for side, best in (("a", ~lost), ("b", lost)):
        for key in ("task_index", "rollout_index"):
            chosen = table[f"best_{key}_{side}"].where(best, table[f"worst_{key}_{side}"])
            shown = chosen.where(table["outcome"] != "tie", table[f"first_{key}_{side}"])
            table[f"{key}_{side}"] = shown.convert_dtypes()
    table["cluster"] = table["cluster_a"].where(table["cluster_a"].notna(), table["cluster_b"])
    sides = [f"{name}_{side}" for name in ("expected", "scored", "mean") for side in ("a", "b")]
    keys = ["task_index_a", "rollout_index_a", "task_index_b", "rollout_index_b"]
    return table[["task", "cluster", *sides, "difference", "outcome", *keys]]


def _per_task(run: Scores) -> pd.DataFrame:
    labels, names = pd.factorize(run.frame["task"])
    frame = run.frame.assign(label=labels)
    first = frame.drop_duplicates("label")
    table = pd.DataFrame({"task": names, "cluster": first["cluster"].to_numpy()})
    table["expected"] = pd.array(np.bincount(labels, minlength=len(names)), dtype="Int64")
    scored = frame[frame["status"] == "scored"]
    count = np.bincount(scored["label"], minlength=len(names))
    table["scored"] = pd.array(count, dtype="Int64")
    sums = np.bincount(scored["label"], weights=scored["reward"].to_numpy(dtype=float), minlength=len(names))
    means = np.divide(sums, count, out=np.full(len(names), np.nan), where=count > 0)
    table["mean"] = pd.array(means, dtype="Float64")
    worst, best = (scored.sort_values("reward", ascending=up, kind="stable") for up in (True, False))
    for place, rows in (("first", scored), ("worst", worst), ("best", best)):
        found = rows.drop_duplicates("label").set_index("label").reindex(range(len(names)))
        for key in ("task_index", "rollout_index"):
            table[f"{place}_{key}"] = found[key].convert_dtypes().to_numpy(dtype=object)
    return table


def _outcome(table: pd.DataFrame) -> pd.Categorical:
    difference = table["difference"].to_numpy(dtype=float, na_value=np.nan)
    only_a = table["expected_b"].isna().to_numpy(dtype=bool)
    only_b = table["expected_a"].isna().to_numpy(dtype=bool)
    choices = [only_a, only_b, np.isnan(difference), difference > 0, difference < 0]
    names = np.select(choices, ["only in a", "only in b", "no score", "win", "loss"], "tie")
    return pd.Categorical(names, categories=list(OUTCOMES))


def _check_clusters(table: pd.DataFrame, cluster: str) -> None:
    both = table["cluster_a"].notna() & table["cluster_b"].notna()
    wrong = table[both & (table["cluster_a"] != table["cluster_b"])]
    if len(wrong):
        row = wrong.iloc[0]
        raise ConfigError(
            f"task {row['task']} has {cluster} {row['cluster_a']!r} in one run and {row['cluster_b']!r} in the other"
        )
